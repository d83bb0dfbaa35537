"""A watch as its screen shows it, as values: a row for each peer, levels, failures, the list of events. Pure."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median, mode
from typing import Final

from ...watch.data_budget import MonthUse
from ...watch.events import (
    CheckBegan,
    CheckEnded,
    CheckResult,
    CheckVerdict,
    DataUsed,
    Level,
    Metric,
    ProbeEnded,
    SkipReason,
    WatchEvent,
)
from ...watch.watch_plan import WatchedPeer, WatchPlan
from ...watch.watch_state import PeerStatus
from .watch_words import EventTone, event_tone, event_words

_MAX_EVENTS: Final = 500


class PeerState(StrEnum):
    """The state of a peer by its last test that counts."""

    WAITING = "waiting"
    PASS = "pass"  # noqa: S105 (a verdict)
    MEASURED = "measured"
    SHORT = "short"
    FAIL = "fail"
    NO_RESULT = "no result"


@dataclass(frozen=True, slots=True)
class PeerRow:
    """A peer as it is shown at a time: its status, its data of this month, and figures that follow from them."""

    watched: WatchedPeer
    status: PeerStatus
    now_s: float
    month_bytes: int

    @property
    def name(self) -> str:
        """The name of the peer."""
        return self.watched.name

    @property
    def result(self) -> CheckResult | None:
        """The result of the last test that counts."""
        return None if self.status.last_check is None else self.status.last_check.result

    @property
    def state(self) -> PeerState:
        """The state of that result."""
        return state_of(self.result)

    @property
    def bit_s(self) -> float | None:
        """The rate of that result; if tests count transactions, the transactions a second."""
        return None if self.result is None else self.result.figure(Metric.GOODPUT_BIT_S)

    @property
    def is_transactions(self) -> bool:
        """Whether the tests count transactions."""
        return self.watched.plan.workload.is_transactional

    @property
    def is_testing(self) -> bool:
        """Whether a test runs now."""
        return self.status.running_since_s is not None

    @property
    def latency_s(self) -> float | None:
        """The latency of the last probe; without probes, of the last test."""
        probe = self.status.last_probe
        latest = self.result if probe is None else probe.result
        return None if latest is None else latest.figure(Metric.LATENCY_S)

    @property
    def is_probe_lost(self) -> bool:
        """Whether the last probe had no answer."""
        probe = self.status.last_probe
        return probe is not None and probe.result.verdict is CheckVerdict.FAILED

    @property
    def is_over_budget(self) -> bool:
        """Whether this month's data is used up."""
        budget, skip = self.watched.budget_bytes, self.status.last_skip
        is_skipped = skip is not None and skip.reason is SkipReason.BUDGET
        return is_skipped or (budget is not None and self.month_bytes >= budget)


@dataclass(frozen=True, slots=True)
class WatchView:
    """A watch as it is shown at a time in seconds since 1970."""

    name: str = ""
    now_s: float = 0.0
    rows: tuple[PeerRow, ...] = ()
    month_bytes: int = 0
    budget_bytes: int | None = None
    is_stopping: bool = False
    is_over: bool = False
    is_elsewhere: bool = False
    problem: str | None = None
    counts: Mapping[PeerState, int] = field(default_factory=dict[PeerState, int])

    @property
    def testing(self) -> tuple[PeerRow, ...]:
        """The peers that are tested now."""
        return tuple(row for row in self.rows if row.is_testing)

    @property
    def next_row(self) -> PeerRow | None:
        """The peer with the next test."""
        due = [row for row in self.rows if row.status.next_check_s is not None and not row.is_testing]
        return min(due, key=lambda row: row.status.next_check_s or 0.0, default=None)


def watch_view(plan: WatchPlan, statuses: Mapping[str, PeerStatus], use: MonthUse, now_s: float) -> WatchView:
    """Return a watch as it is shown at a time. The caller adds whether it is stopping, over or elsewhere."""
    use = use.at(now_s)
    rows = tuple(
        PeerRow(each, statuses.get(each.name, PeerStatus(each.name)), now_s, use.of(each.name))
        for each in plan.peers
    )
    return WatchView(
        name=plan.name,
        now_s=now_s,
        rows=rows,
        month_bytes=use.total,
        budget_bytes=plan.budget_bytes,
        counts=Counter(row.state for row in rows),
    )


def state_of(result: CheckResult | None) -> PeerState:
    """Return the state of a result, with the words of runs: under half of the expected rate is FAIL."""
    if result is None:
        return PeerState.WAITING
    if result.verdict is CheckVerdict.FAILED:
        return PeerState.NO_RESULT
    return PeerState(result.word) if result.is_judged else PeerState.MEASURED


def current_levels(status: PeerStatus) -> tuple[tuple[Metric, Level], ...]:
    """Return the median of each metric of the last day, since its last change."""
    levels: list[tuple[Metric, Level]] = []
    for metric in Metric:
        since_s = max((change.since_s for change in status.changes if change.metric is metric), default=0.0)
        of_probes = [probe for probe in status.probes if probe.result.figure(metric) is not None]
        events: Sequence[CheckEnded | ProbeEnded] = of_probes or status.day
        results = [each.result for each in events if each.at_s >= since_s]
        values = [value for value in (result.figure(metric) for result in results) if value is not None]
        whys = [result.why for result in results if result.why is not None]
        if values:
            levels.append((metric, Level(median(values), None, None, len(values), mode(whys) if whys else None)))
    return tuple(levels)


def newest_failures(status: PeerStatus, most: int) -> tuple[CheckEnded | ProbeEnded, ...]:
    """Return the newest tests and probes of the last day that had no result, the newest first."""
    ended = [*status.day, *status.probes]
    failed = [each for each in ended if each.result.verdict is CheckVerdict.FAILED]
    return tuple(sorted(failed, key=lambda each: -each.at_s)[:most])


@dataclass(frozen=True, slots=True)
class WatchEventLine:
    """A line of the list of events."""

    at_s: float
    tone: EventTone
    text: str


class WatchEventLines:
    """Collects the lines of a watch. You must feed it every event, in order; `written` counts the lines.

    Some events have no line, because they would hide the others: the beginning of a test, probes that answer, the
    second of two lost probes in a row, the data of the month.
    """

    def __init__(self) -> None:
        self.lines: deque[WatchEventLine] = deque(maxlen=_MAX_EVENTS)
        self.written = 0
        self._lost: set[str] = set()

    def add_event(self, event: WatchEvent, plan: WatchPlan) -> None:
        """Add the line of the next event, if it has one."""
        if isinstance(event, CheckBegan | DataUsed):
            return
        if isinstance(event, ProbeEnded) and not self._is_news(event):
            return
        self.lines.append(WatchEventLine(event.at_s, event_tone(event), event_words(event, plan)))
        self.written += 1

    def _is_news(self, event: ProbeEnded) -> bool:
        is_lost, was_lost = event.result.verdict is CheckVerdict.FAILED, event.peer in self._lost
        (self._lost.add if is_lost else self._lost.discard)(event.peer)
        return is_lost != was_lost
