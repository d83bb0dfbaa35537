"""The base of every run of the near end, whichever protocol the far end speaks.

It has the run's events, the settings over its time, the samples and sessions of this end, and the one reason for
its end: the first that comes up. `run` and `iperf3/near/run` have the conversation with the far end.
"""

import asyncio
import contextlib
import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeVar

from ..control.handshake import HandshakeResult
from ..control.keepalive import SILENCE_TIMEOUT_NS, SSH_SILENCE_TIMEOUT_NS, Liveness, LivenessProblem
from ..host.event_loop import call_in_thread
from ..host.sockets.other_traffic import OtherTraffic
from ..host.sockets.socket_message import SocketAddress
from ..metering.drain import await_drain
from ..metering.sampler import Sampler
from ..model.counters.path_trace import PathTrace
from ..model.counters.samples import ProbeSample, Sample
from ..model.counters.session_counters import SocketInfo
from ..model.directions import Direction, End
from ..model.errors import LinkgaugeError, PeerError
from ..model.events import Ended, Event, Opened, Started
from ..model.expected_rate import Expectation
from ..model.peer import Peer
from ..model.plan import (
    FURTHER_PROBE_SESSIONS,
    HANDSHAKE_PROBE_SESSION,
    PROBE_SESSION,
    PROBE_SESSIONS,
    SECOND_NS,
    Dialect,
    Mode,
    Plan,
    Settings,
)
from ..model.run_end import EndText, Reason, RunEnd
from ..model.texts.warning_text import WarningKind, WarningText
from ..workers.ipc import ConnectionFailed, ConnectionLost, ConnectionOpened, SessionEvent
from ..workers.pool import WorkerPool
from ..workloads.session_handshake import NOT_ACCEPTED, Iperf3Format
from .connect import FarEnd
from .link_checks import LAB_OFFLOADS_OFF_VARIABLE, LinkCheck, SocketChecks
from .run_events import RunEvents, Timeline
from .session_set import SessionFailure, SessionSet

PREPARE_DEADLINE_S: Final = 20.0
CHECK_INTERVAL_S: Final = 0.25  # a far end that has gone must be reported within 5 s
_SLOW_OPENING_S: Final = 3.0  # a test opens its sessions within a few round trips
_LOOK_DEADLINE_S: Final = 2.0
_SESSION_LOSS_GRACE_S: Final = 1.0  # the cause of a lost session is often reported a moment later
_LIVENESS_WARNINGS: Final = {
    LivenessProblem.SILENT: WarningText.FAR_SILENT,
    LivenessProblem.STALLED: WarningText.PAYLOAD_STALLED,
}
_log = logging.getLogger(__name__)


ExpectationFinder = Callable[[Settings, int], Expectation]
"""Returns the rates to expect under given settings, over connections of an IP version, 4 or 6."""


def no_expectation(_settings: Settings, _ip_version: int) -> Expectation:
    """Return an expectation without any rate."""
    return Expectation()


class WorkerSetup(NamedTuple):
    """How the workers send a stream if the plan leaves that to them, and what depends on the far end's program.

    Without a mode they copy. `iperf3` is the format of datagrams for it. With the protocol of another `program` no
    worker hosts the probe, and each block that is sent begins with `head`. Without `has_workers` the run's owner
    moves the payload.
    """

    mode: Mode | None
    iperf3: Iperf3Format | None = None
    program: Dialect | None = None
    head: bytes = b""
    has_workers: bool = True


class Run(ABC):
    """One run, as the near end drives it. Iterate over it once.

    `conduct` calls `prepare`, then `drive` in a task. Its caller iterates, and may call `change_settings` and
    `stop`.
    """

    _sessions: SessionSet

    def __init__(
        self,
        plan: Plan,
        peer: FarEnd,
        ends: HandshakeResult,
        ip_version: int,
        expectation_for: ExpectationFinder,
        setup: WorkerSetup,
    ) -> None:
        """Make a run that has not begun.

        Args:
            plan: the run to carry out.
            peer: the far end, named in events and errors.
            ends: the descriptions of both ends.
            ip_version: 4 or 6: the version that the connections use.
            expectation_for: returns the rates to expect under given settings.
            setup: the instructions for this end's workers.
        """
        self.plan = plan
        self._peer = peer
        self._ends = ends
        self.ip_version = ip_version
        self._timeline = Timeline(plan, lambda settings: expectation_for(settings, ip_version))
        self._events = RunEvents(self._timeline)
        self._ending: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        self._failure = SessionFailure()
        is_lab = LAB_OFFLOADS_OFF_VARIABLE in os.environ
        link_check = LinkCheck(ends.near.nic, ends.far.nic, ip_version, expects_offloads_off=is_lab)
        self._socket_checks = SocketChecks(plan, plan.mode or setup.mode, link_check)
        self.pool = WorkerPool(
            End.NEAR,
            plan,
            self._handle_worker_event,
            self._handle_worker_loss,
            iperf3=setup.iperf3,
            sending_mode=setup.mode,
            program=setup.program,
            head=setup.head,
            has_workers=setup.has_workers,
        )
        nic = ends.near.nic
        self._sampler = Sampler(End.NEAR, plan, self.pool.counters, None if nic is None else nic.name)
        has_others = nic is not None and nic.sort != "loopback"
        far = SocketAddress(ends.address, peer.port if isinstance(peer, Peer) else 0)
        self._other_traffic = OtherTraffic(nic.name if nic and has_others else None, far, plan.workload)
        self._looking: asyncio.Task[None] | None = None
        self._has_late_look = False
        self._sampling: asyncio.Task[None] | None = None
        self._ended_ns: int | None = None  # of the last sample, once that is taken
        self._tasks: set[asyncio.Task[None]] = set()

    def __aiter__(self) -> AsyncIterator[Event]:
        """Iterate over every event of the run, in order."""
        return aiter(self._events)

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self._timeline.settings

    @abstractmethod
    def change_settings(self, settings: Settings) -> None:
        """Change settings during the run."""

    def trace_so_far(self) -> PathTrace | None:
        """Return this end's trace of the path, for a run in progress; None if there is none."""
        return None

    def _begin_period(self, settings: Settings) -> bool:
        """Begin a period with new settings; return False if the run is ending, or has these already."""
        if settings == self.settings or self._ending.done():
            return False
        self._events.put(self._timeline.change_settings(self._sampler.elapsed_ns, settings))
        self._socket_checks.change_settings()
        _log.debug("settings change to %s", settings)
        return True

    @abstractmethod
    async def _open(self) -> ProbeSample | None:
        """Open all sessions; return the probe's sample of the idle link, None if there is no probe.

        Raise PeerError if that fails. It is cancelled after `PREPARE_DEADLINE_S`.
        """

    @abstractmethod
    def _listen(self) -> None:
        """From now on, handle the far end's messages."""

    @abstractmethod
    def _poll_far_end(self) -> int | None:
        """Return the monotonic time in nanoseconds of the far end's last sign of life; None if unknown.

        It is called every `CHECK_INTERVAL_S` during the run.
        """

    @abstractmethod
    async def _finish(self, end: RunEnd) -> RunEnd:
        """End the run in order at both ends, and return its end."""

    @abstractmethod
    def _handle_near_sample(self, sample: Sample) -> None:
        """Emit a sample of this end."""

    async def prepare(self) -> None:
        """Open all sessions and start the clocks; raise PeerError if that fails."""
        self._prepared_from_s = time.monotonic()
        try:
            async with asyncio.timeout(PREPARE_DEADLINE_S + self.plan.wait_ns / SECOND_NS):
                idle = await self._open()
        except TimeoutError as error:
            text = (
                f"{self._peer} was not ready within {PREPARE_DEADLINE_S:g} s; check that its host is not "
                "overloaded, or give fewer --sessions if the link is slow"
            )
            raise PeerError(text) from error
        self._sampler.start()
        self.pool.start_payload()
        self._announce(idle)

    def stop(self, reason: Reason = Reason.STOPPED, detail: str = "") -> None:
        """End the run in order. Only the first call has an effect."""
        if not self._ending.done():
            end = RunEnd(reason, detail or EndText.STOPPED_HERE.value)
            _log.debug("run ends: %s: %s", end.reason, end.detail)
            self._ending.set_result(end)

    async def drive(self) -> None:
        """Sample and watch the far end until something ends the run, then collect the last samples."""
        self._sampling = asyncio.create_task(self._sample())
        watching = asyncio.create_task(self._watch())
        if self._failure:  # a session was lost since payload began to flow
            self._stop_sampling()
        self._listen()
        try:
            end = await self._ending
            end = await self._finish(end)
            await self._look_last()
        except BaseException:
            self._events.put(Ended(RunEnd(Reason.FAILED, EndText.RUN_ABANDONED.value)))
            raise
        else:
            self._events.put(Ended(end))
        finally:
            self._events.close()
            self._sampler.close()
            for task in [watching, self._sampling, *self._tasks]:
                task.cancel()
            self._sampling = None  # a cancelled task leads to its frames, and they lead here: a cycle

    async def _watch(self) -> None:
        """Stop the run when the far end has vanished, and warn when it is silent or stalled."""
        timeout_ns = SILENCE_TIMEOUT_NS if isinstance(self._peer, Peer) else SSH_SILENCE_TIMEOUT_NS
        liveness = Liveness(time.monotonic_ns(), timeout_ns=timeout_ns)
        last_problem = None
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            received_ns = self._poll_far_end()
            if received_ns is None:
                continue
            now_ns = time.monotonic_ns()
            silent_ns = liveness.check_timeout(now_ns, received_ns, self.pool.counters.total_bytes())
            if silent_ns is not None:
                self._lose(EndText.FAR_SILENT.format(seconds=silent_ns / SECOND_NS))
                return
            problem = liveness.find_problem(now_ns, received_ns)
            if problem is not None and problem is not last_problem:
                self._events.warn(_LIVENESS_WARNINGS[problem].format(seconds=SILENCE_TIMEOUT_NS // SECOND_NS))
            last_problem = problem

    def _lose(self, detail: str) -> None:
        """End the run because the far end has vanished; in a run that is ending, stop waiting for it."""
        self.stop(Reason.PEER_LOST, detail)

    def _run_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in a task that ends with the run at the latest."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _announce(self, idle: ProbeSample | None, warnings: Iterable[str] = ()) -> None:
        """Emit `Started`, the warnings about the two ends, and the earlier events."""
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        early = self._events.start(
            Started(
                started,
                str(self._peer),
                self._ends.near,
                self._ends.far,
                self.plan,
                self._timeline.expect(self.plan.settings),
                idle,
                self.ip_version,
                self._ends.address or None,
            )
        )
        _log.debug("run started")
        for text in self._ends.notes:
            self._events.warn(text, WarningKind.DATA_THROUGH_SSH)
        for text in (*warnings, *self._socket_checks.check_interfaces()):
            self._events.warn(text)
        for event in early:
            self._events.put(event)

    async def _sample(self) -> None:
        await self._sampler.run(self._take_near_sample, self.plan.duration_ns)
        self.stop(Reason.COMPLETED, EndText.DURATION_UP.value)

    def _take_near_sample(self, sample: Sample) -> None:
        self._handle_near_sample(sample)
        is_looking = self._looking is not None and not self._looking.done()
        if self._other_traffic.follow(sample) and not is_looking:
            self._looking = asyncio.create_task(self._look_for_other_traffic(self._other_traffic.read))
            self._tasks.add(self._looking)
            self._looking.add_done_callback(self._tasks.discard)

    async def _look_for_other_traffic(self, look: Callable[[], str | None]) -> None:
        """Warn of other programs' traffic through the interface; a kernel that cannot tell is not a fault."""
        if self._has_late_look:
            return
        with contextlib.suppress(LinkgaugeError, OSError):
            try:
                text = await call_in_thread(look, name="sockets", deadline_s=_LOOK_DEADLINE_S)
            except TimeoutError:
                self._has_late_look = True  # its thread goes on, and two at once would disturb each other
            else:
                if text is not None:
                    self._events.warn(text, WarningKind.OTHER_TRAFFIC)

    async def _look_last(self) -> None:
        """Name the rest of the other traffic, which had been watched for too short a time."""
        if self._looking is not None:
            await asyncio.wait([self._looking])
            await self._look_for_other_traffic(self._other_traffic.name_rest)

    def _stop_sampling(self) -> None:
        """Take the last sample, once."""
        if self._sampling is None or self._ended_ns is not None:
            return
        self._sampling.cancel()
        self._ended_ns = self._sampler.elapsed_ns
        last = self._sampler.take_sample(is_last=True)
        if last is not None:
            self._take_near_sample(last)

    async def _drain(self) -> None:
        """Take a sample of the datagrams that were on their way when the senders stopped."""
        await await_drain(self.pool.counters)
        self._take_drain_sample()

    def _take_drain_sample(self) -> None:
        sample = self._sampler.take_sample(is_drain=True)
        if sample is not None:
            self._handle_near_sample(sample)

    def _handle_worker_event(self, event: SessionEvent) -> None:
        if isinstance(event, ConnectionOpened):
            self._sessions.handle_opened(event.info)
            if event.info.session not in PROBE_SESSIONS:
                self._handle_opened(event.info)
        elif event.session in FURTHER_PROBE_SESSIONS:
            self._go_on_without(event)
        else:
            self._handle_closed(event.direction, event.session, event.generation, event.why)

    def _go_on_without(self, event: ConnectionFailed | ConnectionLost) -> None:
        """Warn that a further probe of a responsiveness test does not measure; the request probe still does."""
        self._sessions.stop_waiting_for(event.direction, event.session)
        if self._ending.done() or self._failure:
            return
        is_unopened = isinstance(event, ConnectionFailed)
        if event.session == HANDSHAKE_PROBE_SESSION:
            text = WarningText.PROBE_LOST
        else:
            text = WarningText.DATAGRAM_PROBE_UNOPENED if is_unopened else WarningText.DATAGRAM_PROBE_LOST
        self._events.warn(text.format(reason=event.why))

    def _handle_opened(self, facts: SocketInfo) -> None:
        self._events.put(Opened(facts))
        for warning in self._socket_checks.check(facts, self.settings.window_bytes):
            self._events.warn(warning)

    def _explain_unopened(self, reason: str) -> str:
        """Return why a session did not open. A far end gives up on sessions that a slow link opens too late."""
        waited_s = time.monotonic() - self._prepared_from_s
        if reason == NOT_ACCEPTED and waited_s >= _SLOW_OPENING_S:
            reason = EndText.SESSIONS_SLOW.format(seconds=f"{waited_s:.1f}")
        return EndText.SESSION_UNOPENED.format(peer=self._peer, reason=reason)

    def _handle_closed(self, direction: Direction, session: int, generation: int, reason: str) -> None:
        """End the run if it needs the connection that closed. Those of older settings are closed on purpose."""
        if not self._sessions.is_wanted(direction, session, generation):
            return
        _log.debug("session %s %s was lost: %s", session, direction, reason)
        if self._sessions.fail_opening(self._explain_unopened(reason)):
            return
        if self._ending.done():  # the far end may be the first to close, while this end still drains
            return
        if session == PROBE_SESSION:
            if not self._failure:
                self._events.warn(WarningText.PROBE_LOST.format(reason=reason))
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


R = TypeVar("R", bound=Run)


@asynccontextmanager
async def conduct(run: R) -> AsyncGenerator[R]:
    """Start the workers and the run, and yield it; on leaving the block, stop it and wait for its end."""
    async with run.pool, driven(run):
        yield run


@asynccontextmanager
async def driven(run: Run) -> AsyncGenerator[None]:
    """Start a run whose workers have started; on leaving the block, stop it and wait for its end."""
    await run.prepare()
    drive_task = asyncio.create_task(run.drive())
    try:
        yield
    except BaseException:
        drive_task.cancel()
        raise
    finally:
        run.stop(Reason.STOPPED, EndText.RUN_CLOSED.value)
        await asyncio.wait([drive_task])
    drive_task.result()
