"""The first lines of a run: hosts and state, keys, chosen values, and values of only the next run."""

from typing import Any

import pytest
from linkgauge.engine.model.events import Started
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.presets.auto_select import NO_PRESET

FAR = Peer("db-02")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
async def test_the_footer_and_the_settings_bar_name_their_keys(world: Any, size: tuple[int, int]) -> None:
    """The footer has the actions, the settings bar those of the settings."""
    async with world.cockpit(size) as cockpit:
        footer = cockpit.text().splitlines()[-1]
        for word in ("space", "freeze", "network", "connect", "help", "quit"):
            assert word in footer
        toggles = cockpit.line(2)
        assert all(key in toggles for key in ("d ", "+- ", "[] ", "t "))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_settings_for_the_next_run_only_are_marked(world: Any, size: tuple[int, int]) -> None:
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


async def test_a_hostname_of_a_peer_cannot_break_the_title(world: Any) -> None:
    """Neither by markup nor by its length."""
    async with world.cockpit((80, 24), peer=FAR) as cockpit:
        await cockpit.press("space")
        facts = HostInfo("[bold]x[/]" * 25, "Linux", 4, "linkgauge", "uvloop")
        plan = cockpit.app.cockpit.plan
        expected = world.script.meter.summary().expectation
        world.script.emit(Started("2026-11-21T01:46:29Z", "db-02:5820", facts, facts, plan, expected))
        await cockpit.settle()
        assert "[bold]x[/]" in cockpit.line(0)
        assert "RUNNING" in cockpit.line(0)
        assert len(cockpit.line(0)) == 80


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_before_the_first_connection_the_header_says_that_the_preset_is_not_known_yet(
    world: Any, size: tuple[int, int]
) -> None:
    """Neither "none" nor "no expected rate" would be true: the interfaces of both ends will choose it."""
    async with world.cockpit(size, peer=FAR) as cockpit:
        state = cockpit.app.cockpit.state
        state.set_peer(FAR)
        state.set_preset(NO_PRESET, is_auto=True)
        cockpit.app.cockpit.paint()
        await cockpit.settle()
        line = cockpit.line(1)
        assert "auto: not known before the first connection" in line
        assert "none" not in line
        assert "no expected rate" not in line
