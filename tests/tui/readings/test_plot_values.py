"""The columns and the axes of a run's plot: one rate at its top and at the end of each gauge's bar."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.results.responsiveness.plan import responsiveness_plan
from linkgauge.engine.results.sums.traces import PlotPeriod, PlotPoint
from linkgauge.tui.readings.plot_values import (
    REDRAW_NS,
    PlotContent,
    RateAxis,
    follow_values,
    highest_mark,
    period_averages,
    plot_columns,
    plot_contents,
)

from ..scripted_run import play

NOTHING = Expectation()


def period(*rates: float, expected: float | None = None, step_s: float = 0.25) -> PlotPeriod:
    """Return a period with these rates, one for each step."""
    rate = None if expected is None else ExpectedRate(round(expected), "documented", "a table")
    points = [PlotPoint(number * step_s, bit_s, False) for number, bit_s in enumerate(rates, 1)]
    return PlotPeriod(0.0, Settings(), Expectation(out=rate), {Direction.OUT: points})


def top(*periods: PlotPeriod, span_s: float = 30.0, peak: Expectation = NOTHING) -> float:
    """Return the top of a new axis."""
    return RateAxis().top(periods, highest_mark(periods, peak), span_s, 0)


def test_a_measured_rate_has_a_round_number_above_it() -> None:
    """1, 1.5, 2, 3, 5, 7. An empty plot has no top."""
    assert top(period(95.6e6)) == 100e6
    assert top(period(99e6)) == pytest.approx(150e6)
    assert top(period()) == top() == 0


def test_an_expected_rate_stands_at_nine_tenths_until_more_arrives() -> None:
    """It stays while the measured rate fits. A peak without an expected rate does not move it either."""
    assert top(period(expected=90e6)) == top(period(95e6, expected=90e6)) == pytest.approx(100e6)
    assert top(period(190e6, expected=90e6)) == 200e6
    peak = Expectation(out=ExpectedRate(180_000_000, "documented", "a table"))
    assert top(period(95e6, expected=90e6), peak=peak) == pytest.approx(200e6)
    assert top(period(95.6e6), peak=peak) == 100e6


def test_the_axis_follows_what_is_seen_and_does_not_flicker() -> None:
    """It grows at once, and shrinks only if most of it would be empty."""
    axis, tops = RateAxis(), []
    for number, bit_s in enumerate((80e6, 99e6, 80e6, 62e6, 99e6, 50e6, 60e6, 80e6)):
        tops.append(axis.top([period(bit_s)], 0.0, 30.0, number * REDRAW_NS) / 1e6)
    assert tops == pytest.approx([100, 150, 150, 150, 150, 70, 70, 100])
    assert follow_values(70.0, 0.0) == 70.0


def test_a_burst_that_no_column_shows_leaves_the_axis_alone() -> None:
    """A burst of a quarter of a second in an hour."""
    rates = [95e6] * 14_400
    rates[100] = 900e6
    assert top(period(*rates), span_s=3_600.0) == pytest.approx(150e6)
    assert top(period(*rates[:120])) == 1_000e6


def test_each_period_has_the_average_of_the_verdict(world: Any) -> None:
    """Before and after a change, without warm-up. A period in its warm-up has no average."""
    plan = Plan()
    script = world.script_of(world.app(plan=plan).cockpit.preset, plan)
    script.run_for(12, 4e9)
    script.change_settings(Settings(sessions=5))
    script.run_for(12, 9e9)
    script.change_settings(Settings(sessions=8))
    script.run_for(1, 9e9)
    board, meter = play(script), script.meter
    before, after, unknown = period_averages(board.periods, meter.summary())
    assert (before, after) == (pytest.approx(4e9, rel=0.02), pytest.approx(9e9, rel=0.02))
    assert unknown is None
    assert period_averages(board.periods, None) == [None, None, None]


def test_the_plot_shows_the_known_values_of_each_column() -> None:
    """The points of a column are averaged, a long point fills several, and a period's first column is its own."""
    before = PlotPeriod(
        0.0, Settings(), Expectation(), {Direction.OUT: [PlotPoint(1.0, 4.0, True), PlotPoint(1.5, 2.0, False)]}
    )
    after = PlotPeriod(1.5, Settings(sessions=5), Expectation(), {Direction.OUT: [PlotPoint(4.0, 8.0, False)]})
    drawn = plot_columns([before, after], 8.0, 8)
    assert [None if column is None else column.rates[0][1] for column in drawn] == [4.0, 8.0, 8.0, 8.0, *[None] * 4]
    assert [column.warmup for column in drawn if column] == [True, False, False, False]
    assert [column.rates[0][1] for column in plot_columns([before], 2.0, 1) if column] == [3.0]


def test_only_a_test_with_loads_has_their_plot() -> None:
    """It comes first there."""
    assert plot_contents(responsiveness_plan())[0] is PlotContent.LOAD
    assert PlotContent.LOAD not in plot_contents(Plan(probe=True))
