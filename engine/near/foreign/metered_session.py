"""Sessions whose bytes this process moves, because only it has the keys of their TLS; the kernel counts them.

A sender counts what the other end's kernel acknowledged, records of TLS included: 22 bytes in 16 KiB (RFC 8446,
5.2). A receiver counts the payload that its owner has decrypted.
"""

import asyncio
import socket
from dataclasses import dataclass, field

from ...metering.shared_counters import SharedCounters, slot_index
from ...model.directions import Direction
from ...workloads.session import ReceivingSession, SendingSession, SessionContext


class MeteredSender(SendingSession):
    """Counts what its owner sends.

    That is the process of all other clients, too. With 5 ms of payload it left a link of 100 Mb/s idle for 15 % of
    the time on two busy cores, and without a limit for none.
    """

    _unsent_margin = 4

    def _start_io(self) -> None:
        """Do nothing: the owner sends."""


class MeteredReceiver(ReceivingSession):
    """Counts what its owner has received."""

    def count(self, received_bytes: int) -> None:
        """Count payload."""
        if not self._closed:
            self._words[self._bytes_at] += received_bytes

    def _start_io(self) -> None:
        """Do nothing: the owner receives."""


@dataclass(frozen=True, slots=True, eq=False)
class MeteredConnection:
    """Such a session. Its owner stops moving bytes once `over` is set: the run wants no more of them."""

    session: MeteredSender | MeteredReceiver
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self) -> None:
        """Take the last counts, and have the owner stop."""
        self.session.close()
        self.over.set()


def meter_socket(
    sock: socket.socket, counters: SharedCounters, direction: Direction, session: int
) -> MeteredConnection:
    """Return the session of a connection, which closes `sock`: a descriptor of its own. `out` is sent here."""
    context = SessionContext(counters, slot_index(direction, session), 0, lambda _why: None)
    kind = MeteredSender if direction is Direction.OUT else MeteredReceiver
    metered = kind(sock, context)
    metered.start()
    return MeteredConnection(metered)
