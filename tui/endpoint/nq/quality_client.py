"""A client of networkQuality at an endpoint: its place, its run, and the connections by which it loads the link.

The place begins with the configuration that the client fetches. The run begins with the first download or upload,
and ends once the client has loaded the link no more for a few seconds; another one may follow.
"""

import asyncio
import contextlib
import re
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from ....engine.browser.hosted_run import HostedRun, obtain_grant, plan_of_client
from ....engine.browser.quality_run import MAX_QUALITY_SESSIONS, QualityRun, plan_with
from ....engine.control.handshake import HandshakeResult
from ....engine.far.client_service import carry_out
from ....engine.far.clients.admission import Grant
from ....engine.far.clients.admitted_client import AdmittedClient
from ....engine.far.status import LogEntry, rejection
from ....engine.model.directions import Direction
from ....engine.model.errors import LinkgaugeError, explain_resource_error
from ....engine.model.host_info import QUALITY_SOFTWARE
from ....engine.model.peer import Peer
from ....engine.model.plan import SECOND_NS
from ....engine.model.run_end import EndText, Reason, RunEnd
from ....engine.near.foreign.metered_session import MeteredConnection, MeteredReceiver, MeteredSender
from ...session.run_spec import RunSpec
from ..browser.client_run import describe_client, follow_run, judge_by_interface

if TYPE_CHECKING:
    from ..browser.page_client import EndpointPages
    from .nq_connection import NqConnection

FIRST_LOAD_S: Final = 10.0
"""A client that has fetched its configuration, or ended a run, and asks for nothing for so long loses its place."""
MAX_CONNECTIONS: Final = 256
"""The connections of a client: 100 probes a second open one each, which is closed a second later."""
_END_S: Final = 4.0
_LOST_NS: Final = 5 * SECOND_NS
_FIRST_BYTES: Final = 1 << 16
_MOST_BYTES: Final = 1 << 18
_PROGRAM: Final = re.compile(r"([A-Za-z][A-Za-z-]{0,31})/(\d{1,5}(?:\.\d{1,5}){0,2})?", re.ASCII)


def describe_program(user_agent: str) -> str:
    """Return the software of a client by its User-Agent header: `networkQuality 194.80`, else as a client of it."""
    match = _PROGRAM.match(user_agent)
    if match is None:
        return f"{QUALITY_SOFTWARE} client"
    program = " ".join(filter(None, match.groups()))
    return program if match[1] == QUALITY_SOFTWARE else f"{QUALITY_SOFTWARE} client {program}"


class Load:
    """The part of one connection in its client's test: a session in each direction in which it loads the link."""

    def __init__(self, client: "QualityClient", connection: "NqConnection") -> None:
        self.connection = connection
        self._client = client
        self._sessions: dict[Direction, tuple[QualityRun, int, MeteredConnection]] = {}

    @property
    def has_begun(self) -> bool:
        """Whether payload may flow."""
        return any(run.begun.is_set() for run, _, _ in self._sessions.values())

    @property
    def unsent_bytes(self) -> int:
        """The bytes to send at once: as many as the kernel may have unsent, 5 ms at the connection's rate."""
        held = self._sessions.get(Direction.OUT)
        session = None if held is None else held[2].session
        unsent_bytes = session.most_unsent_bytes if isinstance(session, MeteredSender) else 0
        return min(unsent_bytes or _FIRST_BYTES, _MOST_BYTES)

    def open(self, direction: Direction) -> None:
        """Load the link in a direction from now on, unless the connection does so already."""
        if direction not in self._sessions:
            self._client.open(self, direction)

    def join(self, run: QualityRun, direction: Direction) -> None:
        """Take part in a run that has room."""
        number = run.find_place(direction)
        fd = self.connection.copy_descriptor()
        if number is None or fd is None:
            return
        metered = run.open(direction, number, socket.socket(fileno=fd))
        if isinstance(metered.session, MeteredSender):
            metered.session.limit_unsent()
        self._sessions[direction] = run, number, metered

    def close(self, direction: Direction) -> None:
        """Load the link no more in a direction."""
        self._client.close_waiting(self, direction)
        session = self._sessions.pop(direction, None)
        if session is not None:
            run, number, _ = session
            run.close(direction, number)

    def count(self, payload_bytes: int) -> None:
        """Count payload of an upload."""
        session = self._sessions.get(Direction.IN)
        if session is not None and isinstance(session[2].session, MeteredReceiver):
            session[2].session.count(payload_bytes)

    def lose(self) -> None:
        """End the run if all its connections stand still, as this one does."""
        if self._sessions and self._client.still_ns > _LOST_NS:
            for run, _, _ in self._sessions.values():
                run.stop(Reason.PEER_LOST, EndText.CLIENT_STILL.value)

    def end(self) -> None:
        """Load the link no more: the connection has gone."""
        for direction in list(Direction.DUPLEX.flows):
            self.close(direction)
        self._client.forget(self.connection)


class QualityClient:
    """One client, from the configuration that it fetches on. Its `token` is part of the addresses that it gets."""

    def __init__(
        self, pages: "EndpointPages", connection: "NqConnection", key_name: str | None, software: str
    ) -> None:
        self.address = connection.address
        self.token = secrets.token_urlsafe(16)
        self._pages, self._connection = pages, connection
        self._key_name, self._software = key_name, software
        self._loads: dict[NqConnection, Load] = {}
        self._waiting: list[tuple[Load, Direction]] = []
        self._is_wanted = asyncio.Event()
        self._touched_s = time.monotonic()
        self._run: QualityRun | None = None
        self._hosted: HostedRun | None = None
        self._is_over = False
        self.on_end: Callable[[], object] = lambda: None
        self._entered: asyncio.Future[LinkgaugeError | None] = asyncio.get_running_loop().create_future()
        self._serving = asyncio.create_task(self._serve())
        pages.endpoint.track(self._serving)

    @property
    def is_over(self) -> bool:
        """Whether it has no place any more."""
        return self._is_over

    @property
    def still_ns(self) -> int:
        """The time since payload of any connection has moved."""
        return time.monotonic_ns() - max((connection.moved_ns for connection in self._loads), default=0)

    @property
    def connections(self) -> tuple["NqConnection", ...]:
        """The open connections, in the order in which they came."""
        return tuple(self._loads)

    async def enter(self) -> None:
        """Wait until the client has a place; raise LinkgaugeError if it gets none."""
        error = await asyncio.shield(self._entered)
        if error is not None:
            raise error

    async def wait(self) -> None:
        """Wait until the client has gone."""
        await asyncio.wait([self._serving])

    async def close(self) -> None:
        """End its test with the endpoint."""
        self._is_over = True
        self._is_wanted.set()
        if self._hosted is not None:
            self._hosted.end(Reason.PEER_STOPPED, EndText.FAR_SHUTDOWN.value)
        await asyncio.wait([self._serving], timeout=_END_S)

    def touch(self, connection: "NqConnection") -> Load:
        """Note a request of the test; return the part of its connection."""
        self._touched_s = time.monotonic()
        load = self._loads.get(connection)
        if load is None:
            load = connection.load = self._loads[connection] = Load(self, connection)
        return load

    def has_room(self, direction: Direction) -> bool:
        """Return whether another connection may load the link."""
        waiting = sum(way is direction for _, way in self._waiting)
        return waiting < MAX_QUALITY_SESSIONS and (self._run is None or self._run.find_place(direction) is not None)

    def open(self, load: Load, direction: Direction) -> None:
        """Have a connection load the link, in a new run if there is none."""
        if self._run is not None and not self._run.is_ending:
            load.join(self._run, direction)
        elif (load, direction) not in self._waiting:
            self._waiting.append((load, direction))
            self._is_wanted.set()

    def close_waiting(self, load: Load, direction: Direction) -> None:
        """Forget a connection that waits for a run."""
        with contextlib.suppress(ValueError):
            self._waiting.remove((load, direction))

    def forget(self, connection: "NqConnection") -> None:
        """Forget a connection that has gone."""
        self._loads.pop(connection, None)

    async def _serve(self) -> None:
        """Serve the client from its admission to its last run."""
        endpoint = self._pages.endpoint
        try:
            with contextlib.ExitStack() as stack:
                admitted = stack.enter_context(endpoint.admission.admit(self.address, time.monotonic_ns()))
                admitted.software, admitted.key_name = self._software, self._key_name
                endpoint.log(LogEntry("admitted", "admitted", client=self.address or None, key=self._key_name))
                await self._serve_admitted(admitted, stack)
        except (LinkgaugeError, OSError, MemoryError) as error:
            known = error if isinstance(error, LinkgaugeError) else LinkgaugeError(explain_resource_error(error))
            endpoint.log(rejection(self.address or None, known, self._key_name))
            if not self._entered.done():
                self._entered.set_result(known)
        finally:
            self._is_over = True
            self.on_end()
            for connection in self.connections:
                connection.close()

    async def _serve_admitted(self, admitted: AdmittedClient, stack: contextlib.ExitStack) -> None:
        endpoint = self._pages.endpoint
        widest = plan_of_client(
            plan_with(Direction.DUPLEX, min(MAX_QUALITY_SESSIONS, endpoint.admission.limits.sessions))
        )
        grant: Grant | None = await obtain_grant(endpoint.admission, admitted, widest, stack)
        spec, ends = await self._prepare()
        self._entered.set_result(None)
        if not await self._await_load():
            endpoint.log(LogEntry("probe", "probed", client=self.address or None, key=self._key_name))
            return
        while True:
            grant = grant or await obtain_grant(endpoint.admission, admitted, widest, stack)
            end = await self._carry_out(admitted, grant, spec, ends)
            grant = None
            if end.reason is not Reason.COMPLETED or not await self._await_load():
                return

    async def _prepare(self) -> tuple[RunSpec, HandshakeResult]:
        """Return what the runs are asked to be, and the descriptions of both ends."""
        ends = await describe_client(self._connection.transport, self.address, self._software)
        judging, notices = judge_by_interface(self._pages.catalog, ends)
        peer = Peer(self.address, is_quality_client=True)
        return RunSpec(plan_with(Direction.OUT, 1), peer, judging).with_notices(*notices), ends

    async def _await_load(self) -> bool:
        """Wait for a connection that loads the link; return False if none comes in time."""
        while not self._is_over:
            left_s = self._touched_s + FIRST_LOAD_S - time.monotonic()
            if left_s <= 0:
                return False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._is_wanted.wait()
                    break
        return not self._is_over

    async def _carry_out(
        self, admitted: AdmittedClient, grant: Grant, spec: RunSpec, ends: HandshakeResult
    ) -> RunEnd:
        """Carry out a run of the connections that wait, and of those that follow; return its end."""
        self._is_wanted.clear()
        waiting, self._waiting = self._waiting, []
        plan = plan_with(waiting[0][1], 1) if waiting else spec.plan
        spec = replace(spec, plan=plan)
        run = QualityRun(plan, spec.peer, ends, partial(spec.judging.expect, plan))
        async with run.pool:
            self._run = run
            for load, direction in waiting:
                load.join(run, direction)
            waking = asyncio.create_task(self._wake(run))
            self._hosted = HostedRun(run, grant, lambda: follow_run(run, spec, self._pages.open_run_log()))
            try:
                return await carry_out(
                    self._hosted, admitted, self._pages.endpoint.log, "networkQuality", software=admitted.software
                )
            finally:
                self._touched_s = time.monotonic()
                waking.cancel()
                self._hosted.release()
                self._run = self._hosted = None

    async def _wake(self, run: QualityRun) -> None:
        await run.begun.wait()
        for connection in self.connections:
            connection.begin()
