"""Both ends of one crr session, over loopback in this process."""

import socket
from pathlib import Path
from typing import Self

from linkgauge.engine.metering.shared_counters import SharedCounters, histogram_offset
from linkgauge.engine.model.counters.latency_histogram import BUCKET_COUNT
from linkgauge.engine.model.plan import Mode, SocketOptions
from linkgauge.engine.protocol.tokens import Tickets
from linkgauge.engine.workloads.crr_requester import CrrRequester
from linkgauge.engine.workloads.crr_responder import CrrResponder, open_listener
from linkgauge.engine.workloads.session import Payload, SessionContext, WorkerResources
from linkgauge.engine.workloads.socket_io import create_poller

from ..waiting import until

SECRET = bytes(range(32))


def sockets_open() -> int:
    """Return how many sockets this process has."""
    return sum("socket:" in str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink())


class CrrPair:
    """Both ends of one crr session in this process."""

    def __init__(self, response_bytes: int = 8_192) -> None:
        self.counters = SharedCounters.create()
        self.payload = Payload(65_536)
        self.poller = create_poller()
        self.lost: list[str] = []
        buffer, requests = memoryview(bytearray(65_536)), Payload(64)
        resources = WorkerResources(self.payload, buffer, Mode.COPY, requests, self.poller, 64, response_bytes)
        with socket.create_server(("127.0.0.1", 0)) as anchor:
            near = socket.create_connection(anchor.getsockname())
            far, _ = anchor.accept()
        self.listener = open_listener(far)
        near.setblocking(False)
        far.setblocking(False)
        self.near = near
        context = SessionContext(self.counters, 1, 0, self.lost.append)
        self.responder = CrrResponder(far, context, resources, self.listener, Tickets(SECRET))
        address = self.listener.getsockname()
        context = SessionContext(self.counters, 0, 0, self.lost.append)
        self.requester = CrrRequester(near, context, resources, address, Tickets(SECRET), (None, SocketOptions()))

    @property
    def transactions(self) -> int:
        """The transactions that the requester counted."""
        first = histogram_offset(0)
        return sum(self.counters.words[first : first + BUCKET_COUNT])

    async def until(self, transactions: int) -> None:
        """Wait for a number of transactions, or for the end of the session."""
        await until(lambda: not (self.transactions < transactions and not self.lost))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close both ends."""
        self.requester.close()
        self.responder.close()
        self.poller.close()
        self.payload.close()
        self.counters.close()
