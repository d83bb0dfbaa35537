"""A watch over real endpoints on loopback: tests, probes, repetitions, restarts, reloads, and its end."""

import asyncio
import json
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from linkgauge.engine.control import handshake
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.errors import UsageError
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.shared_key import SharedKey
from linkgauge.engine.near import connect
from linkgauge.engine.near.run import open_run
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.results.run_log.process_locks import FOLDER
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.verdict import AcceptanceLimits
from linkgauge.tui.watch.running import peer_test
from linkgauge.tui.watch.running.interface_locks import InterfaceLocks
from linkgauge.tui.watch.running.watch_journal import WatchJournal
from linkgauge.tui.watch.running.watch_session import WatchSession, open_watch
from linkgauge.watch.events import (
    ChangeFound,
    CheckBegan,
    CheckEnded,
    CheckResult,
    CheckSkipped,
    ChecksMissed,
    CheckVerdict,
    Level,
    Metric,
    ProbeEnded,
    SkipReason,
    WatchEnded,
    WatchEvent,
    WatchNotice,
    WatchStarted,
)
from linkgauge.watch.schedule import check_times
from linkgauge.watch.watch_plan import Notify, Timing, WatchedPeer, WatchPlan

from ....json_schemas import validator
from .test_notifications import NOTIFICATION

pytestmark = pytest.mark.usefixtures("fork_server")

DEADLINE_S = 40.0
CATALOG = load_catalog()
BRIEF = Plan(duration_ns=SECOND_NS // 2, warmup_ns=0, interval_ns=SECOND_NS // 10, rate_bit_s=20_000_000)
ENDLESS = replace(BRIEF, duration_ns=None)
FULL = replace(BRIEF, rate_bit_s=None)
OUT_OF_REACH = "800gbe-1500"
OFTEN = Timing(SECOND_NS, None, jitter=0.0, retests=0, retest_after_ns=0)
SELDOM = Timing(86_400 * SECOND_NS, None, jitter=0.0, retests=0, retest_after_ns=0)


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the locks of interfaces apart from those of other tests."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """Give a far end in this process, on 127.0.0.1."""
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
        yield Peer(*endpoint.address)


def absent_peer() -> Peer:
    """Return a port of this host that nothing listens on."""
    with listen("127.0.0.1", 0) as listener:
        return Peer(*listener.getsockname())


def watch_of(*peers: WatchedPeer, **options: int) -> WatchPlan:
    """Return a watch of these peers."""
    return WatchPlan("test", peers, **options)


async def read_until(session: WatchSession, is_last: Callable[[WatchEvent], bool]) -> list[WatchEvent]:
    """Return the events up to the first of a kind, and that one."""
    events: list[WatchEvent] = []
    async with asyncio.timeout(DEADLINE_S):
        async for event in session:
            events.append(event)
            if is_last(event):
                break
    return events


def ends(events: list[WatchEvent]) -> list[CheckEnded]:
    """Return the ends of tests among events."""
    return [event for event in events if isinstance(event, CheckEnded)]


async def test_each_peer_is_tested_and_probed_once_and_the_watch_ends(tmp_path: Path, peer: Peer) -> None:
    """The test is an ordinary run with group and label; the probe is not a run."""
    timing = replace(SELDOM, probe_every_ns=60 * SECOND_NS)
    plan = watch_of(WatchedPeer("a", peer, BRIEF, None, timing=timing))
    with RunLog.open(tmp_path) as log:
        async with open_watch(plan, log=log, catalog=CATALOG, once=True) as session:
            events = await read_until(session, lambda event: isinstance(event, WatchEnded))
        kinds = [type(event) for event in events]
        assert kinds == [WatchStarted, ProbeEnded, CheckBegan, CheckEnded, WatchEnded]
        [end] = ends(events)
        assert (end.result.verdict, end.decides) == (CheckVerdict.GOOD, True)
        assert end.result.figure(Metric.GOODPUT_BIT_S) == pytest.approx(20e6, rel=0.5)
        assert end.result.bytes > 0
        [run] = log.list_runs()
        assert (run.run_id, run.group, run.label) == (end.result.run_id, "watch-test", "a")
        status = session.statuses["a"]
        assert status.checks == (1, 0, 0)
        assert status.last_probe is not None
        assert status.last_probe.result.figure(Metric.LATENCY_S) is not None
        # The journal alone leads to the same state.
        assert WatchJournal(log, "watch-test").read(plan).statuses["a"] == status


async def test_a_peer_that_is_down_fails_with_its_sentence_and_others_go_on(tmp_path: Path, peer: Peer) -> None:
    """A failure is repeated like a slow test, and counts then."""
    timing = replace(SELDOM, retests=1)
    plan = watch_of(
        WatchedPeer("down", absent_peer(), BRIEF, "auto", timing=timing),
        WatchedPeer("up", peer, BRIEF, None, timing=timing),
    )
    with RunLog.open(tmp_path) as log:
        async with open_watch(plan, log=log, catalog=CATALOG, once=True) as session:
            events = await read_until(session, lambda event: isinstance(event, WatchEnded))
    down = [end for end in ends(events) if end.peer == "down"]
    assert [(end.attempt, end.decides, end.result.verdict) for end in down] == [
        (0, False, CheckVerdict.FAILED),
        (1, True, CheckVerdict.FAILED),
    ]
    assert "nothing listens" in (down[0].result.detail or "")
    assert [end.result.verdict for end in ends(events) if end.peer == "up"] == [CheckVerdict.GOOD]


async def test_a_test_waits_for_its_turn_at_the_endpoint(
    tmp_path: Path, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not refused, and does not measure beside the other test: the interface is free for others meanwhile."""
    monkeypatch.setattr(peer_test, "_TURN_NS", SECOND_NS // 10)
    monkeypatch.setattr(peer_test, "_TURN_PAUSE_S", 0.1)
    monkeypatch.setattr(peer_test, "_LEAST_PAUSE_S", 0.1)
    plan = watch_of(WatchedPeer("a", peer, BRIEF, None, timing=replace(SELDOM, check_every_ns=60 * SECOND_NS)))
    with RunLog.open(tmp_path) as log:
        async with open_run(ENDLESS, peer) as beside:
            await anext(aiter(beside))
            async with open_watch(plan, log=log, catalog=CATALOG, once=True) as session:
                events = await read_until(session, lambda event: isinstance(event, WatchNotice))
                async with InterfaceLocks(tmp_path / FOLDER).hold_for_test("lo", DEADLINE_S):
                    beside.stop()
                    async for _ in beside:
                        pass
                events += await read_until(session, lambda event: isinstance(event, WatchEnded))
    notices = [event.text for event in events if isinstance(event, WatchNotice)]
    assert len(notices) == 1
    assert "busy with 1 other test" in notices[0]
    (end,) = ends(events)
    assert (end.attempt, end.result.verdict, end.decides) == (0, CheckVerdict.GOOD, True)


async def test_a_test_that_gets_no_turn_for_a_period_is_skipped(tmp_path: Path, peer: Peer) -> None:
    """Unless it is to be shared: then it is tested beside the other one."""
    timing = replace(OFTEN, check_every_ns=2 * SECOND_NS)
    with RunLog.open(tmp_path) as log:
        async with open_run(ENDLESS, peer) as beside:
            await anext(aiter(beside))
            results: list[WatchEvent] = []
            for is_shared in (False, True):
                plan = watch_of(WatchedPeer("a", peer, BRIEF, None, timing=timing, is_shared=is_shared))
                async with open_watch(plan, log=log, catalog=CATALOG, once=True) as session:
                    events = await read_until(session, lambda event: isinstance(event, WatchEnded))
                results += [event for event in events if isinstance(event, CheckSkipped | CheckEnded)]
                assert session.statuses["a"].running_since_s is None
            beside.stop()
    skipped, shared = results
    assert isinstance(skipped, CheckSkipped)
    assert skipped.reason is SkipReason.ENDPOINT
    assert isinstance(shared, CheckEnded)


async def test_an_endpoint_of_an_earlier_version_is_tested_without_a_turn(
    tmp_path: Path, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would refuse a plan that asks for one."""
    earlier = HostInfo("web-07", "Linux", 2, "linkgauge 0.1.0 (waits)", "uvloop")
    monkeypatch.setattr(handshake, "describe_host", AsyncMock(return_value=earlier))
    plan = watch_of(WatchedPeer("a", peer, BRIEF, None, timing=SELDOM))
    with RunLog.open(tmp_path) as log:
        async with open_watch(plan, log=log, catalog=CATALOG, once=True) as session:
            events = await read_until(session, lambda event: isinstance(event, WatchEnded))
    assert [end.result.verdict for end in ends(events)] == [CheckVerdict.GOOD]


async def test_a_test_beyond_a_limit_is_bad_whatever_its_link_should_carry(tmp_path: Path, peer: Peer) -> None:
    """The limit is named; a limit without a figure is a failure."""
    limited = WatchedPeer("a", peer, BRIEF, None, timing=SELDOM, limits=AcceptanceLimits(1.0, 10**9))
    blind = replace(limited, name="b", limits=AcceptanceLimits(max_rise_ns=1))
    with RunLog.open(tmp_path) as log:
        async with open_watch(watch_of(limited, blind), log=log, catalog=CATALOG, once=True) as session:
            events = await read_until(session, lambda event: isinstance(event, WatchEnded))
    results = {end.peer: end.result for end in ends(events)}
    assert (results["a"].verdict, results["a"].beyond, results["a"].word) == (
        CheckVerdict.BELOW,
        ("min-rate",),
        "fail",
    )
    assert results["b"].detail == "it has no figure for the limit max-rise"


async def test_a_missing_key_is_said_once_and_neither_test_nor_probe_is_repeated(tmp_path: Path) -> None:
    """Nobody has acted ten seconds later. The next test will tell."""
    timing = replace(OFTEN, check_every_ns=3 * SECOND_NS, probe_every_ns=SECOND_NS, retests=3)
    async with Endpoint(listen("127.0.0.1", 0), keys=[SharedKey("a-key-of-this-endpoint")]) as endpoint:
        plan = watch_of(WatchedPeer("locked", Peer(*endpoint.address), BRIEF, None, timing=timing))
        with RunLog.open(tmp_path) as log:
            async with open_watch(plan, log=log, catalog=CATALOG) as session:
                events: list[WatchEvent] = []
                for _ in range(3):
                    events += await read_until(session, lambda event: isinstance(event, CheckEnded))
    assert [(end.attempt, end.decides, end.result.is_lasting) for end in ends(events)] == [(0, True, True)] * 3
    assert "asks for a key" in (ends(events)[0].result.detail or "")
    first = next(number for number, event in enumerate(events) if isinstance(event, CheckEnded))
    assert not any(isinstance(event, ProbeEnded) for event in events[first:])


@pytest.mark.every
async def test_peers_that_are_down_do_not_keep_the_interface_from_the_tests_of_others(
    tmp_path: Path, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their tests and probes wait for an answer nearly all the time."""
    monkeypatch.setattr(connect, "CONNECT_DEADLINE_S", 1.8)
    timing = replace(OFTEN, check_every_ns=5 * SECOND_NS)
    waiting = replace(timing, probe_every_ns=SECOND_NS, retests=1)
    with ExitStack() as stack, RunLog.open(tmp_path) as log:
        silent = [stack.enter_context(listen("127.0.0.1", 0)) for _ in range(3)]  # they accept, and say nothing
        down = [Peer(*each.getsockname()) for each in silent]
        plan = watch_of(
            *(WatchedPeer(name, each, BRIEF, timing=waiting) for name, each in zip("xyz", down, strict=True)),
            *(WatchedPeer(name, peer, BRIEF, None, timing=timing) for name in "abc"),
        )
        async with open_watch(plan, log=log, catalog=CATALOG) as session:
            events = await read_until(session, lambda _: sum(session.statuses["a"].checks) == 2)
    others, theirs = ([each for each in events if getattr(each, "peer", "-") in names] for names in ("abc", "xyz"))
    assert [event for event in others if isinstance(event, CheckSkipped | ChecksMissed)] == []
    assert {end.result.verdict for end in ends(others)} == {CheckVerdict.GOOD}
    failed = [event for event in theirs if isinstance(event, ProbeEnded | CheckEnded)]
    assert {event.peer for event in failed} == set("xyz")
    assert all("sent nothing" in (event.result.detail or "") for event in failed)


@pytest.mark.every
async def test_a_test_below_its_mark_is_repeated_before_it_counts(tmp_path: Path, peer: Peer) -> None:
    """All tests of a cycle carry its name, and the last one decides."""
    timing = replace(SELDOM, retests=2)
    plan = watch_of(WatchedPeer("slow", peer, FULL, OUT_OF_REACH, timing=timing))
    with RunLog.open(tmp_path) as log:
        async with open_watch(plan, log=log, catalog=CATALOG, once=True) as session:
            events = await read_until(session, lambda event: isinstance(event, WatchEnded))
    found = ends(events)
    assert [(end.attempt, end.decides) for end in found] == [(0, False), (1, False), (2, True)]
    assert len({end.cycle_s for end in found}) == 1
    assert all(end.result.verdict is CheckVerdict.BELOW for end in found)
    assert found[0].result.percent is not None


@pytest.mark.every
async def test_a_test_with_a_rate_of_its_own_is_judged_by_that_rate(tmp_path: Path, peer: Peer) -> None:
    """A watch that must not load a link of 1 Gb/s is not SHORT each time at 20 Mb/s."""
    long = replace(BRIEF, duration_ns=2 * SECOND_NS)  # of half a second a busy machine loses a twentieth
    plan = watch_of(WatchedPeer("light", peer, long, "gbe-fd-1500", timing=SELDOM))
    with RunLog.open(tmp_path) as log:
        async with open_watch(plan, log=log, catalog=CATALOG, once=True) as session:
            events = await read_until(session, lambda event: isinstance(event, WatchEnded))
    (end,) = ends(events)
    assert end.result.verdict is CheckVerdict.GOOD
    assert end.result.percent >= 95


@pytest.mark.every
async def test_two_peers_of_one_interface_are_never_tested_at_the_same_time(tmp_path: Path, peer: Peer) -> None:
    """The one begins after the other has ended."""
    plan = watch_of(*(WatchedPeer(name, peer, BRIEF, None, timing=SELDOM) for name in "abc"))
    with RunLog.open(tmp_path) as log:
        async with open_watch(plan, log=log, catalog=CATALOG, once=True) as session:
            events = await read_until(session, lambda event: isinstance(event, WatchEnded))
    kinds = [type(event) for event in events if isinstance(event, CheckBegan | CheckEnded)]
    assert kinds == [CheckBegan, CheckEnded] * 3


async def test_a_cycle_is_decided_once_and_a_restart_does_not_repeat_it(tmp_path: Path, peer: Peer) -> None:
    """Before the next due time, only a request of the user begins a test."""
    plan = watch_of(WatchedPeer("a", peer, BRIEF, None, timing=SELDOM))
    with RunLog.open(tmp_path) as log:
        async with open_watch(plan, log=log, catalog=CATALOG) as session:
            first = ends(await read_until(session, lambda event: isinstance(event, CheckEnded)))
        async with open_watch(plan, log=log, catalog=CATALOG) as session:
            session.check_now("a")
            second = ends(await read_until(session, lambda event: isinstance(event, CheckEnded)))
            assert session.statuses["a"].checks == (2, 0, 0)
    assert first[0].cycle_s < second[0].cycle_s
    assert first[0].result.run_id != second[0].result.run_id


async def test_a_test_that_the_end_of_the_watch_cuts_off_does_not_count(tmp_path: Path, peer: Peer) -> None:
    """Its cycle is due again at once; the run is in the log as an interrupted one."""
    long = replace(BRIEF, duration_ns=60 * SECOND_NS)
    plan = watch_of(WatchedPeer("a", peer, long, None, timing=SELDOM))
    with RunLog.open(tmp_path) as log:
        async with open_watch(plan, log=log, catalog=CATALOG) as session:
            [*_, began] = await read_until(session, lambda event: isinstance(event, CheckBegan))
            session.stop()
            rest = await read_until(session, lambda event: isinstance(event, WatchEnded))
        assert not ends(rest)
        again = watch_of(WatchedPeer("a", peer, BRIEF, None, timing=SELDOM))
        async with open_watch(again, log=log, catalog=CATALOG) as session:
            [*_, end] = await read_until(session, lambda event: isinstance(event, CheckEnded))
    assert isinstance(began, CheckBegan)
    assert isinstance(end, CheckEnded)
    assert end.cycle_s == began.cycle_s
    assert end.result.run_id != began.run_id


async def test_a_run_that_had_ended_before_the_watch_was_killed_counts(tmp_path: Path, peer: Peer) -> None:
    """The journal lacks its end; the run log has it."""
    plan = watch_of(WatchedPeer("a", peer, BRIEF, None, timing=SELDOM))
    with RunLog.open(tmp_path) as log:
        async with open_watch(plan, log=log, catalog=CATALOG, once=True) as session:
            events = await read_until(session, lambda event: isinstance(event, WatchEnded))
        [end] = ends(events)
        killed = replace(plan, name="killed")
        begun = CheckBegan(end.at_s, "a", end.cycle_s, 0, end.result.run_id or "")
        WatchJournal(log, killed.group).append([begun], killed)
        async with open_watch(killed, log=log, catalog=CATALOG) as session:
            [adopted, started] = await read_until(session, lambda event: isinstance(event, WatchStarted))
    assert isinstance(started, WatchStarted)
    assert isinstance(adopted, CheckEnded)
    assert (adopted.cycle_s, adopted.result, adopted.decides) == (end.cycle_s, end.result, True)


async def test_a_run_whose_entries_are_damaged_is_tested_again(tmp_path: Path, peer: Peer) -> None:
    """The run has ended, but its document cannot be computed again. The watch starts all the same."""
    watched = WatchedPeer("a", peer, BRIEF, None, timing=SELDOM)
    with RunLog.open(tmp_path) as log:
        async with open_watch(watch_of(watched), log=log, catalog=CATALOG, once=True) as session:
            [end] = ends(await read_until(session, lambda event: isinstance(event, WatchEnded)))
        log.flush()
        run_id = end.result.run_id or ""
        with closing(sqlite3.connect(log.path)) as database, database:
            database.execute("UPDATE runs SET document = NULL WHERE id = ?", [run_id])
            database.execute("UPDATE events SET event = '{' WHERE run_id = ?", [run_id])
            database.execute("UPDATE blocks SET data = x'00' WHERE run_id = ?", [run_id])
        killed = replace(watch_of(watched), name="killed")
        WatchJournal(log, killed.group).append([CheckBegan(end.at_s, "a", end.cycle_s, 0, run_id)], killed)
        async with open_watch(killed, log=log, catalog=CATALOG) as session:
            [*_, again] = await read_until(session, lambda event: isinstance(event, CheckBegan))
    assert isinstance(again, CheckBegan)
    assert (again.cycle_s, again.attempt) == (end.cycle_s, 0)


@pytest.mark.parametrize("attempt", [0, 1], ids=["tested", "pending"])
@pytest.mark.parametrize(("age_s", "is_resumed"), [(90.0, True), (3_700.0, False)])
async def test_a_restart_goes_on_with_the_cycle_that_was_cut_off(
    tmp_path: Path, peer: Peer, age_s: float, attempt: int, *, is_resumed: bool
) -> None:
    """In its first test, or before a repetition, also if a newer cycle is due. An old cycle is left."""
    timing = replace(SELDOM, check_every_ns=60 * SECOND_NS, retests=2)
    plan = watch_of(WatchedPeer("a", peer, BRIEF, None, timing=timing))
    cycle_s = time.time() - age_s
    failed = CheckResult(CheckVerdict.FAILED, detail="nothing listens there")
    with RunLog.open(tmp_path) as log:
        first_test = [
            CheckBegan(cycle_s, "a", cycle_s, 0, "20261123-120000-aaaa"),
            CheckEnded(cycle_s + 1, "a", cycle_s, 0, failed, decides=False),
        ]
        WatchJournal(log, plan.group).append(first_test[: attempt + 1], plan)
        async with open_watch(plan, log=log, catalog=CATALOG) as session:
            [*_, began] = await read_until(session, lambda event: isinstance(event, CheckBegan))
    assert isinstance(began, CheckBegan)
    assert ((began.cycle_s, began.attempt) == (cycle_s, attempt)) is is_resumed


@pytest.mark.parametrize("is_start_known", [True, False])
async def test_tests_that_were_due_while_the_watch_was_down_are_counted_as_missed(
    tmp_path: Path, peer: Peer, *, is_start_known: bool
) -> None:
    """Once, even if the watch is killed again before a test. A first start has missed none."""
    timing = replace(SELDOM, check_every_ns=3_600 * SECOND_NS)
    watched = WatchedPeer("a", peer, BRIEF, None, timing=timing)
    plan, times = watch_of(watched), check_times(watched)
    newest_s = times.newest_s(time.time())
    last_s = times.newest_s(newest_s - 12_000)  # of the three between them each is missed
    with RunLog.open(tmp_path) as log:
        good = CheckResult(CheckVerdict.GOOD, 1, run_id="20261123-120000-aaaa")
        ended = CheckEnded(last_s, "a", last_s, 0, good, decides=True)
        started = [WatchStarted(last_s, ("a",))] if is_start_known else []  # the journal forgets it after a month
        WatchJournal(log, plan.group).append([*started, ended], plan)
        async with open_watch(plan, log=log, catalog=CATALOG) as session:
            events = await read_until(session, lambda event: isinstance(event, ChecksMissed | CheckBegan))
        missed = events[-1]
        assert isinstance(missed, ChecksMissed)
        assert (missed.peer, missed.count) == ("a", 3)
        assert (missed.since_s, missed.until_s) == (times.following_s(last_s), times.newest_s(newest_s - 1))
        async with open_watch(plan, log=log, catalog=CATALOG) as session:
            events = await read_until(session, lambda event: isinstance(event, CheckEnded))
        assert [event for event in events if isinstance(event, ChecksMissed)] == []
        assert session.statuses["a"].missed == 3


@pytest.mark.every
async def test_tests_that_come_due_while_a_cycle_goes_on_are_counted_as_missed(tmp_path: Path, peer: Peer) -> None:
    """The repetition for a peer that is down comes after three periods: the tests due meanwhile are counted."""
    watched = WatchedPeer("a", peer, BRIEF, None, timing=replace(OFTEN, retests=1, retest_after_ns=3 * SECOND_NS))
    down = replace(watched, peer=absent_peer())
    with RunLog.open(tmp_path) as log:
        async with open_watch(watch_of(down), log=log, catalog=CATALOG) as session:
            events = await read_until(session, lambda event: isinstance(event, ChecksMissed))
            missed = events[-1]
    assert isinstance(missed, ChecksMissed)
    [_, decided] = ends(events)
    times = check_times(watched)
    assert missed.since_s == times.following_s(decided.cycle_s)
    assert 2 <= missed.count <= 5


@pytest.mark.every
@pytest.mark.parametrize("how", ["wanted", "reloaded"])
async def test_missed_tests_are_counted_whatever_begins_the_next_one(tmp_path: Path, how: str) -> None:
    """The user's request, which stands for the newest of them, or a reload that keeps the times."""
    timing = replace(OFTEN, retests=1, retest_after_ns=4 * SECOND_NS)
    watched = WatchedPeer("a", absent_peer(), BRIEF, None, timing=timing)
    with RunLog.open(tmp_path) as log:
        async with open_watch(watch_of(watched), log=log, catalog=CATALOG) as session:
            await read_until(session, lambda event: isinstance(event, CheckEnded))
            if how == "wanted":
                session.check_now("a")
            else:
                session.reload(
                    watch_of(replace(watched, timing=replace(timing, retests=2, retest_after_ns=SECOND_NS)))
                )
            events = await read_until(session, lambda event: isinstance(event, ChecksMissed))
    missed = events[-1]
    assert isinstance(missed, ChecksMissed)
    first = next(each.cycle_s for each in ends(events))
    assert missed.since_s == check_times(watched).following_s(first)
    assert 2 <= missed.count <= 6


async def test_a_peer_that_was_out_of_the_watch_has_missed_nothing_meanwhile(tmp_path: Path, peer: Peer) -> None:
    """It had no tests to miss."""
    watched = WatchedPeer("a", peer, BRIEF, None, timing=replace(SELDOM, check_every_ns=60 * SECOND_NS))
    last_s = check_times(watched).newest_s(time.time() - 300)
    good = CheckResult(CheckVerdict.GOOD, 1, run_id="20261123-120000-aaaa")
    before = [CheckEnded(last_s, "a", last_s, 0, good, decides=True), WatchStarted(last_s + 10, ("b",))]
    with RunLog.open(tmp_path) as log:
        WatchJournal(log, "watch-test").append(before, watch_of(watched))
        async with open_watch(watch_of(watched), log=log, catalog=CATALOG) as session:
            events = await read_until(session, lambda event: isinstance(event, CheckBegan))
    assert [event for event in events if isinstance(event, ChecksMissed)] == []


async def test_other_times_after_a_reload_have_missed_nothing_of_before(tmp_path: Path, peer: Peer) -> None:
    """Earlier times of the new plan were never due."""
    first = WatchedPeer("a", peer, BRIEF, None, timing=SELDOM)
    with RunLog.open(tmp_path) as log:
        async with open_watch(watch_of(first), log=log, catalog=CATALOG) as session:
            await read_until(session, lambda event: isinstance(event, CheckEnded))
            session.reload(watch_of(replace(first, timing=OFTEN)))
            events = await read_until(session, lambda event: isinstance(event, CheckEnded))
    assert [event for event in events if isinstance(event, ChecksMissed)] == []


async def test_a_reload_changes_what_is_watched(tmp_path: Path, peer: Peer) -> None:
    """A new peer is tested. A removed peer is not shown any more."""
    first = WatchedPeer("a", peer, BRIEF, None, timing=SELDOM)
    with RunLog.open(tmp_path) as log:
        async with open_watch(watch_of(first), log=log, catalog=CATALOG) as session:
            await read_until(session, lambda event: isinstance(event, CheckEnded))
            session.reload(watch_of(replace(first, name="b")))
            events = await read_until(session, lambda event: isinstance(event, CheckEnded))
            assert list(session.statuses) == ["b"]
    assert WatchStarted in [type(event) for event in events]
    assert [end.peer for end in ends(events)] == ["b"]


async def test_a_test_that_does_not_fit_the_budget_is_left_out_and_said_once(tmp_path: Path, peer: Peer) -> None:
    """The notice comes once a month, and not again after a restart."""
    watched = WatchedPeer("a", peer, BRIEF, None, timing=OFTEN, budget_bytes=100)
    with RunLog.open(tmp_path) as log:
        notices = 0
        for _ in range(2):
            async with open_watch(watch_of(watched), log=log, catalog=CATALOG) as session:
                events = await read_until(session, lambda event: isinstance(event, CheckSkipped))
            notices += sum(isinstance(event, WatchNotice) for event in events)
            [skipped] = [event for event in events if isinstance(event, CheckSkipped)]
            assert skipped.reason is SkipReason.BUDGET
        assert not log.list_runs()
    assert notices == 1


async def test_a_bad_test_counts_if_no_data_is_left_to_repeat_it(tmp_path: Path, peer: Peer) -> None:
    """Else an older result would stand until the next month."""
    timing = replace(SELDOM, retests=3)
    watched = WatchedPeer("a", peer, FULL, OUT_OF_REACH, timing=timing, budget_bytes=2_000_000)
    with RunLog.open(tmp_path) as log:
        async with open_watch(watch_of(watched), log=log, catalog=CATALOG, once=True) as session:
            events = await read_until(session, lambda event: isinstance(event, WatchEnded))
    assert [(end.result.verdict, end.decides) for end in ends(events)] == [(CheckVerdict.BELOW, True)]


async def test_tests_that_wait_for_one_interface_spend_no_more_than_the_budget(tmp_path: Path, peer: Peer) -> None:
    """Each fits while none has run."""
    peers = [WatchedPeer(name, peer, BRIEF, None, timing=SELDOM) for name in "abc"]
    with RunLog.open(tmp_path) as log:
        plan = watch_of(*peers, budget_bytes=2_000_000)
        async with open_watch(plan, log=log, catalog=CATALOG, once=True) as session:
            events = await read_until(session, lambda event: isinstance(event, WatchEnded))
    assert len(ends(events)) == 1
    assert [event.reason for event in events if isinstance(event, CheckSkipped)] == [SkipReason.BUDGET] * 2


@pytest.mark.every
async def test_a_repetition_that_finds_no_interface_leaves_the_bad_test_to_count(
    tmp_path: Path, peer: Peer
) -> None:
    """Another process has the interface from the first test on, for a whole period."""
    timing = Timing(SECOND_NS, None, jitter=0.0, retests=1, retest_after_ns=SECOND_NS)
    plan = watch_of(WatchedPeer("a", peer, FULL, OUT_OF_REACH, timing=timing))
    others = InterfaceLocks(tmp_path / FOLDER)
    with RunLog.open(tmp_path) as log:
        async with open_watch(plan, log=log, catalog=CATALOG, once=True) as session:
            await read_until(session, lambda event: isinstance(event, CheckEnded))
            async with others.hold_for_test("lo", 30.0):
                events = await read_until(session, lambda event: isinstance(event, WatchEnded))
            last = session.statuses["a"].last_check
    assert [event.reason for event in events if isinstance(event, CheckSkipped)] == [SkipReason.BUSY]
    assert last is not None
    assert (last.result.verdict, last.decides) == (CheckVerdict.BELOW, True)


async def test_a_change_without_a_notification_is_told_after_a_restart(tmp_path: Path, peer: Peer) -> None:
    """Once, because then the journal has that. A change of last week is not news."""
    target, now_s = tmp_path / "told", time.time()
    command = (sys.executable, "-c", f"import sys; open({str(target)!r}, 'a').write(sys.stdin.read())")
    watched = WatchedPeer("a", peer, BRIEF, None, timing=SELDOM)
    plan = replace(watch_of(watched), notify=Notify(command))
    level = Level(1e8, None, None, 8)
    changes = [
        ChangeFound(at_s, "a", metric, at_s - 60, level, level, is_worse=True)
        for at_s, metric in ((now_s - 60, Metric.GOODPUT_BIT_S), (now_s - 7 * 86_400, Metric.LATENCY_S))
    ]
    with RunLog.open(tmp_path) as log:
        stored = WatchJournal(log, plan.group)
        stored.append(changes, plan)
        stored.close()
        for _ in range(2):
            async with open_watch(plan, log=log, catalog=CATALOG, once=True) as session:
                await read_until(session, lambda event: isinstance(event, WatchEnded))
    (line,) = target.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["metric"] == "goodput_bit_s"


async def test_a_peer_that_is_down_from_its_first_test_is_told_of_once_and_when_it_is_good_again(
    tmp_path: Path, peer: Peer
) -> None:
    """A repetition that fails as well, another cycle and a restart bring no second message."""
    target = tmp_path / "told"
    command = (sys.executable, "-c", f"import sys; print(sys.stdin.read(), file=open({str(target)!r}, 'a'))")
    down = WatchedPeer("a", absent_peer(), BRIEF, None, timing=replace(SELDOM, retests=1))
    plan = replace(watch_of(down), notify=Notify(command))
    back = replace(plan, peers=(replace(down, peer=peer),))
    with RunLog.open(tmp_path) as log:
        for each in (plan, plan, back, back):
            async with open_watch(each, log=log, catalog=CATALOG, once=True) as session:
                await read_until(session, lambda event: isinstance(event, WatchEnded))
    lines = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines() if line]
    assert [(line["type"], line["decides"], line["result"]["verdict"]) for line in lines] == [
        ("check_end", True, "failed"),
        ("check_end", True, "good"),
    ]
    assert "nothing listens" in lines[0]["text"]
    for line in lines:
        validator("watch.schema.json").evolve(schema=NOTIFICATION).validate(line)


@pytest.mark.every
async def test_quiet_hours_hold_messages_back_and_trouble_that_lasts_is_told_again(
    tmp_path: Path, peer: Peer
) -> None:
    """What was bad and good again in the quiet hours is not told. What is still bad is told at their end."""
    target, local = tmp_path / "told", time.localtime()
    minute = local.tm_hour * 60 + local.tm_min
    command = (sys.executable, "-c", f"import sys; print(sys.stdin.read(), file=open({str(target)!r}, 'a'))")
    notify = Notify(command, repeat_ns=2 * 3_600 * SECOND_NS, quiet=((minute - 60) % 1_440, (minute + 60) % 1_440))
    down = WatchedPeer("a", absent_peer(), BRIEF, None, timing=replace(SELDOM, retests=0))
    back = replace(down, peer=peer)
    told: list[list[str]] = []
    with RunLog.open(tmp_path) as log:
        for hours, watched in (
            (0, down),
            (0, back),
            (3, back),
            (24, down),
            (27, down),
            (28, down),
            (30, down),
            (31, back),
        ):
            plan = replace(watch_of(watched), notify=notify)
            target.unlink(missing_ok=True)
            clock = partial(lambda ahead_s: time.time() + ahead_s, hours * 3_600.0)
            async with open_watch(plan, log=log, catalog=CATALOG, once=True, clock=clock) as session:
                await read_until(session, lambda event: isinstance(event, WatchEnded))
            lines = target.read_text(encoding="utf-8").splitlines() if target.exists() else []
            told.append([json.loads(line)["result"]["verdict"] for line in lines if line])
    assert told == [[], [], [], [], ["failed"], [], ["failed"], ["good"]]


async def test_a_rate_beyond_its_kind_of_link_is_measured_and_not_judged(tmp_path: Path, peer: Peer) -> None:
    """As `check` has no verdict then: the preset is the wrong one, and a share of it would say nothing."""
    faster = replace(BRIEF, rate_bit_s=60_000_000)
    plan = watch_of(WatchedPeer("a", peer, faster, "10mb-fd", timing=SELDOM))
    with RunLog.open(tmp_path) as log:
        async with open_watch(plan, log=log, catalog=CATALOG, once=True) as session:
            await read_until(session, lambda event: isinstance(event, WatchEnded))
            last = session.statuses["a"].last_check
    assert last is not None
    assert (last.result.verdict, last.result.is_judged) == (CheckVerdict.GOOD, False)


async def test_a_watch_of_the_same_name_is_refused_while_one_runs(tmp_path: Path, peer: Peer) -> None:
    """Both would write one journal."""
    plan = watch_of(WatchedPeer("a", peer, BRIEF, None, timing=SELDOM))
    with RunLog.open(tmp_path) as log:
        async with open_watch(plan, log=log, catalog=CATALOG):
            with pytest.raises(UsageError, match="runs already"):
                async with open_watch(plan, log=log, catalog=CATALOG):
                    pass


async def test_an_error_of_any_kind_ends_the_watch_and_reaches_its_reader(
    tmp_path: Path, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then a service manager restarts it. A watch that only stands still would stay unnoticed."""

    def fail(*_arguments: object) -> None:
        raise ArithmeticError("no such kind was expected")

    monkeypatch.setattr(InterfaceLocks, "hold_for_test", fail)
    watched = WatchedPeer("a", peer, BRIEF, None, timing=OFTEN)
    with RunLog.open(tmp_path) as log:
        async with open_watch(watch_of(watched), log=log, catalog=CATALOG) as session:
            with pytest.raises(ArithmeticError):
                await read_until(session, lambda _: False)
