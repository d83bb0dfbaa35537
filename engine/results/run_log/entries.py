"""What is on its way into the run log: the entries that were queued, and what waits for a transaction.

Pure. The writing thread (writer.py) makes a `BoundStatement`, `Rows` or a `Block` of each queued entry.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from .event_blocks import pack_events

BLOCK_EVENTS: Final = 512  # about a minute of both ends' samples
BLOCK_CHARACTERS: Final = 4 << 20

SqlParameters = tuple[str | int | float | None, ...]


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """A statement of one run. The writing thread computes its parameters. After the last one the run has ended."""

    run_id: str
    sql: str
    parameters: Callable[[], SqlParameters]
    is_first: bool = False
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class EventEntry:
    """An event of a run, of so many sessions. The writing thread makes its text."""

    run_id: str
    number: int
    text: Callable[[], str]
    sessions: int


@dataclass(frozen=True, slots=True)
class EventsEntry:
    """The events of a run that is over, the first with the number `first`, of so many sessions in all.

    They become blocks without having been rows.
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
    """Texts of events in a row, the first with the number `first`."""

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
        """Whether these are enough for a block."""
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
        """Bytes of it."""
        return len(self.data)


WaitingEntry = BoundStatement | Rows | Block
