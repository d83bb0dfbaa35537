"""What the screen of a watch shows, as values: a row for each peer, its last day, its levels, events. Pure."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median, mode
from typing import Final

from ...engine.model.plan import SECOND_NS
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
from ...watch.peer_status import PeerStatus
from ...watch.watch_plan import WatchPlan
from .watch_figures import budget_words
from .watch_sentences import EventTone, counts_transactions, event_tone, event_words, next_words

DAY_S: Final = 86_400
_HELD_PERIODS: Final = 1.6  # a test holds until the next one, jitter included
_MAX_EVENTS: Final = 500


class PeerState(StrEnum):
    """What is known of a peer, by its last test that counts."""

    WAITING = "waiting"
    PASS = "pass"  # noqa: S105 (a verdict)
    MEASURED = "measured"
    SHORT = "short"
    FAIL = "fail"
    NO_RESULT = "no result"


@dataclass(frozen=True, slots=True)
class DaySlot:
    """A part of the last day that has tests.

    `share` is the lowest rate of its tests in the scale of the day, 0 to 1; None where a test had no result.
    `is_change` says whether a level begins here; `is_worse` whether for the worse.
    """

    share: float | None
    state: PeerState
    is_change: bool = False
    is_worse: bool = False


@dataclass(frozen=True, slots=True)
class PeerRow:
    """A peer as a row. `state` and `result` are of the last test that counts, `latency_s` of the last probe."""

    name: str
    state: PeerState
    result: CheckResult | None
    is_transactions: bool
    is_testing: bool
    latency_s: float | None
    is_probe_lost: bool
    next_words: str
    data_words: str
    is_over_budget: bool
    period_s: float
    status: PeerStatus

    @property
    def bit_s(self) -> float | None:
        """The rate of the last test that counts; for transactions the transactions a second."""
        return None if self.result is None else self.result.figure(Metric.GOODPUT_BIT_S)


@dataclass(frozen=True, slots=True)
class WatchView:
    """A watch as it is shown at a time."""

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
        """The peers with a test that runs."""
        return tuple(row for row in self.rows if row.is_testing)

    @property
    def next_row(self) -> PeerRow | None:
        """The peer with the next test."""
        due = [row for row in self.rows if row.status.next_check_s is not None and not row.is_testing]
        return min(due, key=lambda row: row.status.next_check_s or 0.0, default=None)


def watch_view(plan: WatchPlan, statuses: Mapping[str, PeerStatus], now_s: float) -> WatchView:
    """Return a watch as it is shown, at a time in seconds since 1970; the caller adds how it is carried out."""
    rows = tuple(_row(plan, statuses.get(each.name, PeerStatus(each.name)), now_s) for each in plan.peers)
    return WatchView(
        name=plan.name,
        now_s=now_s,
        rows=rows,
        month_bytes=sum(row.status.bytes_at(now_s) for row in rows),
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


def day_slots(row: PeerRow, now_s: float, count: int) -> tuple[DaySlot | None, ...]:
    """Return the last 24 hours in so many parts, the newest last; None for a part without a test.

    A test holds until the next one is due, so that a peer with few tests a day has no holes where nothing was
    missed. After a test without a result nothing is held.
    """
    step_s, begin_s, scale = DAY_S / max(count, 1), now_s - DAY_S, _day_scale(row)
    places: dict[int, list[CheckEnded]] = {}
    for check in row.status.day:
        if begin_s <= check.at_s <= now_s:
            places.setdefault(min(int((check.at_s - begin_s) / step_s), count - 1), []).append(check)
    slots: list[DaySlot | None] = []
    last: CheckEnded | None = None
    for number in range(count):
        checks = places.get(number)
        if checks:
            slots.append(_worst(checks, scale))
            last = checks[-1]
            continue
        start_s = begin_s + number * step_s
        is_held = last is not None and start_s - last.at_s <= row.period_s * _HELD_PERIODS
        held = None if last is None or not is_held else _worst([last], scale)
        slots.append(None if held is None or held.share is None else held)
    return _with_changes(row.status, slots, begin_s, step_s)


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
    """Return the newest tests and probes of the last day without a result, the newest first."""
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

    Some events have none, since they would hide what a person looks for: the beginning of a test, probes that
    answer, the second of two lost probes in a row, the data of the month.
    """

    def __init__(self) -> None:
        self.lines: deque[WatchEventLine] = deque(maxlen=_MAX_EVENTS)
        self.written = 0
        self._lost: set[str] = set()

    def feed(self, event: WatchEvent, plan: WatchPlan) -> None:
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


def _row(plan: WatchPlan, status: PeerStatus, now_s: float) -> PeerRow:
    peer = plan.find(status.name)
    result = None if status.last_check is None else status.last_check.result
    probe = None if status.last_probe is None else status.last_probe.result
    latest = probe or result
    used, budget = status.bytes_at(now_s), None if peer is None else peer.budget_bytes
    is_skipped = status.last_skip is not None and status.last_skip.reason is SkipReason.BUDGET
    return PeerRow(
        name=status.name,
        state=state_of(result),
        result=result,
        is_transactions=counts_transactions(plan, status.name),
        is_testing=status.running_since_s is not None,
        latency_s=None if latest is None else latest.figure(Metric.LATENCY_S),
        is_probe_lost=probe is not None and probe.verdict is CheckVerdict.FAILED,
        next_words=next_words(status, now_s),
        data_words=budget_words(used, budget),
        is_over_budget=is_skipped or (budget is not None and used >= budget),
        period_s=DAY_S if peer is None else peer.timing.check_every_ns / SECOND_NS,
        status=status,
    )


def _day_scale(row: PeerRow) -> float | None:
    """Return what the rates of a day are shares of; None where each has its percentage of an expected rate."""
    results = [check.result for check in row.status.day if check.result.verdict is not CheckVerdict.FAILED]
    if all(result.percent is not None for result in results):
        return None
    return max((result.figure(Metric.GOODPUT_BIT_S) or 0.0 for result in results), default=0.0)


def _worst(checks: Sequence[CheckEnded], scale: float | None) -> DaySlot:
    """Return the slot of these tests: one without a result, else the one with the lowest rate."""
    failed = next((check for check in checks if check.result.verdict is CheckVerdict.FAILED), None)
    if failed is not None:
        return DaySlot(None, PeerState.NO_RESULT)
    return min((_slot(check.result, scale) for check in checks), key=lambda slot: slot.share or 0.0)


def _slot(result: CheckResult, scale: float | None) -> DaySlot:
    rate = result.figure(Metric.GOODPUT_BIT_S) or 0.0
    share = (result.percent or 0.0) / 100 if scale is None else rate / scale if scale else 0.0
    return DaySlot(min(max(share, 0.0), 1.0), state_of(result))


def _with_changes(
    status: PeerStatus, slots: Sequence[DaySlot | None], begin_s: float, step_s: float
) -> tuple[DaySlot | None, ...]:
    """Mark the slots in which a level begins."""
    marked = list(slots)
    for change in status.changes:
        place = min(int((change.since_s - begin_s) // step_s), len(marked) - 1)
        if change.since_s >= begin_s and place >= 0:
            at = marked[place]
            share, state = (None, PeerState.WAITING) if at is None else (at.share, at.state)
            marked[place] = DaySlot(share, state, is_change=True, is_worse=change.is_worse)
    return tuple(marked)
