"""Which of the kept runs a person means: the filters of the command line, and words typed in the app. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ..engine.runlog import RunRow
from .run_rows import run_line

_FIELDS: Final = ("preset", "peer", "verdict", "label", "note", "group")


@dataclass(frozen=True, slots=True)
class RowFilter:
    """What is asked for, each part by itself; None asks for nothing. Texts are parts of a text, in any letters."""

    preset: str | None = None
    peer: str | None = None
    verdict: str | None = None
    label: str | None = None

    def of(self, rows: Iterable[RunRow]) -> list[RunRow]:
        """Return the rows that have all of it, in their order."""
        return [row for row in rows if self._has(row)]

    def _has(self, row: RunRow) -> bool:
        return (
            _is_part(self.preset, row.preset)
            and _is_part(self.peer, row.peer)
            and _is_part(self.label, row.label)
            and self.verdict in {None, row.verdict}
        )


class KeptRun:
    """A run of the log with its line, and its words, made ready to be looked through at each letter."""

    __slots__ = ("_everything", "_words", "line", "row")

    def __init__(self, row: RunRow) -> None:
        self.row = row
        self.line = run_line(row)
        self._words = {name: (getattr(row, name) or "").casefold() for name in _FIELDS}
        self._everything = " ".join((*self._words.values(), row.run_id, row.started_utc or ""))

    def has(self, text: str) -> bool:
        """Return whether every word of a text is in them; `peer:db` looks for `db` in the peer alone."""
        for wanted in text.casefold().split():
            name, colon, part = wanted.partition(":")
            is_field = colon and name in self._words
            if part not in self._words[name] if is_field else wanted not in self._everything:
                return False
        return True


def _is_part(wanted: str | None, text: str | None) -> bool:
    return wanted is None or wanted.casefold() in (text or "").casefold()
