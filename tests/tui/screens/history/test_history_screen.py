"""The history screen: stored runs are listed, filtered, sorted, marked and exported."""

from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.actions import ScreenKind, actions_of
from linkgauge.tui.screens.history.history_screen import RunSelection
from linkgauge.tui.screens.run.cockpit_screen import CockpitScreen
from textual.widgets import Input

from ...stored_runs import CHANGED, FIRST, LOST, RUN_IDS, SHORT, notifications, open_history, run_ids, until


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


OLDEST, SECOND, THIRD, NEWEST = RUN_IDS


@pytest.fixture
def selection(history_log: Any) -> RunSelection:
    """Return the selection of a log with four runs."""
    selection = RunSelection()
    selection.update(history_log.list_runs())
    return selection


def order(selection: RunSelection, text: str = "") -> list[str]:
    """Return the ids of the visible runs."""
    return [line.run_id for line in selection.visible_lines(text)]


def test_runs_are_newest_first_until_another_column_is_chosen(selection: RunSelection) -> None:
    """Choosing the current column again reverses its order; an unknown column changes nothing."""
    assert order(selection) == [NEWEST, THIRD, SECOND, OLDEST]
    selection.sort_by("when")
    assert order(selection) == [OLDEST, SECOND, THIRD, NEWEST]
    selection.sort_by("peer")
    assert (selection.column, selection.is_descending) == ("peer", False)
    selection.sort_by("no column")
    assert selection.column == "peer"


def test_a_run_after_the_clock_was_set_back_is_the_newest(tmp_path: Path) -> None:
    """As in `runs list`: the order in which runs were saved counts, and not a date of 1970."""
    run_ids = ["20261121-014629-aaaa", "19700101-000012-bbbb", "20261121-014803-cccc", "19700101-000007-dddd"]
    with RunLog.open(tmp_path) as log:
        for run_id in run_ids:
            log.begin(run_id, "", "h:1")
        selection = RunSelection()
        selection.update(log.list_runs())
    assert order(selection) == run_ids[::-1]
    selection.sort_by("when")
    assert order(selection) == run_ids


def test_the_next_column_starts_in_its_natural_order(selection: RunSelection) -> None:
    """Text ascends, figures descend; after the last column comes the first."""
    columns = [selection.column]
    for _ in range(20):
        selection.sort_by_next()
        assert selection.is_descending == (selection.column in {"when", "rate", "%"})
        columns.append(selection.column)
    assert columns.count("when") > 1


def test_a_filter_hides_runs_but_keeps_their_marks(selection: RunSelection) -> None:
    """Actions apply to all marked runs, oldest first."""
    for run_id in (NEWEST, OLDEST):
        selection.toggle_mark(run_id)
    assert order(selection, "db-03") == [SECOND]
    assert selection.targets(SECOND) == [OLDEST, NEWEST]


def test_without_marks_the_run_at_the_cursor_is_the_target(selection: RunSelection) -> None:
    """An empty list has none."""
    assert selection.targets(THIRD) == [THIRD]
    assert selection.targets(None) == []


def test_one_marked_run_is_compared_with_the_one_at_the_cursor(selection: RunSelection) -> None:
    """The oldest comes first; a run is not compared with itself."""
    selection.toggle_mark(NEWEST)
    rows = selection.comparison(OLDEST)
    assert rows is not None
    assert [row.run_id for row in rows] == [OLDEST, NEWEST]
    assert selection.comparison(NEWEST) is None


def test_marks_of_deleted_runs_are_removed(selection: RunSelection, history_log: Any) -> None:
    """Their number is that of stored runs."""
    selection.toggle_mark(NEWEST)
    selection.update([row for row in history_log.list_runs() if row.run_id != NEWEST])
    assert (len(selection), selection.marked, selection.get(NEWEST)) == (3, set(), None)
