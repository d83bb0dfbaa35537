"""The order of the list of runs, its marks, and what marked runs are for."""

from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.results.run_log import RunEntry, RunLog, RunQuery
from linkgauge.tui.history.listed_runs import (
    PAGE_RUNS,
    RunLines,
    RunPlace,
    RunSelection,
    page_around,
    read_first_page,
)

from ...engine.results.log_entries import ENDED, STARTED, write_run
from ...engine.results.stored_copies import add_copies
from ..stored_runs import RUN_IDS

OLDEST, SECOND, THIRD, NEWEST = range(4)
NEWEST_FIRST = RunQuery()


@pytest.fixture
def entries(history_log: Any) -> list[RunEntry]:
    """Return four runs, the oldest first."""
    return list(history_log.entries(history_log.find_runs(RunSelection().query())))[::-1]


def ids(history_log: Any, selection: RunSelection, text: str = "") -> list[str]:
    """Return the ids of the runs that a filter leaves, in the order of the list."""
    return [entry.run_id for entry in history_log.entries(history_log.find_runs(selection.query(text)))]


def test_runs_are_newest_first_until_another_column_is_chosen(history_log: Any) -> None:
    """Choosing the current column again reverses its order; an unknown column changes nothing."""
    selection = RunSelection()
    assert ids(history_log, selection) == list(RUN_IDS[::-1])
    selection.sort_by("when")
    assert ids(history_log, selection) == list(RUN_IDS)
    selection.sort_by("peer")
    assert (selection.column, selection.is_descending) == ("peer", False)
    selection.sort_by("no column")
    assert selection.column == "peer"


def test_a_run_after_the_clock_was_set_back_is_the_newest(tmp_path: Path) -> None:
    """As in `runs list`: the order in which runs were saved counts, and not a date of 1970."""
    run_ids = ["20261121-014629-aaaa", "19700101-000012-bbbb", "20261121-014803-cccc", "19700101-000007-dddd"]
    selection = RunSelection()
    with RunLog.open(tmp_path) as log:
        for run_id in run_ids:
            log.begin(run_id, "", "h:1")
        assert ids(log, selection) == run_ids[::-1]
        selection.sort_by("when")
        assert ids(log, selection) == run_ids


def test_the_next_column_starts_in_its_natural_order() -> None:
    """Text ascends, figures descend; after the last column comes the first."""
    selection = RunSelection()
    columns = [selection.column]
    for _ in range(20):
        selection.sort_by_next()
        assert selection.is_descending == (selection.column in {"when", "rate", "%"})
        columns.append(selection.column)
    assert columns.count("when") > 1


def test_a_filter_hides_runs_but_keeps_their_marks(history_log: Any, entries: list[RunEntry]) -> None:
    """Actions apply to all marked runs, oldest first."""
    selection = RunSelection()
    for place in (NEWEST, OLDEST):
        selection.toggle_mark(entries[place])
    assert ids(history_log, selection, "db-03") == [RUN_IDS[SECOND]]
    assert selection.targets(entries[SECOND]) == [entries[OLDEST], entries[NEWEST]]


def test_without_marks_the_run_at_the_cursor_is_the_target(entries: list[RunEntry]) -> None:
    """An empty list has none."""
    selection = RunSelection()
    assert selection.targets(entries[THIRD]) == [entries[THIRD]]
    assert selection.targets(None) == []


def test_one_marked_run_is_compared_with_the_one_at_the_cursor(entries: list[RunEntry]) -> None:
    """The oldest comes first; a run is not compared with itself."""
    selection = RunSelection()
    selection.toggle_mark(entries[NEWEST])
    assert selection.comparison(entries[OLDEST]) == [entries[OLDEST], entries[NEWEST]]
    assert selection.comparison(entries[NEWEST]) is None


def test_marks_of_deleted_runs_are_removed(entries: list[RunEntry]) -> None:
    """Those of the others stay."""
    selection = RunSelection()
    for place in (NEWEST, OLDEST):
        selection.toggle_mark(entries[place])
    selection.update([entries[OLDEST]])
    assert selection.marked == {RUN_IDS[OLDEST]}


def test_a_line_is_unknown_until_it_is_read(entries: list[RunEntry]) -> None:
    """That of a run that is gone stays unknown, and is not read again."""
    lines = RunLines([entry.number for entry in entries], entries[:2])
    assert (lines[OLDEST], lines[NEWEST]) != (None, None)
    assert lines[NEWEST] is None
    assert lines.is_unread(NEWEST)
    lines.add_entries([entries[THIRD]], [entries[THIRD].number, entries[NEWEST].number])
    assert [lines.is_unread(place) for place in range(4)] == [False] * 4
    assert [line is None for line in lines] == [False, False, False, True]
    assert lines.entry(THIRD) == entries[THIRD]
    assert lines.entry(4) is None


@pytest.mark.parametrize("count", [10, 10_000])
def test_a_list_opens_with_a_page_at_most(tmp_path: Path, count: int) -> None:
    """Around the run of the cursor, if that is still stored, and else near its place."""
    with RunLog.open(tmp_path) as log:
        write_run(log, "20261121-011530-aaaa", STARTED, ENDED, document={})
        assert log.flush()
        add_copies(log.path, count - 1)
        page = read_first_page(log, NEWEST_FIRST, RunPlace(), [])
        assert (len(page.numbers), page.total, page.at) == (count, count, 0)
        assert [entry.number for entry in page.entries] == list(page.numbers[:PAGE_RUNS])
        oldest = page.numbers[-1]
        assert len(page.entries) == min(count, PAGE_RUNS)
        marked = [page.numbers[1], 10**9]
        page = read_first_page(log, NEWEST_FIRST, RunPlace(oldest, 0), marked)
        assert (page.at, page.entries[-1].number) == (count - 1, oldest)
        assert [entry.number for entry in page.marked] == marked[:1]
        log.delete("0-run-0000")
        page = read_first_page(log, NEWEST_FIRST, RunPlace(oldest, count - 1), [])
        assert (page.at, page.total) == (count - 2, count - 1)


def test_an_empty_list_has_an_empty_page(tmp_path: Path) -> None:
    """And so has a filter that no run matches."""
    with RunLog.open(tmp_path) as log:
        page = read_first_page(log, RunQuery((("", "db"),)), RunPlace(7, 3), [])
        assert (len(page.numbers), page.entries, page.at, page.total) == (0, [], 0, 0)


@pytest.mark.parametrize("at", [0, 1, 63, 500, 998, 999])
def test_a_page_has_the_place_that_it_is_read_for(at: int) -> None:
    """And lines above it, for a cursor that goes up."""
    page = page_around(range(1_000), at)
    assert at in page
    assert len(page) == PAGE_RUNS
    assert len(page_around(range(10), min(at, 9))) == 10
