"""Events of a watch are in its journal before anyone gets them, and wait for a run log that is locked."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import RunLogLocked
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.services.watch.committed_events import CommittedEvents
from linkgauge.tui.services.watch.stored_watch import StoredWatch, WatchState
from linkgauge.watch.events import WatchEnded, WatchEvent, WatchNotice
from linkgauge.watch.watch_plan import WatchedPeer, WatchPlan

from ....watch.event_examples import NOON_S, ended, probed

PLAN = WatchPlan("office", (WatchedPeer("db-1", Peer("db-1.example.com"), Plan(duration_ns=SECOND_NS)),))


@pytest.fixture
def stored(tmp_path: Path) -> StoredWatch:
    """Give a journal."""
    return StoredWatch(RunLog.open(tmp_path), PLAN.group)


@contextmanager
def locked(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Have the run log locked as another process does, until the block ends."""
    with closing(sqlite3.connect(tmp_path / "runs.sqlite3", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield database


async def test_an_event_is_in_the_journal_and_the_state_before_anyone_gets_it(stored: StoredWatch) -> None:
    """The last one ends the reading."""
    state, seen = WatchState(), list[tuple[WatchEvent, int, int]]()
    events = CommittedEvents(stored, state, lambda: NOON_S, asyncio.Event())
    events.subscribe(
        lambda event: seen.append((event, len(stored.read_after(0)[0]), sum(state.statuses["db-1"].checks)))
    )
    await events.emit((ended(), probed()), PLAN)
    await events.emit((WatchEnded(NOON_S),), PLAN)
    assert seen == [(ended(), 2, 1), (probed(), 2, 1), (WatchEnded(NOON_S), 3, 1)]
    assert [await events.read() for _ in range(3)] == [ended(), probed(), WatchEnded(NOON_S)]
    with pytest.raises(StopAsyncIteration):
        await events.read()


async def test_an_error_is_the_last_thing_that_the_reader_gets(stored: StoredWatch) -> None:
    """After the events that were there before it."""
    events = CommittedEvents(stored, WatchState(), lambda: NOON_S, asyncio.Event())
    await events.emit((ended(),), PLAN)
    events.fail(ArithmeticError("no such kind was expected"))
    assert await events.read() == ended()
    with pytest.raises(ArithmeticError):
        await events.read()
    with pytest.raises(StopAsyncIteration):
        await events.read()


@pytest.mark.every
async def test_a_run_log_that_is_locked_delays_events_and_loses_none(stored: StoredWatch, tmp_path: Path) -> None:
    """SQLite itself waits for ten seconds; then the reader is told, once."""
    await asyncio.to_thread(stored.append, [probed()], PLAN)
    events = CommittedEvents(stored, WatchState(), lambda: NOON_S, asyncio.Event())
    async with asyncio.timeout(60):
        with locked(tmp_path) as database:
            emitting = asyncio.create_task(events.emit((ended(),), PLAN))
            told = await events.read()
            assert isinstance(told, WatchNotice)
            assert "another process has locked it" in told.text
            assert not emitting.done()
            database.execute("COMMIT")
        await emitting
    assert await events.read() == ended()
    assert stored.read_after(0)[0] == [probed(), ended()]


@pytest.mark.every
async def test_a_watch_that_ends_does_not_wait_for_a_locked_run_log(stored: StoredWatch, tmp_path: Path) -> None:
    """No longer than SQLite does."""
    await asyncio.to_thread(stored.append, [probed()], PLAN)
    stopping = asyncio.Event()
    stopping.set()
    events = CommittedEvents(stored, WatchState(), lambda: NOON_S, stopping)
    async with asyncio.timeout(60):
        with locked(tmp_path), pytest.raises(RunLogLocked):
            await events.emit((ended(),), PLAN)
