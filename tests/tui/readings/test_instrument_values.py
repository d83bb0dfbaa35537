"""Averages and gauge values: what is unknown, and what a run is judged by."""

from typing import Any

import pytest
from linkgauge.engine.model.events import Expectation, ExpectedRate
from linkgauge.engine.model.plan import Direction, Plan, Settings
from linkgauge.engine.results.sums.traces import PlotPeriod, PlotPoint
from linkgauge.tui.readings.instrument_values import FlowReading, period_averages, plot_columns

from ..scripted_run import play


def test_each_leg_has_the_average_that_the_run_is_judged_by(world: Any) -> None:
    """Before and after of a change, warm-up left out; what has not counted yet is unknown."""
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
    """Several points in a column are averaged, a long one fills several, and a leg's first column is its own."""
    before = PlotPeriod(
        0.0, Settings(), Expectation(), {Direction.OUT: [PlotPoint(1.0, 4.0, True), PlotPoint(1.5, 2.0, False)]}
    )
    after = PlotPeriod(1.5, Settings(sessions=5), Expectation(), {Direction.OUT: [PlotPoint(4.0, 8.0, False)]})
    drawn = plot_columns([before, after], 8.0, 8)
    assert [None if column is None else column.rates[0][1] for column in drawn] == [4.0, 8.0, 8.0, 8.0, *[None] * 4]
    assert [column.warmup for column in drawn if column] == [True, False, False, False]
    assert [column.rates[0][1] for column in plot_columns([before], 2.0, 1) if column] == [3.0]


@pytest.mark.parametrize(
    ("expected_bit_s", "bit_s", "unit", "expected_text"),
    [
        (94.8e6, 26e9, "Mb/s", "94.80"),
        (94.8e6, 90e6, "Mb/s", "94.80"),
        (9_415e6, 12e9, "Mb/s", "9\u00a0415"),
        (23.5e9, 1e9, "Gb/s", "23.50"),
        (None, 26e9, "Gb/s", "–"),
        (None, 900e6, "Mb/s", "–"),
    ],
)
def test_a_gauge_keeps_the_digits_of_the_expected_rate(
    expected_bit_s: float | None, bit_s: float, unit: str, expected_text: str
) -> None:
    """A run that is far faster than its preset must not turn 94.80 Mb/s into 0.09 Gb/s."""
    expected = None if expected_bit_s is None else ExpectedRate(int(expected_bit_s), "documented", "a table")
    reading = FlowReading(Direction.OUT, bit_s, expected, highest_bit_s=bit_s)
    assert reading.scale.unit == unit
    assert reading.number(expected_bit_s) == expected_text
