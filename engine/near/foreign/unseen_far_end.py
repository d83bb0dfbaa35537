"""Runs whose far end is another program: it sends no samples, so that this end's kernel has all figures.

`prepared` checks what every such run needs. Sessions with TLS are moved and metered by this process.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from ...control.handshake import HandshakeResult
from ...model.counters.samples import Sample
from ...model.directions import Direction, End
from ...model.events import Sampled
from ...model.peer import Peer
from ...model.plan import Mode, Plan, Settings
from ...protocol.foreign.missing_features import find_unsupported
from ...workers.core_assignment import check_cores
from ...workers.fork_client import ForkServerLease
from ...workers.ipc import ConnectionOpened
from ...workloads.sockets import read_socket_info
from ..base_run import ExpectationFinder, Run, WorkerSetup
from ..session_set import SessionKey
from ..socket_option_checks import check_options
from .metered_session import MeteredConnection, meter_socket

_REFRESH_S: Final = 0.05


@asynccontextmanager
async def prepared(plan: Plan, peer: Peer) -> AsyncGenerator[None]:
    """Have the fork server ready for a run with another program; raise PlanError if the run is not possible."""
    check_cores(plan.near_cores, "cores")
    check_options(plan.socket)
    problem = find_unsupported(plan, peer)
    if problem is not None:
        raise problem
    async with ForkServerLease():
        yield


def keys_of(settings: Settings) -> list[SessionKey]:
    """Return the sessions that settings want."""
    return [(flow, number) for number in range(1, settings.sessions + 1) for flow in settings.direction.flows]


class UnseenFarEndRun(Run):
    """A run with another program. Its process may move the payload of sessions that have TLS."""

    def __init__(
        self,
        plan: Plan,
        peer: Peer,
        ends: HandshakeResult,
        ip_version: int,
        expectation_for: ExpectationFinder,
        setup: WorkerSetup,
    ) -> None:
        """Make a run that has not begun; the arguments are those of `Run`."""
        super().__init__(plan, peer, ends, ip_version, expectation_for, setup)
        self._metered: dict[SessionKey, MeteredConnection] = {}

    def meter(self, direction: Direction, session: int, sock: socket.socket) -> MeteredConnection:
        """Return the session of a connection whose bytes the caller moves, from the start to its own `over`.

        The session closes `sock`, a descriptor of its own. The run must want it, and must not be over.
        """
        if not self._metered:
            self._run_task(self._refresh_metered())
        previous = self._metered.pop((direction, session), None)
        if previous is not None:
            previous.end()
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
        for task in self._tasks:
            task.cancel()
        for metered in self._metered.values():
            metered.end()

    def _end_payload(self) -> None:
        """Take the last sample; the connections end with the workers."""
        self._read_metered()
        self._stop_sampling()
        self.pool.stop_payload()

    def _handle_near_sample(self, sample: Sample) -> None:
        self._note_sample(self._events.add_sample(sample))
        stand_in = sample.for_unseen_receiver()
        if stand_in is not None and not self._failure:
            self._events.add_sample(stand_in)

    def _note_sample(self, sampled: Sampled) -> None:
        """Look at a sample of this end."""
