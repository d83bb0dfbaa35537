"""The near end of a run: `async with open_run(plan, peer) as run: async for event in run`.

A run yields `Started` first and `Ended` last, and ends for one reason: the first that comes up. Leaving the block
always releases sockets, workers and counters.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, TypeVar

from ..control.connection import ControlConnection
from ..control.keepalive import PING_INTERVAL_S
from ..control.key_proof import refusal_error
from ..metering.drain import MAX_DRAIN_S
from ..model.counters.path_trace import PathTrace
from ..model.counters.samples import ProbeSample, Sample
from ..model.errors import (
    ConnectionClosed,
    ConnectionTampered,
    LinkgaugeError,
    PeerError,
    PeerLacksTurns,
    PeerRefused,
)
from ..model.plan import Mode, Plan, Settings
from ..model.run_end import EndText, Reason, RunEnd
from ..model.texts.warning_text import WarningText
from ..protocol.messages import (
    Begun,
    Finish,
    Message,
    Notice,
    Open,
    Ping,
    Ready,
    Refuse,
    Report,
    Start,
    Stop,
    Traced,
)
from ..protocol.messages import SessionClosed as FarSessionClosed
from ..protocol.messages import SessionOpened as FarSessionOpened
from ..protocol.other_tests_warning import OtherTestsWatch
from ..protocol.peer_validation import PeerValidator
from ..workers.core_assignment import are_same_host, assign_core_affinity, check_cores
from ..workers.fork_client import ForkServerLease
from .base_run import CHECK_INTERVAL_S, ExpectationFinder, Run, WorkerSetup, conduct, no_expectation
from .connect import (
    CHECK_HAS_RESPONSIVENESS,
    CHECK_HAS_UDP,
    CHECK_RUNS,
    FarEnd,
    HandshakeResult,
    connect,
    explained_errors,
)
from .load_phases import LoadPhases
from .path_tracing import PathTracing
from .run_goal import RunGoal
from .session_set import NearSessions
from .socket_option_checks import check_binding, check_options

FINISH_DEADLINE_S: Final = 10.0  # a far end that is alive may need that long behind the queue of a slow link
_FINISH_AND_DRAIN_DEADLINE_S: Final = FINISH_DEADLINE_S + MAX_DRAIN_S
_CHECKS_PER_PING: Final = round(PING_INTERVAL_S / CHECK_INTERVAL_S)
_log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)


@asynccontextmanager
async def open_run(
    plan: Plan,
    peer: FarEnd,
    *,
    expectation_for: ExpectationFinder = no_expectation,
    mode: Mode | None = None,
) -> AsyncGenerator["EndpointRun"]:
    """Start a run against a linkgauge endpoint and yield it; on leaving the block, stop it and wait for its end.

    Args:
        plan: the run to carry out.
        peer: the far end, which `open_far_end` has brought up if necessary.
        expectation_for: returns the rates to expect under given settings. They become part of the run's events.
        mode: how this host moves payload if the plan names no mode, and so the far end if it is this host, too.

    Raises:
        PlanError: this machine lacks a core, an interface, an address or a free port of the plan.
        PeerError: the far end cannot be used, or declines the run.
        WorkerError: a worker process of this end does not start.
    """
    check_cores(plan.near_cores, "cores")
    check_options(plan.socket)
    # The lease comes first: the fork server imports its modules while the far end answers.
    async with ForkServerLease(), connect(peer, plan.socket) as (control, ends):
        if ends.is_data_tunneled:
            _check_tunnel(plan, peer)
        if plan.needs_turns and not ends.far.reads_others:
            option = "--exclusive" if plan.exclusive else "--wait"
            text = f"{peer} runs an earlier version, which does not know {option}; update linkgauge there"
            raise PeerLacksTurns(f"{text}, or leave the option out")
        if plan.path and not ends.far.reads_paths:
            text = f"{peer} runs an earlier version, which cannot trace the path; update linkgauge there"
            raise PeerError(f"{text}, or leave --path out")
        if plan.busy_poll and not ends.far.reads_polls:
            text = f"{peer} runs an earlier version, which does not poll; update linkgauge there"
            raise PeerError(f"{text}, or leave --busy-poll out")
        check_binding(plan, str(control.data_address[0]))
        plan = assign_core_affinity(plan, ends.near, ends.far)
        run = EndpointRun(plan, peer, control, ends, expectation_for, mode)
        # Sent before the near workers start, so that both ends start theirs at the same time. If the connection has
        # ended already, `prepare` raises its error.
        # The ports are the near end's, and each host chooses its mode.
        far_mode = plan.mode or (mode if are_same_host(ends.near, ends.far) else None)
        far_plan = replace(plan, client_port=None, path_port=None, mode=far_mode)
        if not ends.far.reads_floods:  # it sends and receives no other way
            far_plan = replace(far_plan, settings=replace(plan.settings, floods=False))
            if plan.workload.is_datagram and plan.settings.follows_receiver:
                run.warn(WarningText.SENDS_REGARDLESS.value)
        control.try_send(Open(far_plan))
        with contextlib.closing(run.path):
            async with conduct(run):
                yield run


def _check_tunnel(plan: Plan, peer: FarEnd) -> None:
    """Raise PeerError for a plan that needs connections or datagrams which ssh does not carry."""
    if plan.workload.opens_connections or plan.workload.is_datagram:
        raise PeerError(f"{peer}: --via-ssh cannot carry --workload {plan.workload}; leave out one of them")
    if plan.responsiveness is not None:
        raise PeerError(
            f"{peer}: --via-ssh would measure the latency of ssh's own queue, not of the link; leave it out"
        )


class EndpointRun(Run):
    """A run against an endpoint of linkgauge."""

    def __init__(
        self,
        plan: Plan,
        peer: FarEnd,
        control: ControlConnection,
        ends: HandshakeResult,
        expectation_for: ExpectationFinder,
        mode: Mode | None,
    ) -> None:
        """Make a run that has not begun.

        Args:
            plan: the run to carry out.
            peer: the far end, named in events and errors.
            control: the connection to it, after its handshake.
            ends: the result of that handshake.
            expectation_for: returns the rates to expect under given settings.
            mode: how this end moves payload if the plan names no mode; None copies.
        """
        super().__init__(plan, peer, ends, control.ip_version, expectation_for, WorkerSetup(mode))
        self._control = control
        self._finished = asyncio.Event()
        self._is_confirmed = False
        self._failed_end: RunEnd | None = None
        self._lost_end = RunEnd(Reason.PEER_LOST, EndText.END_UNCONFIRMED.value)
        self._is_unreadable = False  # the far end is gone, or cannot be understood any more
        self._validator = PeerValidator(plan)
        self._other_tests = OtherTestsWatch()
        self._opener = NearSessions(self.pool, control, plan, reads_floods=ends.far.reads_floods)
        self._sessions = self._opener
        self.path = PathTracing(plan, control, self._events)
        self._goal = RunGoal(plan, self.pool.counters)
        self._load_phases: LoadPhases | None = None
        self._checks = 0

    def warn(self, text: str) -> None:
        """Emit a warning."""
        self._events.warn(text)

    def trace_so_far(self) -> PathTrace | None:
        """Return this end's trace of the path, for a run in progress; None if there is none."""
        return self.path.trace_so_far()

    def change_settings(self, settings: Settings) -> None:
        """Change direction, sessions or window during the run. A new window reopens the sessions.

        It has no effect on a responsiveness test that has phases: these are its settings.
        """
        if self._load_phases is None:
            self._change_settings(settings)

    def _change_settings(self, settings: Settings) -> None:
        if self._begin_period(settings):
            self._validator.note_settings_change()
            self._run_task(self._change_sessions(settings))

    async def _open(self) -> ProbeSample | None:
        """Open all sessions at both ends, measure the idle link, and let the far end begin."""
        try:
            with explained_errors(self._peer):
                ready = await self._await_message(Ready)
                _log.debug("%s is ready; sessions are opened", self._peer)
                await self.path.open(ready.token)
                await self._opener.open_first(ready.token)
                _log.debug("all sessions are open; the idle link is measured")
                idle = await self._sampler.measure_idle()
                self._control.send(Start())
                await self._await_message(Begun)
                self.path.begin_load()
        except ConnectionClosed as error:
            text = f"{self._peer} was lost before the test began: {error}; {_remedy_for_loss(self.plan)}"
            raise PeerError(text) from error
        if self.plan.has_phases:
            self._load_phases = LoadPhases(self.plan, idle)
        return idle

    async def _await_message(self, kind: type[M]) -> M:
        while True:
            message = await self._control.receive()
            if isinstance(message, kind):
                return message
            if isinstance(message, Refuse):
                raise refusal_error(self._peer, message)
            if isinstance(message, Finish):
                raise PeerRefused(f"{self._peer} ended the test before it began: {message.end.detail}")
            self._handle(message)

    def _listen(self) -> None:
        self._control.deliver_to(self._receive)

    async def _finish(self, end: RunEnd) -> RunEnd:
        """Take the near end's last sample now, and wait for the far end's."""
        self._stop_sampling()
        self.path.end()
        has_datagrams = self.plan.workload.is_datagram
        if has_datagrams:
            self.pool.stop_payload()
        if self.plan.responsiveness is not None:
            await self.pool.stop_probes()  # before the far end forgets the run, and logs strangers in their place
        if end.reason in {Reason.PEER_LOST, Reason.PEER_STOPPED}:
            return end
        if not self._control.try_send(Stop(end)):
            self._finished.set()
        if not has_datagrams:
            self.pool.stop_payload()  # after `Stop`, which then does not wait in the queue of later payload
        drain = asyncio.create_task(self._drain()) if has_datagrams and not self._failure else None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FINISH_DEADLINE_S if drain is None else _FINISH_AND_DRAIN_DEADLINE_S):
                await self._finished.wait()
        if drain is not None:
            await drain
        self._warn_of_others(self._other_tests.take_rest())
        if self._is_confirmed:
            # The far end's clock has counted its drain, too.
            ended_ns = self._ended_ns or 0 if drain is None else self._sampler.elapsed_ns
            for text in self._validator.find_discrepancies(ended_ns):
                self._events.warn(text)
        elif self._failed_end is None:
            return self._end_unconfirmed(end)
        return self._failed_end or end

    def _end_unconfirmed(self, end: RunEnd) -> RunEnd:
        """Return the end of a run whose last samples of the far end are missing: that part is unknown."""
        if end.reason.is_regular:
            return self._lost_end
        self._events.warn(WarningText.END_UNCONFIRMED.value)
        return end

    def _handle_near_sample(self, sample: Sample) -> None:
        self._validator.add_near_sample(sample)
        self._events.add_sample(sample)
        self._check_goal(sample)
        self._follow_phases(sample)

    def _follow_phases(self, sample: Sample) -> None:
        """Begin the next phase of a responsiveness test, or stop the run after the last one."""
        if self._load_phases is None or self._ended_ns is not None:
            return
        settings = self._load_phases.follow(sample)
        if settings is not None:
            self._change_settings(settings)
        elif self._load_phases.is_over:
            self.stop(Reason.COMPLETED, EndText.DURATION_UP.value)

    def _check_goal(self, sample: Sample) -> None:
        """Stop the run if this sample shows that it has reached its goal."""
        text = self._goal.follow(sample, self.settings)
        if text is not None:
            self.stop(Reason.COMPLETED, text.value)

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
            self._lose(EndText.FAR_GONE.format(error=error))
        else:
            is_tampered = isinstance(error, ConnectionTampered)
            self._fail(str(error) if is_tampered else EndText.FAR_NOT_UNDERSTOOD.format(error=error))
        self._finished.set()

    def _lose(self, detail: str) -> None:
        self._lost_end = RunEnd(Reason.PEER_LOST, detail)
        super()._lose(detail)
        self._finished.set()

    def _fail(self, detail: str) -> None:
        """End the run as failed, even if it was about to end for another reason."""
        self._failed_end = RunEnd(Reason.FAILED, detail)
        self.stop(Reason.FAILED, detail)

    def _handle(self, message: Message) -> None:
        if isinstance(message, Report):
            self._validator.check_far_sample(message.sample, self._sampler.elapsed_ns)
            if not self._failure:  # with a session missing, samples no longer measure the planned run
                self._events.add_sample(self._without_overtime(message.sample))
            self._warn_of_others(self._other_tests.take(message.sample))
            self._check_goal(message.sample)
        elif isinstance(message, FarSessionOpened):
            self._validator.count_session_event()
            self._handle_opened(message.facts)
        elif isinstance(message, FarSessionClosed):
            self._validator.count_session_event()
            self._handle_closed(message.direction, message.session, message.generation, message.why)
        elif isinstance(message, Traced):
            self.path.take_far_trace(message.trace)
        elif isinstance(message, Notice):
            self._validator.count_notice()
            self._events.warn(message.text)
        elif isinstance(message, Finish):
            self._handle_finish(message.end)
            self._is_confirmed = True
            self._finished.set()

    def _without_overtime(self, sample: Sample) -> Sample:
        """Return a sample as one of the drain if it began after this end had stopped the run.

        `Stop` may be seconds late, in a queue or behind an outage, and the far end samples until it arrives.
        """
        is_late = self._ended_ns is not None and sample.elapsed_ns - sample.interval_ns >= self._ended_ns
        return replace(sample, is_drain=True) if is_late else sample

    def _warn_of_others(self, text: str | None) -> None:
        if text is not None:
            self._events.warn(text)

    def _handle_finish(self, end: RunEnd) -> None:
        """End the run for the far end's reason; if this end has stopped it, only a failure counts."""
        if end.reason in {Reason.PEER_STOPPED, Reason.WORKER_LOST}:
            self.stop(end.reason, end.detail)
        elif end.reason is Reason.FAILED or not self._ending.done():
            self._fail(end.detail)

    def _poll_far_end(self) -> int:
        """Ping the far end at every fourth call; return the time of its last message."""
        self._checks += 1
        if not self._checks % _CHECKS_PER_PING:
            self._control.try_send(Ping(self._checks))
        return self._control.last_received_ns

    async def _change_sessions(self, settings: Settings) -> None:
        try:
            await self._opener.change_settings(settings)
        except LinkgaugeError as error:
            self.stop(Reason.WORKER_LOST, str(error))


def _remedy_for_loss(plan: Plan) -> str:
    """Return what to check if the far end closed the connection: it may not know a part of the plan."""
    if plan.responsiveness is not None:
        return CHECK_HAS_RESPONSIVENESS
    return CHECK_HAS_UDP if plan.workload.is_datagram else CHECK_RUNS
