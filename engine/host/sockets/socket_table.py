"""All connections of the last dump, and what moved since the one before.

Pure. Of thousands of sockets most are idle: their counters are compared as bytes, and decoded only if they differ.
A socket is known by its id, which has the kernel's cookie, so that the counters of a port that is used again are
never joined.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from struct import Struct
from typing import Final, NamedTuple

from ..tcp_info import BYTES_MOVED
from .socket_message import ID_BYTES, SocketMessage

_MOVED: Final = Struct("=QQ")
_NOTHING: Final = bytes(_MOVED.size)
_NO_QUEUES: Final = bytes(8)
_FIRST, _LAST = BYTES_MOVED.start, BYTES_MOVED.stop
_ID_END: Final = 4 + ID_BYTES


class Movement(NamedTuple):
    """A socket, and the payload that was acknowledged, and that arrived, since the last dump."""

    message: SocketMessage
    out_bytes: int
    in_bytes: int

    @property
    def bytes(self) -> int:
        """The payload of both directions."""
        return self.out_bytes + self.in_bytes


@dataclass(slots=True)
class _Counts:
    """Payload that moved, and connections that ended: `short_lived` ones of them began after the last dump."""

    ended: int = 0
    short_lived: int = 0
    short_lived_bytes: int = 0
    out_bytes: int = 0
    in_bytes: int = 0


@dataclass(slots=True)
class TableChange(_Counts):
    """The changes since the last dump.

    `moved` sockets moved payload, `waiting` ones moved none and have bytes in a queue, `idle` has some of the
    others.
    """

    moved: list[Movement] = field(default_factory=list[Movement])
    waiting: list[SocketMessage] = field(default_factory=list[SocketMessage])
    idle: list[SocketMessage] = field(default_factory=list[SocketMessage])

    def add(self, movement: Movement) -> None:
        """Add a socket that moved payload."""
        self.moved.append(movement)
        self.out_bytes += movement.out_bytes
        self.in_bytes += movement.in_bytes


@dataclass(slots=True)
class IntervalCounts(_Counts):
    """The sums of the changes of an interval, which may have several dumps."""

    moving: set[bytes] = field(default_factory=set[bytes])

    def add(self, change: TableChange) -> None:
        """Add the changes of a dump."""
        self.moving.update(each.message.id for each in change.moved)
        for each in fields(_Counts):
            setattr(self, each.name, getattr(self, each.name) + getattr(change, each.name))


class SocketTable:
    """The sockets of the newest dump: their ids, and the payload that they have moved.

    A change lists up to `idle_kept` idle ones.
    """

    def __init__(self, idle_kept: int = 0) -> None:
        self._idle_kept = idle_kept
        self._is_first = True
        self.known: dict[bytes, bytes] = {}

    def update(
        self,
        messages: Iterable[SocketMessage],
        ended: Iterable[SocketMessage] = (),
        allows: Callable[[SocketMessage], bool] | None = None,
    ) -> TableChange:
        """Take a dump, and the sockets that ended before it; return the changes. The first dump has none."""
        change = TableChange()
        before, known = self.known, {}
        for message in ended:
            self._add_ended(change, message)
        for message in messages:
            body, at = message
            if not at or (allows is not None and not allows(message)):
                continue
            id_, moved = body[4:_ID_END], body[at + _FIRST : at + _LAST]
            known[id_] = moved
            was = before.get(id_)
            if was == moved:
                if body[56:64] != _NO_QUEUES:
                    change.waiting.append(message)
                elif len(change.idle) < self._idle_kept:
                    change.idle.append(message)
            elif was is not None or not self._is_first:
                change.add(_movement(message, was or _NOTHING, moved))
            elif body[56:64] != _NO_QUEUES:
                change.waiting.append(message)
        change.ended += len(before.keys() - known.keys())
        self.known, self._is_first = known, False
        return change

    def _add_ended(self, change: TableChange, message: SocketMessage) -> None:
        """Count the last payload of a socket that ended; one that no dump had began after the last one."""
        if self._is_first:
            return
        was = self.known.pop(message.id, None)
        movement = _movement(message, was or _NOTHING, message.moved)
        change.ended += 1
        change.out_bytes += movement.out_bytes
        change.in_bytes += movement.in_bytes
        if was is None:
            change.short_lived += 1
            change.short_lived_bytes += movement.bytes


def _movement(message: SocketMessage, before: bytes, now: bytes) -> Movement:
    rises = (max(0, after - was) for was, after in zip(_MOVED.unpack(before), _MOVED.unpack(now), strict=True))
    return Movement(message, *rises)
