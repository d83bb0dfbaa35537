"""The sentences of a watch: one for each of its events, those of a change, the next test. Pure."""

from dataclasses import dataclass
from typing import Final, Literal

from ...engine.model.plan import SECOND_NS
from ...engine.results.counter_sums import percent_of
from ...presets.diagnosis.finding_words import why_words
from ...watch.events import (
    ChangeFound,
    ChangeTold,
    CheckBegan,
    CheckEnded,
    CheckSkipped,
    ChecksMissed,
    CheckVerdict,
    DataUsed,
    Level,
    Metric,
    ProbeEnded,
    SkipReason,
    WatchEnded,
    WatchEvent,
    WatchNotice,
    WatchStarted,
)
from ...watch.peer_status import PeerStatus
from ...watch.watch_plan import WatchPlan
from ..words import numbers
from .watch_figures import (
    METRIC_NAMES,
    at_words,
    every_words,
    level_words,
    metric_values,
    result_words,
    until_words,
    verdict_words,
)

EventTone = Literal["plain", "good", "warning", "bad", "change"]
"""How an event is drawn: a change is what a watch is for."""

_SKIPS: Final = {
    SkipReason.BUDGET: "test skipped: it would exceed this month's data budget",
    SkipReason.BUSY: "test skipped: another test had the interface all the time",
}
_TONES: Final[dict[CheckVerdict, EventTone]] = {
    CheckVerdict.GOOD: "good",
    CheckVerdict.BELOW: "warning",
    CheckVerdict.FAILED: "bad",
}


@dataclass(frozen=True, slots=True)
class ChangeWords:
    """A change in parts, for a panel: what happened, and a line for each level."""

    headline: str
    before: str
    after: str


def event_words(event: WatchEvent, plan: WatchPlan | None = None) -> str:
    """Return an event as a sentence that begins with its peer: `db-02: ✓ PASS, 94.1 Mb/s, 99.7 % of expected`.

    `plan` tells tests of transactions, whose rate is one of transactions a second.
    """
    peer = getattr(event, "peer", None)
    words = _words(event, is_transactions=peer is not None and counts_transactions(plan, peer))
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
        case ChangeFound():
            return "change"
        case _:
            return "plain"


def change_words(change: ChangeFound, *, is_transactions: bool = False) -> str:
    """Return a change as a sentence: what, from, to, when, the interval, and why before and after.

    `rate fell from 94.1 to 56.3 Mb/s (95 %: 56.0 to 56.6) at 14:05; before: at the link's rate; after: path slower
    than its line`
    """
    values = [change.before.median, change.after.median]
    bounds = [bound for bound in (change.after.low, change.after.high) if bound is not None]
    texts, unit = metric_values(change.metric, [*values, *bounds], is_transactions=is_transactions)
    interval = f" (95{numbers.NBSP}%: {texts[2]} to {texts[3]})" if len(texts) > 3 else ""
    figures = f"from {texts[0]} to {texts[1]}{numbers.NBSP}{unit}{interval}"
    sentence = f"{_verb(change)} {figures} at {at_words(change.since_s, change.at_s)}"
    whys = [
        f"{name}: {why_words(level.why)}"
        for name, level in (("before", change.before), ("after", change.after))
        if level.why is not None
    ]
    return "; ".join([sentence, *whys])


def change_parts(change: ChangeFound, now_s: float, *, is_transactions: bool = False) -> ChangeWords:
    """Return a change in parts: `rate fell at 14:05, by 40 %`, and both levels with how they are known."""
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


def plan_words(plan: WatchPlan, name: str) -> str:
    """Return how a peer is tested: `db-02.lan, test every 1 h, probe every 1 min`."""
    peer = plan.find(name)
    if peer is None:
        return ""
    timing = peer.timing
    probe = "" if timing.probe_every_ns is None else f", probe every {every_words(timing.probe_every_ns)}"
    return f"{numbers.sanitize(str(peer.peer))}, test every {every_words(timing.check_every_ns)}{probe}"


def counts_transactions(plan: WatchPlan | None, name: str) -> bool:
    """Return whether the tests of a peer count transactions."""
    peer = None if plan is None else plan.find(name)
    return peer is not None and peer.plan.workload.is_transactional


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
        case _:
            words = _other_words(event)
    return words


def _other_words(event: ChangeTold | DataUsed | WatchNotice | WatchEnded) -> str:
    """Return an event that is about the watch rather than about a test in words."""
    match event:
        case ChangeTold():
            of = "the verdict" if event.metric is None else METRIC_NAMES[event.metric]
            return f"notification of a change of {of}: done"
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
