"""Averages and gauge values: what is unknown, and what a run is judged by."""

from typing import Any

import pytest
from linkgauge.engine.model.events import Expectation
from linkgauge.engine.model.plan import Direction, Plan, Settings
from linkgauge.tui.state.instrument_values import PlotPeriod, PlotPoint, period_averages, plot_columns
from linkgauge.tui.state.live_readings import LiveReadings


def test_each_leg_has_the_average_that_the_run_is_judged_by(world: Any) -> None:
    """Before and after of a change, warm-up left out; what has not counted yet is unknown."""
    plan = Plan()
    script = world.script_of(world.app(plan=plan).cockpit.preset, plan)
    script.run_for(12, 4e9)
    script.change_settings(Settings(sessions=5))
    script.run_for(12, 9e9)
    script.change_settings(Settings(sessions=8))
    script.run_for(1, 9e9)
    board, meter = LiveReadings(plan), script.meter
    while not script.queue.empty():
        event = script.queue.get_nowait()
        board.feed(event)
        meter.feed(event)
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
    assert [None if one is None else one.rates[0][1] for one in drawn] == [4.0, 8.0, 8.0, 8.0, *[None] * 4]
    assert [one.warmup for one in drawn if one] == [True, False, False, False]
    assert [one.rates[0][1] for one in plot_columns([before], 2.0, 1) if one] == [3.0]
