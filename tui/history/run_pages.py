"""Pages of the list of runs: what the history screen reads at once, however many runs there are."""

from dataclasses import dataclass
from typing import Final

from ...engine.results.run_log import RunEntry, RunLog, RunNumbers, RunQuery

PAGE_RUNS: Final = 256
_ABOVE: Final = 64  # of them above the line that is needed


@dataclass(frozen=True, slots=True)
class RunPage:
    """The order of a list, the runs near the cursor and its place, and those of the marked runs that are stored."""

    numbers: RunNumbers
    entries: list[RunEntry]
    marked: list[RunEntry]
    at: int
    total: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RunPlace:
    """A run that the cursor is to stay on, and its place, near which the cursor is left if the run is gone."""

    number: int | None = None
    at: int = 0


def read_first_page(history: RunLog, query: RunQuery, cursor: RunPlace, marked: list[int]) -> RunPage:
    """Return the list of a query, with the runs around the cursor. Call this in a thread. Raises RunLogError."""
    numbers = history.find_runs(query)
    at = min(cursor.at, max(len(numbers) - 1, 0))
    if cursor.number is not None and cursor.number in numbers:
        at = numbers.index(cursor.number)
    return RunPage(
        numbers,
        list(history.read_entries(page_around(numbers, at))),
        list(history.read_entries(marked)) if marked else [],
        at,
        history.count_runs(),
        history.size_bytes(),
    )


def page_around(numbers: RunNumbers, at: int) -> RunNumbers:
    """Return the part of the list that is read with a place of it."""
    first = max(0, min(at - _ABOVE, len(numbers) - PAGE_RUNS))
    return numbers[first : first + PAGE_RUNS]
