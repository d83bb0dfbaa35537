"""The settings bar: keys, chosen values, and values of only the next run."""

from typing import Any

import pytest


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
async def test_the_footer_and_the_settings_bar_name_their_keys(world: Any, size: tuple[int, int]) -> None:
    """The footer has the actions, the settings bar those of the settings."""
    async with world.cockpit(size) as cockpit:
        footer = cockpit.text().splitlines()[-1]
        for word in ("space", "pause", "network", "peer", "help", "quit"):
            assert word in footer
        toggles = cockpit.line(2)
        assert all(key in toggles for key in ("d ", "+- ", "[] ", "t "))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_settings_of_only_the_next_run_are_marked_so(world: Any, size: tuple[int, int]) -> None:
    """The probe starts before the payload, so a run in progress cannot get one; nor another duration."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("t", "l")
        assert "next run" not in cockpit.line(2)
        await cockpit.press("space")
        world.script.run_for(8, 9e9)
        await cockpit.settle()
        assert "next run" not in cockpit.line(2)
        await cockpit.press("l")
        assert "[no latency] ▸next run" in cockpit.line(2)
        await cockpit.press("l", "t")
        assert "▸next run" in cockpit.line(2)
        assert "no latency" not in cockpit.line(2)
