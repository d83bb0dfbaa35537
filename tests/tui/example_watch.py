"""A watch of some peers after a day, and one in progress whose events a test emits."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.tui.watch.running.watch_session import WatchSession
from linkgauge.watch.data_budget import MonthUse
from linkgauge.watch.events import (
    ChangeFound,
    CheckBegan,
    CheckEnded,
    CheckResult,
    CheckSkipped,
    CheckVerdict,
    Level,
    Metric,
    ProbeEnded,
    SkipReason,
    WatchEnded,
    WatchEvent,
    WatchStarted,
)
from linkgauge.watch.watch_plan import Timing, WatchedPeer, WatchPlan
from linkgauge.watch.watch_state import PeerStatus

NOW_S = 1_795_442_700.0  # 2026-11-23 14:05 UTC
HOUR_S = 3_600
GIB = 1 << 30
TEST = Plan(duration_ns=10 * SECOND_NS)
REFUSED = "db-03.example.com:5820: connection refused; is linkgauge endpoint running there?"


def name_of(number: int) -> str:
    """Return the name of a peer."""
    return f"db-{number:02}"


def plan(count: int, *, long_names: bool = False) -> WatchPlan:
    """Return the plan of a watch of `count` peers; each has 10 GiB a month."""
    names = [name_of(number) for number in range(1, count + 1)]
    if long_names:
        names = [f"storage-node-{name}.frankfurt-1.example.com" for name in names]
    peers = tuple(
        WatchedPeer(name, Peer(f"{name}.example.com"), TEST, "gbe-fd-1500", 95.0, Timing(), 10 * GIB)
        for name in names
    )
    return WatchPlan("office", peers, budget_bytes=count * 10 * GIB)


def good(percent: float = 99.6) -> CheckResult:
    """Return a result at its mark."""
    return CheckResult(
        CheckVerdict.GOOD,
        GIB // 30,
        figures(percent),
        percent,
        "at-expected",
        run_id="20261123-130500-a2b3",
    )


def below(percent: float = 59.8) -> CheckResult:
    """Return a result below its mark."""
    return CheckResult(
        CheckVerdict.BELOW, GIB // 30, figures(percent), percent, "path-slow", run_id="20261123-130500-c4d5"
    )


def failed(detail: str = REFUSED) -> CheckResult:
    """Return a failure with its reason."""
    return CheckResult(CheckVerdict.FAILED, detail=detail)


def figures(percent: float) -> tuple[tuple[Metric, float], ...]:
    """Return the figures of a test at this percentage of its expected rate."""
    return ((Metric.GOODPUT_BIT_S, 9.41e6 * percent), (Metric.RETRANSMITS, 12.0))


def ended(name: str, at_s: float, result: CheckResult, attempt: int = 0, *, decides: bool = True) -> CheckEnded:
    """Return the end of a test."""
    return CheckEnded(at_s, name, at_s - 10, attempt, result, decides)


def probe(name: str, at_s: float, latency_s: float = 412e-6) -> ProbeEnded:
    """Return the end of a probe."""
    return ProbeEnded(at_s, name, CheckResult(CheckVerdict.GOOD, 3_000, ((Metric.LATENCY_S, latency_s),)))


def fell(name: str, since_s: float) -> ChangeFound:
    """Return the change of a rate that fell to 60 percent."""
    before, after = 9.41e6 * 99.6, 9.41e6 * 59.8
    return ChangeFound(
        since_s + 2 * HOUR_S,
        name,
        Metric.GOODPUT_BIT_S,
        since_s,
        Level(before, before * 0.998, before * 1.002, 19, "at-expected"),
        Level(after, after * 0.994, after * 1.006, 3, "path-slow"),
        is_worse=True,
    )


def rose(name: str, since_s: float) -> ChangeFound:
    """Return the change of a latency that doubled."""
    before, after = Level(412e-6, 409e-6, 415e-6, 900), Level(1.9e-3, 1.8e-3, 2.1e-3, 12)
    return ChangeFound(since_s + 600, name, Metric.LATENCY_S, since_s, before, after, is_worse=True)


def status(name: str, number: int) -> PeerStatus:
    """Return the status of a peer after a day: db-02 fell to 60 percent, db-03 is refused, others are good."""
    random_ = random.Random(name)  # noqa: S311 (the same each time)
    fell_at_s = NOW_S - 5 * HOUR_S - 1_800
    checks: list[CheckEnded] = []
    for hour in range(23, -1, -1):
        at_s = NOW_S - hour * HOUR_S - 60 * number
        result = good(random_.uniform(98.9, 99.9))
        if number % 10 == 2 and at_s >= fell_at_s:
            result = below(random_.uniform(59.0, 60.5))
        if number % 10 == 3 and hour in {0, 9}:
            result = failed()
        checks.append(ended(name, at_s, result))
    by_verdict = [sum(check.result.verdict is verdict for check in checks) for verdict in CheckVerdict]
    changes = (fell(name, fell_at_s),) if number % 10 == 2 else (rose(name, NOW_S - 9_000),) if number == 4 else ()
    probes = tuple(
        probe(name, NOW_S - 60 * minute, random_.uniform(400e-6, 430e-6)) for minute in range(20, -1, -1)
    )
    if number % 10 == 3:
        probes = (*probes, ProbeEnded(NOW_S - 5, name, failed()))
    return PeerStatus(
        name,
        last_check=checks[-1],
        last_attempt=checks[-1],
        last_probe=probes[-1],
        next_check_s=NOW_S + HOUR_S - 60 * number - 400,
        next_probe_s=NOW_S + 30,
        checks=(400 + by_verdict[0], by_verdict[1], by_verdict[2]),
        retests=9,
        flaps=2,
        changes=changes,
        day=tuple(checks),
        probes=probes,
    )


def over_budget(before: PeerStatus) -> PeerStatus:
    """Return a peer whose data of the month is used up."""
    skip = CheckSkipped(NOW_S - 60, before.name, NOW_S - 60, SkipReason.BUDGET)
    return replace(before, last_skip=skip)


def all_failed(before: PeerStatus) -> PeerStatus:
    """Return a peer whose tests all failed."""
    checks = tuple(replace(check, result=failed()) for check in before.day)
    return replace(before, day=checks, last_check=checks[-1], changes=(), checks=(0, 0, 24), retests=24, flaps=0)


class ScriptedWatch(WatchSession):
    """A watch in progress whose events a test emits: without a journal, and without tests of its own."""

    def __init__(self, count: int = 3, *, is_new: bool = False, long_names: bool = False) -> None:
        self.plan = plan(count, long_names=long_names)
        self._statuses: dict[str, PeerStatus] = {
            each.name: PeerStatus(each.name, next_check_s=NOW_S + 40 * number)
            if is_new
            else status(each.name, number)
            for number, each in enumerate(self.plan.peers, 1)
        }
        numbers = enumerate(self.plan.peers, 1)
        self.used = {each.name: 0 if is_new else 4 * GIB + number * GIB // 7 for number, each in numbers}
        self.checked: list[str] = []
        self.stops = 0
        self.problem: Exception | None = None
        self._queue: asyncio.Queue[WatchEvent] = asyncio.Queue()

    @property
    def statuses(self) -> dict[str, PeerStatus]:
        """The statuses that the test has set."""
        return self._statuses

    @statuses.setter
    def statuses(self, statuses: dict[str, PeerStatus]) -> None:
        self._statuses = statuses

    @property
    def use(self) -> MonthUse:
        """The data that the test has set."""
        return MonthUse("2026-11", self.used)

    def use_up(self, name: str) -> None:
        """Let the month's data of a peer be used up."""
        self.statuses[name] = over_budget(self.statuses[name])
        self.used[name] = 10 * GIB - 3

    def emit(self, *events: WatchEvent) -> None:
        """Let events happen."""
        for event in events:
            self._queue.put_nowait(event)

    def begin(self) -> None:
        """Let the watch begin."""
        self.emit(WatchStarted(NOW_S, tuple(self._statuses)))

    def change(self, name: str, **changes: Any) -> None:
        """Change the status of a peer."""
        self.statuses[name] = replace(self.statuses[name], **changes)

    def start_test(self, name: str) -> None:
        """Let a test of a peer begin."""
        self.change(name, running_since_s=NOW_S - 4)
        self.emit(CheckBegan(NOW_S - 4, name, NOW_S - 4, 0, "20261123-140456-z9z9"))

    def check_now(self, name: str) -> None:
        """Note the request."""
        self.checked.append(name)

    def reload(self, plan: WatchPlan) -> None:
        """Take another plan."""
        self.plan = plan
        self._statuses = {each.name: self._statuses.get(each.name, PeerStatus(each.name)) for each in plan.peers}

    def stop(self) -> None:
        """Count the requests."""
        self.stops += 1

    def end(self) -> None:
        """End the watch."""
        self.emit(WatchEnded(NOW_S))

    async def __aiter__(self) -> AsyncIterator[WatchEvent]:
        while True:
            event = await self._queue.get()
            if self.problem is not None:
                raise self.problem
            yield event
            if isinstance(event, WatchEnded):
                return
