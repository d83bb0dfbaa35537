"""The journal of a watch: an event is in it before the state, the observers and the reader get the event.

So nothing that a user has seen is lost, and a restart goes on as if the watch had not stopped. On a full disk the
newest events wait in memory, and the reader is told.

A test has two entries, its beginning and its end. If the end is missing, the program was killed between them. Then
the test counts if the run log has the run with a regular end, else its cycle is due again.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from ....engine.host.event_loop import call_in_thread
from ....engine.model.errors import RunLogError, RunLogFull, RunLogLocked, UnknownRun, WorkerError
from ....engine.model.plan import SECOND_NS
from ....engine.results.run_log import RunLog
from ....engine.results.run_log.journal import Journal
from ....engine.results.run_result import RunResult
from ....presets.verdict import NO_LIMITS, AcceptanceLimits
from ....watch.event_codec import UnreadEntry, event_text, keep_until_s, read_events
from ....watch.events import CheckBegan, CheckEnded, CheckResult, ProbeEnded, WatchEnded, WatchEvent, WatchNotice
from ....watch.watch_plan import WatchPlan
from ....watch.watch_state import WatchState, decides_cycle
from ...session.stored_run import load_stored_run
from .peer_test import result_of_run

_PRUNE_EVERY_S: Final = 86_400.0
_LOOK_EVERY_S: Final = 3_600.0
_LOCKED_S: Final = 3_600.0
"""How long a watch waits for another process that has locked the run log."""
_MOST_UNWRITTEN: Final = 10_000  # on a full disk: a week of one peer with a probe a minute


class WatchJournal:
    """The journal of a watch on the disk. Every method waits for the disk, and raises RunLogError."""

    def __init__(self, log: RunLog, name: str) -> None:
        self._log = log
        self._journal = Journal(log.path, name)

    def read(self, plan: WatchPlan) -> WatchState:
        """Return the state after all entries. It has the reasons for those that cannot be read."""
        state = WatchState()
        for item in read_events(self._journal.entries()):
            if isinstance(item, UnreadEntry):
                state.unread.append(item.reason)
                continue
            state.recall(item)
        state.add_peers(plan)
        return state

    def read_after(self, number: int) -> tuple[list[WatchEvent], int]:
        """Return the readable events after the one of a number, and the number of the last one."""
        entries = list(self._journal.entries(number))
        events = [event for event in read_events(entries) if not isinstance(event, UnreadEntry)]
        return events, entries[-1].number if entries else number

    def append(self, events: Sequence[WatchEvent], plan: WatchPlan) -> None:
        """Append events of a watch by this plan, all of them or none. After that they are on the disk."""
        self._journal.append_all(
            [(event_text(event), keep_until_s(event, _probe_every_s(event, plan))) for event in events]
        )

    def prune(self, now_s: float) -> None:
        """Forget the entries whose time is over."""
        self._journal.prune(now_s)

    def find_result(self, run_id: str, limits: AcceptanceLimits = NO_LIMITS) -> CheckResult | None:
        """Return the result of a run that has ended regularly, by its peer's limits; None for any other run."""
        try:
            record = self._log.find(run_id)
        except UnknownRun:
            return None
        if record.run_id != run_id or record.reason is None or not record.reason.is_regular:
            return None
        if record.document is not None:
            return result_of_run(RunResult.of(record.document), run_id, limits)
        try:  # the end of a run is written before its document: a kill can come in between
            return result_of_run(load_stored_run(self._log, record).outcome.result, run_id, limits)
        except RunLogError:  # its entries are damaged: the watch repeats the test
            return None

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()


def _probe_every_s(event: WatchEvent, plan: WatchPlan) -> float | None:
    watched = plan.find(event.peer) if isinstance(event, ProbeEnded) else None
    every_ns = None if watched is None else watched.timing.probe_every_ns
    return None if every_ns is None else every_ns / SECOND_NS


def adopted_ends(
    begun: Iterable[CheckBegan], journal: WatchJournal, plan: WatchPlan, now_s: float
) -> list[CheckEnded]:
    """Return the ends of tests that were cut off although their run had ended. Raises RunLogError."""
    ends: list[CheckEnded] = []
    for each in begun:
        watched = plan.find(each.peer)
        result = journal.find_result(each.run_id, NO_LIMITS if watched is None else watched.limits)
        if result is None:
            continue
        retests = 0 if watched is None else watched.timing.retests
        decides = decides_cycle(result, each.attempt, retests)
        ends.append(CheckEnded(now_s, each.peer, each.cycle_s, each.attempt, result, decides))
    return ends


class CommittedEvents:
    """Commits the events of a watch, and passes them on. Iterate over it once: `WatchEnded` is the last event.

    Args:
        journal: the journal.
        state: takes each event in.
        clock: the time, in seconds since 1970.
        stopping: set when the watch is to end: from then on it does not wait for a locked run log.
    """

    def __init__(
        self, journal: WatchJournal, state: WatchState, clock: Callable[[], float], stopping: asyncio.Event
    ) -> None:
        self._journal, self._state, self._clock, self._stopping = journal, state, clock, stopping
        self._queue: asyncio.Queue[WatchEvent | Exception] = asyncio.Queue()
        self._observers: list[Callable[[WatchEvent], None]] = []
        self._writing = asyncio.Lock()
        self._unwritten: tuple[WatchEvent, ...] = ()
        self._is_over = False

    def subscribe(self, observe: Callable[[WatchEvent], None]) -> None:
        """Pass each event from now on to a function as well, before the reader gets it."""
        self._observers.append(observe)

    def __aiter__(self) -> "CommittedEvents":
        return self

    async def __anext__(self) -> WatchEvent:
        """Return the next event; raise the error that ended the watch."""
        if self._is_over:
            raise StopAsyncIteration
        event = await self._queue.get()
        if isinstance(event, Exception):
            self._is_over = True
            raise event
        self._is_over = isinstance(event, WatchEnded)
        return event

    def fail(self, error: Exception) -> None:
        """Give the reader an error as its last event."""
        self._queue.put_nowait(error)

    @property
    def is_behind(self) -> bool:
        """Whether the disk has no room for events that have happened."""
        return bool(self._unwritten)

    async def emit(self, event: WatchEvent, plan: WatchPlan) -> None:
        """Commit an event of a watch by a plan, take it in, and pass it on. Raises RunLogError.

        The changes of level that it completes are committed with it.
        """
        # Shielded: an event that is in the journal must also be in the state, and reach the reader.
        await asyncio.shield(asyncio.ensure_future(self._commit(event, plan)))

    async def _commit(self, event: WatchEvent, plan: WatchPlan) -> None:
        async with self._writing:
            events = (event, *self._state.find_changes(event))
            await self._append(events, plan)
            for each in events:
                self._state.apply(each)
                for observe in self._observers:
                    observe(each)
                self._queue.put_nowait(each)

    async def prune_daily(self, get_plan: Callable[[], WatchPlan], first_s: float) -> None:
        """Let the journal forget what is too old, each day from a time on. It keeps the sums of the month."""
        await asyncio.sleep(first_s)
        while True:
            since_s, now_s = self._state.unpruned_since_s, self._clock()
            if since_s is not None and now_s - since_s >= _PRUNE_EVERY_S:
                await self.emit(self._state.use.as_event(now_s), get_plan())
                if not self.is_behind:
                    with suppress(RunLogFull, WorkerError):
                        await call_in_thread(lambda: self._journal.prune(self._clock()), name="journal")
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _append(self, events: tuple[WatchEvent, ...], plan: WatchPlan) -> None:
        """Append events to the journal, after those that could not be written; wait for a locked run log."""
        began_s, has_told = time.monotonic(), False
        events = (*self._unwritten, *events)
        while True:
            try:
                await call_in_thread(partial(self._journal.append, events, plan), name="journal")
            except RunLogLocked as error:
                if self._stopping.is_set() or time.monotonic() - began_s > _LOCKED_S:
                    raise
                if not has_told:
                    self._tell_reader(f"{error}; the watch waits for it")
                has_told = True
            except (RunLogFull, WorkerError) as error:  # WorkerError: there is no thread for it
                if not self._unwritten:
                    self._tell_reader(f"{error}; the watch goes on, and writes its events once that is possible")
                self._unwritten = events[-_MOST_UNWRITTEN:]
                return
            else:
                if self._unwritten:
                    self._tell_reader(
                        f"the run log can be written again; the {len(events)} events that waited are in it"
                    )
                self._unwritten = ()
                return

    def _tell_reader(self, text: str) -> None:
        """Give a notice to the reader alone: the journal cannot be written."""
        self._queue.put_nowait(WatchNotice(self._clock(), text))
