"""The axes of a run's plot: the time, and the rate that is at its top and at the end of each gauge's bar. Pure."""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Final

from ...engine.model.events import Expectation
from ...engine.model.plan import SECOND_NS, Plan
from ...engine.results.sums.traces import PlotPeriod
from .instrument_values import peak_above, plot_columns

REDRAW_NS: Final = SECOND_NS // 2  # of the plot: less often than of the gauges, because it is the largest to paint
# Lengths of the time axis of a run without a duration: a full axis grows to the next one.
_SPANS_S: Final = (30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400)
_EXPECTED_AT: Final = 0.9  # of the axis: a rate above the expected one still has room
_ROOM: Final = 1.02  # above the highest value
_LEAST_FILLED: Final = 0.4  # of an axis; the round numbers are closer together, so that it does not flicker
_COLUMNS: Final = 200  # of a wide plot: a burst that is shorter than one of these is not seen


def time_span_s(plan: Plan, elapsed_ns: int, *, has_ended: bool) -> float:
    """Return the length of the time axis: the duration of the run, or a step above the elapsed time."""
    if has_ended and elapsed_ns and plan.has_phases:
        return elapsed_ns / SECOND_NS  # its duration was only a bound
    if plan.duration_ns is not None:
        return plan.duration_ns / SECOND_NS
    elapsed_s = elapsed_ns / SECOND_NS
    return float(next((span for span in _SPANS_S if span >= elapsed_s), ceil(elapsed_s)))


def nice_above(value: float) -> float:
    """Return the next of 1, 1.5, 2, 3, 5, 7, 10, … above a value: the top of an axis that seldom changes."""
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 5, 7, 10, 15) if step * power >= value)


def follow_values(before: float, highest: float) -> float:
    """Return the top of an axis by its highest value: the one before, as long as the values fill enough of it."""
    if highest <= 0 or before * _LEAST_FILLED <= highest <= before:
        return before
    return nice_above(highest)


def highest_mark(periods: Sequence[PlotPeriod], peak: Expectation) -> float:
    """Return the highest of the expected rates of these periods and of the peaks above them; 0 without any."""
    marks = (
        mark.bit_s
        for period in periods
        for expected in (period.expected_rate(),)
        for mark in (expected, peak_above(expected, peak[period.settings.direction]))
        if mark is not None
    )
    return max(marks, default=0.0)


class RateAxis:
    """The rate at the top of the plot: it has room for every mark, and follows the rates that are seen."""

    def __init__(self) -> None:
        self._highest = self._followed = 0.0
        self._moment: object = None

    def top(self, periods: Sequence[PlotPeriod], peak: Expectation, span_s: float, elapsed_ns: int) -> float:
        """Return the top for the periods of a run; 0 if there is neither a mark nor a rate.

        Args:
            periods: The periods so far.
            peak: The best rates to expect of the link.
            span_s: The length of the time axis.
            elapsed_ns: The time so far: until the plot is drawn again, the rates are not looked at again.
        """
        moment = (len(periods), span_s, elapsed_ns // REDRAW_NS)
        if moment != self._moment:
            self._moment = moment
            columns = filter(None, plot_columns(periods, span_s, _COLUMNS))
            self._highest = _ROOM * max((sum(rate for _, rate in column.rates) for column in columns), default=0.0)
            self._followed = follow_values(self._followed, self._highest)
        marked = highest_mark(periods, peak) / _EXPECTED_AT
        return marked if self._highest <= marked else max(self._followed, marked)
