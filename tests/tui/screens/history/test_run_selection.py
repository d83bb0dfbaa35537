"""The order, the marks and the targets of the history, without a screen."""

from typing import Any

import pytest
from linkgauge.tui.screens.history.run_selection import RunSelection

OLDEST, SECOND, THIRD, NEWEST = (
    "20261118-091200-a2b3",
    "20261119-221030-c4d5",
    "20261120-070000-e6f7",
    "20261121-014629-g8h9",
)


@pytest.fixture
def selection(kept: Any) -> RunSelection:
    """Return the selection of a log with four runs."""
    selection = RunSelection()
    selection.update(kept.list_runs())
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


def test_marks_of_deleted_runs_are_removed(selection: RunSelection, kept: Any) -> None:
    """Their number is that of stored runs."""
    selection.toggle_mark(NEWEST)
    selection.update([row for row in kept.list_runs() if row.run_id != NEWEST])
    assert (len(selection), selection.marked, selection.get(NEWEST)) == (3, set(), None)
