"""The worker processes of one end of a run, and the counters shared with them."""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from ..host.event_loop import await_shielded
from ..metering.shared_counters import SharedCounters
from ..model.directions import Direction, End
from ..model.errors import WorkerError
from ..model.plan import MAX_WORKERS, PROBE_PACE_NS, PROBE_SESSIONS, Dialect, Mode, Plan
from ..model.workload import Workload
from ..protocol.messages import Change
from ..workloads.probes.request_probe import PROBE_BYTES
from ..workloads.session_handshake import Iperf3Format, SessionConfig
from .core_assignment import shares_cores, usable_cores
from .fork_client import ForkServerLease, WorkerProcess
from .ipc import (
    EVENTS,
    AdoptSession,
    ChangeSettings,
    Configure,
    MessageReceived,
    OpenSession,
    PayloadStopped,
    ProbesStopped,
    SessionEvent,
    StartPayload,
    StopPayload,
    StopProbes,
    WorkerChannel,
    WorkerEvent,
    WorkerReady,
)

START_DEADLINE_S: Final = 10.0
END_DEADLINE_S: Final = 2.0
_STOP_DEADLINE_S: Final = 2.0
_PROBE_WORKER: Final = MAX_WORKERS  # apart: in a stream's worker it would measure that worker's event loop
_MAX_BULK_WORKERS: Final = 4
_LIMITED_INTERVAL_NS: Final = 20_000_000  # a run of a number of bytes has to notice its end
_log = logging.getLogger(__name__)


class _Member:
    """One worker process and this end of its channel."""

    channel: WorkerChannel[WorkerEvent]

    def __init__(self, process: WorkerProcess) -> None:
        self.process = process
        self.ready = asyncio.Event()  # set when it has answered, and when it never will
        self.stopped = asyncio.Event()  # the same, of its payload
        self.probes_stopped = asyncio.Event()
        self.why_ended: str | None = None


class WorkerPool:
    """Starts workers when sessions need them; use it in an `async with` block, which ends them."""

    def __init__(
        self,
        end: End,
        plan: Plan,
        on_event: Callable[[SessionEvent], None],
        on_lost: Callable[[str], None],
        max_workers: int = MAX_WORKERS,
        iperf3: Iperf3Format | None = None,
        *,
        sending_mode: Mode | None = None,
        program: Dialect | None = None,
        head: bytes = b"",
        has_workers: bool = True,
    ) -> None:
        """Make a pool without workers.

        Args:
            end: The end of the run that it serves.
            plan: The run.
            on_event: Called with the events of sessions.
            on_lost: Called with the reason when a worker ends unexpectedly.
            max_workers: The maximum number of workers.
            iperf3: The format of datagrams if the other end is iperf3.
            sending_mode: How this end sends a stream if the plan leaves that to it: None copies.
            program: The protocol of another program. Then the owner of the pool measures the probe.
            head: The beginning of each block that this end sends.
            has_workers: Whether it starts any workers: not if the owner moves the payload as well.
        """
        self._plan = plan
        self._sending_mode = sending_mode
        self._has_workers = has_workers
        self._sessions = SessionConfig(end, plan.workload, plan.socket, iperf3, program, head.hex())
        self._on_event = on_event
        self._on_lost = on_lost
        self.on_message: Callable[[MessageReceived], None] = _ignore
        """Called with what a WebSocket carries between its payload."""
        self._members: dict[int, _Member] = {}
        self._size = choose_worker_count(plan, max_workers)
        self._closing = False
        self._is_payload_started = False
        self._change: ChangeSettings | None = None
        self._start_lock = asyncio.Lock()
        self._fork_server: ForkServerLease | None = None
        self._exit_reports: set[asyncio.Task[None]] = set()
        self.counters = SharedCounters.create()

    async def __aenter__(self) -> Self:
        """Start the workers that the plan's sessions need."""
        try:
            self._fork_server = ForkServerLease()
            settings = self._plan.settings
            numbers = {
                self._worker_of(flow, session)
                for flow in (settings.direction.flows if self._has_workers else ())
                for session in range(1, settings.sessions + 1)
            }
            if self._plan.probe and self._sessions.dialect is Dialect.LINKGAUGE:
                numbers.add(_PROBE_WORKER)
            await asyncio.gather(*(self._start(number) for number in sorted(numbers)))
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers."""
        await self.close()

    async def send_command(self, command: OpenSession | AdoptSession, fd: int | None = None) -> None:
        """Send a command to the worker that hosts its session, and start that worker if necessary.

        The pool closes the descriptor. Raises WorkerError if the worker cannot be started or the pool is closed.
        """
        number = self._worker_of(command.spec.direction, command.spec.session)
        try:
            async with self._start_lock:
                self._refuse_closing()
                if number not in self._members:
                    await self._start(number)
        except BaseException:
            if fd is not None:
                os.close(fd)
            raise
        self._members[number].channel.send(command, fd)

    def _worker_of(self, direction: Direction, session: int) -> int:
        """Return the number of a session's worker: round robin, the two directions half a round apart."""
        if session in PROBE_SESSIONS:
            return _PROBE_WORKER
        return (session - 1 + (direction is Direction.IN) * (self._size // 2)) % self._size

    def start_payload(self) -> None:
        """Let payload flow, also in sessions opened later. The probe has started before."""
        self._is_payload_started = True
        for number, member in self._members.items():
            if number != _PROBE_WORKER:
                member.channel.send(StartPayload())

    def stop_payload(self, *, ends_streams: bool = False) -> None:
        """Let the senders of datagrams and of iperf3's streams stop; receivers take in what is on its way.

        With `ends_streams` the other end of a stream reads its end. An iperf3 client waits for that.
        """
        for member in self._members.values():
            member.channel.send(StopPayload(ends_streams))

    async def await_stopped(self) -> None:
        """Wait, after `stop_payload`, until all workers have stored their last counters.

        Do not wait longer than two seconds for a worker.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_DEADLINE_S):
                await asyncio.gather(*(member.stopped.wait() for member in self._members.values()))

    async def stop_probes(self) -> None:
        """End the further probes of a responsiveness test, and wait until the far end has nothing to answer.

        Do not wait longer than two seconds for a worker.
        """
        member = self._members.get(_PROBE_WORKER)
        if member is None:
            return
        member.channel.send(StopProbes())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_DEADLINE_S):
                await member.probes_stopped.wait()

    def change_settings(self, change: Change) -> None:
        """Close the connections that the new settings do not want, in every worker."""
        self._change = ChangeSettings(change.settings, change.generation, change.oldest)
        for member in self._members.values():
            member.channel.send(self._change)

    async def close(self) -> None:
        """End every worker, by force if it does not end by itself, and release the counters."""
        if self._closing:
            return
        self._closing = True
        members = list(self._members.values())
        for member in members:
            member.channel.close()
            member.ready.set()
            member.stopped.set()
        try:
            await await_shielded(_end_all(member for member in members if member.why_ended is None))
        finally:
            self._on_event = self._on_lost = self.on_message = (
                _ignore  # they lead to the run, and it leads here: a cycle
            )
            self.counters.close()
            if self._fork_server is not None:
                await self._fork_server.close()

    async def _start(self, number: int) -> None:
        self._refuse_closing()
        try:
            process, sock = await self._fork(number)
        except WorkerError:
            self._refuse_closing()  # the fork server may have ended with the pool
            raise
        if self._closing:  # close() did not see this worker; it ends with its channel
            sock.close()
            await await_shielded(process.shut_down(END_DEADLINE_S))
            self._refuse_closing()
        member = _Member(process)
        member.channel = WorkerChannel[WorkerEvent](
            sock, EVENTS, lambda event, _fd: self._handle(member, event), lambda: self._on_eof(member)
        )
        self._members[number] = member
        member.channel.send(self._configuration(is_probe=number == _PROBE_WORKER))
        if self._change is not None:
            member.channel.send(self._change)
        if self._is_payload_started or number == _PROBE_WORKER:
            member.channel.send(StartPayload())
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                await member.ready.wait()
        except TimeoutError as error:
            raise WorkerError(f"a worker process did not answer in {START_DEADLINE_S:g} s") from error
        self._refuse_closing()
        if member.why_ended is not None:
            raise WorkerError(member.why_ended)
        _log.debug("worker %s of the %s end is ready", number, self._sessions.end)

    async def _fork(self, number: int) -> tuple[WorkerProcess, socket.socket]:
        """Return a new worker's process and this end of its channel."""
        if self._fork_server is None:
            raise WorkerError("the workers were not started")
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                return await self._fork_server.start(self.counters.fd, number)
        except TimeoutError as error:
            raise WorkerError(f"no worker process could be started in {START_DEADLINE_S:g} s") from error

    def _refuse_closing(self) -> None:
        """Raise WorkerError once the pool is closing: a session may come at that very moment."""
        if self._closing:
            raise WorkerError("the test has ended")

    def _configuration(self, *, is_probe: bool) -> Configure:
        """Return a worker's first command."""
        plan = self._plan
        request_bytes, response_bytes = plan.transaction_sizes
        is_limited = plan.bytes_limit is not None
        configuration = Configure(
            self._sessions,
            interval_ns=min(plan.interval_ns, _LIMITED_INTERVAL_NS) if is_limited else plan.interval_ns,
            block_bytes=plan.block_bytes,
            mode=plan.mode or self._sending_mode,
            sending_mode=self._sending_mode,
            request_bytes=request_bytes,
            response_bytes=response_bytes,
            burst=plan.burst,
            polls=plan.busy_poll,
            cores=(plan.near_cores if self._sessions.end is End.NEAR else plan.far_cores) or (),
            shares_core=shares_cores(plan),
            rate_bit_s=plan.rate_bit_s,
            settings=plan.settings,
            bytes_limit=plan.bytes_limit,
            loss_goal_ppm=plan.loss_goal_ppm,
            limits_unsent=plan.responsiveness is not None,
        )
        if not is_probe:
            return configuration
        return Configure(  # on none of the streams' cores
            replace(self._sessions, workload=Workload.RR),
            configuration.interval_ns,
            block_bytes=PROBE_BYTES,
            request_bytes=PROBE_BYTES,
            response_bytes=PROBE_BYTES,
            pace_ns=PROBE_PACE_NS,
        )

    def _handle(self, member: _Member, event: WorkerEvent) -> None:
        if isinstance(event, WorkerReady):
            member.ready.set()
        elif isinstance(event, PayloadStopped):
            member.stopped.set()
        elif isinstance(event, ProbesStopped):
            member.probes_stopped.set()
        elif isinstance(event, MessageReceived):
            self.on_message(event)
        else:
            self._on_event(event)

    def _on_eof(self, member: _Member) -> None:
        if self._closing:
            return
        member.channel.close()
        task = asyncio.get_running_loop().create_task(self._report_exit(member))
        self._exit_reports.add(task)
        task.add_done_callback(self._exit_reports.discard)

    async def _report_exit(self, member: _Member) -> None:
        """Find out why a worker ended, and report it."""
        status, last_words = await member.process.shut_down(END_DEADLINE_S)
        member.why_ended = f"a worker process ended unexpectedly ({status})" + (last_words and f": {last_words}")
        _log.debug("%s", member.why_ended)
        if member.ready.is_set():
            self._on_lost(member.why_ended)
        member.ready.set()
        member.stopped.set()
        member.probes_stopped.set()


def _ignore(_event: object) -> None:
    """Ignore a worker's reports after the end of its pool."""


async def _end_all(members: Iterable[_Member]) -> None:
    await asyncio.gather(*(member.process.shut_down(END_DEADLINE_S) for member in members))


def choose_worker_count(plan: Plan, max_workers: int) -> int:
    """Return the number of workers of an end: the plan's, or else half the cores that this process may use.

    Bulk payload that starts on several connections gets up to four workers, even on few cores.
    With more processes than cores the kernel puts the two ends of a session on one core as often as not, and the
    payload is still in its cache: eight sessions on two cores took 0.30 ms/MiB with one worker at each end, 0.22
    with four, rounds in turn. Transactions take turns anyway. Connections that are added later go to existing
    workers if possible: a new worker would keep the user waiting.
    """
    if plan.workers is not None:
        return min(max_workers, plan.workers)
    minimum = min(_MAX_BULK_WORKERS, plan.settings.connections) if plan.workload.is_bulk else 1
    return min(max_workers, max(minimum, len(usable_cores()) // 2))
