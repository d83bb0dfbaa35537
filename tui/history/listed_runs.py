"""The runs of the history screen: the order of the list, its pages, the lines that were read, and the marked runs.

The screen reads a page at once, however many runs there are.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...engine.results.run_log import SORT_COLUMNS, RunEntry, RunLog, RunNumbers, RunQuery
from ..words.comparison import LETTERS
from ..words.run_line import RunLine, filter_parts, run_line

_DESCENDING_FIRST: Final = frozenset({"when", "rate", "%"})
_MAX_LINES: Final = 4_096  # in memory
PAGE_RUNS: Final = 256
_ABOVE: Final = 64  # of them above the line that is needed


@dataclass(frozen=True, slots=True)
class RunPage:
    """The order of a list, the runs near the cursor and its place, and the marked runs that are still stored."""

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


class RunLines:
    """A list of runs, of which the lines are known that were read: those near the cursor, and in view."""

    def __init__(self, numbers: RunNumbers = (), entries: Iterable[RunEntry] = ()) -> None:
        self.numbers = numbers
        self._entries: dict[int, RunEntry] = {}
        self._lines: dict[int, RunLine] = {}
        self._gone: set[int] = set()
        self.add_entries(entries)

    def __len__(self) -> int:
        """Return the number of runs in the list."""
        return len(self.numbers)

    def __getitem__(self, at: int) -> RunLine | None:
        """Return the line of a place; None if it was not read."""
        return self._lines.get(self.numbers[at])

    def __iter__(self) -> Iterator[RunLine | None]:
        """Iterate over the lines of all places."""
        return (self._lines.get(number) for number in self.numbers)

    @property
    def known(self) -> Collection[RunLine]:
        """The lines that were read."""
        return self._lines.values()

    def is_unread(self, at: int) -> bool:
        """Return whether the line of a place is still to be read: not one of a run that is gone."""
        number = self.numbers[at]
        return number not in self._lines and number not in self._gone

    def add_entries(self, entries: Iterable[RunEntry], numbers: Iterable[int] = ()) -> None:
        """Add runs that were read. Of many, only these remain. Runs of `numbers` without an entry are gone."""
        new = {entry.number: entry for entry in entries}
        if len(self._entries) + len(new) > _MAX_LINES:
            self._entries, self._lines = {}, {}
        self._entries |= new
        self._lines |= {number: run_line(entry) for number, entry in new.items()}
        self._gone |= {number for number in numbers if number not in new}

    def entry(self, at: int | None) -> RunEntry | None:
        """Return the run of a place; None without one, or if it was not read."""
        return None if at is None or not 0 <= at < len(self.numbers) else self._entries.get(self.numbers[at])


class RunSelection:
    """The order of the list, and the marked runs."""

    def __init__(self) -> None:
        self.column = "when"
        self.is_descending = True
        self._marked: dict[int, RunEntry] = {}

    @property
    def marked(self) -> set[str]:
        """The ids of the marked runs."""
        return {entry.run_id for entry in self._marked.values()}

    @property
    def marked_numbers(self) -> list[int]:
        """The numbers of the marked runs."""
        return list(self._marked)

    def query(self, filter_text: str = "") -> RunQuery:
        """Return the query for the runs that match a filter, in the order of the list."""
        return RunQuery(filter_parts(filter_text), column=self.column, is_descending=self.is_descending)

    def update(self, entries: Iterable[RunEntry]) -> None:
        """Replace the marked runs by what was read of them; the marks of deleted ones go."""
        stored = {entry.number: entry for entry in entries}
        self._marked = {number: stored[number] for number in self._marked if number in stored}

    def toggle_mark(self, entry: RunEntry) -> None:
        """Mark a run, or remove its mark."""
        if self._marked.pop(entry.number, None) is None:
            self._marked[entry.number] = entry

    def sort_by(self, column: str) -> None:
        """Sort by a column; the current one reverses its order. An unknown column changes nothing."""
        if column == self.column:
            self.reverse()
        elif column in SORT_COLUMNS:
            self.column, self.is_descending = column, column in _DESCENDING_FIRST

    def sort_by_next(self) -> None:
        """Sort by the next column."""
        self.sort_by(SORT_COLUMNS[(SORT_COLUMNS.index(self.column) + 1) % len(SORT_COLUMNS)])

    def reverse(self) -> None:
        """Reverse the order."""
        self.is_descending = not self.is_descending

    def targets(self, at_cursor: RunEntry | None) -> list[RunEntry]:
        """Return the marked runs, oldest first; without marks, the run at the cursor."""
        if self._marked:
            return _oldest_first(self._marked.values())
        return [] if at_cursor is None else [at_cursor]

    def comparison(self, at_cursor: RunEntry | None) -> Sequence[RunEntry] | None:
        """Return the runs to compare, oldest first; None if there are too few or too many.

        A single marked run is compared with the one at the cursor.
        """
        runs = dict(self._marked)
        if len(runs) == 1 and at_cursor is not None:
            runs[at_cursor.number] = at_cursor
        return _oldest_first(runs.values()) if 2 <= len(runs) <= len(LETTERS) else None


def describe_run(entry: RunEntry) -> str:
    """Return a run's name, preset, peer and label in one line."""
    line = run_line(entry)
    return "  ".join(part for part in (line.run_id, line.preset, line.peer, line.label) if part)


def _oldest_first(entries: Iterable[RunEntry]) -> list[RunEntry]:
    return sorted(entries, key=lambda entry: entry.run_id)
