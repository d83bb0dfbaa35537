"""The far end of a run: preparation, samples to the near end, end."""

import asyncio
import logging
import secrets
import socket
import time
from dataclasses import replace
from typing import Final

from ..control.connection import ControlConnection
from ..control.handshake import HandshakeResult
from ..control.keepalive import PING_INTERVAL_S, Liveness
from ..metering.drain import await_drain
from ..metering.sampler import Sampler
from ..model.counters.samples import Sample, SessionSample
from ..model.counters.session_counters import BUFFER_COUNTER_NAMES
from ..model.directions import Direction, End, sender_of
from ..model.errors import (
    ConnectionClosed,
    LimitReached,
    LinkgaugeError,
    RemoteProtocolError,
    WorkerError,
)
from ..model.plan import (
    FLOW_SESSION,
    FURTHER_PROBE_SESSIONS,
    PATH_PROBE_SESSION,
    PROBE_SESSION,
    SECOND_NS,
    Mode,
    Plan,
)
from ..model.run_end import EndText, Reason, RunEnd
from ..protocol.messages import (
    Begun,
    Change,
    Finish,
    Message,
    Ping,
    Report,
    SessionClosed,
    SessionOpened,
    Start,
    Stop,
    Traced,
)
from ..protocol.preamble import DataHello
from ..protocol.tokens import TOKEN_BYTES, TicketCheck
from ..workers.ipc import AdoptSession, ConnectionOpened, SessionEvent
from ..workers.pool import WorkerPool
from ..workloads.session_handshake import SessionSpec
from .base_run import BaseFarRun
from .clients.admission import ConnectBackLimit, Grant
from .clients.turns import OtherTestsReader
from .memory_estimate import SessionWindows, windows_of
from .probes.burst_responder import BurstResponder
from .probes.flow_responder import FlowResponder
from .probes.path_responder import PathResponder
from .probes.probe_responders import ProbeResponders

PREPARATION_DEADLINE_S: Final = 30.0
_MAX_UNSENT_BYTES: Final = 8 << 20  # half a minute of the largest samples
# Reports take their share of a link that this end fills. At 1 Mb/s, ten a second of 32 sessions took 2 % of it, and
# the measured rate depended on the interval. Beyond this share of the payload they come once a second.
_REPORT_DIVISOR: Final = 200
_ENDS_IN_ORDER: Final = {Reason.COMPLETED, Reason.STOPPED, Reason.INTERRUPTED}
_ANSWERED_HERE: Final = (PATH_PROBE_SESSION, *FURTHER_PROBE_SESSIONS)
_FREE_REPORT_BYTES: Final = 4_096
_MAX_REPORT_PAUSE_NS: Final = SECOND_NS
_log = logging.getLogger(__name__)

RunRegistry = dict[bytes, "FarRun"]


class FarRun(BaseFarRun):
    """A run of a near end that is a linkgauge.

    Send Ready with `nonce` before `execute`. Meanwhile `attach_connection` takes the run's data connections.
    """

    LOOK_S = PING_INTERVAL_S

    def __init__(
        self,
        control: ControlConnection,
        plan: Plan,
        mode: Mode | None,
        ends: HandshakeResult,
        grant: Grant,
    ) -> None:
        """Make a run that has no workers yet.

        Args:
            control: the connection to the near end.
            plan: the plan, which the limits allow.
            mode: how this end sends a stream.
            ends: both ends, as they introduced themselves.
            grant: what the endpoint grants it.
        """
        super().__init__(plan, grant)
        limits, self._reserve = grant.limits, grant.reserve
        self.nonce = secrets.token_bytes(TOKEN_BYTES)
        self._tickets = TicketCheck(control.derive_run_secret(self.nonce))
        self._connect_back = ConnectBackLimit(limits, plan.workload)
        self._control = control
        self.pool = WorkerPool(
            End.FAR,
            self._limited(plan),
            self._handle_worker_event,
            self._handle_worker_loss,
            limits.workers,
            sending_mode=mode,
        )
        nic = ends.far.nic
        self._near = ends.near
        self._others: OtherTestsReader | None = None
        self._sampler = Sampler(End.FAR, plan, self.pool.counters, None if nic is None else nic.name)
        self._liveness = Liveness(time.monotonic_ns())
        self._pings = 0
        self._generation = 0
        self._settled_ns = plan.effective_warmup_ns
        self._awaited = set[tuple[Direction, int]]()  # the sessions whose connections are about to come
        self._await_connections(windows_of(plan.settings))
        self._path_responder: PathResponder | BurstResponder | None = None
        self._flows: FlowResponder | None = None
        self._earlier_bytes = (0, 0)  # of bursts on sockets before the present one
        self._probes = ProbeResponders(plan, limits, self._tickets)

    @property
    def run_tag(self) -> bytes:
        """The tag by which data connections name the run."""
        return self._tickets.secret.run_tag

    @property
    def awaited_connections(self) -> int:
        """The number of data connections that its near end is about to open, without those of probes."""
        return len(self._awaited)

    def takes_datagrams_of(self, session: int) -> bool:
        """Return whether a session, or a probe of that number, has a UDP socket."""
        if session in _ANSWERED_HERE:
            return self._probes.has_datagrams
        return self.has_datagrams

    async def execute(self) -> RunEnd:
        """Serve the near end until the run ends; then send the last sample and Finish, and nothing more."""
        end = await self._serve(self._listen())
        if self.has_started:
            last = self._sampler.take_sample()
            if last is not None:
                self._report(last)
            if self.has_datagrams and end.reason in _ENDS_IN_ORDER:
                await self._drain()
            trace = await self._probes.end_trace()
            if trace is not None:
                self._control.try_send(Traced(trace))
        self._give_back()
        self._control.try_send(Finish(end))
        return end

    async def _drain(self) -> None:
        """Report the datagrams that were on their way when the senders stopped."""
        self.pool.stop_payload()
        await await_drain(self.pool.counters)
        sample = self._sampler.take_sample(is_drain=True)
        if sample is not None:
            self._report(sample)

    def release(self) -> None:
        """Drop what leads back here, and close what the run has open."""
        super().release()
        self._sampler.close()
        self._probes.close()
        if self._path_responder is not None:
            self._path_responder.close()
        if self._flows is not None:
            self._flows.close()

    async def attach_connection(self, sock: socket.socket, hello: DataHello) -> None:
        """Pass an accepted data connection, or the UDP socket of a session, to the worker of its session.

        Further probes of a responsiveness test are answered here.

        Raises RemoteProtocolError if its token is invalid or used, LimitReached if it is one session too many.
        """
        if hello.session in _ANSWERED_HERE:
            await self._probes.attach(sock, hello)
            return
        has_datagrams = sock.type == socket.SOCK_DGRAM
        if hello.session == FLOW_SESSION:
            self._attach_flow(sock, hello)
            return
        is_probe = hello.session == PROBE_SESSION
        if has_datagrams is not self.has_datagrams and not (is_probe and not has_datagrams):
            raise RemoteProtocolError("a data connection of another protocol than the test's")
        if is_probe and not (has_datagrams or self._plan.probe):
            raise RemoteProtocolError("the connection of a probe that the test does not have")
        if hello.session > self._limits.sessions:
            text = f"session {hello.session} is over the limit"
            raise LimitReached(text, "sessions", self._limits.sessions)
        settings = (hello.direction, hello.session, hello.generation, hello.window_bytes)
        secret = self._tickets.check(*settings, hello.token)
        if secret is None:
            raise RemoteProtocolError("a data connection with an invalid token")
        self._connect_back.take(hello.direction, time.monotonic_ns())
        self._reserve_connection(hello)
        spec = SessionSpec(*settings, secret.hex())
        if is_probe and has_datagrams:
            self._respond_on_path(sock, spec)
            return
        try:
            self._awaited.discard((hello.direction, hello.session))
            await self.pool.send_command(AdoptSession(spec), sock.detach())
        except WorkerError as error:  # otherwise the near end would only see the connection closed
            self._handle_worker_loss(str(error))
            raise

    def _respond_on_path(self, sock: socket.socket, spec: SessionSpec) -> None:
        """Answer on the socket of a path's measurement; a newer one takes the place of an older one.

        The path's MTU is measured before a test starts, which takes seconds. Bursts with their pauses take minutes,
        so that they need a test that has started.
        """
        if self._ending.done():
            raise RemoteProtocolError("the test has ended")
        if self._path_responder is not None:
            self._earlier_bytes = self._burst_bytes()
            self._path_responder.close()
        if self.has_started:
            self._path_responder = BurstResponder(sock.dup(), spec, self._limits, self._stop_for_limit)
        else:
            self._path_responder = PathResponder(sock.dup(), spec)

    def _attach_flow(self, sock: socket.socket, hello: DataHello) -> None:
        """Serve a flow of a test of many flows, which has started; raise RemoteProtocolError otherwise."""
        if sock.type != socket.SOCK_DGRAM or not self.has_datagrams or not self.has_started or self._ending.done():
            raise RemoteProtocolError("a flow of a test that has none, or is not running")
        if self._flows is None:
            secret, send = self._tickets.secret, self._control.try_send
            self._flows = FlowResponder(
                secret, self._limits, self._stop_for_limit, lambda trace: send(Traced(trace))
            )
        self._flows.attach(sock, hello)

    def _carried_here(self) -> tuple[int, int]:
        received, sent = self._burst_bytes()
        flows = (0, 0) if self._flows is None else self._flows.carried_bytes
        return received + flows[0], sent + flows[1]

    def _burst_bytes(self) -> tuple[int, int]:
        (received, sent), newest = self._earlier_bytes, (0, 0)
        if isinstance(self._path_responder, BurstResponder):
            newest = self._path_responder.carried_bytes
        return received + newest[0], sent + newest[1]

    def _reserve_connection(self, hello: DataHello) -> None:
        """Reserve what a connection needs beyond the settings in force: it may arrive before their change does."""
        settings = self._settings
        is_in_force = hello.direction in settings.direction.flows and hello.session <= settings.sessions
        if not (is_in_force and hello.window_bytes in {settings.window_bytes, None}):
            earlier = {(hello.direction, session): None for session in range(1, hello.session)}  # they come as well
            self._reserve({**earlier, (hello.direction, hello.session): hello.window_bytes})

    async def _listen(self) -> None:
        try:
            async with asyncio.timeout(PREPARATION_DEADLINE_S):
                while not self.has_started:
                    self._handle(await self._control.receive())
            while True:
                self._handle(await self._control.receive())
        except TimeoutError:
            self.end(Reason.FAILED, EndText.START_OVERDUE.value)
        except ConnectionClosed as error:
            self.end(Reason.PEER_LOST, EndText.NEAR_GONE.format(error=error))
        except LinkgaugeError as error:
            self.end(Reason.FAILED, str(error))

    def _handle(self, message: Message) -> None:
        if isinstance(message, Start):
            _log.debug("run starts")
            self._sampler.start()
            self._others = self.turn.read_others() if self._near.reads_others else None
            self._begin()
            self._probes.begin_load()
            self._control.send(Begun())
            self._run_task(self._sampler.run(self._report, None, self._is_report_due))
        elif isinstance(message, Change):
            self._change_settings(message)
        elif isinstance(message, Stop):
            self.end(message.end.reason, message.end.detail)

    def _change_settings(self, change: Change) -> None:
        if change.generation < self._generation:
            raise RemoteProtocolError("the client went back to older sessions")
        if change.settings.sessions > self._limits.sessions:
            text = f"{change.settings.sessions} sessions are too many"
            raise LimitReached(text, "sessions", self._limits.sessions)
        self._connect_back.check_settings(change.settings)
        self._datagram_limits.check_settings(change.settings)
        self._reserve(windows_of(change.settings))
        _log.debug("settings change to %s", change.settings)
        self._await_connections(dict(windows_of(change.settings).items() - windows_of(self._settings).items()))
        self._generation, self._settings = change.generation, change.settings
        if self.has_started:
            self._settled_ns = self._sampler.elapsed_ns + self._plan.effective_warmup_ns
        self.pool.change_settings(replace(change, settings=self._datagram_limits.cap(change.settings)))

    def _await_connections(self, windows: SessionWindows) -> None:
        if not self.has_datagrams:
            self._awaited.update(windows)

    def _is_report_due(self) -> bool:
        """Return whether a report would leave the link to the payload, or the last one was long ago."""
        workload = self._plan.workload
        flows = [flow for flow in self._settings.direction.flows if sender_of(flow, workload) is End.FAR]
        if not flows or not workload.is_bulk or self._plan.bytes_limit is not None or self._has_settled:
            return True
        payload_bytes = sum(map(self.pool.counters.flow_bytes, flows))
        allowed_bytes = payload_bytes // _REPORT_DIVISOR + _FREE_REPORT_BYTES
        is_long_ago = self._sampler.unsampled_ns + self._plan.interval_ns // 2 >= _MAX_REPORT_PAUSE_NS
        return is_long_ago or self._control.sent_bytes <= allowed_bytes

    @property
    def _has_settled(self) -> bool:
        """Whether a warm-up has ended since the last sample, which the warm-up spoils."""
        elapsed_ns = self._sampler.elapsed_ns
        return elapsed_ns - self._sampler.unsampled_ns < self._settled_ns <= elapsed_ns

    def _report(self, sample: Sample) -> None:
        others = None if self._others is None or sample.is_drain else self._others.take()
        # To a near end of an earlier version the keys would be errors.
        waits = sample.waits if self._near.reads_waits else None
        sessions = sample.sessions if self._near.reads_buffers else tuple(map(self._hide_buffers, sample.sessions))
        self._control.try_send(Report(replace(sample, sessions=sessions, waits=waits, others=others)))
        if self._control.unsent_bytes > _MAX_UNSENT_BYTES:
            self.end(Reason.PEER_LOST, EndText.NEAR_NOT_READING.value)

    def _hide_buffers(self, session: SessionSample) -> SessionSample:
        """Return a session without the fields that earlier versions do not decode."""
        unsent_bytes = None if self._plan.responsiveness is None else session.unsent_bytes
        return replace(session, **{**dict.fromkeys(BUFFER_COUNTER_NAMES), "unsent_bytes": unsent_bytes})

    def _look(self, now_ns: int, total_bytes: int) -> None:
        """Ping the near end; end the run if it has vanished."""
        self._pings += 1
        self._control.try_send(Ping(self._pings))
        silent_ns = self._liveness.check_timeout(now_ns, self._control.last_received_ns, total_bytes)
        if silent_ns is not None:
            self.end(Reason.PEER_LOST, EndText.NEAR_SILENT.format(seconds=silent_ns / SECOND_NS))

    def _handle_worker_event(self, event: SessionEvent) -> None:
        session = event.info.session if isinstance(event, ConnectionOpened) else event.session
        if session == PROBE_SESSION:
            return  # the near end has its own end of the probe's connection
        if isinstance(event, ConnectionOpened):
            self._control.try_send(SessionOpened(event.info))
        else:
            self._control.try_send(SessionClosed(event.direction, session, event.generation, event.why))
