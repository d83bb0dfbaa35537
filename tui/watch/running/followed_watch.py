"""A watch that another process carries out, followed by its journal: nothing is tested, and nothing is written.

It has the events and the statuses of the watch, a moment later: the user sees what a service does, or did until it
ended.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from ....engine.host.event_loop import call_in_thread
from ....engine.model.plan import SECOND_NS
from ....engine.results.run_log import RunLog
from ....engine.results.run_log.process_locks import FOLDER, is_claimed
from ....watch.data_budget import MonthUse
from ....watch.events import ProbeEnded, WatchEvent, WatchNotice, WatchStarted
from ....watch.schedule import check_times, probe_times
from ....watch.watch_plan import WatchedPeer, WatchPlan
from ....watch.watch_state import PeerStatus, WatchState
from .peer_probe import can_be_probed
from .watch_journal import WatchJournal

_LOOK_EVERY_S: Final = 1.0
_LAST_EVENTS: Final = 200  # earlier ones, for the list of events
_RUNNING: Final = "another process carries this watch out; this shows its journal"
_NOT_RUNNING: Final = "no process carries this watch out now; this shows what its journal has"


@asynccontextmanager
async def follow_watch(
    plan: WatchPlan, *, log: RunLog, clock: Callable[[], float] = time.time
) -> AsyncGenerator["FollowedWatch"]:
    """Follow the watch of a plan's name; the block ends that. The watch may be running or not.

    Raises RunLogError if the journal cannot be read.
    """
    journal = WatchJournal(log, plan.group)
    try:
        watch = FollowedWatch(plan, journal, log.path.parent / FOLDER, clock)
        await watch.begin()
        yield watch
    finally:
        journal.close()


class FollowedWatch:
    """A watch of another process. Iterate over it once: its last events, then each new one, until `stop`.

    `WatchEnded` is not the last event: the watch may begin again.
    """

    is_elsewhere: bool = True

    def __init__(self, plan: WatchPlan, journal: WatchJournal, locks: Path, clock: Callable[[], float]) -> None:
        self.plan = plan
        self._journal, self._locks, self._clock = journal, locks, clock
        self._state = WatchState()
        self._number = 0
        self._is_running: bool | None = None
        self._waiting: deque[WatchEvent] = deque()
        self._stopped = asyncio.Event()

    async def begin(self) -> None:
        """Read the journal."""
        self._state.add_peers(self.plan)
        events = await self._read()
        shown = [event for event in events if not isinstance(event, ProbeEnded)]
        self._waiting.extend(shown[-_LAST_EVENTS:])
        self._waiting.extend(self._note_whether_it_runs())
        self._note_other_peers(events)

    @property
    def statuses(self) -> Mapping[str, PeerStatus]:
        """What is known of each peer, in the plan's order."""
        return {peer.name: self._with_due_times(peer) for peer in self.plan.peers}

    @property
    def use(self) -> MonthUse:
        """The data of this month's tests and probes."""
        return self._state.use

    def __aiter__(self) -> AsyncIterator[WatchEvent]:
        return self

    async def __anext__(self) -> WatchEvent:
        """Return the next event, as soon as the journal has it. Raises RunLogError."""
        while not self._waiting:
            await self._pause()
            if self._stopped.is_set():
                raise StopAsyncIteration
            notices = self._note_whether_it_runs()
            events = await self._read()
            # The notice of a beginning comes before its events, the notice of an end after them.
            self._waiting.extend([*notices, *events] if self._is_running else [*events, *notices])
            self._note_other_peers(events)
        return self._waiting.popleft()

    def check_now(self, name: str) -> None:
        """Do nothing: only the process that carries the watch out begins tests."""

    def reload(self, plan: WatchPlan) -> None:
        """Show the watch by another plan from now on. Its own process reads the file at SIGHUP."""
        if plan.name != self.plan.name:
            self.report(f"this shows the watch {self.plan.name}; the file is now for the watch {plan.name}")
        self.plan = replace(plan, name=self.plan.name)
        self._state.add_peers(self.plan)

    def report(self, text: str) -> None:
        """Add a notice for the user to the events."""
        self._waiting.append(WatchNotice(self._clock(), text))

    def stop(self) -> None:
        """Stop following. The watch goes on."""
        self._stopped.set()
        self._waiting.clear()

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_EVERY_S):
                await self._stopped.wait()

    async def _read(self) -> list[WatchEvent]:
        """Take in the events since the last reading, and return them."""
        events, self._number = await call_in_thread(partial(self._journal.read_after, self._number), name="journal")
        for event in events:
            self._state.apply(event)
        return events

    def _note_whether_it_runs(self) -> list[WatchEvent]:
        """Return a notice if the watch has begun to run, or has ended."""
        before, self._is_running = self._is_running, is_claimed(self._locks, self.plan.group)
        if self._is_running is before:
            return []
        return [WatchNotice(self._clock(), _RUNNING if self._is_running else _NOT_RUNNING)]

    def _note_other_peers(self, events: list[WatchEvent]) -> None:
        """Report that the watch has begun with other peers than this plan has."""
        peers = next((event.peers for event in reversed(events) if isinstance(event, WatchStarted)), None)
        if peers is not None and set(peers) != {peer.name for peer in self.plan.peers}:
            self.report("the watch has other peers than this file: reload the watch, or what is shown here")

    def _with_due_times(self, peer: WatchedPeer) -> PeerStatus:
        """Return the status of a peer, with the times of its next test and probe."""
        status = self._state.statuses[peer.name]
        if not self._is_running or not self._state.has_peer(peer.name):
            return replace(status, running_since_s=None, next_check_s=None, next_probe_s=None)
        return replace(status, next_check_s=self._next_check_s(peer, status), next_probe_s=self._next_probe_s(peer))

    def _next_check_s(self, peer: WatchedPeer, status: PeerStatus) -> float:
        last, pending = status.last_attempt, status.undecided
        if last is not None and pending is not None and not last.decides and last.cycle_s == pending[0]:
            return last.at_s + peer.timing.retest_after_ns / SECOND_NS
        return check_times(peer).next_due_s(status.cycle_s, self._clock())

    def _next_probe_s(self, peer: WatchedPeer) -> float | None:
        times = probe_times(peer)
        return None if times is None or not can_be_probed(peer.peer) else times.following_s(self._clock())
