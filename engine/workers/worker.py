"""A worker process: it hosts sessions on its own event loop.

Forked by a fork server (fork_server.py) with the descriptors of its command channel and of the shared counters.
It ends when the channel does, so it cannot outlive its owner. ipc.py has its commands
and events.
"""

import asyncio
import contextlib
import errno
import logging
import os
import socket
import time
from typing import TYPE_CHECKING, Final

from ..host.cpu import RunQueueWait
from ..host.event_loop import run
from ..metering.shared_counters import SharedCounters, slot_index
from ..model.counters.session_counters import SocketInfo
from ..model.directions import Direction, End
from ..model.errors import LinkgaugeError, WorkerError, explain_resource_error
from ..model.plan import (
    DATAGRAM_PROBE_SESSION,
    HANDSHAKE_PROBE_SESSION,
    PROBE_SESSION,
    SECOND_NS,
    Dialect,
    Mode,
    SocketOptions,
)
from ..model.workload import Workload
from ..workloads import session_handshake, sockets
from ..workloads.byte_budget import ByteBudget
from ..workloads.session import (
    Payload,
    SendingSession,
    Session,
    SessionContext,
    WorkerResources,
    receive_buffer,
)
from ..workloads.session_handshake import CrrEndpoint, SessionConfig, SessionSpec
from ..workloads.socket_io import create_poller
from ..workloads.udp import socket_options
from .ipc import (
    COMMANDS,
    AdoptSession,
    ChangeSettings,
    Command,
    Configure,
    ConnectionFailed,
    ConnectionLost,
    ConnectionOpened,
    MessageReceived,
    OpenSession,
    PayloadStopped,
    ProbesStopped,
    StartPayload,
    StopPayload,
    StopProbes,
    WorkerChannel,
    WorkerReady,
)

if TYPE_CHECKING:
    from ..workloads.probes.probe_host import ProbeHost

OPEN_DEADLINE_S: Final = 15.0  # a session that is added to a saturated link may lose its first packets
_MAX_REFRESH_S: Final = 0.4  # received bytes show that the other end is alive
# The phases of a responsiveness test are judged by goodput over 0.4 s, which then is off by less than a tenth.
_UNSENT_REFRESH_S: Final = 0.04
# The rate is that of acknowledged bytes, which are as old as their reading: 0.1 s were 1.4 % of a test of 7 s.
_ACKNOWLEDGED_REFRESH_S: Final = 0.02
_log = logging.getLogger(__name__)


class Worker:
    """The sessions of one worker, and the commands that change them.

    It is all that a worker process has, and so has more attributes than other classes.
    """

    def __init__(self, channel: socket.socket, counters: SharedCounters, number: int) -> None:
        self._counters = counters
        self._claims = {flow: counters.claims(flow) for flow in Direction.DUPLEX.flows}
        self._number = number
        self._sessions: dict[tuple[Direction, int], Session] = {}
        self._openings: dict[tuple[Direction, int], asyncio.Task[None]] = {}
        self._probes: ProbeHost | None = None
        self._resources: WorkerResources | None = None
        # Until it is configured. Its first reading then comes after 0.1 s at most.
        self._plan = Configure(SessionConfig(End.NEAR, Workload.STREAM, SocketOptions()), SECOND_NS // 5, 0)
        self._settings = self._plan.settings
        # The first sessions wait for each other: the flood of some would starve the opening of the rest.
        self._is_payload_held = True
        self._is_payload_over = False
        self._shares_core = False
        self._initial_sessions = 0
        self._change: ChangeSettings | None = None
        self._run_queue_wait = RunQueueWait()
        self._failure: str | None = None
        self._eof = asyncio.Event()
        self._channel = WorkerChannel[Command](channel, COMMANDS, self._handle, self._eof.set)

    @property
    def _config(self) -> SessionConfig:
        return self._plan.sessions

    @property
    def _refresh_s(self) -> float:
        """The time between two readings: twice an interval, so that TCP_INFO and CPU are half an interval old."""
        refresh_s = min(self._plan.interval_ns / SECOND_NS / 2, _MAX_REFRESH_S)
        if self._config.dialect.is_measured_here:
            refresh_s = min(refresh_s, _ACKNOWLEDGED_REFRESH_S)
        return min(refresh_s, _UNSENT_REFRESH_S) if self._plan.limits_unsent else refresh_s

    async def serve(self) -> None:
        """Host sessions until the channel ends; raise WorkerError if a command could not be carried out."""
        refreshing = asyncio.create_task(self._refresh())
        try:
            await self._eof.wait()
        finally:
            refreshing.cancel()
            for task in self._openings.values():
                task.cancel()
            for session in self._sessions.values():
                session.close()
            if self._probes is not None:
                self._probes.close()
            if self._resources is not None:
                self._resources.poller.close()
                self._resources.payload.close()
            for claims in self._claims.values():
                claims.release()
            self._channel.close()
        if self._failure is not None:
            raise WorkerError(self._failure)

    def _handle(self, command: Command, fd: int | None) -> None:
        try:
            self._carry_out(command, fd)
        except (OSError, MemoryError) as error:
            self._failure = explain_resource_error(error)
            self._eof.set()

    def _carry_out(self, command: Command, fd: int | None) -> None:
        match command:
            case Configure():
                self._configure(command)
                self._channel.send(WorkerReady())
            case StartPayload():
                self._start_payload()
            case StopPayload():
                self._stop_payload(command)
            case StopProbes():
                if self._probes is not None:
                    self._probes.stop()
                self._channel.send(ProbesStopped())
            case ChangeSettings():
                self._change_settings(command)
            case OpenSession() if command.spec.session == HANDSHAKE_PROBE_SESSION:
                self._open_handshake_probe(command)
            case OpenSession() if command.spec.session == DATAGRAM_PROBE_SESSION:
                key = command.spec.direction, command.spec.session
                self._openings[key] = asyncio.create_task(self._open_datagram_probe(command))
            case OpenSession() | AdoptSession():
                self._begin_opening(command, fd)

    def _configure(self, command: Configure) -> None:
        self._plan, self._settings, self._shares_core = command, command.settings, command.shares_core
        if command.cores:
            _pin_to({command.cores[self._number % len(command.cores)]})
        mode = sockets.supported_mode(command.mode)
        sending = sockets.supported_mode(command.sending_mode or command.mode)
        self._resources = WorkerResources(
            payload=Payload(command.block_bytes, sending, bytes.fromhex(self._config.head_hex)),
            buffer=receive_buffer(mode, command.block_bytes),
            mode=mode,
            requests=Payload(command.request_bytes * command.burst),
            poller=create_poller(),
            request_bytes=command.request_bytes,
            response_bytes=command.response_bytes,
            burst=command.burst,
            polls=command.polls,
            pace_ns=command.pace_ns,
        )

    def _start_payload(self) -> None:
        self._is_payload_held = False
        self._initial_sessions = len(self._sessions)
        for session in list(self._sessions.values()):  # one that cannot start leaves them
            self._start(session, is_alone=len(self._sessions) == 1)

    def _stop_payload(self, command: StopPayload) -> None:
        self._is_payload_over = True
        for session in list(self._sessions.values()):  # one that cannot be read any more leaves them
            session.stop_sending()
            session.refresh()
            if command.ends_streams:
                session.finish_sending()
        self._channel.send(PayloadStopped())

    def _change_settings(self, change: ChangeSettings) -> None:
        self._change = change
        for (direction, number), session in list(self._sessions.items()):
            if self._is_obsolete(direction, number, session.generation):
                session.close()
                del self._sessions[direction, number]
        self._settings = change.settings
        for session in self._sessions.values():
            self._limit_rate(session)
            session.change_settings(change.settings)

    def _limit_rate(self, session: Session) -> None:
        """Give a session its share of its direction's rate."""
        rate_bit_s = self._plan.rate_bit_s
        if rate_bit_s is not None and isinstance(session, SendingSession):
            session.limit_rate(max(1, rate_bit_s // self._settings.sessions), self._plan.interval_ns)

    def _is_obsolete(self, direction: Direction, number: int, generation: int) -> bool:
        """Return whether the settings no longer want a connection, which may still be opening.

        At the far end a data connection of newer settings may arrive before the change itself: a change closes
        only connections older than itself.
        """
        change = self._change
        if change is None or number == PROBE_SESSION:  # the probe stays open under all settings
            return False
        settings = change.settings
        is_wanted = direction in settings.direction.flows and number <= settings.sessions
        return generation < change.oldest or (not is_wanted and generation <= change.generation)

    def _begin_opening(self, command: OpenSession | AdoptSession, fd: int | None) -> None:
        """Open a connection in the background, in place of an older one of its session that is still opening.

        An opening of crr holds a listener, and so a port of this host: a session has one at a time.
        """
        spec = command.spec
        try:
            sock = _create_socket(command, fd, self._config.workload)
        except OSError as error:
            self._report_failure(spec, error)
            return
        key = spec.direction, spec.session
        previous = self._openings.get(key)
        if previous is not None:
            previous.cancel()
        task = self._openings[key] = asyncio.create_task(self._open(command, sock))

        def end(task: asyncio.Task[None]) -> None:
            if self._openings.get(key) is task:
                del self._openings[key]
            if task.cancelled():  # perhaps before its start
                sock.close()

        task.add_done_callback(end)

    def _host_probes(self) -> "ProbeHost":
        """Return the host of the further probes of a responsiveness test."""
        if self._probes is None:
            from ..workloads.probes.probe_host import ProbeHost  # here: other workers start without it

            self._probes = ProbeHost(self._counters, self._config.session_options, self._report_loss)
        return self._probes

    def _open_handshake_probe(self, command: OpenSession) -> None:
        try:
            self._host_probes().open_handshakes(command.spec, command.target)
        except OSError as error:
            self._report_failure(command.spec, error)

    async def _open_datagram_probe(self, command: OpenSession) -> None:
        try:
            info = await self._host_probes().open_datagrams(command.spec, command.target)
        except OSError as error:
            self._report_failure(command.spec, error)
        else:
            self._channel.send(ConnectionOpened(info))

    def _report_loss(self, spec: SessionSpec, why: str) -> None:
        self._channel.send(ConnectionLost(spec.direction, spec.session, spec.generation, why))

    def _report_failure(self, spec: SessionSpec, error: OSError | MemoryError | LinkgaugeError) -> None:
        why = str(error) if isinstance(error, LinkgaugeError) else explain_resource_error(error)
        if isinstance(error, TimeoutError):
            why = "no answer in time; check that every firewall on the way allows further connections to its port"
        _log.debug("session %s %s failed to open: %r", spec.direction, spec.session, error)
        self._channel.send(ConnectionFailed(spec.direction, spec.session, spec.generation, why))

    async def _open(self, command: OpenSession | AdoptSession, sock: socket.socket) -> None:
        spec = command.spec
        endpoint: CrrEndpoint = None
        try:
            async with asyncio.timeout(OPEN_DEADLINE_S):
                if self._config.dialect is Dialect.IPERF3:
                    await self._open_iperf3(command, sock)
                elif self._config.workload.is_datagram:
                    await self._open_datagrams(command, sock)
                else:
                    endpoint = await self._open_connection(command, sock)
            if self._resources is None:
                raise WorkerError("a session came before the configuration of its worker")
            info = self._read_info(sock, spec, self._resources)
            is_hosted = self._host(sock, spec, endpoint, self._resources)
        except (OSError, MemoryError, LinkgaugeError) as error:
            _close(sock, endpoint)
            self._report_failure(spec, error)
            return
        except asyncio.CancelledError:
            _close(sock, endpoint)
            raise
        if is_hosted:
            self._channel.send(ConnectionOpened(info))

    async def _open_connection(self, command: OpenSession | AdoptSession, sock: socket.socket) -> CrrEndpoint:
        spec = command.spec
        sockets.prepare(sock, spec.window_bytes, self._config.session_options)
        if isinstance(command, OpenSession):
            await session_handshake.connect(sock, spec, command.target, self._config.options)
        elif self._config.dialect is Dialect.LINKGAUGE:  # another program waits for nothing
            await session_handshake.send_accepted(sock)
        return await session_handshake.negotiate_listener(sock, self._config, spec)

    async def _open_datagrams(self, command: OpenSession | AdoptSession, sock: socket.socket) -> None:
        from ..workloads import datagram_handshake  # here and not above: workers of streams start earlier

        socket_options.set_up(sock, self._config.options)
        if isinstance(command, OpenSession):
            await datagram_handshake.connect_datagrams(sock, command.spec, command.target, self._config.options)
        else:
            datagram_handshake.accept_datagrams(sock, command.spec)

    async def _open_iperf3(self, command: OpenSession | AdoptSession, sock: socket.socket) -> None:
        from ..workloads.iperf3.session_opening import open_session  # as above

        target = command.target if isinstance(command, OpenSession) else None
        await open_session(sock, command.spec, target, self._config, self._settings)

    def _read_info(self, sock: socket.socket, spec: SessionSpec, resources: WorkerResources) -> SocketInfo:
        mode = resources.mode
        is_sender = self._config.is_sender(spec.direction)
        if self._config.workload.is_datagram:
            mode = socket_options.mode_under(self._settings, sock, mode)
        elif mode is Mode.SENDFILE and is_sender and resources.payload.fd < 0:
            mode = Mode.COPY  # there is no room for the file
        granted = None if spec.window_bytes is None else sockets.granted_window(sock, is_sender=is_sender)
        return sockets.read_socket_info(sock, self._config.end, spec.direction, spec.session, mode, granted)

    def _host(
        self, sock: socket.socket, spec: SessionSpec, endpoint: CrrEndpoint, resources: WorkerResources
    ) -> bool:
        """Host an open connection; close it and return False if it is no longer wanted."""
        key = direction, number = spec.direction, spec.session
        previous = self._sessions.get(key)
        is_overtaken = previous is not None and previous.generation > spec.generation
        if is_overtaken or self._is_obsolete(direction, number, spec.generation):
            _log.debug("session %s %s generation %s is obsolete", direction, number, spec.generation)
            _close(sock, endpoint)
            return False
        if previous is not None:
            previous.close()

        def on_lost(why: str) -> None:
            _log.debug("session %s %s lost: %s", direction, number, why)
            self._sessions.pop(key, None)
            if not self._is_payload_over:
                self._channel.send(ConnectionLost(direction, number, spec.generation, why))

        limit, claims, iperf3 = self._plan.bytes_limit, self._claims[direction], self._config.iperf3
        budget = None if limit is None else ByteBudget(claims, number - 1, limit)
        context = SessionContext(
            self._counters,
            slot_index(direction, number),
            spec.generation,
            on_lost,
            budget,
            bytes.fromhex(spec.secret_hex),
            self._settings,
            self._plan.loss_goal_ppm / 1_000_000,
            lambda sock, data: _answer_control(sock, data, spec),
            iperf3 is not None and iperf3.has_64bit_counters,
            lambda opcode, data: self._channel.send(MessageReceived(direction, number, opcode, data.hex())),
        )
        session = session_handshake.create_session(sock, context, resources, self._config, spec, endpoint)
        self._limit_rate(session)
        if self._plan.limits_unsent and isinstance(session, SendingSession):
            session.limit_unsent()
        self._sessions[key] = session
        if not self._is_payload_held:
            for other in self._sessions.values():
                other.share_worker()
            if self._shares_core and len(self._sessions) > self._initial_sessions:
                self._use_all_cores()
            self._start(session, is_alone=len(self._sessions) == len(self._openings) == 1)
        return True

    def _start(self, session: Session, *, is_alone: bool) -> None:
        if self._shares_core and not is_alone:
            _set_policy("SCHED_BATCH")
        session.start(is_alone=is_alone)

    def _use_all_cores(self) -> None:
        """Leave the core to the other end: with more sessions than planned, one core is too little for both."""
        self._shares_core = False
        _set_policy("SCHED_OTHER")
        _pin_to(set(self._plan.cores))

    async def _refresh(self) -> None:
        while True:
            for session in list(self._sessions.values()):
                session.refresh()
            self._counters.set_worker_cpu(self._number, time.process_time_ns())
            self._counters.set_worker_wait(self._number, self._run_queue_wait.read())
            received_ns = [session.last_received_ns for session in self._sessions.values()]
            self._counters.set_last_received(self._number, max(received_ns, default=0))
            await asyncio.sleep(self._refresh_s)


def _create_socket(command: OpenSession | AdoptSession, fd: int | None, workload: Workload) -> socket.socket:
    if isinstance(command, OpenSession):
        kind = socket.SOCK_DGRAM if workload.is_datagram else socket.SOCK_STREAM
        return socket.socket(command.target.family, kind)
    if fd is None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return socket.socket(fileno=fd)


def _answer_control(sock: socket.socket, data: bytes, spec: SessionSpec) -> None:
    """Answer datagrams of a session that are neither payload nor feedback."""
    from ..workloads.datagram_handshake import answer_control_datagram

    answer_control_datagram(sock, data, spec)


def _close(*endpoints: CrrEndpoint) -> None:
    for endpoint in endpoints:
        if isinstance(endpoint, socket.socket):
            endpoint.close()


def _pin_to(cores: set[int]) -> None:
    """Run on these cores only; if this process may not use them, run on any core."""
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)


def _set_policy(name: str) -> None:
    """Set an unprivileged scheduling policy (sched(7)), if the system has it.

    With SCHED_BATCH the other end's worker, on the same core, finishes its work before this one continues:
    woken by the first of several answers, this process waits for the rest of them. Ten pairs on two cores made
    1.29 times as many transactions of `crr` so, and 1.13 of `rr`, medians of 30 rounds in turn. A pair that has its
    worker to itself has no reason to wait, and lost 5 to 8 %.
    """
    policy = getattr(os, name, None)
    if policy is not None:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, policy, os.sched_param(0))


async def _serve(channel_fd: int, counters_fd: int, number: int) -> None:
    counters = SharedCounters(counters_fd)
    try:
        await Worker(socket.socket(fileno=channel_fd), counters, number).serve()
    finally:
        counters.close()


def serve(channel_fd: int, counters_fd: int, number: int) -> None:
    """Serve a command channel until it ends."""
    run(_serve(channel_fd, counters_fd, number))
