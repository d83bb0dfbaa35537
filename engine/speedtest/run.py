"""A run against a LibreSpeed or NDT7 server. This end opens its connections, and measures all of it.

A sample of the far end has the local kernel's counts (`Sample.is_from_sender`), or what an NDT7 server reports of
its own kernel.
"""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from ..control.handshake import HandshakeResult
from ..host.description import describe_host
from ..host.tcp_info import read_tcp_info
from ..model.counters.samples import ProbeSample, Sample
from ..model.directions import Direction
from ..model.errors import (
    ConnectionClosed,
    ConnectionSpent,
    PeerError,
    ProtocolError,
    ServerEnded,
    explain_os_error,
    require_extra,
)
from ..model.ip_address import unmap_ip_address
from ..model.peer import Peer
from ..model.plan import SECOND_NS, Dialect, Mode, Plan, Settings
from ..model.run_end import EndText, Reason, RunEnd
from ..model.speed_server import SpeedProtocol, SpeedServer
from ..model.texts.warning_text import WarningText
from ..near.base_run import ExpectationFinder, WorkerSetup, driven, no_expectation
from ..near.connect import describe_server
from ..near.foreign.hosted_probe import HostedProbe
from ..near.foreign.unseen_far_end import UnseenFarEndRun, keys_of, prepared
from ..near.session_set import SessionKey, SessionSet
from ..near.socket_option_checks import check_binding
from ..protocol.foreign.missing_features import Feature, why_unavailable
from ..protocol.foreign.websocket_frames import Message, Opcode
from ..workers.ipc import AdoptSession, MessageReceived
from ..workloads.session_handshake import SessionSpec
from .http_connection import HttpConnection
from .http_wire import PlainWire
from .librespeed import LibreSpeedClient
from .ndt7 import ENDED, Ndt7Client
from .payload_movers import receive_payload, send_payload
from .speed_client import Connector, SpeedClient

LONGEST_NDT7_NS: Final = 10 * SECOND_NS
SILENCE_NS: Final = 5 * SECOND_NS
_GREETING_DEADLINE_S: Final = 10.0
_NEARLY_ALL: Final = 0.9


@asynccontextmanager
async def open_speed_run(
    plan: Plan,
    peer: Peer,
    *,
    expectation_for: ExpectationFinder = no_expectation,
    mode: Mode | None = None,
) -> AsyncGenerator["SpeedRun"]:
    """Start a run against such a server and yield it; on leaving the block, stop it and wait for its end.

    Args:
        plan: The run to carry out.
        peer: The server.
        expectation_for: Returns the rates to expect under given settings.
        mode: How this end moves payload if the plan does not name a mode; None copies.

    Raises:
        PlanError: The server cannot carry out the plan, or this machine lacks something for it.
        PeerError: The server cannot be used.
        WorkerError: A worker process does not start.
        ExtraMissing: The package h11 is not installed.
    """
    server = peer.speed or SpeedServer(SpeedProtocol.LIBRESPEED)
    require_extra("tests against LibreSpeed and NDT7 servers need h11", "http", "h11")
    async with prepared(plan, peer):
        connector = Connector(peer, server, plan)
        client = _CLIENTS[server.protocol](connector, server)
        try:
            ends = await _greet(plan, connector, client)
            run = SpeedRun(with_server(plan, client, server), peer, client, ends, expectation_for, mode)
            if plan.duration_ns != run.plan.duration_ns:
                run.warn(WarningText.NDT7_CUT.format(seconds=LONGEST_NDT7_NS // SECOND_NS))
            async with run.pool:
                try:
                    async with driven(run):
                        yield run
                finally:
                    run.release()  # before the pool closes the counters
        finally:
            client.close()


_CLIENTS: Final[dict[SpeedProtocol, type[SpeedClient]]] = {
    SpeedProtocol.LIBRESPEED: LibreSpeedClient,
    SpeedProtocol.NDT7: Ndt7Client,
}


async def _greet(plan: Plan, connector: Connector, client: SpeedClient) -> HandshakeResult:
    """Return the descriptions of both ends, once the server is known to be one; raise PeerError or PlanError."""
    sock = await connector.find_address()
    try:
        near = await describe_host(sock.getsockname(), sock.getpeername())
        address = unmap_ip_address(str(sock.getpeername()[0]))
        check_binding(plan, address)
    except BaseException:
        sock.close()
        raise
    try:
        async with asyncio.timeout(_GREETING_DEADLINE_S):
            await client.greet(sock)
    except TimeoutError as error:
        raise PeerError(f"{connector.peer} answers too slowly; test while the link is idle") from error
    return HandshakeResult(near, describe_server(connector.peer), address=address)


def with_server(plan: Plan, client: SpeedClient, server: SpeedServer) -> Plan:
    """Return the plan as such a server carries it out: its messages, and its longest time."""
    head, body_bytes = client.message()
    if Direction.OUT in plan.settings.direction.flows:
        plan = replace(plan, block_bytes=len(head) + body_bytes)
    if server.protocol is SpeedProtocol.NDT7:
        plan = replace(plan, duration_ns=min(plan.duration_ns or LONGEST_NDT7_NS, LONGEST_NDT7_NS))
    return plan


class SpeedRun(UnseenFarEndRun):
    """A run against such a server: enter its `pool`, then `driven(run)`, and `release` it."""

    def __init__(
        self,
        plan: Plan,
        peer: Peer,
        client: SpeedClient,
        ends: HandshakeResult,
        expectation_for: ExpectationFinder,
        mode: Mode | None,
    ) -> None:
        """Make a run that has not begun.

        Args:
            plan: The run to carry out, as `with_server` makes it.
            peer: The server, named in events and errors.
            client: The conversation with it, after its greeting.
            ends: The descriptions of both ends.
            expectation_for: Returns the rates to expect under given settings.
            mode: How this end moves payload if the plan does not name a mode; None copies.
        """
        head, self._body_bytes = client.message()
        setup = WorkerSetup(mode, program=Dialect(ends.far.program), head=head)
        super().__init__(plan, peer, ends, ends.ip_version or 4, expectation_for, setup)
        self._server, self._client, self._head = peer, client, head
        self._sessions = SessionSet()
        self._connections: dict[SessionKey, HttpConnection] = {}
        self._probe = HostedProbe(self.pool.counters)
        self._begun = asyncio.Event()
        self._moved_bytes, self._moved_ns = 0, time.monotonic_ns()
        self.pool.on_message = self._take_message

    def warn(self, text: str) -> None:
        """Emit a warning."""
        self._events.warn(text)

    def change_settings(self, settings: Settings) -> None:
        """Warn that such a test cannot be changed, and leave everything as it is."""
        reason = why_unavailable(self._server, Feature.LIVE_CHANGES)
        if settings != self.settings and not self._ending.done() and reason is not None:
            self._events.warn(WarningText.SETTINGS_FIXED.format(reason=reason))

    async def _open(self) -> ProbeSample | None:
        """Measure the idle link, then open the sessions: payload of a download begins to arrive at once."""
        idle = None
        if self.plan.probe:
            self._run_task(self._ping())
            idle = await self._sampler.measure_idle()
        for number, key in enumerate(keys_of(self.plan.settings)):
            connection = self._connections[key] = await self._client.open_session(key[0], number)
            await self._sessions.open_one(key, partial(self._hand_over, key, connection))
        return idle

    async def _hand_over(self, key: SessionKey, connection: HttpConnection, generation: int = 0) -> None:
        """Give a connection to a worker; this process keeps it as well, to converse. One with TLS stays here."""
        if isinstance(connection.wire, PlainWire):
            spec = SessionSpec(*key, generation, None, "")
            await self.pool.send_command(AdoptSession(spec), connection.wire.share())
        else:
            self._run_task(self._move(key, connection, connection.wire.sock.dup()))

    async def _move(self, key: SessionKey, connection: HttpConnection, sock: socket.socket) -> None:
        """Move the payload of a session with TLS, from the start to the end of the run."""
        metered, look = self.meter(*key, sock), self._client.take_payload
        await self._begun.wait()
        try:
            if key[0] is Direction.IN:
                await receive_payload(connection.wire, metered, look)
                raise ConnectionClosed("it closed the connection")
            await send_payload(connection.wire, metered, self._head, self._body_bytes)
        except (PeerError, ProtocolError) as error:
            self._end_for(error)
        except OSError as error:
            if key[0] is Direction.IN:  # the reader of answers knows why an upload ends
                self._end_for(ConnectionClosed(explain_os_error(error)))

    async def _ping(self) -> None:
        """Measure the latency until the run ends; it goes on without pings if the server answers none."""
        try:
            await self._probe.repeat(self._client.ping, lambda: self._client.ping_socket)
        except (PeerError, ProtocolError) as error:
            if not self._ending.done():
                self._events.warn(WarningText.PROBE_LOST.format(reason=error))

    def _listen(self) -> None:
        self._begun.set()
        self._moved_ns = time.monotonic_ns()
        for key, connection in self._connections.items():
            self._run_task(self._follow(key, connection))

    async def _follow(self, key: SessionKey, connection: HttpConnection) -> None:
        try:
            while await self._is_spent(key, connection):
                connection = await self._renew(key, connection)
        except (PeerError, ProtocolError) as error:
            self._end_for(error)

    async def _is_spent(self, key: SessionKey, connection: HttpConnection) -> bool:
        """Converse on a session; return whether the server wants another connection for it. Raises as `follow`."""
        try:
            await self._client.follow(connection, key[0], partial(self._carried, *key))
        except ConnectionSpent:
            return True
        return False

    async def _renew(self, key: SessionKey, spent: HttpConnection) -> HttpConnection:
        """Return the connection that carries a session from now on; raise PeerError."""
        generation = self._sessions.give_up(key)
        connection = await self._client.open_session(key[0], None)
        self._connections[key] = connection
        spent.close()
        await self._sessions.open_one(key, partial(self._hand_over, key, connection, generation), generation)
        return connection

    def _carried(self, direction: Direction, session: int) -> int:
        reading = self.pool.counters.read(direction, session)
        return 0 if reading is None else reading.bytes

    def _take_message(self, event: MessageReceived) -> None:
        """Take a message that a worker has found between the payload."""
        try:
            self._client.take_message(Message(Opcode(event.opcode), bytes.fromhex(event.data_hex)))
        except (PeerError, ProtocolError) as error:
            self._end_for(error)

    def _end_for(self, error: PeerError | ProtocolError) -> None:
        """End the run for what the server did."""
        if isinstance(error, ServerEnded):
            is_whole = str(error) == ENDED and self._sampler.elapsed_ns > self._shortest_ns
            reason = Reason.COMPLETED if is_whole else Reason.PEER_STOPPED
            seconds = self._sampler.elapsed_ns / SECOND_NS
            self.stop(reason, EndText.SERVER_ENDED.format(reason=error, seconds=seconds))
        elif isinstance(error, ConnectionClosed):
            self.stop(Reason.PEER_LOST, EndText.FAR_GONE.format(error=error))
        else:
            self.stop(Reason.FAILED, EndText.FAR_NOT_UNDERSTOOD.format(error=error))

    @property
    def _shortest_ns(self) -> int:
        """The time that a test has to last before the server may end it: anything of it was measured then."""
        return self.plan.effective_warmup_ns + self.plan.interval_ns

    def _poll_far_end(self) -> int | None:
        """Return the time of the last segment from the server; end the run if no payload moves."""
        now_ns, moved = time.monotonic_ns(), self.pool.counters.total_bytes()
        if moved != self._moved_bytes:
            self._moved_bytes, self._moved_ns = moved, now_ns
        elif now_ns - self._moved_ns > SILENCE_NS:
            self._lose(EndText.SERVER_SILENT.format(seconds=SILENCE_NS / SECOND_NS))
        infos = [read_tcp_info(connection.wire.sock) for connection in self._connections.values()]
        return max((now_ns - info.receive_idle_ms * 1_000_000 for info in infos if info is not None), default=None)

    async def _finish(self, end: RunEnd) -> RunEnd:
        self._end_payload()
        for text in self._client.find_discrepancies(self.pool.counters.flow_bytes(Direction.OUT)):
            self._events.warn(text)
        for connection in self._connections.values():
            self._client.say_goodbye(connection)
        nearly_all_ns = _NEARLY_ALL * (self.plan.duration_ns or 0)
        if (
            end.reason is Reason.SESSION_LOST
            and self._client.ends_tests
            and self._sampler.elapsed_ns > nearly_all_ns
        ):
            # The server closes at the end of its time, and what it has not read resets the connection.
            return RunEnd(Reason.COMPLETED, EndText.DURATION_UP.value)
        return end

    def _handle_near_sample(self, sample: Sample) -> None:
        far = self._client.far_sample(sample)
        if far is not None and not self._failure:  # before this end's, which completes the interval
            self._events.add_sample(far)
        super()._handle_near_sample(sample)

    def release(self) -> None:
        """End what the run has begun, also if it was never driven. Call it before its counters are closed."""
        self._probe.close()
        super().release()
        for connection in self._connections.values():
            connection.close()
