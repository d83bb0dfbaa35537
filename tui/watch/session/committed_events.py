"""The events of a watch on their way: into the journal, then into its state, then to observers and the reader.

What a user has seen is not lost: whoever is told of an event can find it in the journal. On a full disk the events
stay in memory meanwhile, the newest of them, and the reader is told so.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from ....engine.host.event_loop import call_in_thread
from ....engine.model.errors import RunLogFull, RunLogLocked
from ....watch.events import WatchEnded, WatchEvent, WatchNotice
from ....watch.watch_plan import WatchPlan
from .stored_watch import StoredWatch, WatchState

_LOCKED_S: Final = 3_600.0
"""For so long a watch waits for another process that has the run log locked."""
_MOST_UNWRITTEN: Final = 10_000  # of a full disk: a week of one peer with a probe a minute


class CommittedEvents:
    """Commits the events of a watch, and passes them on. Iterate over it once: `WatchEnded` is the last event.

    Args:
        stored: the journal.
        state: takes each event in.
        clock: the time, in seconds since 1970.
        stopping: set where the watch is to end, and waits no longer for a locked run log.
    """

    def __init__(
        self, stored: StoredWatch, state: WatchState, clock: Callable[[], float], stopping: asyncio.Event
    ) -> None:
        self._stored, self._state, self._clock, self._stopping = stored, state, clock, stopping
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
        """Return the next event; raise what ended the watch."""
        if self._is_over:
            raise StopAsyncIteration
        event = await self._queue.get()
        if isinstance(event, Exception):
            self._is_over = True
            raise event
        self._is_over = isinstance(event, WatchEnded)
        return event

    def fail(self, error: Exception) -> None:
        """Have the reader get an error as the last thing."""
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

    async def _append(self, events: tuple[WatchEvent, ...], plan: WatchPlan) -> None:
        """Write events down, after those that the disk had no room for; wait for a run log that is locked."""
        began_s, has_told = time.monotonic(), False
        events = (*self._unwritten, *events)
        while True:
            try:
                await call_in_thread(partial(self._stored.append, events, plan), name="journal")
            except RunLogLocked as error:
                if self._stopping.is_set() or time.monotonic() - began_s > _LOCKED_S:
                    raise
                if not has_told:
                    self._tell_reader(f"{error}; the watch waits for it")
                has_told = True
            except RunLogFull as error:
                if not self._unwritten:
                    self._tell_reader(f"{error}; the watch goes on, and writes its events once there is room")
                self._unwritten = events[-_MOST_UNWRITTEN:]
                return
            else:
                if self._unwritten:
                    self._tell_reader(f"the run log has room again; the {len(events)} events that waited are in it")
                self._unwritten = ()
                return

    def _tell_reader(self, text: str) -> None:
        """Give a notice to the reader alone: the journal is what cannot be written."""
        self._queue.put_nowait(WatchNotice(self._clock(), text))
