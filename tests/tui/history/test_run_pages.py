"""What the history screen reads of a list: a page, however many runs there are."""

from pathlib import Path

import pytest
from linkgauge.engine.results.run_log import RunLog, RunQuery
from linkgauge.tui.history.run_pages import PAGE_RUNS, RunPlace, page_around, read_first_page

from ...engine.results.log_entries import ENDED, STARTED, write_run
from ...engine.results.stored_copies import add_copies

NEWEST_FIRST = RunQuery()


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
    """And lines above it, for whoever goes up."""
    page = page_around(range(1_000), at)
    assert at in page
    assert len(page) == PAGE_RUNS
    assert len(page_around(range(10), min(at, 9))) == 10
