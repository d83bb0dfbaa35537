"""Averages and gauge values: what is unknown, and what a run is judged by."""

from typing import Any

import pytest
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.tui.state.instrument_values import period_averages
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
