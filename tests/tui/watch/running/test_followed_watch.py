"""A watch of another process, seen by its journal: the same events and statuses; nothing is tested or written."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.results.run_log.process_locks import FOLDER, claim
from linkgauge.tui.watch.running.followed_watch import FollowedWatch, follow_watch
from linkgauge.tui.watch.running.watch_journal import WatchJournal
from linkgauge.watch.events import CheckBegan, CheckVerdict, WatchEnded, WatchEvent, WatchNotice, WatchStarted
from linkgauge.watch.schedule import check_times
from linkgauge.watch.watch_plan import Timing, WatchedPeer, WatchPlan

from ....watch.event_examples import NOON_S, ended, probed

TIMING = Timing(3_600 * SECOND_NS, 60 * SECOND_NS, retest_after_ns=10 * SECOND_NS)
PLAN = WatchPlan(
    "office", (WatchedPeer("db-1", Peer("db-1.example.com"), Plan(duration_ns=SECOND_NS), timing=TIMING),)
)
NOW_S = NOON_S + 60.0


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunLog:
    """Give a run log with locks of its own."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    return RunLog.open(tmp_path)


@pytest.fixture
def journal(log: RunLog) -> WatchJournal:
    """Give the journal that another process writes."""
    return WatchJournal(log, PLAN.group)


@asynccontextmanager
async def following(log: RunLog) -> AsyncGenerator[FollowedWatch]:
    """Follow the watch at a time that stands still."""
    async with follow_watch(PLAN, log=log, clock=lambda: NOW_S) as watch, asyncio.timeout(20):
        yield watch


async def take(watch: FollowedWatch, count: int) -> list[WatchEvent]:
    """Return the next events."""
    return [await anext(watch) for _ in range(count)]


async def test_earlier_and_new_events_are_those_of_the_watch(log: RunLog, journal: WatchJournal) -> None:
    """Earlier probes are not listed, but count. The end of the watch does not end following it."""
    before = [WatchStarted(NOON_S, ("db-1",)), probed(), ended()]
    journal.append(before, PLAN)
    async with following(log) as watch:
        seen = await take(watch, 3)
        assert seen[:2] == [before[0], before[2]]
        assert isinstance(seen[2], WatchNotice)
        assert "no process carries this watch out" in seen[2].text
        after = [WatchEnded(NOON_S + 1), WatchStarted(NOON_S + 2, ("db-1",)), probed(NOON_S + 3)]
        journal.append(after, PLAN)
        assert await take(watch, 3) == after
        assert dict(watch.statuses) == journal.read(PLAN).statuses
        watch.stop()
        assert [event async for event in watch] == []


@pytest.mark.every
async def test_due_times_are_those_of_a_watch_that_runs(log: RunLog, journal: WatchJournal) -> None:
    """A lock says whether the watch runs. If it does not, nothing is due and no test goes on."""
    times = check_times(PLAN.peers[0])
    held = claim(log.path.parent / FOLDER, PLAN.group)
    assert held is not None
    last = replace(ended(), cycle_s=times.newest_s(NOON_S))
    journal.append([WatchStarted(NOON_S, ("db-1",)), last], PLAN)
    async with following(log) as watch:
        assert "another process carries this watch out" in str((await take(watch, 3))[2])
        assert watch.statuses["db-1"].next_check_s == times.following_s(NOON_S)
        assert NOW_S < (watch.statuses["db-1"].next_probe_s or 0) < NOW_S + 120
        below = replace(ended(CheckVerdict.BELOW, decides=False, at_s=NOW_S), cycle_s=times.following_s(NOON_S))
        began = CheckBegan(NOW_S, "db-1", below.cycle_s, 0, "20251122-120000-abcd")
        journal.append([began], PLAN)
        await take(watch, 1)
        assert watch.statuses["db-1"].running_since_s == NOW_S
        journal.append([below], PLAN)
        await take(watch, 1)
        assert watch.statuses["db-1"].next_check_s == NOW_S + 10
        journal.append([replace(began, attempt=1)], PLAN)
        await take(watch, 1)
        os.close(held)
        assert "no process carries" in str(await anext(watch))
        status = watch.statuses["db-1"]
        assert (status.running_since_s, status.next_check_s, status.next_probe_s) == (None, None, None)


async def test_following_writes_nothing_and_takes_no_lock(
    log: RunLog, journal: WatchJournal, tmp_path: Path
) -> None:
    """The watch may begin meanwhile. A test that the user asks for here does not begin."""
    journal.append([ended()], PLAN)
    async with following(log) as watch:
        await take(watch, 2)
        watch.check_now("db-1")
        watch.report("not reloaded: no such file")
        assert [event.text for event in await take(watch, 1) if isinstance(event, WatchNotice)] == [
            "not reloaded: no such file"
        ]
        assert not (tmp_path / FOLDER).exists()
        held = claim(tmp_path / FOLDER, PLAN.group)
        assert held is not None
        os.close(held)
    assert journal.read_after(0)[0] == [ended()]


async def test_another_plan_of_the_file_changes_what_is_shown(log: RunLog, journal: WatchJournal) -> None:
    """The watch stays the same, and a notice says so."""
    journal.append([ended()], PLAN)
    async with following(log) as watch:
        await take(watch, 2)
        watch.reload(WatchPlan("other", (replace(PLAN.peers[0], name="db-9"),)))
        assert watch.plan.name == "office"
        assert list(watch.statuses) == ["db-9"]
        assert "this shows the watch office; the file is now for the watch other" in str(await anext(watch))


async def test_peers_that_the_watch_does_not_have_are_not_due(log: RunLog, journal: WatchJournal) -> None:
    """The file was changed, and the watch has not read it yet."""
    held = claim(log.path.parent / FOLDER, PLAN.group)
    assert held is not None
    journal.append([WatchStarted(NOON_S, ("db-2",))], PLAN)
    async with following(log) as watch:
        assert "the watch has other peers than this file" in str((await take(watch, 3))[2])
        assert watch.statuses["db-1"].next_check_s is None
        journal.append([WatchStarted(NOON_S + 1, ("db-1",))], PLAN)
        assert await take(watch, 1) == [WatchStarted(NOON_S + 1, ("db-1",))]
        assert watch.statuses["db-1"].next_check_s is not None
    os.close(held)


async def test_peers_are_due_even_if_the_journal_has_forgotten_the_start(
    log: RunLog, journal: WatchJournal
) -> None:
    """A start is kept for a month, and a service may run for longer."""
    held = claim(log.path.parent / FOLDER, PLAN.group)
    assert held is not None
    journal.append([ended()], PLAN)
    async with following(log) as watch:
        assert watch.statuses["db-1"].next_check_s is not None
    os.close(held)
