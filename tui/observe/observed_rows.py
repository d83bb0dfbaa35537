"""The rows of the table: the connections of an observation and those that ended lately, filtered, in order. Pure.

The order is made once an observation. A frozen order stays: values go on changing, and new rows come at the end.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ...engine.model.plan import SECOND_NS
from ...observe.observation import ConnectionKey, Observation, ObservedConnection, Status
from .connection_words import FIELDS, SEVERITY, searched_text

ENDED_NS: Final = 10 * SECOND_NS
"""So long a connection that ended stays in the table."""


def _number(value: float | None) -> float:
    """Return a value to sort by: an unknown one is below every known one."""
    return -1.0 if value is None else float(value)


def _of_sample(row: ObservedConnection, name: str) -> float:
    return _number(None if row.out.sample is None else getattr(row.out.sample, name))


SORTS: Final[dict[str, tuple[Callable[[ObservedConnection], float | str], bool]]] = {
    "Mb/s": (lambda row: row.bit_s, True),
    "why": (lambda row: SEVERITY[row.status], True),
    "retx": (lambda row: _number(row.out.retransmits), True),
    "RTT": (partial(_of_sample, name="rtt_us"), True),
    "cwnd": (partial(_of_sample, name="cwnd_bytes"), True),
    "in flight": (partial(_of_sample, name="unacked_bytes"), True),
    "process": (lambda row: "~" if row.owner is None else row.owner.name.lower(), False),
    "user": (lambda row: row.user, False),
    "peer": (lambda row: str(row.key.remote), False),
}
"""The columns to sort by, in the order of the key: the value of a row, and whether the largest comes first."""


@dataclass(frozen=True, slots=True)
class Order:
    """The column that the rows are sorted by."""

    column: str = "Mb/s"
    is_descending: bool = True

    def by(self, column: str) -> "Order":
        """Return the order by a column; by the same column again, the reverse one."""
        return self.reversed() if column == self.column else Order(column, SORTS[column][1])

    def by_next(self) -> "Order":
        """Return the order by the next column."""
        names = list(SORTS)
        return self.by(names[(names.index(self.column) + 1) % len(names)])

    def reversed(self) -> "Order":
        """Return the reverse order."""
        return replace(self, is_descending=not self.is_descending)


class ObservedRows:
    """The rows of the newest observation, to filter, sort and freeze."""

    def __init__(self) -> None:
        self.order = Order()
        self.filter_text = ""
        self.is_frozen = False
        self._known: dict[ConnectionKey, ObservedConnection] = {}
        self._ended_at: dict[ConnectionKey, int] = {}
        self._elapsed_ns = 0
        self.rows: tuple[ObservedConnection, ...] = ()
        """Those that match, in order."""

    @property
    def total(self) -> int:
        """The number of rows, whether they match or not."""
        return len(self._known)

    @property
    def keys(self) -> frozenset[ConnectionKey]:
        """The connections of all rows."""
        return frozenset(self._known)

    def find(self, key: ConnectionKey | None) -> ObservedConnection | None:
        """Return a connection, whether it matches or not; None if it is gone."""
        return None if key is None else self._known.get(key)

    def update(self, observation: Observation) -> None:
        """Take the next observation."""
        self._elapsed_ns = observation.elapsed_ns
        before = self._known
        self._known = {}
        for row in observation.connections:
            if row.status is Status.ENDED:
                self._ended_at.setdefault(row.key, observation.elapsed_ns)
                self._known[row.key] = _with_last_findings(row, before.get(row.key))
            else:
                self._known[row.key] = row
        self._ended_at = {key: at for key, at in self._ended_at.items() if self._is_recent(key, at)}
        for key in self._ended_at:
            if key not in self._known and key in before:
                self._known[key] = before[key]
        self.arrange()

    def arrange(self) -> None:
        """Filter and sort the rows; a frozen order stays."""
        wanted = _words(self.filter_text)
        rows = [row for row in self._known.values() if not wanted or _matches(row, wanted)]
        if self.is_frozen:
            place = {row.key: number for number, row in enumerate(self.rows)}
            rows.sort(key=lambda row: place.get(row.key, len(place)))
        else:
            rows.sort(key=SORTS[self.order.column][0], reverse=self.order.is_descending)
            rows.sort(key=lambda row: row.status is Status.ENDED)
        self.rows = tuple(rows)

    def _is_recent(self, key: ConnectionKey, ended_ns: int) -> bool:
        """Return whether a connection that ended is still shown: for some seconds, or while the order is frozen."""
        is_in_place = self.is_frozen and any(row.key == key for row in self.rows)
        return is_in_place or self._elapsed_ns - ended_ns < ENDED_NS


def _with_last_findings(ended: ObservedConnection, before: ObservedConnection | None) -> ObservedConnection:
    """Return a connection that ended with the findings that it had until then."""
    if before is None or before.status is Status.ENDED or not before.findings:
        return ended
    return replace(ended, findings=before.findings)


def _words(text: str) -> list[tuple[str, str]]:
    """Return the words of a filter, each with the field that it is about; an empty field is all of them."""
    words: list[tuple[str, str]] = []
    for word in text.lower().split():
        field, colon, rest = word.partition(":")
        words.append((field, rest) if colon and field in FIELDS else ("", word))
    return words


def _matches(row: ObservedConnection, wanted: list[tuple[str, str]]) -> bool:
    return all(text in searched_text(row, field) for field, text in wanted)
