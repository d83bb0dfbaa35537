"""The near end of a run: `async with open_run(plan, peer) as run: async for event in run`.

A run always yields `Started` first and `Ended` last, and ends for exactly one reason: the first one given. Whatever
happens on the way, leaving the block gives everything back: sockets, workers, counters.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
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
from ..host.core_affinity import assign_core_affinity
from ..metering.sampler import Sampler
from ..model.errors import ConnectionClosed, LinkgaugeError, PeerError, PeerRefused, RemoteProtocolError
from ..model.events import Ended, Event, Expectation, Opened, Reason, RunEnd, Started, Warned
from ..model.peer import Peer
from ..model.plan import PROBE_SESSION, SECOND_NS, Direction, End, Plan, Settings
from ..model.samples import Sample
from ..model.socket_info import SocketInfo
from ..protocol.messages import Begun, Finish, Message, Notice, Open, Ping, Ready, Refuse, Report, Start, Stop
from ..protocol.messages import SessionClosed as FarSessionClosed
from ..protocol.messages import SessionOpened as FarSessionOpened
from ..protocol.peer_validation import PeerValidator
from ..protocol.session_failure import SessionFailure
from ..workers.commands import ConnectionOpened, SessionEvent
from ..workers.fork_client import ForkServerLease
from ..workers.pool import WorkerPool
from .connect import FarEnd, HandshakeResult, connect
from .link_checks import LAB_OFFLOADS_OFF_VARIABLE, LinkCheck, WindowCheck
from .session_set import NearSessions
from .timeline import Timeline

PREPARE_DEADLINE_S: Final = 20.0
FINISH_DEADLINE_S: Final = 3.0
_LOOKS_PER_PING: Final = 4  # that a far end has gone is to be said within 5 s
_GRACE_S: Final = 1.0  # a lost session is often the first sign of something that says more of itself

_SILENCE_S: Final = SILENCE_TIMEOUT_NS // SECOND_NS
_TROUBLE: Final = {
    LivenessProblem.SILENT: f"the far end has said nothing for {_SILENCE_S} s, and payload still moves; "
    "its samples may come late",
    LivenessProblem.STALLED: f"no payload has moved for {_SILENCE_S} s, and the far end still answers",
}

M = TypeVar("M", bound=Message)


def no_expectation(_settings: Settings) -> Expectation:
    """Return what is expected where nothing is."""
    return Expectation()


@asynccontextmanager
async def open_run(
    plan: Plan, peer: FarEnd, *, expectation_for: Callable[[Settings], Expectation] = no_expectation
) -> AsyncGenerator["Run"]:
    """Give a run that has started; raise PeerError or WorkerError where it cannot be.

    `expect` tells what to expect under given settings; the engine passes it on and knows nothing of it.
    """
    # Begun first: what starts workers imports while the far end is being asked.
    async with ForkServerLease(), connect(peer) as (link, ends):
        if ends.is_data_tunneled and plan.workload.opens_connections:
            raise PeerError(
                f"{peer}: {plan.workload} makes connections to a port of its own, which ssh does not carry"
            )
        plan = assign_core_affinity(plan, ends.near, ends.far)
        run = Run(plan, peer, link, ends, expectation_for)
        # Asked before our own workers start: both ends' start at the same time. Where it cannot be said any
        # more, what ended the conversation is told by the next message that is waited for.
        link.try_send(Open(plan))
        async with run.pool:
            await run.prepare()
            driving = asyncio.create_task(run.drive())
            try:
                yield run
            except BaseException:
                driving.cancel()
                raise
            finally:
                run.stop(Reason.STOPPED, "the run was closed")
                await asyncio.wait([driving])
            driving.result()


class Run:
    """One run, as the near end drives it. Iterate over it once."""

    def __init__(
        self,
        plan: Plan,
        peer: FarEnd,
        control: ControlConnection,
        ends: HandshakeResult,
        expectation_for: Callable[[Settings], Expectation],
    ) -> None:
        self.plan = plan
        self._peer = peer
        self._link = control
        self._ends = ends
        self._expect = expectation_for
        self._timeline = Timeline(plan, expectation_for)
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._started = False
        self._held: list[Event] = []  # what there is to say before the run has started
        self._ending: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        self._finished = asyncio.Event()
        self._is_confirmed = False
        self._loss = SessionFailure()
        self._windows = WindowCheck(self.plan.workload)
        meant = LAB_OFFLOADS_OFF_VARIABLE in os.environ
        self._link_watch = LinkCheck(ends.near.nic, ends.far.nic, control.ip_version, expects_offloads_off=meant)
        self._far_watch = PeerValidator(plan)
        self.pool = WorkerPool(End.NEAR, plan, self._worker_said, self._worker_lost)
        self._sessions = NearSessions(self.pool, control, plan.settings, has_probe=plan.probe)
        nic = ends.near.nic
        self._sampler = Sampler(End.NEAR, plan, self.pool.counters, None if nic is None else nic.name)
        self._sampling: asyncio.Task[None] | None = None
        self._sampled_all = False
        self._ended_ns = 0
        self._changing: set[asyncio.Task[None]] = set()

    # For the person

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield every event of the run, in order."""
        while (event := await self._events.get()) is not None:
            yield event

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._timeline.settings

    def change(self, settings: Settings) -> None:
        """Change direction, sessions or window while the run goes on. A new window reopens the sessions."""
        if settings == self.settings or self._ending.done():
            return
        self._events.put_nowait(self._timeline.change(self._sampler.elapsed_ns, settings))
        self._far_watch.note_settings_change()
        # Granted windows are told anew for the sessions that are opened from here on.
        self._windows = WindowCheck(self.plan.workload)
        task = asyncio.create_task(self._apply(settings))
        self._changing.add(task)
        task.add_done_callback(self._changing.discard)

    def stop(self, reason: Reason = Reason.STOPPED, detail: str = "") -> None:
        """End the run in order; the first reason given stands."""
        if not self._ending.done():
            self._ending.set_result(RunEnd(reason, detail or "stopped at the near end"))

    # From connection to start

    async def prepare(self) -> None:
        """Open all sessions at both ends and start the clocks; raise PeerError where that fails."""
        try:
            async with asyncio.timeout(PREPARE_DEADLINE_S):
                ready = await self._await_message(Ready)
                await self._sessions.open_first(ready.token)
                idle = await self._sampler.measure_idle()
                self._link.send(Start())
                await self._await_message(Begun)
        except ConnectionClosed as error:
            raise PeerError(f"{self._peer} went away while the run was prepared: {error}") from error
        except RemoteProtocolError as error:
            raise PeerError(f"{self._peer} cannot be understood: {error}") from error
        except TimeoutError as error:
            raise PeerError(f"{self._peer} did not get ready in {PREPARE_DEADLINE_S:g} s") from error
        self._sampler.start()
        self.pool.start_payload()
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        expectation = self._expect(self.plan.settings)
        near, far = self._ends.near, self._ends.far
        self._events.put_nowait(Started(started, str(self._peer), near, far, self.plan, expectation, idle))
        self._started = True
        for event in [*map(Warned, (*self._ends.notes, *self._link_watch.check_interfaces())), *self._held]:
            self._emit(event)

    async def _await_message(self, kind: type[M]) -> M:
        while True:
            message = await self._link.receive()
            if isinstance(message, kind):
                return message
            if isinstance(message, Refuse):
                raise PeerRefused(f"{self._peer} declines: {message.text}")
            if isinstance(message, Finish):
                raise PeerRefused(f"{self._peer} ended the run before it began: {message.end.detail}")
            self._handle(message)

    # While it runs

    async def drive(self) -> None:
        """Carry the run out until something ends it, and finish in order."""
        self._sampling = asyncio.create_task(self._sample())
        tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._watch())]
        try:
            end = await self._ending
            end = await self._finish(end)
        except BaseException:
            self._events.put_nowait(Ended(RunEnd(Reason.FAILED, "the run was abandoned")))
            raise
        else:
            self._events.put_nowait(Ended(end))
        finally:
            self._events.put_nowait(None)
            for task in [*tasks, self._sampling, *self._changing]:
                task.cancel()

    async def _finish(self, end: RunEnd) -> RunEnd:
        """Take the last samples of both ends, the near one first and now."""
        self._stop_sampling()
        if end.reason in {Reason.PEER_LOST, Reason.PEER_STOPPED} or not self._link.try_send(Stop(end)):
            return end
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FINISH_DEADLINE_S):
                await self._finished.wait()
                for text in self._far_watch.find_discrepancies(self._ended_ns) if self._is_confirmed else ():
                    self._emit(Warned(text))
                return end
        self._emit(Warned("the far end did not confirm the end of the run; its last samples may be missing"))
        return end

    def _stop_sampling(self) -> None:
        """Take the last sample, once."""
        if self._sampling is None or self._sampled_all:
            return
        self._sampled_all = True
        self._sampling.cancel()
        self._ended_ns = self._sampler.elapsed_ns
        last = self._sampler.take_sample()
        if last is not None:
            self._sampled(last)

    def _sampled(self, sample: Sample) -> None:
        self._far_watch.add_near_sample(sample)
        self._stamp(sample)

    async def _sample(self) -> None:
        await self._sampler.run(self._sampled, self.plan.duration_ns)
        self.stop(Reason.COMPLETED, "its duration is up")

    async def _listen(self) -> None:
        try:
            while True:
                self._handle(await self._link.receive())
        except ConnectionClosed as error:
            self.stop(Reason.PEER_LOST, f"the far end is gone: {error}")
        except LinkgaugeError as error:
            self.stop(Reason.FAILED, f"the far end cannot be understood: {error}")
        finally:
            self._finished.set()

    def _handle(self, message: Message) -> None:
        if isinstance(message, Report):
            self._far_watch.check_far_sample(message.sample, self._sampler.elapsed_ns)
            if not self._loss:  # from there on it no longer measures what was asked for
                self._stamp(message.sample)
        elif isinstance(message, FarSessionOpened):
            self._far_watch.count_session_event()
            self._opened(message.facts)
        elif isinstance(message, FarSessionClosed):
            self._far_watch.count_session_event()
            self._session_ended(message.direction, message.session, message.generation, message.why)
        elif isinstance(message, Notice):
            self._far_watch.count_notice()
            self._emit(Warned(message.text))
        elif isinstance(message, Finish):
            said = message.end.reason
            reason = said if said in {Reason.PEER_STOPPED, Reason.WORKER_LOST} else Reason.FAILED
            self.stop(reason, message.end.detail)
            self._is_confirmed = True
            self._finished.set()

    async def _watch(self) -> None:
        """Notice a far end that vanished without a word."""
        patience_ns = SILENCE_TIMEOUT_NS if isinstance(self._peer, Peer) else SSH_SILENCE_TIMEOUT_NS
        liveness = Liveness(time.monotonic_ns(), timeout_ns=patience_ns)
        looks, told = 0, None
        while True:
            await asyncio.sleep(PING_INTERVAL_S / _LOOKS_PER_PING)
            looks += 1
            if not looks % _LOOKS_PER_PING:
                self._link.try_send(Ping(looks))
            now_ns, heard_ns = time.monotonic_ns(), self._link.last_received_ns
            lost_ns = liveness.check_timeout(now_ns, heard_ns, self.pool.counters.total_bytes())
            if lost_ns is not None:
                self.stop(Reason.PEER_LOST, f"the far end has been silent for {lost_ns / SECOND_NS:.0f} s")
                return
            trouble = liveness.find_problem(now_ns, heard_ns)
            if trouble is not None and trouble is not told:
                self._emit(Warned(_TROUBLE[trouble]))
            told = trouble

    async def _apply(self, settings: Settings) -> None:
        try:
            await self._sessions.change(settings)
        except LinkgaugeError as error:
            self.stop(Reason.WORKER_LOST, str(error))

    # What happens to sessions

    def _worker_said(self, event: SessionEvent) -> None:
        if isinstance(event, ConnectionOpened):
            self._sessions.handle_opened(event.info)
            if event.info.session != PROBE_SESSION:
                self._opened(event.info)
        else:
            self._session_ended(event.direction, event.session, event.generation, event.why)

    def _opened(self, facts: SocketInfo) -> None:
        self._emit(Opened(facts))
        for watch in (self._windows, self._link_watch):
            warning = watch.check(facts, self.settings.window_bytes)
            if warning is not None:
                self._emit(Warned(warning))

    def _session_ended(self, direction: Direction, session: int, generation: int, why: str) -> None:
        """Judge a connection that ended: one that was let go is none of the run's business."""
        if not self._sessions.is_wanted(direction, session, generation):
            return
        if self._sessions.fail_opening(f"session {session} {direction} was lost: {why}"):
            return
        if session == PROBE_SESSION:
            if self._loss:
                return
            self._emit(Warned(f"the probe was lost: {why}; latency under load is that of the time before"))
            return
        if not self._loss:
            self._stop_sampling()
            asyncio.get_running_loop().call_later(_GRACE_S, self._stop_for_loss)
        self._loss.record(direction, session, generation, why)

    def _stop_for_loss(self) -> None:
        self.stop(Reason.SESSION_LOST, str(self._loss))

    def _worker_lost(self, why: str) -> None:
        if not self._sessions.fail_opening(f"at the near end {why}"):
            self.stop(Reason.WORKER_LOST, f"at the near end {why}")

    def _stamp(self, sample: Sample) -> None:
        """Emit a sample with its settings, and what the timeline has to say of it."""
        self._emit(self._timeline.stamp(sample))
        for text in self._timeline.take_warnings():
            self._emit(Warned(text))

    def _emit(self, event: Event) -> None:
        if self._started:
            self._events.put_nowait(event)
        else:
            self._held.append(event)
