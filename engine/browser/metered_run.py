"""The base of a run whose connections a client opens, and which this end alone measures.

A sample of the far end has the local kernel's counts (`Sample.is_from_sender`), as in a run against iperf3.
"""

import asyncio
import socket
from typing import Final

from ..control.handshake import HandshakeResult
from ..model.counters.samples import Sample
from ..model.directions import Direction, End
from ..model.peer import Peer
from ..model.plan import Mode, Plan
from ..near.base_run import ExpectationFinder, Run, WorkerSetup
from ..near.session_set import SessionKey
from ..workers.ipc import ConnectionOpened
from ..workloads.sockets import read_socket_info
from .metered_session import MeteredConnection, meter_socket

_REFRESH_S: Final = 0.05


class MeteredRun(Run):
    """A run with sessions whose bytes their owners move in this process, if TLS leaves no other way."""

    def __init__(
        self, plan: Plan, peer: Peer, ends: HandshakeResult, expectation_for: ExpectationFinder, setup: WorkerSetup
    ) -> None:
        """Make a run that has not begun; the arguments are those of every run."""
        super().__init__(plan, peer, ends, ends.ip_version or 4, expectation_for, setup)
        self._metered: dict[SessionKey, MeteredConnection] = {}
        self.begun, self.over = asyncio.Event(), asyncio.Event()

    @property
    def awaited_connections(self) -> int:
        """The number of connections that the client is about to open."""
        return 0

    @property
    def is_ending(self) -> bool:
        """Whether its end is certain."""
        return self._ending.done()

    def meter(self, direction: Direction, session: int, sock: socket.socket) -> MeteredConnection:
        """Return the session of a connection whose bytes the caller moves, from `begun` to its own `over`.

        The session closes `sock`, a descriptor of its own. The run must want it, and must not be over.
        """
        if not self._metered:
            self._run_task(self._refresh_metered())
        metered = meter_socket(sock, self.pool.counters, direction, session)
        self._metered[direction, session] = metered
        info = read_socket_info(sock, End.NEAR, direction, session, Mode.COPY, None)
        self._handle_worker_event(ConnectionOpened(info))
        return metered

    async def _refresh_metered(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_S)
            self._read_metered()

    def _read_metered(self) -> None:
        for metered in self._metered.values():
            metered.session.refresh()

    def release(self) -> None:
        """End what the run has begun, also if it was never driven. Call it before its counters are closed."""
        self.over.set()
        for task in self._tasks:
            task.cancel()
        for metered in self._metered.values():
            metered.end()

    def _listen(self) -> None:
        self.begun.set()

    def _handle_near_sample(self, sample: Sample) -> None:
        self._events.add_sample(sample)
        stand_in = sample.for_unseen_receiver()
        if stand_in is not None:
            self._events.add_sample(stand_in)
