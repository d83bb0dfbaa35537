"""The axes of a run's plot: one rate at the top of the plot and at the end of each gauge's bar."""

import pytest
from linkgauge.engine.model.events import Expectation, ExpectedRate
from linkgauge.engine.model.plan import Direction, Settings
from linkgauge.engine.results.sums.traces import PlotPeriod, PlotPoint
from linkgauge.tui.readings.plot_axes import REDRAW_NS, RateAxis, follow_values

NOTHING = Expectation()


def period(*rates: float, expected: float | None = None, step_s: float = 0.25) -> PlotPeriod:
    """Return a period with these rates, one for each step."""
    rate = None if expected is None else ExpectedRate(round(expected), "documented", "a table")
    points = [PlotPoint(number * step_s, bit_s, False) for number, bit_s in enumerate(rates, 1)]
    return PlotPeriod(0.0, Settings(), Expectation(out=rate), {Direction.OUT: points})


def top(*periods: PlotPeriod, span_s: float = 30.0, peak: Expectation = NOTHING) -> float:
    """Return the top of a new axis."""
    return RateAxis().top(periods, peak, span_s, 0)


def test_a_measured_rate_has_a_round_number_above_it() -> None:
    """1, 1.5, 2, 3, 5, 7; without anything to show there is no top."""
    assert top(period(95.6e6)) == 100e6
    assert top(period(99e6)) == pytest.approx(150e6)
    assert top(period()) == top() == 0


def test_an_expected_rate_stands_at_nine_tenths_until_more_arrives() -> None:
    """It does not move as long as what is measured fits; nor for a peak that no rate is expected beside."""
    assert top(period(expected=90e6)) == top(period(95e6, expected=90e6)) == pytest.approx(100e6)
    assert top(period(190e6, expected=90e6)) == 200e6
    peak = Expectation(out=ExpectedRate(180_000_000, "documented", "a table"))
    assert top(period(95e6, expected=90e6), peak=peak) == pytest.approx(200e6)
    assert top(period(95.6e6), peak=peak) == 100e6


def test_the_axis_follows_what_is_seen_and_does_not_flicker() -> None:
    """It grows at once, and gets smaller only when most of it would be empty."""
    axis, tops = RateAxis(), []
    for number, bit_s in enumerate((80e6, 99e6, 80e6, 62e6, 99e6, 50e6, 60e6, 80e6)):
        tops.append(axis.top([period(bit_s)], NOTHING, 30.0, number * REDRAW_NS) / 1e6)
    assert tops == pytest.approx([100, 150, 150, 150, 150, 70, 70, 100])
    assert follow_values(70.0, 0.0) == 70.0


def test_a_burst_that_no_column_shows_leaves_the_axis_alone() -> None:
    """One of a quarter of a second, in an hour."""
    rates = [95e6] * 14_400
    rates[100] = 900e6
    assert top(period(*rates), span_s=3_600.0) == pytest.approx(150e6)
    assert top(period(*rates[:120])) == 1_000e6
