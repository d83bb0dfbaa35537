"""A watch in words: a sentence for each event, and figures, levels, verdicts and times as text. Pure.

Times of day are UTC, as in the list of runs: the user finds the runs of a change there by them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from ...engine.model.directions import Direction
from ...engine.model.plan import SECOND_NS
from ...engine.results.rate_and_loss import percent_of
from ...presets.diagnosis.finding_words import why_words
from ...presets.number_text import NBSP, is_slow_rate
from ...watch.changes.path_watch import first_difference
from ...watch.events import (
    ChangeFound,
    ChangeTold,
    CheckBegan,
    CheckEnded,
    CheckResult,
    CheckSkipped,
    ChecksMissed,
    CheckVerdict,
    DataUsed,
    Level,
    Metric,
    PathChanged,
    ProbeEnded,
    SkipReason,
    WatchEnded,
    WatchEvent,
    WatchNotice,
    WatchStarted,
)
from ...watch.watch_plan import WatchedPeer, WatchPlan
from ...watch.watch_state import PeerStatus
from ..words import numbers

METRIC_NAMES: Final = {
    Metric.GOODPUT_BIT_S: "rate",
    Metric.LATENCY_S: "latency",
    Metric.LOSS: "loss",
    Metric.RETRANSMITS: "retransmits",
}
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400
_LEAST_GBIT_S: Final = 1e10
_LEAST_MS_S: Final = 9.995e-4
EventTone = Literal["plain", "good", "warning", "bad", "change"]
"""How an event is drawn. A change stands out: a watch is there to find changes."""

_SKIPS: Final = {
    SkipReason.BUDGET: "test skipped: it would exceed this month's data budget",
    SkipReason.BUSY: "test skipped: another test had the interface all the time",
    SkipReason.ENDPOINT: "test skipped: other tests had the endpoint all the time",
}
_TONES: Final[dict[CheckVerdict, EventTone]] = {
    CheckVerdict.GOOD: "good",
    CheckVerdict.BELOW: "warning",
    CheckVerdict.FAILED: "bad",
}


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit: its name, and the factor that brings a value into it."""

    name: str
    factor: float


@dataclass(frozen=True, slots=True)
class ChangeWords:
    """A change in parts, for a panel: what happened, and a line for each level."""

    headline: str
    before: str
    after: str


def event_words(event: WatchEvent, plan: WatchPlan | None = None) -> str:
    """Return an event as a sentence that begins with its peer: `db-02: ✓ PASS, 94.1 Mb/s, 99.7 % of expected`.

    By `plan` it knows the peers whose tests count transactions.
    """
    peer = getattr(event, "peer", None)
    words = _words(event, is_transactions=peer is not None and _counts_transactions(plan, peer))
    return words if peer is None else f"{peer}: {words}"


def event_tone(event: WatchEvent) -> EventTone:
    """Return how an event is to be drawn."""
    match event:
        case CheckEnded():
            return _TONES[event.result.verdict]
        case ProbeEnded():
            return "bad" if event.result.verdict is CheckVerdict.FAILED else "plain"
        case CheckSkipped() | ChecksMissed() | WatchNotice():
            return "warning"
        case ChangeFound() | PathChanged():
            return "change"
        case _:
            return "plain"


def change_words(change: ChangeFound, *, is_transactions: bool = False) -> str:
    """Return a change as a sentence: metric, values, interval, time, and the finding before and after it.

    `rate fell from 94.1 to 56.3 Mb/s (95 %: 56.0 to 56.6) at 14:05; before: at the link's rate; after: path slower
    than its line`
    """
    values = [change.before.median, change.after.median]
    bounds = [bound for bound in (change.after.low, change.after.high) if bound is not None]
    texts, unit = metric_values(change.metric, [*values, *bounds], is_transactions=is_transactions)
    interval = f" (95{NBSP}%: {texts[2]} to {texts[3]})" if len(texts) > 3 else ""
    figures = f"from {texts[0]} to {texts[1]}{NBSP}{unit}{interval}"
    sentence = f"{_verb(change)} {figures} at {at_words(change.since_s, change.at_s)}"
    whys = [
        f"{name}: {why_words(level.why)}"
        for name, level in (("before", change.before), ("after", change.after))
        if level.why is not None
    ]
    return "; ".join([sentence, *whys])


def path_change_words(change: PathChanged) -> str:
    """Return a changed path as a sentence: `path out changed at hop 3: 10.0.2.1 before, 10.0.7.1 now`."""
    before, after = change.before.hops, change.after.hops
    counts = f"{numbers.quantity(len(after), 'hop')}, {len(before)} before"
    head = f"path {change.after.direction} changed"
    ttl = first_difference(before, after)
    if ttl is None:
        return f"{head}: {counts}"
    end = "" if change.after.direction is Direction.OUT else " from the remote end"
    old, new = (" or ".join(hops[ttl - 1]) for hops in (before, after))
    length = "" if len(before) == len(after) else f"; {counts}"
    return f"{head} at hop {ttl}{end}: {old} before, {new} now{length}"


def change_parts(change: ChangeFound, now_s: float, *, is_transactions: bool = False) -> ChangeWords:
    """Return a change in parts: `rate fell at 14:05, by 40 %`, and each level with its number of tests."""
    share = percent_of(change.after.median - change.before.median, change.before.median)
    by = "" if share is None else _by(share)
    return ChangeWords(
        f"{_verb(change)} at {at_words(change.since_s, now_s)}{by}",
        _level_line(change.metric, change.before, is_transactions=is_transactions),
        _level_line(change.metric, change.after, is_transactions=is_transactions),
    )


def next_words(status: PeerStatus, now_s: float) -> str:
    """Return when the next test is due, or that one runs: `in 12 min`, `again in 8 s`, `testing 00:04`."""
    if status.running_since_s is not None:
        return f"testing {numbers.clock(round((now_s - status.running_since_s) * SECOND_NS))}"
    if status.next_check_s is None:
        return numbers.UNKNOWN
    left = until_words(status.next_check_s, now_s)
    is_repetition = status.last_attempt is not None and not status.last_attempt.decides
    return "due now" if left == "now" else f"{'again ' if is_repetition else ''}in {left}"


def plan_words(peer: WatchedPeer) -> str:
    """Return how a peer is tested: `db-02.lan, test every 1 h, probe every 1 min`."""
    timing = peer.timing
    probe = "" if timing.probe_every_ns is None else f", probe every {every_words(timing.probe_every_ns)}"
    return f"{numbers.sanitize(str(peer.peer))}, test every {every_words(timing.check_every_ns)}{probe}"


def _counts_transactions(plan: WatchPlan | None, name: str) -> bool:
    """Return whether the tests of a peer count transactions."""
    peer = None if plan is None else plan.find(name)
    return peer is not None and peer.plan.workload.is_transactional


def metric_values(
    metric: Metric, values: Sequence[float], *, is_transactions: bool = False
) -> tuple[list[str], str]:
    """Return values of a metric as numbers in one unit, and the unit: `94.1`, `56.3` and `Mb/s`.

    Args:
        metric: the metric.
        values: the values in the base unit.
        is_transactions: whether the rate counts transactions a second.
    """
    unit = _unit(metric, max(values, default=0.0), is_transactions=is_transactions)
    return [_number(value * unit.factor) for value in values], unit.name


def metric_value(metric: Metric, value: float | None, *, is_transactions: bool = False) -> str:
    """Return a value of a metric with its unit: `94.1 Mb/s`, `1.25 ms`, `0.12 %`; a dash if it is unknown."""
    if value is None:
        return numbers.UNKNOWN
    (number,), unit = metric_values(metric, (value,), is_transactions=is_transactions)
    return f"{number}{NBSP}{unit}"


def level_words(metric: Metric, level: Level, *, is_transactions: bool = False) -> str:
    """Return a level with its unit and its interval: `56.3 Mb/s (95 %: 56.0 to 56.6)`."""
    if level.low is None or level.high is None:
        return metric_value(metric, level.median, is_transactions=is_transactions)
    values = (level.median, level.low, level.high)
    (median, low, high), unit = metric_values(metric, values, is_transactions=is_transactions)
    return f"{median}{NBSP}{unit} (95{NBSP}%: {low} to {high})"


def result_words(result: CheckResult, *, is_transactions: bool = False) -> str:
    """Return the rate of a test with its percentage, or why it has none: `94.1 Mb/s, 99.7 % of expected`."""
    if result.verdict is CheckVerdict.FAILED:
        return numbers.sanitize(result.detail or "") or "no result"
    parts = [
        metric_value(metric, result.figure(metric), is_transactions=is_transactions)
        for metric in (Metric.GOODPUT_BIT_S, Metric.LATENCY_S)
        if result.figure(metric) is not None
    ]
    if result.percent is not None:
        parts.append(f"{numbers.percent(result.percent)} of expected")
    if result.beyond:
        parts.append(f"beyond {' and '.join(result.beyond)}")
    return ", ".join(parts) or "no figures"


def verdict_words(result: CheckResult | None) -> str:
    """Return the verdict of a test with its mark, in the words of runs: `✓ PASS`, `! no result`."""
    if result is None:
        return numbers.UNKNOWN
    if result.verdict is CheckVerdict.FAILED:
        return "! no result"
    return numbers.verdict(result.word) if result.is_judged else "• measured"


def at_words(at_s: float, now_s: float) -> str:
    """Return a time of day, with its date unless that is today: `14:05`, `11-22 14:05`."""
    at, now = datetime.fromtimestamp(at_s, UTC), datetime.fromtimestamp(now_s, UTC)
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%m-%d %H:%M}"


def until_words(at_s: float | None, now_s: float) -> str:
    """Return the time until a moment, in its largest unit: `12 min`, `now`; a dash if it is unknown."""
    if at_s is None:
        return numbers.UNKNOWN
    left_s = at_s - now_s
    if left_s < 1:
        return "now"
    for unit_s, name, most in ((1, "s", 100), (_MINUTE_S, "min", 100), (_HOUR_S, "h", 48)):
        if left_s / unit_s < most:
            return f"{left_s // unit_s:.0f}{NBSP}{name}"
    return f"{left_s // _DAY_S:.0f}{NBSP}d"


def every_words(period_ns: int) -> str:
    """Return a period: `1 h`, `5 min`, `1 h 30 min`."""
    return numbers.rough_time(period_ns) if period_ns >= SECOND_NS else f"{period_ns / SECOND_NS:g}{NBSP}s"


def budget_words(used_bytes: int, budget_bytes: int | None) -> str:
    """Return the data of a month: `1.25 GiB of 10.0 GiB`; without a budget only the data used."""
    used = numbers.payload(used_bytes)
    return used if budget_bytes is None else f"{used} of {numbers.payload(budget_bytes)}"


def _words(event: WatchEvent, *, is_transactions: bool) -> str:
    """Return an event in words, without its peer."""
    match event:
        case WatchStarted(_, peers):
            words = f"watching {numbers.quantity(len(peers), 'peer')}"
        case CheckBegan():
            words = f"test begins{_attempt(event.attempt)}"
        case CheckEnded():
            words = _check_words(event, is_transactions=is_transactions)
        case CheckSkipped():
            words = _SKIPS[event.reason]
        case ChecksMissed():
            words = _missed_words(event)
        case ProbeEnded():
            words = f"probe: {result_words(event.result)}"
        case ChangeFound():
            words = change_words(event, is_transactions=is_transactions)
        case PathChanged():
            words = path_change_words(event)
        case _:
            words = _other_words(event)
    return words


def _other_words(event: ChangeTold | DataUsed | WatchNotice | WatchEnded) -> str:
    """Return the words of an event of the watch as a whole, or of its data and notifications."""
    match event:
        case ChangeTold():
            of = "the verdict" if event.metric is None else METRIC_NAMES[event.metric]
            of = of if event.path is None else f"the path {event.path}"
            if event.receiver is not None:
                return f"notification of a change of {of}: {event.receiver} has it, others not yet"
            missed = " and ".join(event.missed)
            return f"notification of a change of {of}: {f'{missed} did not take it' if missed else 'done'}"
        case DataUsed(_, month, peers):
            return f"data used in {month}: {numbers.size(sum(each.bytes for each in peers))}"
        case WatchNotice():
            return numbers.sanitize(event.text)
        case WatchEnded():
            return "the watch has ended"


def _missed_words(event: ChecksMissed) -> str:
    since, until = (at_words(each, event.at_s) for each in (event.since_s, event.until_s))
    when = f"at {since}" if event.count == 1 else f"from {since} to {until}"
    missed = f"{numbers.quantity(event.count, 'test')} missed, due {when}"
    return f"{missed}: the watch did not run then, or an earlier test took too long"


def _check_words(event: CheckEnded, *, is_transactions: bool) -> str:
    result = event.result
    figures = result_words(result, is_transactions=is_transactions)
    words = f"{verdict_words(result)}{_attempt(event.attempt)}: {figures}"
    if result.verdict is CheckVerdict.BELOW and result.why is not None:
        words += f"; {why_words(result.why)}"
    return words if event.decides else f"{words}; it is repeated before it counts"


def _attempt(attempt: int) -> str:
    return f", repetition {attempt}" if attempt else ""


def _verb(change: ChangeFound) -> str:
    verb = "fell" if change.after.median < change.before.median else "rose"
    return f"{METRIC_NAMES[change.metric]} {verb}"


def _by(share: float) -> str:
    if numbers.is_factor(share):
        return f", to {numbers.factor(share)}"
    return f", by {numbers.percent(abs(share), 0)}"


def _level_line(metric: Metric, level: Level, *, is_transactions: bool) -> str:
    count = numbers.quantity(level.count, "probe" if metric is Metric.LATENCY_S else "test")
    why = "" if level.why is None else f": {why_words(level.why)}"
    return f"{level_words(metric, level, is_transactions=is_transactions)}, {count}{why}"


def _unit(metric: Metric, largest: float, *, is_transactions: bool) -> _Unit:
    """Return the unit for values up to the largest one."""
    match metric:
        case Metric.GOODPUT_BIT_S if is_transactions:
            return _Unit("trans/s", 1.0)
        case Metric.GOODPUT_BIT_S:
            if is_slow_rate(largest):
                return _Unit("kb/s", 1e-3)
            return _Unit("Gb/s", 1e-9) if largest >= _LEAST_GBIT_S else _Unit("Mb/s", 1e-6)
        case Metric.LATENCY_S:
            return _Unit("ms", 1e3) if largest >= _LEAST_MS_S else _Unit("µs", 1e6)
        case Metric.LOSS:
            return _Unit("%", 100.0)
        case Metric.RETRANSMITS:
            return _Unit("a GB", 1.0)


def _number(value: float) -> str:
    """Return a number with three digits: `94.1`, `9 389`, `1.25`, `0.012`, `0`."""
    places = 0 if not value or value >= 99.95 else 1 if value >= 9.995 else 2 if value >= 0.9995 else 3
    return numbers.number(value, places)
