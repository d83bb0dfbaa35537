"""The figures of a watch as text: values and levels of a metric, verdicts, times, the month's data. Pure.

Times of day are UTC, as in the list of runs: the runs of a change are found there by them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from ...engine.model.plan import SECOND_NS
from ...presets.number_text import NBSP, is_slow_rate
from ...watch.events import CheckResult, CheckVerdict, Level, Metric
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


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit: its name, and by what a value is multiplied to be in it."""

    name: str
    factor: float


def metric_values(
    metric: Metric, values: Sequence[float], *, is_transactions: bool = False
) -> tuple[list[str], str]:
    """Return values of a metric as numbers of one unit, and that unit: `94.1`, `56.3` and `Mb/s`.

    Args:
        metric: the metric.
        values: the values in its own unit.
        is_transactions: whether its rate is one of transactions a second.
    """
    unit = _unit(metric, max(values, default=0.0), is_transactions=is_transactions)
    return [_number(value * unit.factor) for value in values], unit.name


def metric_value(metric: Metric, value: float | None, *, is_transactions: bool = False) -> str:
    """Return a value of a metric with its unit: `94.1 Mb/s`, `1.25 ms`, `0.12 %`; a dash where it is unknown."""
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
    return ", ".join(parts) or "no figures"


def verdict_words(result: CheckResult | None) -> str:
    """Return the verdict of a test with its mark, in the words of runs: `✓ PASS`, `! no result`."""
    if result is None:
        return numbers.UNKNOWN
    if result.verdict is CheckVerdict.FAILED:
        return "! no result"
    return numbers.verdict(result.word) if result.is_judged else "• measured"


def at_words(at_s: float, now_s: float) -> str:
    """Return a time of day, with its date unless that is today's: `14:05`, `11-22 14:05`."""
    at, now = datetime.fromtimestamp(at_s, UTC), datetime.fromtimestamp(now_s, UTC)
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%m-%d %H:%M}"


def until_words(at_s: float | None, now_s: float) -> str:
    """Return how long it is until a time, in its largest unit: `12 min`, `now`; a dash where it is unknown."""
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
    """Return the data of a month: `1.25 GiB of 10.0 GiB`; without a budget only what was used."""
    used = numbers.payload(used_bytes)
    return used if budget_bytes is None else f"{used} of {numbers.payload(budget_bytes)}"


def _unit(metric: Metric, largest: float, *, is_transactions: bool) -> _Unit:
    """Return the unit for values of which this is the largest."""
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
