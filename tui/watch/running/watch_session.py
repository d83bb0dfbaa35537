"""A watch in progress: it tests and probes its peers when that is due, and yields the events.

Each peer has a task for its tests and one for its probes; the locks of interfaces keep them apart. Each event is in
the journal before the reader gets it (watch_journal.py).
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Final

from ....engine.host.event_loop import call_in_thread
from ....engine.model.errors import PeerBusy, UsageError, WorkerError
from ....engine.model.plan import SECOND_NS
from ....engine.results.run_log import RunLog
from ....engine.results.run_log.process_locks import FOLDER, claim
from ....engine.workers.fork_client import ForkServerLease
from ....presets.catalog import Catalog
from ....watch.data_budget import MonthUse, Shortage, expected_cost, find_shortage
from ....watch.events import (
    CheckBegan,
    CheckEnded,
    CheckResult,
    CheckSkipped,
    ChecksMissed,
    News,
    ProbeEnded,
    Receiver,
    SkipReason,
    WatchEnded,
    WatchEvent,
    WatchNotice,
    WatchStarted,
    told,
)
from ....watch.schedule import LONGEST_WAIT_S, check_times, probe_times, wait_s
from ....watch.watch_plan import WatchedPeer, WatchPlan
from ....watch.watch_state import PeerStatus, WatchState, decides_cycle
from ...session.run_recorder import new_id
from ...session.storage import open_data_dir
from .interface_locks import InterfaceLocks, interface_towards
from .notifications import Notifier
from .own_turn import hold_own_turn
from .peer_probe import can_be_probed, find_absence, probe_peer
from .peer_test import PeerTest, WatchContext, turn_pause_s
from .watch_journal import CommittedEvents, WatchJournal, adopted_ends

_PRUNE_FIRST_S: Final = 600.0  # by then a clock that was wrong at the start of the machine is right
_TELL_EVERY_S: Final = 15.0
# A restart goes on with a cycle that began within two periods, or an hour.
_UNFINISHED_PERIODS: Final = 2.0
_UNFINISHED_S: Final = 3_600.0
_CLAIM_AGAIN_S: Final = 0.1
_LAST_EVENTS_S: Final = 5.0
_OF_NO_PEER: Final = "-"


@asynccontextmanager
async def open_watch(
    plan: WatchPlan, *, log: RunLog, catalog: Catalog, once: bool = False, clock: Callable[[], float] = time.time
) -> AsyncGenerator["WatchSession"]:
    """Begin a watch, or continue it from its journal. The block ends it in order.

    Args:
        plan: the peers and times. Its name is the watch's: another of that name must not be in progress.
        log: the run log; it has the runs and the journal.
        catalog: the presets.
        once: test each peer once, now, and end.
        clock: the time, in seconds since 1970.

    Raises:
        UsageError: a watch of this name runs already.
        RunLogError: the journal cannot be read or written.
    """
    folder = open_data_dir() / FOLDER
    held = claim(folder, plan.group)
    if held is None:  # a process that follows the watch holds its lock for a moment, to look at it
        await asyncio.sleep(_CLAIM_AGAIN_S)
        held = claim(folder, plan.group)
    if held is None:
        remedy = "end that one first, give this one another name, or add --follow to see it"
        raise UsageError(f"the watch {plan.name} cannot begin: it runs already; {remedy}")
    journal = WatchJournal(log, plan.group)
    try:
        state = await call_in_thread(lambda: journal.read(plan), name="journal")
        async with ForkServerLease():
            session = WatchSession(
                plan, state, journal, InterfaceLocks(folder), WatchContext(log, catalog, plan.group), clock
            )
            session.begin(once=once)
            try:
                yield session
            finally:
                await session.close()
    finally:
        journal.close()
        os.close(held)


class WatchSession:
    """A watch in progress. Iterate over it once: it yields every event from now on, `WatchEnded` last."""

    is_elsewhere: bool = False

    def __init__(
        self,
        plan: WatchPlan,
        state: WatchState,
        journal: WatchJournal,
        locks: InterfaceLocks,
        context: WatchContext,
        clock: Callable[[], float],
    ) -> None:
        self.plan = plan
        self._state, self._journal, self._locks = state, journal, locks
        self._context, self._clock = context, clock
        self._stopping = asyncio.Event()
        self.events = CommittedEvents(journal, state, clock, self._stopping)
        self._wakes: dict[str, asyncio.Event] = {}
        self._wanted: set[str] = set()
        self._timed_since: dict[str, float] = {}  # when a reload gave a peer other times
        self._checks: dict[str, PeerTest | None] = {}
        # Tasks, named like their peers: tests, probes, and what is written to the journal beside them.
        self._peers: set[asyncio.Task[None]] = set()
        self._probes: set[asyncio.Task[None]] = set()
        self._others: set[asyncio.Task[None]] = set()
        self._main: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._notifier = Notifier(self.report, self._note_told)
        self._once = False
        self._noticed: set[tuple[str | None, str]] = set()  # what was said of tests: once for each peer

    @property
    def statuses(self) -> Mapping[str, PeerStatus]:
        """What is known of each peer, in the plan's order."""
        return {peer.name: self._state.statuses[peer.name] for peer in self.plan.peers}

    @property
    def use(self) -> MonthUse:
        """The data of this month's tests and probes."""
        return self._state.use

    def __aiter__(self) -> AsyncIterator[WatchEvent]:
        """Iterate over the events. Raises the error that ended the watch, such as a full journal."""
        return self.events

    def check_now(self, name: str) -> None:
        """Make a test of this peer due now. Do nothing for a peer that is not watched."""
        if self.plan.find(name) is not None:
            self._wanted.add(name)
            self._wake(name)

    def reload(self, plan: WatchPlan) -> None:
        """Watch by another plan from now on. A test that runs ends by the old one, and the watch keeps its name."""
        self._spawn(self._reload(plan), self._others)

    def report(self, text: str, peer: str | None = None) -> None:
        """Add a notice to the events, about a peer or the watch."""
        self._spawn(self._emit(WatchNotice(self._clock(), text, peer)), self._others)

    def stop(self) -> None:
        """End the watch in order, the test that runs first; a second call changes nothing. `WatchEnded` comes."""
        self._stopping.set()
        for check in self._checks.values():
            if check is not None:
                check.stop()
        for task in self._peers:
            if task.get_name() not in self._checks:
                task.cancel()

    def begin(self, *, once: bool) -> None:
        """Begin with the tests that are due. Call it once."""
        self._once = once
        self._main = asyncio.create_task(self._run())

    async def close(self) -> None:
        """End the watch, and wait until it has ended."""
        self.stop()
        if self._main is not None:
            await self._main

    async def _run(self) -> None:
        """Carry the watch out until it is stopped. A failure is the last thing that the reader gets."""
        self.events.subscribe(lambda _event: self._tell())
        try:
            try:
                await self._start()
                self._spawn(
                    self.events.prune_daily(lambda: self.plan, 0 if self._once else _PRUNE_FIRST_S), self._probes
                )
                self._spawn(self._tell_in_time(), self._probes)
                self._start_peers()
                await self._stopping.wait()
            finally:
                await self._end_tasks()
            if self._failure is None:
                await self._emit(WatchEnded(self._clock()))
        except Exception as error:  # noqa: BLE001 - else the reader would wait for ever
            self._failure = self._failure or error
        if self._failure is not None:
            self.events.fail(self._failure)

    async def _start(self) -> None:
        """Write the ends of tests that were cut off to the journal, and that the watch goes on."""
        begun, now_s = self._state.take_begun(), self._clock()
        ends = await call_in_thread(partial(adopted_ends, begun, self._journal, self.plan, now_s), name="journal")
        for end in ends:
            await self._emit(end)
        for peer in self.plan.peers:
            if not self._state.has_peer(peer.name):  # out of the watch for a while
                self._timed_since[peer.name] = now_s
        await self._emit(WatchStarted(self._clock(), tuple(peer.name for peer in self.plan.peers)))
        self._notifier.check(self.plan.notify)
        for reason in self._state.unread[:1]:
            more = len(self._state.unread) - 1
            await self._emit(WatchNotice(self._clock(), reason + (f" (and {more} more)" if more else "")))

    def _start_peers(self) -> None:
        tested, probed = ({task.get_name() for task in tasks} for tasks in (self._peers, self._probes))
        for peer in self.plan.peers:
            if peer.name not in tested:
                self._spawn(self._watch_peer(peer.name), self._peers, peer.name)
            if peer.name not in probed and not self._once:
                self._spawn(self._probe_peer(peer.name), self._probes, peer.name)

    def _spawn(
        self, work: Coroutine[Any, Any, None], among: set[asyncio.Task[None]], name: str = _OF_NO_PEER
    ) -> None:
        """Begin a task, which stays in a set until it ends.

        A task that fails ends the watch: a watch that cannot write its journal must not go on. The end of the last
        peer's task ends it as well.
        """

        def note_end(task: asyncio.Task[None]) -> None:
            among.discard(task)
            error = None if task.cancelled() else task.exception()
            if isinstance(error, Exception):
                self._failure = self._failure or error
                self.stop()
            if among is self._peers and not among:
                self.stop()

        task = asyncio.create_task(work, name=name)
        among.add(task)
        task.add_done_callback(note_end)

    async def _end_tasks(self) -> None:
        """End all tasks. A test that runs ends in order first."""
        self.stop()
        for task in self._probes:
            task.cancel()
        await asyncio.gather(*self._peers, *self._probes, return_exceptions=True)
        await self._notifier.close()
        if self._others:  # they write events, such as that a notification was sent
            await asyncio.wait(set(self._others), timeout=_LAST_EVENTS_S)
        for task in self._others:
            task.cancel()
        await asyncio.gather(*self._others, return_exceptions=True)

    async def _watch_peer(self, name: str) -> None:
        """Test a peer whenever that is due, until it leaves the plan or the watch is stopped."""
        await self._finish_cycle(name)
        while not self._stopping.is_set() and (watched := self.plan.find(name)) is not None:
            now_s = self._clock()
            is_wanted = self._once or name in self._wanted
            last_s = self._state.statuses[name].cycle_s
            due_s = now_s if is_wanted else check_times(watched).next_due_s(last_s, now_s)
            self._state.set_due(name, check_s=due_s)
            if due_s > now_s:
                await self._sleep(name, wait_s(due_s, now_s))
                continue
            self._wanted.discard(name)
            if not self._once:
                # A test that the user asks for stands for the newest one that is due.
                await self._note_missed(watched, check_times(watched).newest_s(now_s) if is_wanted else due_s)
            if self._once and watched.timing.probe_every_ns is not None and can_be_probed(watched.peer):
                await self._probe(watched)
            await self._carry_out_cycle(watched, due_s)
            if self._once:
                return

    async def _note_missed(self, watched: WatchedPeer, due_s: float) -> None:
        """Report the tests missed since the last cycle, or since a reload changed the times."""
        last_s = self._state.statuses[watched.name].cycle_s
        if last_s is None:
            return
        missed = check_times(watched).between(max(last_s, self._timed_since.get(watched.name, 0.0)), due_s)
        if missed is not None:
            await self._emit(ChecksMissed(self._clock(), watched.name, *missed))

    async def _finish_cycle(self, name: str) -> None:
        """Go on with the cycle in which the program was killed, unless it is too old."""
        watched = self.plan.find(name)
        if watched is None or self._once:
            return
        age_s = max(_UNFINISHED_S, _UNFINISHED_PERIODS * watched.timing.check_every_ns / SECOND_NS)
        cycle_s = self._state.statuses[name].unfinished_cycle(self._clock() - age_s)
        if cycle_s is not None:
            await self._carry_out_cycle(watched, cycle_s)

    async def _carry_out_cycle(self, watched: WatchedPeer, cycle_s: float) -> None:
        """Test a peer, and repeat the test while it is below its mark. The last test decides."""
        attempt = self._state.statuses[watched.name].next_attempt(cycle_s)
        while not self._stopping.is_set() and self.plan.find(watched.name) is not None:
            # Also before the wait for the interface: a test without data need not wait.
            if await self._is_too_dear(watched, cycle_s) or await self._test(watched, cycle_s, attempt):
                return
            attempt += 1
            pause_s = watched.timing.retest_after_ns / SECOND_NS
            self._state.set_due(watched.name, check_s=self._clock() + pause_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()

    async def _test(self, watched: WatchedPeer, cycle_s: float, attempt: int) -> bool:
        """Carry out one test; return whether the cycle is over.

        It waits for its interface and its turn at the endpoint, a period at most. In between others may be tested.
        """
        interface = await interface_towards(watched.peer, watched.plan.socket)
        absence = await find_absence(watched, self._state.statuses[watched.name].newest_result)
        reason = SkipReason.BUSY
        if absence is not None:
            return await self._carry_out_test(watched, cycle_s, attempt, absence)
        give_up_s = time.monotonic() + watched.timing.check_every_ns / SECOND_NS
        for tries in count():
            if (left_s := give_up_s - time.monotonic()) <= 0:
                break
            try:
                async with self._locks.hold_for_test(interface, left_s), hold_own_turn(watched) as problem:
                    if problem is not None:
                        await self._emit_once(problem)
                    return await self._carry_out_test(watched, cycle_s, attempt)
            except TimeoutError:
                break
            except PeerBusy as busy:
                if tries == 1:
                    await self._emit(WatchNotice(self._clock(), f"{busy}; the test waits", watched.name))
                reason = SkipReason.ENDPOINT
                await asyncio.sleep(min(left_s, turn_pause_s(watched, busy.free_in_s, tries)))
        await self._emit(CheckSkipped(self._clock(), watched.name, cycle_s, reason))
        return True

    async def _carry_out_test(
        self, watched: WatchedPeer, cycle_s: float, attempt: int, absence: CheckResult | None = None
    ) -> bool:
        """Test a peer whose interface is held, or note its absence; return whether the cycle is over or stopped.

        Raises PeerBusy if it gets no turn at the endpoint.
        """
        self._checks[watched.name] = None  # from here on `stop` does not cancel the task: it ends by itself
        try:
            if await self._is_too_dear(watched, cycle_s):  # other tests may have used the data since
                return True
            run_id = new_id()
            await self._emit(CheckBegan(self._clock(), watched.name, cycle_s, attempt, run_id))
            result = absence or await self._measure(watched, run_id)
            return result is None or await self._note_result(watched, cycle_s, attempt, result)
        finally:
            self._checks.pop(watched.name, None)

    async def _note_result(self, watched: WatchedPeer, cycle_s: float, attempt: int, result: CheckResult) -> bool:
        """Emit the end of a test; return whether the cycle is over."""
        ended = CheckEnded(self._clock(), watched.name, cycle_s, attempt, result, decides=False)
        # Without data for a repetition this test counts: else the last result would be an older one.
        is_last = decides_cycle(result, attempt, watched.timing.retests) or self._find_shortage(watched, ended)
        await self._emit(replace(ended, decides=bool(is_last)))
        return bool(is_last)

    async def _measure(self, watched: WatchedPeer, run_id: str) -> CheckResult | None:
        """Return the result of a test once its run is in the run log; None if it was stopped."""
        check = self._checks[watched.name] = PeerTest(watched, self._context, run_id)
        if self._stopping.is_set():
            check.stop()
        result = await check.carry_out()
        with contextlib.suppress(WorkerError):  # without a thread to wait in, the log's own writes nevertheless
            await call_in_thread(self._context.log.flush, name="run log")
        for text in check.notices:
            await self._emit_once(text, watched.name)
        return result

    async def _emit_once(self, text: str, peer: str | None = None) -> None:
        """Emit a notice unless it was said before."""
        if (peer, text) not in self._noticed:
            self._noticed.add((peer, text))
            await self._emit(WatchNotice(self._clock(), text, peer))

    async def _probe_peer(self, name: str) -> None:
        """Probe a peer whenever that is due."""
        last = self._state.statuses[name].last_probe
        last_s = None if last is None else last.at_s
        while (watched := self.plan.find(name)) is not None:
            times, now_s = probe_times(watched), self._clock()
            if times is None or not can_be_probed(watched.peer):
                await asyncio.sleep(LONGEST_WAIT_S)  # a reload may bring probes
                continue
            due_s = times.next_due_s(last_s, now_s)
            self._state.set_due(name, probe_s=due_s)
            if due_s > now_s:
                await asyncio.sleep(wait_s(due_s, now_s))
                continue
            last_s = now_s
            await self._probe(watched)

    async def _probe(self, watched: WatchedPeer) -> None:
        """Probe a peer. Skip the probe if a test has the interface for a whole period."""
        interface = await interface_towards(watched.peer, watched.plan.socket)
        every_s = (watched.timing.probe_every_ns or 0) / SECOND_NS
        newest = self._state.statuses[watched.name].newest_result
        if self._is_settled(watched.name):
            return
        if find_shortage(self.plan, watched, None, self._state.use, self._clock()) is not None:
            return
        with suppress(TimeoutError, PeerBusy):  # a test has the interface or the endpoint: the next probe will do
            result = await find_absence(watched, newest)
            if result is None:
                async with self._locks.hold_for_probe(interface, every_s):
                    result = await probe_peer(watched)
            is_tested = self._state.statuses[watched.name].running_since_s is not None
            if not is_tested and not self._is_settled(watched.name):  # a test that began meanwhile tells more
                await self._emit(ProbeEnded(self._clock(), watched.name, result))

    def _is_settled(self, name: str) -> bool:
        """Return whether a peer's result lasts until somebody acts: the next test will tell."""
        newest = self._state.statuses[name].newest_result
        return newest is not None and newest.is_lasting

    async def _is_too_dear(self, watched: WatchedPeer, cycle_s: float) -> bool:
        """Skip a test if a budget lacks room for it, and return whether it did; a notice says so once a month."""
        shortage = self._find_shortage(watched)
        if shortage is None:
            return False
        now_s = self._clock()
        if shortage.peer not in self._state.use.at(now_s).told:
            await self._emit(shortage.notice(now_s))
        await self._emit(CheckSkipped(now_s, watched.name, cycle_s, SkipReason.BUDGET))
        return True

    def _find_shortage(self, watched: WatchedPeer, ended: CheckEnded | None = None) -> Shortage | None:
        """Return the budget that lacks room for the next test of a peer; `ended` is not in the journal yet."""
        state = self._state
        use = state.use if ended is None else state.use.after(ended)
        last = [*state.statuses[watched.name].recent, *([] if ended is None else [ended])]
        return find_shortage(self.plan, watched, expected_cost(watched, last), use, self._clock())

    async def _reload(self, plan: WatchPlan) -> None:
        if plan.name != self.plan.name:
            self.report(f"the watch keeps its name {self.plan.name} until it is restarted")
            plan = WatchPlan(self.plan.name, plan.peers, plan.notify, plan.budget_bytes)
        self._state.add_peers(plan)
        for peer in plan.peers:
            before = self.plan.find(peer.name)
            if before is None or check_times(before) != check_times(peer):
                self._timed_since[peer.name] = self._clock()
        self.plan = plan
        self._start_peers()  # first: without any peer the watch would end
        await self._emit(WatchStarted(self._clock(), tuple(peer.name for peer in plan.peers)))
        self._notifier.check(plan.notify)
        for name in list(self._wakes):
            self._wake(name)

    def _tell(self) -> None:
        """Send the news that is due to the receivers of the plan."""
        last = {name: status.last_check for name, status in self.statuses.items()}
        due = self._state.news.take_due(self.plan.notify, last, self._clock(), self._notifier.room)
        for news in due.known:
            self._note_told(news)
        for news in due.send:
            self._notifier.send(self.plan, news, self._state.news.who_has(news))

    async def _tell_in_time(self) -> None:
        """Tell what quiet hours have held back, and repeat, if no event comes at that moment."""
        while True:
            await asyncio.sleep(_TELL_EVERY_S)
            self._tell()

    async def _emit(self, event: WatchEvent) -> None:
        await self.events.emit(event, self.plan)

    def _note_told(self, news: News, receiver: Receiver | None = None, missed: tuple[Receiver, ...] = ()) -> None:
        """Write to the journal that a notification was sent or given up: a restart does not send it again."""
        self._spawn(self._emit(told(news, self._clock(), receiver, missed)), self._others)

    async def _sleep(self, name: str, seconds: float) -> None:
        """Wait for some seconds, or until the user wants the peer tested now."""
        wake = self._wakes[name] = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await wake.wait()

    def _wake(self, name: str) -> None:
        if (wake := self._wakes.get(name)) is not None:
            wake.set()
