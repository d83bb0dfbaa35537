"""A watch that another process carries out, followed by its journal: nothing is tested, and nothing is written.

It has the events and the statuses that the watch itself has, a moment later: a person sees what a service does, or
what it did until it ended.
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
from ....watch.events import ProbeEnded, WatchEvent, WatchNotice, WatchStarted
from ....watch.peer_status import PeerStatus
from ....watch.schedule import check_times, probe_times
from ....watch.watch_plan import WatchedPeer, WatchPlan
from .latency_probe import can_be_probed
from .stored_watch import StoredWatch, WatchState

_LOOK_EVERY_S: Final = 1.0
_LAST_EVENTS: Final = 200  # of before, for the list of events
_RUNNING: Final = "another process carries this watch out; this shows its journal"
_NOT_RUNNING: Final = "no process carries this watch out now; this shows what its journal has"


@asynccontextmanager
async def follow_watch(
    plan: WatchPlan, *, log: RunLog, clock: Callable[[], float] = time.time
) -> AsyncGenerator["FollowedWatch"]:
    """Follow the watch of a plan's name; the block ends that. The watch may be running or not.

    Raises RunLogError where the journal cannot be read.
    """
    stored = StoredWatch(log, plan.group)
    try:
        watch = FollowedWatch(plan, stored, log.path.parent / FOLDER, clock)
        await watch.begin()
        yield watch
    finally:
        stored.close()


class FollowedWatch:
    """A watch of another process. Iterate over it once: its last events, then each new one, until `stop`.

    `WatchEnded` is not the last event: the watch may begin again.
    """

    is_elsewhere: bool = True

    def __init__(self, plan: WatchPlan, stored: StoredWatch, locks: Path, clock: Callable[[], float]) -> None:
        self.plan = plan
        self._stored, self._locks, self._clock = stored, locks, clock
        self._state = WatchState()
        self._number = 0
        self._is_running: bool | None = None
        self._waiting: deque[WatchEvent] = deque()
        self._stopped = asyncio.Event()

    async def begin(self) -> None:
        """Read what the journal has."""
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
            # A beginning is told before what it brings, an end after it.
            self._waiting.extend([*notices, *events] if self._is_running else [*events, *notices])
            self._note_other_peers(events)
        return self._waiting.popleft()

    def check_now(self, name: str) -> None:
        """Do nothing: the process that carries the watch out begins its tests."""

    def reload(self, plan: WatchPlan) -> None:
        """Show the watch by another plan from now on. Its own process reads the file at SIGHUP."""
        if plan.name != self.plan.name:
            self.report(f"this shows the watch {self.plan.name}; the file has that of {plan.name} now")
        self.plan = replace(plan, name=self.plan.name)
        self._state.add_peers(self.plan)

    def report(self, text: str) -> None:
        """Add a notice for a person to the events."""
        self._waiting.append(WatchNotice(self._clock(), text))

    def stop(self) -> None:
        """Follow no more. The watch goes on."""
        self._stopped.set()
        self._waiting.clear()

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_EVERY_S):
                await self._stopped.wait()

    async def _read(self) -> list[WatchEvent]:
        """Take in what the journal has since the last time, and return it."""
        events, self._number = await call_in_thread(partial(self._stored.read_after, self._number), name="journal")
        for event in events:
            self._state.apply(event)
        return events

    def _note_whether_it_runs(self) -> list[WatchEvent]:
        """Return a notice where the watch has begun to be carried out, or has ended."""
        before, self._is_running = self._is_running, is_claimed(self._locks, self.plan.group)
        if self._is_running is before:
            return []
        return [WatchNotice(self._clock(), _RUNNING if self._is_running else _NOT_RUNNING)]

    def _note_other_peers(self, events: list[WatchEvent]) -> None:
        """Say so where the watch has begun with other peers than those of the plan."""
        peers = next((event.peers for event in reversed(events) if isinstance(event, WatchStarted)), None)
        if peers is not None and set(peers) != {peer.name for peer in self.plan.peers}:
            self.report("the watch has other peers than this file: reload the watch, or what is shown here")

    def _with_due_times(self, peer: WatchedPeer) -> PeerStatus:
        """Return what is known of a peer, with the times that its watch computes for itself."""
        status = self._state.statuses[peer.name]
        if not self._is_running or not self._state.has_peer(peer.name):
            return replace(status, running_since_s=None, next_check_s=None, next_probe_s=None)
        return replace(status, next_check_s=self._next_check_s(peer, status), next_probe_s=self._next_probe_s(peer))

    def _next_check_s(self, peer: WatchedPeer, status: PeerStatus) -> float:
        last, pending = status.last_attempt, self._state.attempts.get(peer.name)
        if last is not None and pending is not None and not last.decides and last.cycle_s == pending[0]:
            return last.at_s + peer.timing.retest_after_ns / SECOND_NS
        return check_times(peer).next_due_s(self._state.cycles.get(peer.name), self._clock())

    def _next_probe_s(self, peer: WatchedPeer) -> float | None:
        times = probe_times(peer)
        return None if times is None or not can_be_probed(peer.peer) else times.following_s(self._clock())
