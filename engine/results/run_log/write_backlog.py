"""The backlog of the run log's writer: the entries that were queued, and those that wait for a transaction.

Pure. The writing thread (writer.py) makes a `BoundStatement`, `Rows` or a `Block` of each queued entry, and puts it
into the `Backlog`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from .event_blocks import pack_events

BLOCK_EVENTS: Final = 512  # about a minute of both ends' samples
BLOCK_CHARACTERS: Final = 4 << 20

SqlParameters = tuple[str | int | float | None, ...]


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """A statement of one run. The writing thread computes its parameters. The last one ends the run."""

    run_id: str
    sql: str
    parameters: Callable[[], SqlParameters]
    is_first: bool = False
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class EventEntry:
    """An event of a run, with its number of sessions. The writing thread makes its text."""

    run_id: str
    number: int
    text: Callable[[], str]
    sessions: int


@dataclass(frozen=True, slots=True)
class EventsEntry:
    """The events of a run that is over, with all their sessions; the first has the number `first`.

    They become blocks at once.
    """

    run_id: str
    first: int
    texts: Callable[[], list[str]]
    sessions: int


QueueEntry = SqlStatement | EventEntry | EventsEntry


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """A statement with its parameters."""

    run_id: str
    sql: str
    parameters: SqlParameters
    is_first: bool
    is_last: bool
    size: int


@dataclass(slots=True)
class Rows:
    """Texts of successive events; the first has the number `first`."""

    run_id: str
    first: int
    texts: list[str] = field(default_factory=list[str])
    size: int = 0

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self.first + len(self.texts) - 1

    @property
    def is_full(self) -> bool:
        """Whether there are enough for a block."""
        return len(self.texts) >= BLOCK_EVENTS or self.size >= BLOCK_CHARACTERS

    def extend(self, texts: Sequence[str]) -> None:
        """Append texts."""
        self.texts.extend(texts)
        self.size += sum(map(len, texts))

    def to_block(self) -> "Block":
        """Return the block of these events."""
        return Block(self.run_id, self.first, self.last, pack_events(self.texts))


@dataclass(frozen=True, slots=True)
class Block:
    """The events `first` to `last`."""

    run_id: str
    first: int
    last: int
    data: bytes

    @property
    def size(self) -> int:
        """The bytes of the block."""
        return len(self.data)


WaitingEntry = BoundStatement | Rows | Block


class Backlog:
    """Entries that wait for a transaction, in order. `size` is about their bytes.

    Many events in a row wait as a block, which is small.
    """

    def __init__(self) -> None:
        self.size = 0
        self._entries: deque[WaitingEntry] = deque()

    def __bool__(self) -> bool:
        return bool(self._entries)

    def append(self, entry: WaitingEntry) -> None:
        """Append an entry."""
        self._entries.append(entry)
        self.size += entry.size

    def append_event(self, run_id: str, number: int, text: str) -> None:
        """Append an event."""
        rows = self._entries[-1] if self._entries else None
        if not isinstance(rows, Rows) or rows.run_id != run_id or rows.is_full:
            rows = Rows(run_id, number)
            self.append(rows)
        rows.extend([text])
        self.size += len(text)
        if rows.is_full:
            block = rows.to_block()
            self._entries[-1] = block
            self.size += block.size - rows.size

    def append_blocks(self, run_id: str, first: int, texts: Sequence[str]) -> None:
        """Append the events of a run that is over, as blocks."""
        rows = Rows(run_id, first)
        for text in texts:
            rows.extend([text])
            if rows.is_full:
                self.append(rows.to_block())
                rows = Rows(run_id, rows.last + 1)
        if rows.texts:
            self.append(rows.to_block())

    def first(self, max_size: int) -> list[WaitingEntry]:
        """Return the first entries of one run: at least one, and at most of that size."""
        entries: list[WaitingEntry] = []
        size = 0
        for entry in self._entries:
            if entries and (entry.run_id != entries[0].run_id or size + entry.size > max_size):
                break
            entries.append(entry)
            size += entry.size
        return entries

    def remove(self, entries: Sequence[WaitingEntry]) -> None:
        """Remove the first entries, which have been written."""
        for entry in entries:
            self._entries.popleft()
            self.size -= entry.size

    def drop(self, run_id: str) -> None:
        """Remove all entries of a run."""
        self._entries = deque(entry for entry in self._entries if entry.run_id != run_id)
        self.size = sum(entry.size for entry in self._entries)

    def describe(self) -> str:
        """Return a sentence about the unsaved part of each run, for the user."""
        counts: dict[str, int] = {}
        unsaved: set[str] = set()
        for entry in self._entries:
            if isinstance(entry, BoundStatement):
                counts.setdefault(entry.run_id, 0)
                unsaved |= {entry.run_id} if entry.is_first else set()
            else:
                counts[entry.run_id] = counts.get(entry.run_id, 0) + entry.last - entry.first + 1
        return "; ".join(
            f"run {run_id} is not saved"
            if run_id in unsaved
            else f"run {run_id} is saved in part, without its result and its last {count} entries"
            if count > 1
            else f"run {run_id} is saved without its result"
            for run_id, count in counts.items()
        )
