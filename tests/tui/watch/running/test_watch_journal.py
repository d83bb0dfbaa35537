"""Events of a watch are in its journal before anyone gets them, and wait for a run log that is locked."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import RunLogLocked
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.watch.running.watch_journal import CommittedEvents, WatchJournal
from linkgauge.watch.events import (
    ChangeFound,
    CheckResult,
    CheckVerdict,
    Metric,
    ProbeEnded,
    WatchEnded,
    WatchEvent,
    WatchNotice,
)
from linkgauge.watch.watch_plan import WatchedPeer, WatchPlan
from linkgauge.watch.watch_state import WatchState

from ....watch.event_examples import NOON_S, ended, probed

PLAN = WatchPlan("office", (WatchedPeer("db-1", Peer("db-1.example.com"), Plan(duration_ns=SECOND_NS)),))


@pytest.fixture
def journal(tmp_path: Path) -> WatchJournal:
    """Give a journal."""
    return WatchJournal(RunLog.open(tmp_path), PLAN.group)


@contextmanager
def locked(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Lock the run log until the block ends, as another process would."""
    with closing(sqlite3.connect(tmp_path / "runs.sqlite3", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield database


async def test_an_event_is_in_the_journal_and_the_state_before_anyone_gets_it(journal: WatchJournal) -> None:
    """The last one ends the reading."""
    state, seen = WatchState(), list[tuple[WatchEvent, int, int]]()
    events = CommittedEvents(journal, state, lambda: NOON_S, asyncio.Event())
    events.subscribe(
        lambda event: seen.append((event, len(journal.read_after(0)[0]), sum(state.statuses["db-1"].checks)))
    )
    for event in (ended(), probed(), WatchEnded(NOON_S)):
        await events.emit(event, PLAN)
    assert seen == [(ended(), 1, 1), (probed(), 2, 1), (WatchEnded(NOON_S), 3, 1)]
    assert [event async for event in events] == [ended(), probed(), WatchEnded(NOON_S)]
    assert [event async for event in events] == []


async def test_a_change_of_level_is_committed_with_the_result_that_completes_it(journal: WatchJournal) -> None:
    """A restart has both or none."""
    seen: list[int] = []
    events = CommittedEvents(journal, WatchState(), lambda: NOON_S, asyncio.Event())
    events.subscribe(lambda _event: seen.append(len(journal.read_after(0)[0])))
    for number in range(60):
        latency_s = 0.001 if number < 40 else 0.009
        result = CheckResult(CheckVerdict.GOOD, 400, ((Metric.LATENCY_S, latency_s),))
        await events.emit(ProbeEnded(NOON_S + number, "db-1", result), PLAN)
    journal = journal.read_after(0)[0]
    (change,) = (number for number, event in enumerate(journal) if isinstance(event, ChangeFound))
    assert isinstance(journal[change - 1], ProbeEnded)
    assert seen[change - 1] == seen[change] == change + 1


async def test_an_error_is_the_last_thing_that_the_reader_gets(journal: WatchJournal) -> None:
    """After all earlier events."""
    events = CommittedEvents(journal, WatchState(), lambda: NOON_S, asyncio.Event())
    await events.emit(ended(), PLAN)
    events.fail(ArithmeticError("no such kind was expected"))
    assert await anext(events) == ended()
    with pytest.raises(ArithmeticError):
        await anext(events)
    assert [event async for event in events] == []


@pytest.mark.every
async def test_a_run_log_that_is_locked_delays_events_and_loses_none(journal: WatchJournal, tmp_path: Path) -> None:
    """SQLite itself waits for ten seconds; then the reader is told, once."""
    await asyncio.to_thread(journal.append, [probed()], PLAN)
    events = CommittedEvents(journal, WatchState(), lambda: NOON_S, asyncio.Event())
    async with asyncio.timeout(60):
        with locked(tmp_path) as database:
            emitting = asyncio.create_task(events.emit(ended(), PLAN))
            told = await anext(events)
            assert isinstance(told, WatchNotice)
            assert "another process has locked it" in told.text
            assert not emitting.done()
            database.execute("COMMIT")
        await emitting
    assert await anext(events) == ended()
    assert journal.read_after(0)[0] == [probed(), ended()]


@pytest.mark.every
async def test_a_watch_that_ends_does_not_wait_for_a_locked_run_log(journal: WatchJournal, tmp_path: Path) -> None:
    """No longer than SQLite does."""
    await asyncio.to_thread(journal.append, [probed()], PLAN)
    stopping = asyncio.Event()
    stopping.set()
    events = CommittedEvents(journal, WatchState(), lambda: NOON_S, stopping)
    async with asyncio.timeout(60):
        with locked(tmp_path), pytest.raises(RunLogLocked):
            await events.emit(ended(), PLAN)


_FULL_DISK = """
import asyncio, json, sys
from itertools import count
from pathlib import Path
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.watch.running.watch_journal import CommittedEvents, WatchJournal
from linkgauge.watch.watch_state import WatchState
from linkgauge.watch.events import CheckResult, CheckVerdict, ProbeEnded, WatchEnded, WatchNotice
from linkgauge.watch.watch_plan import WatchedPeer, WatchPlan
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan

PLAN = WatchPlan("office", (WatchedPeer("db-1", Peer("db-1.example.com"), Plan(duration_ns=SECOND_NS)),))

async def main(folder):
    journal = WatchJournal(RunLog.open(folder), PLAN.group)
    events, told = CommittedEvents(journal, WatchState(), lambda: 1e9, asyncio.Event()), []
    times = count(1e9)
    async def probe():
        await events.emit(ProbeEnded(next(times), "db-1", CheckResult(CheckVerdict.GOOD, 400)), PLAN)
    await probe()
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    while not events.is_behind:
        await probe()
    for _ in range(20):
        await probe()
    filler.unlink()
    await probe()
    await events.emit(WatchEnded(2e9), PLAN)
    seen = [event async for event in events]
    notices = [event.text for event in seen if isinstance(event, WatchNotice)]
    kept = [event for event in seen if not isinstance(event, WatchNotice)]
    print(json.dumps([notices, kept == journal.read_after(0)[0], len(kept)]))

asyncio.run(main(Path(sys.argv[1])))
"""


def test_a_full_disk_delays_the_journal_and_does_not_end_the_watch(tmp_path: Path) -> None:
    """The reader is told once, and once more when the journal has all events, in their order."""
    script = 'mount -t tmpfs -o size=900k none "$1" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        ["/usr/bin/env", "unshare", "-rm", "sh", "-c", script, "sh", tmp_path, sys.executable, _FULL_DISK],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    (full, again), is_whole, number = json.loads(done.stdout)
    assert "the disk is full; free space on it" in full
    assert "events that waited are in it" in again
    assert is_whole
    assert number > 22
