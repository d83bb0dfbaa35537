"""The near end of a run: `async with open_run(plan, peer) as run: async for event in run`.

A run yields `Started` first and `Ended` last, and ends for one reason: the first that comes up. Leaving the block
releases sockets, workers and counters, whatever happened in it.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, TypeVar

from ..control.connection import ControlConnection
from ..control.keepalive import (
    PING_INTERVAL_S,
    SILENCE_TIMEOUT_NS,
    SSH_SILENCE_TIMEOUT_NS,
    Liveness,
    LivenessProblem,
)
from ..host.cpu import are_same_host, assign_core_affinity, check_cores
from ..metering.drain import MAX_DRAIN_S, await_drain
from ..metering.sampler import Sampler
from ..model.datagram_counters import SEARCH_DONE
from ..model.errors import (
    ConnectionClosed,
    ConnectionTampered,
    LinkgaugeError,
    PeerError,
    PeerRefused,
    RemoteProtocolError,
)
from ..model.events import Ended, EndText, Event, Expectation, Opened, Reason, RunEnd, Started, Warned, WarningText
from ..model.peer import Peer
from ..model.plan import PROBE_SESSION, SECOND_NS, Direction, End, Mode, Plan, Settings
from ..model.samples import Sample
from ..model.socket_info import SocketInfo
from ..protocol.messages import Begun, Finish, Message, Notice, Open, Ping, Ready, Refuse, Report, Start, Stop
from ..protocol.messages import SessionClosed as FarSessionClosed
from ..protocol.messages import SessionOpened as FarSessionOpened
from ..protocol.peer_validation import PeerValidator
from ..workers.fork_client import ForkServerLease
from ..workers.ipc import ConnectionOpened, SessionEvent
from ..workers.pool import WorkerPool
from .binding import check_binding, check_options
from .byte_limit import ByteLimit
from .connect import CHECK_HAS_UDP, CHECK_RUNS, FarEnd, HandshakeResult, connect
from .link_checks import LAB_OFFLOADS_OFF_VARIABLE, LinkCheck, WindowCheck
from .session_set import NearSessions, SessionFailure
from .timeline import Timeline

PREPARE_DEADLINE_S: Final = 20.0
FINISH_DEADLINE_S: Final = 3.0
_FINISH_AND_DRAIN_DEADLINE_S: Final = FINISH_DEADLINE_S + MAX_DRAIN_S
_CHECKS_PER_PING: Final = 4  # a far end that has gone must be reported within 5 s
_SESSION_LOSS_GRACE_S: Final = 1.0  # the cause of a lost session is often reported a moment later

_LIVENESS_WARNINGS: Final = {
    LivenessProblem.SILENT: WarningText.FAR_SILENT,
    LivenessProblem.STALLED: WarningText.PAYLOAD_STALLED,
}
_log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)


def no_expectation(_settings: Settings) -> Expectation:
    """Return an expectation without any rate."""
    return Expectation()


@asynccontextmanager
async def open_run(
    plan: Plan,
    peer: FarEnd,
    *,
    expectation_for: Callable[[Settings], Expectation] = no_expectation,
    mode: Mode | None = None,
) -> AsyncGenerator["Run"]:
    """Start a run and yield it; on leaving the block, stop it and wait for its end.

    Args:
        plan: the run to carry out.
        peer: the far end, which `open_far_end` has brought up where necessary.
        expectation_for: returns the rates to expect under given settings. They become part of the run's events.
        mode: how this host moves payload where the plan names no mode, and so the far end if it is this host, too.

    Raises:
        PlanError: this machine lacks a core, an interface, an address or a free port of the plan.
        PeerError: the far end cannot be used, or declines the run.
        WorkerError: a worker process of this end does not start.
    """
    check_cores(plan.near_cores, "cores")
    check_options(plan.socket)
    # The lease comes first: the fork server imports its modules while the far end answers.
    async with ForkServerLease(), connect(peer, plan.socket) as (control, ends):
        if ends.is_data_tunneled and (plan.workload.opens_connections or plan.workload.is_datagram):
            raise PeerError(f"{peer}: --via-ssh cannot carry --workload {plan.workload}; leave out one of them")
        check_binding(plan, str(control.data_address[0]))
        plan = assign_core_affinity(plan, ends.near, ends.far)
        run = Run(plan, peer, control, ends, expectation_for, mode)
        # Sent before the near workers start, so that both ends start theirs at the same time. Where the connection
        # has ended already, `prepare` raises its error.
        # The port is the near end's, and each host chooses its mode.
        far_mode = plan.mode or (mode if are_same_host(ends.near, ends.far) else None)
        control.try_send(Open(replace(plan, client_port=None, mode=far_mode)))
        async with run.pool:
            await run.prepare()
            drive_task = asyncio.create_task(run.drive())
            try:
                yield run
            except BaseException:
                drive_task.cancel()
                raise
            finally:
                run.stop(Reason.STOPPED, EndText.RUN_CLOSED.value)
                await asyncio.wait([drive_task])
            drive_task.result()


class Run:
    """One run, as the near end drives it. Iterate over it once.

    `open_run` calls `prepare`, then `drive` in a task; its caller iterates, and may call `change` and `stop`.
    """

    def __init__(
        self,
        plan: Plan,
        peer: FarEnd,
        control: ControlConnection,
        ends: HandshakeResult,
        expectation_for: Callable[[Settings], Expectation],
        mode: Mode | None,
    ) -> None:
        """Make a run that has not begun.

        Args:
            plan: the run to carry out.
            peer: the far end, named in events and errors.
            control: the connection to it, after its handshake.
            ends: the result of that handshake.
            expectation_for: returns the rates to expect under given settings.
            mode: how this end moves payload where the plan names no mode; None copies.
        """
        self.plan = plan
        self._peer = peer
        self._control = control
        self._ends = ends
        self._expect = expectation_for
        self._timeline = Timeline(plan, expectation_for)
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._started = False
        self._early_events: list[Event] = []  # those from before `Started`
        self._ending: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        self._finished = asyncio.Event()
        self._is_confirmed = False
        self._failed_end: RunEnd | None = None
        self._is_unreadable = False  # the far end cannot be heard or understood any more
        self._failure = SessionFailure()
        self._window_check = WindowCheck(self.plan.workload)
        self._link_check = LinkCheck(
            ends.near.nic,
            ends.far.nic,
            control.ip_version,
            expects_offloads_off=LAB_OFFLOADS_OFF_VARIABLE in os.environ,
        )
        self._validator = PeerValidator(plan)
        self.pool = WorkerPool(End.NEAR, plan, self._handle_worker_event, self._handle_worker_loss, mode=mode)
        self._sessions = NearSessions(
            self.pool, control, plan.settings, has_probe=plan.probe, first_port=plan.client_port
        )
        self._byte_limit = ByteLimit(plan, self.pool.counters)
        self._search_phases: dict[Direction, int] = {}
        nic = ends.near.nic
        self._sampler = Sampler(End.NEAR, plan, self.pool.counters, None if nic is None else nic.name)
        self._sampling: asyncio.Task[None] | None = None
        self._has_last_sample = False
        self._ended_ns = 0
        self._change_tasks: set[asyncio.Task[None]] = set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield every event of the run, in order."""
        while (event := await self._events.get()) is not None:
            yield event

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self._timeline.settings

    def change(self, settings: Settings) -> None:
        """Change direction, sessions or window during the run. A new window reopens the sessions."""
        if settings == self.settings or self._ending.done():
            return
        self._events.put_nowait(self._timeline.change(self._sampler.elapsed_ns, settings))
        self._validator.note_settings_change()
        self._window_check = WindowCheck(self.plan.workload)  # sessions opened from here on may warn again
        _log.debug("settings change to %s", settings)
        task = asyncio.create_task(self._apply(settings))
        self._change_tasks.add(task)
        task.add_done_callback(self._change_tasks.discard)

    def stop(self, reason: Reason = Reason.STOPPED, detail: str = "") -> None:
        """End the run in order. Only the first call has an effect."""
        if not self._ending.done():
            end = RunEnd(reason, detail or EndText.STOPPED_HERE.value)
            _log.debug("run ends: %s: %s", end.reason, end.detail)
            self._ending.set_result(end)

    async def prepare(self) -> None:
        """Open all sessions at both ends and start the clocks; raise PeerError if that fails."""
        try:
            async with asyncio.timeout(PREPARE_DEADLINE_S):
                ready = await self._await_message(Ready)
                _log.debug("%s is ready; sessions are opened", self._peer)
                await self._sessions.open_first(ready.token)
                _log.debug("all sessions are open; the idle link is measured")
                idle = await self._sampler.measure_idle()
                self._control.send(Start())
                await self._await_message(Begun)
        except ConnectionClosed as error:
            remedy = CHECK_HAS_UDP if self.plan.workload.is_datagram else CHECK_RUNS
            raise PeerError(f"{self._peer} was lost before the test began: {error}; {remedy}") from error
        except ConnectionTampered as error:
            raise ConnectionTampered(f"{self._peer} cannot be used: {error}") from error
        except RemoteProtocolError as error:
            raise PeerError(
                f"{self._peer} cannot be understood: {error}; install the same version on both hosts"
            ) from error
        except TimeoutError as error:
            text = (
                f"{self._peer} was not ready within {PREPARE_DEADLINE_S:g} s; check that its host is not overloaded"
            )
            raise PeerError(text) from error
        self._sampler.start()
        self.pool.start_payload()
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        expectation = self._expect(self.plan.settings)
        near, far = self._ends.near, self._ends.far
        ip_version = self._control.ip_version
        self._events.put_nowait(
            Started(started, str(self._peer), near, far, self.plan, expectation, idle, ip_version)
        )
        self._started = True
        _log.debug("run started")
        for text in (*self._ends.notes, *self._link_check.check_interfaces()):
            self._warn(text)
        for event in self._early_events:
            self._emit(event)

    async def _await_message(self, kind: type[M]) -> M:
        while True:
            message = await self._control.receive()
            if isinstance(message, kind):
                return message
            if isinstance(message, Refuse):
                raise PeerRefused(f"{self._peer} declines: {message.text}")
            if isinstance(message, Finish):
                raise PeerRefused(f"{self._peer} ended the test before it began: {message.end.detail}")
            self._handle(message)

    async def drive(self) -> None:
        """Sample and watch the far end until something ends the run, then collect the last samples."""
        self._sampling = asyncio.create_task(self._sample())
        watching = asyncio.create_task(self._watch())
        if self._failure:  # a session was lost since payload began to flow
            self._stop_sampling()
        self._control.deliver_to(self._receive)
        try:
            end = await self._ending
            end = await self._finish(end)
        except BaseException:
            self._events.put_nowait(Ended(RunEnd(Reason.FAILED, EndText.RUN_ABANDONED.value)))
            raise
        else:
            self._events.put_nowait(Ended(end))
        finally:
            self._events.put_nowait(None)
            for task in [watching, self._sampling, *self._change_tasks]:
                task.cancel()
            self._sampling = None  # a cancelled task leads to its frames, and they lead here: a cycle

    async def _finish(self, end: RunEnd) -> RunEnd:
        """Take the near end's last sample now, and wait for the far end's."""
        self._stop_sampling()
        has_datagrams = self.plan.workload.is_datagram
        if has_datagrams:
            self.pool.stop_payload()
        if end.reason in {Reason.PEER_LOST, Reason.PEER_STOPPED} or not self._control.try_send(Stop(end)):
            return end
        drain = asyncio.create_task(self._drain()) if has_datagrams and not self._failure else None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FINISH_DEADLINE_S if drain is None else _FINISH_AND_DRAIN_DEADLINE_S):
                await self._finished.wait()
        if drain is not None:
            await drain
            self._ended_ns = self._sampler.elapsed_ns  # the far end's clock has counted its drain, too
        if self._is_confirmed:
            for text in self._validator.find_discrepancies(self._ended_ns):
                self._warn(text)
        elif self._failed_end is None:
            self._warn(WarningText.END_UNCONFIRMED.value)
        return self._failed_end or end

    async def _drain(self) -> None:
        """Take a sample of the datagrams that were on their way when the senders stopped."""
        await await_drain(self.pool.counters)
        sample = self._sampler.take_sample(is_drain=True)
        if sample is not None:
            self._handle_near_sample(sample)

    def _stop_sampling(self) -> None:
        """Take the last sample, once."""
        if self._sampling is None or self._has_last_sample:
            return
        self._has_last_sample = True
        self._sampling.cancel()
        self._ended_ns = self._sampler.elapsed_ns
        last = self._sampler.take_sample()
        if last is not None:
            self._handle_near_sample(last)

    def _handle_near_sample(self, sample: Sample) -> None:
        self._validator.add_near_sample(sample)
        self._stamp(sample)
        self._check_bytes()
        self._check_search(sample)

    def _check_search(self, sample: Sample) -> None:
        """Stop the run once the search for a rate has ended in every direction."""
        settings = self.settings
        if not settings.searches_rate:
            self._search_phases.clear()
            return
        self._search_phases |= {part.direction: part.search_phase for part in sample.datagrams if part.search_phase}
        if all(self._search_phases.get(flow) == SEARCH_DONE for flow in settings.direction.flows):
            self.stop(Reason.COMPLETED, EndText.SEARCH_DONE.value)

    async def _sample(self) -> None:
        await self._sampler.run(self._handle_near_sample, self.plan.duration_ns)
        self.stop(Reason.COMPLETED, EndText.DURATION_UP.value)

    def _check_bytes(self) -> None:
        """Stop the run once the receivers have counted as many bytes as it has to carry."""
        if self._byte_limit.is_reached(self.settings.direction):
            self.stop(Reason.COMPLETED, EndText.DURATION_UP.value)

    def _receive(self, item: Message | LinkgaugeError) -> None:
        """Handle a message of the far end. The first error, of the connection or of a message, ends the run."""
        if self._is_unreadable:
            return
        if isinstance(item, LinkgaugeError):  # raised here, its traceback would lead back to it: a cycle
            self._end_reading(item)
            return
        try:
            self._handle(item)
        except LinkgaugeError as error:
            self._end_reading(error)

    def _end_reading(self, error: LinkgaugeError) -> None:
        self._is_unreadable = True
        if isinstance(error, ConnectionClosed):
            self.stop(Reason.PEER_LOST, EndText.FAR_GONE.format(error=error))
        else:
            is_tampered = isinstance(error, ConnectionTampered)
            self._fail(str(error) if is_tampered else EndText.FAR_NOT_UNDERSTOOD.format(error=error))
        self._finished.set()

    def _fail(self, detail: str) -> None:
        """End the run as failed, also where it was about to end for another reason."""
        self._failed_end = RunEnd(Reason.FAILED, detail)
        self.stop(Reason.FAILED, detail)

    def _handle(self, message: Message) -> None:
        if isinstance(message, Report):
            self._validator.check_far_sample(message.sample, self._sampler.elapsed_ns)
            self._byte_limit.add_far_sample(message.sample)
            if not self._failure:  # with a session missing, samples no longer measure the planned run
                self._stamp(message.sample)
            self._check_bytes()
            self._check_search(message.sample)
        elif isinstance(message, FarSessionOpened):
            self._validator.count_session_event()
            self._handle_opened(message.facts)
        elif isinstance(message, FarSessionClosed):
            self._validator.count_session_event()
            self._handle_closed(message.direction, message.session, message.generation, message.why)
        elif isinstance(message, Notice):
            self._validator.count_notice()
            self._warn(message.text)
        elif isinstance(message, Finish):
            self._handle_finish(message.end)
            self._is_confirmed = True
            self._finished.set()

    def _handle_finish(self, end: RunEnd) -> None:
        """End the run for the far end's reason; where this end has stopped it, only a failure counts."""
        if end.reason in {Reason.PEER_STOPPED, Reason.WORKER_LOST}:
            self.stop(end.reason, end.detail)
        elif end.reason is Reason.FAILED or not self._ending.done():
            self._fail(end.detail)

    async def _watch(self) -> None:
        """Ping the far end; stop the run when it has vanished, and warn when it is silent or stalled."""
        timeout_ns = SILENCE_TIMEOUT_NS if isinstance(self._peer, Peer) else SSH_SILENCE_TIMEOUT_NS
        liveness = Liveness(time.monotonic_ns(), timeout_ns=timeout_ns)
        checks, last_problem = 0, None
        while True:
            await asyncio.sleep(PING_INTERVAL_S / _CHECKS_PER_PING)
            checks += 1
            if not checks % _CHECKS_PER_PING:
                self._control.try_send(Ping(checks))
            now_ns, received_ns = time.monotonic_ns(), self._control.last_received_ns
            silent_ns = liveness.check_timeout(now_ns, received_ns, self.pool.counters.total_bytes())
            if silent_ns is not None:
                self.stop(Reason.PEER_LOST, EndText.FAR_SILENT.format(seconds=silent_ns / SECOND_NS))
                return
            problem = liveness.find_problem(now_ns, received_ns)
            if problem is not None and problem is not last_problem:
                self._warn(_LIVENESS_WARNINGS[problem].format(seconds=SILENCE_TIMEOUT_NS // SECOND_NS))
            last_problem = problem

    async def _apply(self, settings: Settings) -> None:
        try:
            await self._sessions.change(settings)
        except LinkgaugeError as error:
            self.stop(Reason.WORKER_LOST, str(error))

    def _handle_worker_event(self, event: SessionEvent) -> None:
        if isinstance(event, ConnectionOpened):
            self._sessions.handle_opened(event.info)
            if event.info.session != PROBE_SESSION:
                self._handle_opened(event.info)
        else:
            self._handle_closed(event.direction, event.session, event.generation, event.why)

    def _handle_opened(self, facts: SocketInfo) -> None:
        self._emit(Opened(facts))
        for check in (self._window_check, self._link_check):
            warning = check.check(facts, self.settings.window_bytes)
            if warning is not None:
                self._warn(warning)

    def _handle_closed(self, direction: Direction, session: int, generation: int, reason: str) -> None:
        """End the run if it needs the connection that closed. One of older settings was closed on purpose."""
        if not self._sessions.is_wanted(direction, session, generation):
            return
        _log.debug("session %s %s was lost: %s", session, direction, reason)
        if self._sessions.fail_opening(EndText.SESSION_UNOPENED.format(peer=self._peer, reason=reason)):
            return
        if self._ending.done():  # the far end may be the first to close, while this end still drains
            return
        if session == PROBE_SESSION:
            if not self._failure:
                self._warn(WarningText.PROBE_LOST.format(reason=reason))
            return
        if not self._failure:
            self._stop_sampling()
            asyncio.get_running_loop().call_later(_SESSION_LOSS_GRACE_S, self._stop_for_failure)
        self._failure.record(direction, session, generation, reason)

    def _stop_for_failure(self) -> None:
        self.stop(Reason.SESSION_LOST, str(self._failure))

    def _handle_worker_loss(self, reason: str) -> None:
        text = EndText.NEAR_WORKER_LOST.format(reason=reason)
        if not self._sessions.fail_opening(text):
            self.stop(Reason.WORKER_LOST, text)

    def _stamp(self, sample: Sample) -> None:
        """Emit a sample with its settings, then the timeline's warnings."""
        self._emit(self._timeline.stamp(sample))
        for text in self._timeline.take_warnings():
            self._warn(text)

    def _warn(self, text: str) -> None:
        _log.debug("warning: %s", text)
        self._emit(Warned(text))

    def _emit(self, event: Event) -> None:
        if self._started:
            self._events.put_nowait(event)
        else:
            self._early_events.append(event)
