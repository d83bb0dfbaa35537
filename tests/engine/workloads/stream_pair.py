"""Both ends of a stream session, over loopback in this process."""

import socket

from linkgauge.engine.metering.shared_counters import SharedCounters
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import Mode
from linkgauge.engine.workloads.session import Payload, SessionContext, WorkerResources
from linkgauge.engine.workloads.socket_io import create_poller
from linkgauge.engine.workloads.stream import StreamReceiver, StreamSender

from ..tcp_pair import pair

DEADLINE_S = 20.0


class StreamPair:
    """A sender in one slot and a receiver in another, with a connection."""

    def __init__(self, mode: Mode = Mode.COPY) -> None:
        self.counters = SharedCounters.create()
        self.payload = Payload(65_536, mode)
        self.poller = create_poller()
        self.lost: list[str] = []
        buffer = memoryview(bytearray(1 << 20))
        self._resources = WorkerResources(self.payload, buffer, mode, Payload(0), self.poller)
        sender, receiver = pair()
        self.sender = StreamSender(sender, self._context(0), self._resources)
        self.receiver = self.receive(receiver)

    def _context(self, slot: int, generation: int = 0) -> SessionContext:
        return SessionContext(self.counters, slot, generation, self.lost.append)

    def receive(self, sock: socket.socket, generation: int = 0) -> StreamReceiver:
        """Return a receiver of a connection, in the second slot."""
        return StreamReceiver(sock, self._context(1, generation), self._resources)

    @property
    def received_bytes(self) -> int:
        """The bytes in the receiver's slot."""
        slot = self.counters.read(Direction.IN, 1)
        return 0 if slot is None else slot.bytes

    def close(self) -> None:
        """Close both ends."""
        self.sender.close()
        self.receiver.close()
        self.poller.close()
        self.payload.close()
        self.counters.close()
