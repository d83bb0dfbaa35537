"""The history screen: stored runs are listed, filtered and exported."""

from pathlib import Path
from typing import Any

import pytest
from linkgauge.tui.actions import ScreenKind, actions_of
from linkgauge.tui.screens.run.cockpit_screen import CockpitScreen
from textual.widgets import Input

from ...stored_runs import CHANGED, FIRST, LOST, SHORT, notifications, open_history, run_ids, until


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_h_lists_the_stored_runs_newest_first(world: Any, kept: Any, size: tuple[int, int]) -> None:
    """With rate, percentage, verdict and label; escape goes back."""
    async with world.cockpit(size) as cockpit:
        await open_history(cockpit)
        assert run_ids(cockpit) == [LOST, CHANGED, SHORT, FIRST]
        text = cockpit.text()
        for word in ("4 runs kept", "11-18 09:12", "9 379", "99.6", "✓ PASS", "▼ SHORT", "before"):
            assert word in text
        await cockpit.press("escape")
        assert isinstance(cockpit.app.screen, CockpitScreen)


async def test_without_a_log_there_is_no_history(world: Any) -> None:
    """A message says why."""
    async with world.cockpit() as cockpit:
        await cockpit.press("h")
        assert isinstance(cockpit.app.screen, CockpitScreen)
        assert any("runs are not kept" in text for text in notifications(cockpit))


async def test_the_list_is_filtered_as_it_is_typed(world: Any, kept: Any) -> None:
    """Letters go only into the filter; escape clears it."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit, "slash", *"peer:db-02 pass")
        assert run_ids(cockpit) == [CHANGED, FIRST]
        assert "2 of 4 runs kept" in cockpit.text()
        await cockpit.press("enter", "escape")
        assert len(run_ids(cockpit)) == 4


async def test_marked_runs_are_exported_in_one_file(world: Any, kept: Any, tmp_path: Path) -> None:
    """The format is the chosen one."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit, "space", "space", "e", "j")
        cockpit.app.screen.query_one(Input).value = str(tmp_path / "runs.json")
        await cockpit.press("enter")
        await until(cockpit, lambda: bool(world.exports))
        assert world.exports == [([CHANGED, LOST], "json", tmp_path / "runs.json")]


async def test_the_palette_has_the_actions_of_the_screen(world: Any, kept: Any) -> None:
    """Each by its name."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit)
        titles = {command.title for command in cockpit.app.get_system_commands(cockpit.app.screen)}
        assert {action.title for action in actions_of(ScreenKind.HISTORY)} <= titles
        assert "Start or stop the run" not in titles
