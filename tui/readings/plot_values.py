"""The plot of a run: its contents, the means of its periods, its columns, and its axes. Pure.

The rate at the top of the plot is also at the end of each gauge's bar.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Final

from ...engine.model.directions import Direction
from ...engine.model.expected_rate import Expectation, ExpectedRate
from ...engine.model.plan import SECOND_NS, Plan
from ..words import numbers
from ..words.numbers import RateScale, RateUnit
from ..words.summary import period_bit_s

if TYPE_CHECKING:
    from ...engine.results.summary import Summary
    from ...engine.results.sums.traces import PlotPeriod, PlotPoint

REDRAW_NS: Final = SECOND_NS // 2  # of the plot, the largest to paint: gauges are drawn more often
# The lengths of the time axis of a run without a duration. When it is full, the next one follows.
_SPANS_S: Final = (30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400)
_EXPECTED_AT: Final = 0.9  # of the axis: a rate above the expected one still has room
_ROOM: Final = 1.02  # above the highest value
_LEAST_FILLED: Final = 0.4  # of an axis: less than the ratio of two round numbers, so that it does not flicker
_COLUMNS: Final = 200  # of a wide plot: it does not show a burst that is shorter than a column


class PlotContent(Enum):
    """The quantity that the plot of a run shows."""

    LOAD = auto()  # throughput, and below it latency
    THROUGHPUT = auto()
    LATENCY = auto()
    RTT = auto()
    RETRANSMITS = auto()
    CWND = auto()
    WINDOWS = auto()
    LOSS = auto()
    JITTER = auto()
    DELAY_VARIATION = auto()


def plot_contents(plan: Plan) -> tuple[PlotContent, ...]:
    """Return the contents that the plot of a run goes through, in order."""
    if plan.workload.is_datagram:
        first = (PlotContent.THROUGHPUT, PlotContent.LOSS, PlotContent.JITTER, PlotContent.DELAY_VARIATION)
        return (*first, PlotContent.RTT)
    of_tcp = (PlotContent.RTT, PlotContent.RETRANSMITS, PlotContent.CWND, PlotContent.WINDOWS)
    if plan.responsiveness is not None:
        return (PlotContent.LOAD, PlotContent.THROUGHPUT, PlotContent.LATENCY, *of_tcp)
    return (PlotContent.THROUGHPUT, *of_tcp)


def peak_above(expected: ExpectedRate | None, peak: ExpectedRate | None) -> ExpectedRate | None:
    """Return the peak if it exceeds the expected rate, else None."""
    return peak if peak and expected and peak.bit_s > expected.bit_s else None


def flow_scale(units: RateUnit, unit_bit_s: float, response_bits: int | None) -> RateScale:
    """Return the unit of rates as high as `unit_bit_s`; with `response_bits`, transactions a second."""
    if response_bits is not None:
        return RateScale("trans/s", response_bits)
    return numbers.rate_scale(units, unit_bit_s)


def time_span_s(plan: Plan, elapsed_ns: int, *, has_ended: bool) -> float:
    """Return the length of the time axis: the duration of the run, or a step above the elapsed time."""
    if has_ended and elapsed_ns and plan.has_phases:
        return elapsed_ns / SECOND_NS  # its duration was only a bound
    if plan.duration_ns is not None:
        return plan.duration_ns / SECOND_NS
    elapsed_s = elapsed_ns / SECOND_NS
    return float(next((span for span in _SPANS_S if span >= elapsed_s), ceil(elapsed_s)))


def nice_above(value: float) -> float:
    """Return the next of 1, 1.5, 2, 3, 5, 7, 10, … above a value: the top of an axis that rarely changes."""
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 5, 7, 10, 15) if step * power >= value)


def follow_values(before: float, highest: float) -> float:
    """Return the top of an axis for its highest value. The axis stays while the values fill enough of it."""
    if highest <= 0 or before * _LEAST_FILLED <= highest <= before:
        return before
    return nice_above(highest)


def highest_mark(periods: "Sequence[PlotPeriod]", peak: Expectation) -> float:
    """Return the highest of the periods' expected rates and of the peaks above them; 0 if there are none."""
    known = (
        mark.bit_s for period in periods for mark in marks(period.expected_rate(), peak[period.settings.direction])
    )
    return max(known, default=0.0)


def marks(expected: ExpectedRate | None, peak: ExpectedRate | None) -> list[ExpectedRate]:
    """Return the rates that a plot marks: the expected one, and the peak if it is above it."""
    return [mark for mark in (expected, peak_above(expected, peak)) if mark is not None]


class RateAxis:
    """The rate at the top of the plot: it has room for every mark, and follows the measured rates."""

    def __init__(self) -> None:
        self._highest = self._followed = 0.0
        self._moment: object = None

    def top(self, periods: "Sequence[PlotPeriod]", marked_bit_s: float, span_s: float, elapsed_ns: int) -> float:
        """Return the top for the periods of a run; 0 if there is neither a mark nor a rate.

        Args:
            periods: The periods so far.
            marked_bit_s: The highest rate that is marked.
            span_s: The length of the time axis.
            elapsed_ns: The time so far. The rates are read only as often as the plot is drawn.
        """
        moment = (len(periods), span_s, elapsed_ns // REDRAW_NS)
        if moment != self._moment:
            self._moment = moment
            columns = filter(None, plot_columns(periods, span_s, _COLUMNS))
            self._highest = _ROOM * max((sum(rate for _, rate in column.rates) for column in columns), default=0.0)
            self._followed = follow_values(self._followed, self._highest)
        marked = marked_bit_s / _EXPECTED_AT
        return marked if self._highest <= marked else max(self._followed, marked)


def period_averages(periods: "Sequence[PlotPeriod]", summary: "Summary | None") -> list[float | None]:
    """Return the mean rate of each period without its warm-up, which the verdict uses; None without samples.

    A summary joins successive periods that have the same settings.
    """
    summarized = summary.periods if summary is not None else ()
    averages: list[float | None] = []
    at = -1
    for number, period in enumerate(periods):
        at += number == 0 or period.settings != periods[number - 1].settings
        is_known = at < len(summarized) and summarized[at].settings == period.settings
        averages.append(period_bit_s(summarized[at]) if is_known else None)
    return averages


@dataclass(frozen=True, slots=True)
class PlotColumn:
    """The rates of each direction that carries payload at a time, and whether it is warm-up."""

    rates: tuple[tuple[Direction, float], ...]
    warmup: bool


def plot_columns(periods: "Sequence[PlotPeriod]", span_s: float, width: int) -> list[PlotColumn | None]:
    """Return the columns of a plot that is `span_s` long; None for a column without data."""
    columns: list[PlotColumn | None] = [None] * width
    step_s = span_s / max(width, 1)
    for period in periods:
        for flow in period.settings.direction.flows:
            points = period.points.get(flow, [])
            if not points:
                continue
            ends = [point.at_s for point in points]
            first = max(int(period.from_s / step_s), 0)
            last = min(int((ends[-1] - 1e-9) / step_s), width - 1)
            for x in range(first, last + 1):
                if (mean := _within(points, ends, x * step_s, (x + 1) * step_s)) is not None:
                    columns[x] = _add_direction(columns[x], flow, mean, period)
    return columns


def _within(
    points: "list[PlotPoint]", ends: list[float], from_s: float, until_s: float
) -> tuple[float, bool] | None:
    """Return the mean rate of the points that end in a column, or else the rate of the point that covers it."""
    start, stop = bisect_left(ends, from_s + 1e-9), bisect_left(ends, until_s + 1e-9)
    inside = points[start : max(stop, start + 1)]
    if not inside:
        return None
    return sum(p.bit_s for p in inside) / len(inside), inside[-1].warmup


def _add_direction(
    before: PlotColumn | None, flow: Direction, mean: tuple[float, bool], period: "PlotPeriod"
) -> PlotColumn:
    """Add a direction to a column. If a period begins in the column, it belongs to that period."""
    bit_s, warmup = mean
    others = () if before is None else tuple(r for r in before.rates if r[0] is not flow)
    flows = period.settings.direction.flows
    return PlotColumn((*(r for r in others if r[0] in flows), (flow, bit_s)), warmup)
