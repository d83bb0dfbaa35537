"""Runs of the log as the history shows them: filtered, sorted and marked. Pure: no widget, no log."""

from collections.abc import Iterable, Sequence
from typing import Final

from ....engine.results.run_log import RunRecord
from ...services.stored_run import LETTERS
from ...text.run_list import SORT_KEYS, RunLine, SearchableRun, sort_lines

_DESCENDING_FIRST: Final = frozenset({"when", "rate", "%"})


class RunSelection:
    """All stored runs, the order of the list, and the marked ones."""

    def __init__(self) -> None:
        self.marked: set[str] = set()
        self.column = "when"
        self.is_descending = True
        self._runs: dict[str, SearchableRun] = {}

    def __len__(self) -> int:
        """Return the number of stored runs."""
        return len(self._runs)

    def update(self, rows: Iterable[RunRecord]) -> None:
        """Replace the runs; the marks of deleted ones go."""
        self._runs = {row.run_id: SearchableRun(row) for row in rows}
        self.marked &= self._runs.keys()

    def get(self, run_id: str | None) -> SearchableRun | None:
        """Return a run, or None if it is not stored."""
        return None if run_id is None else self._runs.get(run_id)

    def visible_lines(self, filter_text: str) -> list[RunLine]:
        """Return the lines of the runs that match a filter, in the order of the list."""
        matches = [run.line for run in self._runs.values() if run.matches(filter_text)]
        return sort_lines(matches, self.column, descending=self.is_descending)

    def toggle_mark(self, run_id: str) -> None:
        """Mark a run, or remove its mark."""
        self.marked ^= {run_id}

    def sort_by(self, column: str) -> None:
        """Sort by a column; the current one reverses its order. An unknown column changes nothing."""
        if column == self.column:
            self.reverse()
        elif column in SORT_KEYS:
            self.column, self.is_descending = column, column in _DESCENDING_FIRST

    def sort_by_next(self) -> None:
        """Sort by the next column."""
        columns = list(SORT_KEYS)
        self.sort_by(columns[(columns.index(self.column) + 1) % len(columns)])

    def reverse(self) -> None:
        """Reverse the order."""
        self.is_descending = not self.is_descending

    def targets(self, cursor_id: str | None) -> list[str]:
        """Return the marked runs, oldest first; without marks, the run at the cursor."""
        if self.marked:
            return sorted(self.marked)
        return [] if cursor_id is None else [cursor_id]

    def comparison(self, cursor_id: str | None) -> Sequence[RunRecord] | None:
        """Return the runs to compare, oldest first; None if there are too few or too many.

        A single marked run is compared with the one at the cursor.
        """
        extra = {cursor_id} if len(self.marked) == 1 and cursor_id is not None else set[str]()
        run_ids = sorted(self.marked | extra)
        if not 2 <= len(run_ids) <= len(LETTERS):
            return None
        return [self._runs[run_id].row for run_id in run_ids]

    def describe(self, run_id: str) -> str:
        """Return a run's name, preset, peer and label in one line."""
        line = self._runs[run_id].line
        return "  ".join(part for part in (run_id, line.preset, line.peer, line.label) if part)
