"""The history screen: stored runs are listed, filtered, sorted, marked and exported."""

from pathlib import Path
from typing import Any

import pytest
from linkgauge.tui.history.compare_screen import CompareScreen
from linkgauge.tui.history.history_screen import HistoryScreen
from linkgauge.tui.history.listed_runs import PAGE_RUNS
from linkgauge.tui.history.run_table import RunTable
from linkgauge.tui.kit.actions import ScreenKind, actions_of
from linkgauge.tui.kit.screens.prompts import ConfirmScreen
from linkgauge.tui.run.cockpit_screen import CockpitScreen
from textual import events
from textual.widgets import Input

from ...engine.results.stored_copies import add_copies
from ..stored_runs import CHANGED, FIRST, LOST, SHORT, notifications, open_history, run_at_cursor, run_ids, until


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_h_lists_the_stored_runs_newest_first(world: Any, history_log: Any, size: tuple[int, int]) -> None:
    """With rate, percentage, verdict and label; escape goes back."""
    async with world.cockpit(size) as cockpit:
        await open_history(cockpit)
        assert run_ids(cockpit) == [LOST, CHANGED, SHORT, FIRST]
        text = cockpit.text()
        for word in ("4 saved runs", "11-18 09:12", "9 379", "99.6", "✓ PASS", "▼ SHORT", "before"):
            assert word in text
        await cockpit.press("escape")
        assert isinstance(cockpit.app.screen, CockpitScreen)


async def test_without_a_log_there_is_no_history(world: Any) -> None:
    """A message says why."""
    async with world.cockpit() as cockpit:
        await cockpit.press("h")
        assert isinstance(cockpit.app.screen, CockpitScreen)
        assert any("Runs are not saved" in text for text in notifications(cockpit))


@pytest.mark.every
async def test_the_list_is_filtered_as_it_is_typed(world: Any, history_log: Any) -> None:
    """Letters go only into the filter; escape clears it."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit, "slash", *"peer:db-02 label:e")
        assert run_ids(cockpit) == [CHANGED, FIRST]
        assert "2 of 4 saved runs" in cockpit.text()
        await cockpit.press("enter", "escape")
        assert len(run_ids(cockpit)) == 4


async def test_marked_runs_are_exported_in_one_file(world: Any, history_log: Any, tmp_path: Path) -> None:
    """The format is the chosen one."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit, "space", "space", "e", "j")
        cockpit.app.screen.query_one(Input).value = str(tmp_path / "runs.json")
        await cockpit.press("enter")
        await until(cockpit, lambda: bool(world.exports))
        assert world.exports == [([CHANGED, LOST], "json", tmp_path / "runs.json")]


async def test_the_palette_has_the_actions_of_the_screen(world: Any, history_log: Any) -> None:
    """Each by its name, with its keys."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit)
        titles = {command.title for command in cockpit.app.get_system_commands(cockpit.app.screen)}
        actions = actions_of(ScreenKind.HISTORY)
        assert {f"{action.title}  ({action.key_names})" for action in actions} <= titles
        assert "Delete runs  (x del)" in titles
        assert not any(title.startswith("Start or stop a test") for title in titles)


@pytest.mark.every
async def test_keys_after_a_filter_are_for_the_runs_that_it_leaves(world: Any, history_log: Any) -> None:
    """However fast they are typed: here without a pause."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit)
        await cockpit.pilot.press("slash", *"db-03", "enter", "x")
        await until(cockpit, lambda: isinstance(cockpit.app.screen, ConfirmScreen))
        assert SHORT in cockpit.text()
        await cockpit.press("y")
        await until(cockpit, lambda: len(run_ids(cockpit)) == 0)
        await cockpit.press("escape")
        await until(cockpit, lambda: run_ids(cockpit) == [LOST, CHANGED, FIRST])


async def test_a_filter_that_arrives_in_one_burst_is_a_filter(world: Any, history_log: Any) -> None:
    """As over a slow connection: its letters are keys of the screen as well, and so is its slash."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit)
        for key in ("slash", *"cable", "slash", "x"):
            character = "/" if key == "slash" else key
            cockpit.app.post_message(events.Key(key, character))
        field = cockpit.app.screen.query_one("#filter", Input)
        await until(cockpit, lambda: field.value == "cable/x")
        assert isinstance(cockpit.app.screen, HistoryScreen)


@pytest.mark.every
async def test_lines_of_a_long_list_are_read_when_they_come_into_view(world: Any, history_log: Any) -> None:
    """The last run, and one that was deleted by another process meanwhile; marks outlive the lines."""
    add_copies(history_log.path, 3_000)
    async with world.cockpit() as cockpit:
        await open_history(cockpit, "space")
        table = cockpit.app.screen.query_one(RunTable)
        assert "3 004 saved runs" in cockpit.text()
        assert len(table._list.lines.known) <= PAGE_RUNS
        history_log.delete("0-run-0001")
        await cockpit.press("end")
        await until(cockpit, lambda: table._list.lines[table.highlighted] is not None)
        assert "10-01" in cockpit.text()
        assert run_at_cursor(cockpit) == "0-run-0000"
        assert table._list.lines[table.row_count - 2] is None
        assert len(table._list.lines.known) <= 2 * PAGE_RUNS
        await cockpit.press("space", "c")
        assert isinstance(cockpit.app.screen, CompareScreen)
        await cockpit.press("escape", "slash", *"0-run-15")
        await until(cockpit, lambda: "100 of 3 003 saved runs" in cockpit.text())
        assert len(run_ids(cockpit)) == 100
