"""Messages to the user: one line that goes with the next key and never covers the keys."""

from dataclasses import replace
from typing import Any

import pytest
from linkgauge.presets.catalog import PresetProblem
from linkgauge.tui.kit.drawing.message_line import MessageLine

from ...app_driver import BOTH_SIZES
from ...stored_runs import open_history


@BOTH_SIZES
async def test_a_message_is_one_line_above_the_keys_until_the_next_key(world: Any, size: tuple[int, int]) -> None:
    """A newer one replaces it. The keys stay readable."""
    async with world.cockpit(size) as cockpit:
        last, before = size[1] - 1, cockpit.text().splitlines()
        await cockpit.press("p")
        assert cockpit.line(last - 1).strip() == "• Nothing to freeze: no test is running."
        assert cockpit.text().splitlines()[: last - 1] == before[: last - 1]
        await cockpit.press("j")
        assert cockpit.line(last - 1).strip() == "• Rate and datagram size are for the workload udp: press w."
        assert "Nothing to freeze" not in cockpit.text()
        assert cockpit.line(last) == before[last]
        await cockpit.press("m", "m")
        assert "Rate and datagram" not in cockpit.text()
        assert not cockpit.app.screen.query(MessageLine)


async def test_a_long_message_has_a_few_lines_and_leaves_the_keys_alone(world: Any) -> None:
    """Its title, its mark and all its words, on a small terminal."""
    async with world.cockpit((60, 24)) as cockpit:
        keys = cockpit.line(23)
        cockpit.app.cockpit.notify(f"[not] {'words ' * 15}end", title="run log", severity="error", markup=False)
        await cockpit.settle()
        shown = " ".join(" ".join(cockpit.text().splitlines()[-4:-1]).split())
        assert "✗ run log: [not] words" in shown
        assert shown.endswith("words end")
        assert cockpit.line(23) == keys


@pytest.mark.every
@pytest.mark.parametrize("keys", [["n"], ["question_mark"]])
async def test_a_message_that_comes_during_a_dialog_moves_on_with_its_end(world: Any, keys: list[str]) -> None:
    """The visible screen has it, once. The key that closes the dialog removes it."""
    async with world.cockpit((80, 24)) as cockpit:
        await cockpit.press(*keys)
        cockpit.app.notify("The disk is full.", severity="warning")
        await cockpit.settle()
        assert cockpit.line(22).strip().startswith("▲ The disk is full.")
        cockpit.app.pop_screen()
        await cockpit.settle()
        assert cockpit.text().count("The disk is full.") == 1
        await cockpit.press("v")
        assert "The disk is full." not in cockpit.text()


async def test_a_message_goes_along_to_a_screen_that_opens(world: Any) -> None:
    """Only that screen has it, and the next key removes it."""
    async with world.cockpit((80, 24)) as cockpit:
        cockpit.app.notify("The disk is full.", severity="warning")
        await cockpit.settle()
        cockpit.app.action_settings()
        await cockpit.settle()
        assert [len(screen.query(MessageLine)) for screen in cockpit.app.screen_stack] == [0, 1]
        assert cockpit.line(22).strip().startswith("▲ The disk is full.")
        await cockpit.press("down")
        assert "The disk is full." not in cockpit.text()


async def test_a_message_from_the_start_of_the_app_is_shown(world: Any) -> None:
    """It comes before there is a screen to show it."""
    world.catalog = replace(world.catalog, problems=(PresetProblem("mine.toml", "", "it is not TOML"),))
    async with world.cockpit((80, 24)) as cockpit:
        assert cockpit.line(22).strip().startswith("▲ your own presets: mine.toml: it is not TOML")


async def test_other_screens_have_the_same_line(world: Any, history_log: Any) -> None:
    """The history has it like the cockpit."""
    world.history = history_log
    async with world.cockpit((80, 24)) as cockpit:
        await open_history(cockpit, "g")
        assert cockpit.line(22).strip() == "• sweep: This run is not part of a sweep or a mesh."
