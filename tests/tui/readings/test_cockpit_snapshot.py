"""The steps of a responsiveness test, and its gauges at the end."""

from typing import Any

import pytest
from linkgauge.engine.model.events import Reason
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import Direction, Plan, Settings
from linkgauge.engine.results.responsiveness.plan import responsiveness_plan
from linkgauge.tui.readings.cockpit_snapshot import flow_reading, responsiveness_reading, why_settings_fixed
from linkgauge.tui.readings.instrument_values import StepState
from linkgauge.tui.run.cockpit_state import CockpitState

from ..scripted_loads import emit_loads
from ..scripted_run import ScriptedRun

DONE, NOW, TO_COME, LEFT_OUT = StepState.DONE, StepState.NOW, StepState.TO_COME, StepState.LEFT_OUT
A_LOAD = 25  # intervals


def _state_after(world: Any, most: int | None, *, is_stopped: bool = False) -> CockpitState:
    """Return the state after some intervals of a test, or after all of it."""
    preset, plan = world.catalog.find("100mb-fd"), responsiveness_plan()
    state = CockpitState(LOOPBACK, Plan(Settings(sessions=3)), preset, 95.0)
    state.begin_run(plan)
    script = ScriptedRun(preset, plan)
    state.run_opened(script)
    script.start(LOOPBACK)
    emit_loads(script, most=most)
    if is_stopped:
        script.stop(Reason.STOPPED)
    while not script.queue.empty():
        event = script.queue.get_nowait()
        script.meter.feed(event)
        state.handle_event(event)
    if most is None or is_stopped:
        state.run_ended(script.meter.summary())
    return state


def _steps(state: CockpitState) -> list[StepState]:
    reading = responsiveness_reading(state.snapshot())
    assert reading is not None
    return [step.state for step in reading.steps]


@pytest.mark.parametrize(
    ("most", "steps"),
    [
        (0, [NOW, TO_COME, TO_COME, TO_COME]),
        (5, [DONE, NOW, TO_COME, TO_COME]),
        (A_LOAD + 5, [DONE, DONE, NOW, TO_COME]),
        (2 * A_LOAD + 5, [DONE, DONE, DONE, NOW]),
        (None, [DONE, DONE, DONE, DONE]),
    ],
)
def test_the_steps_say_what_is_over_and_what_is_to_come(
    world: Any, most: int | None, steps: list[StepState]
) -> None:
    """Idle, out, in, both."""
    assert _steps(_state_after(world, most)) == steps


def test_a_test_that_was_stopped_has_left_out_the_rest(world: Any) -> None:
    """The results until then stay."""
    assert _steps(_state_after(world, A_LOAD + 10, is_stopped=True)) == [DONE, DONE, DONE, LEFT_OUT]


def test_another_run_has_no_steps(world: Any) -> None:
    """Even with a probe."""
    state = CockpitState(LOOPBACK, Plan(probe=True), world.catalog.find("100mb-fd"), 95.0)
    assert responsiveness_reading(state.snapshot()) is None
    state.begin_run(state.plan)
    assert responsiveness_reading(state.snapshot()) is None
    assert state.why_fixed is None


def test_the_header_shows_the_test_and_the_next_run_keeps_its_settings(world: Any) -> None:
    """The user's choice for ordinary tests stays."""
    state = _state_after(world, A_LOAD + 5)
    assert state.snapshot().plan == responsiveness_plan()
    assert state.snapshot().next_plan is None
    assert state.snapshot().expectation.in_ is not None
    assert state.plan.settings.sessions == 3
    assert state.why_fixed is not None
    state.change_settings(sessions=5)
    assert isinstance(state.run, ScriptedRun)
    assert state.run.changes == []
    ended = _state_after(world, None).snapshot()
    assert ended.plan == responsiveness_plan()
    assert ended.next_plan is not None
    assert ended.next_plan.settings.sessions == 3


def test_a_gauge_has_at_the_end_the_rate_of_its_direction_alone(world: Any) -> None:
    """A mean over loads in different directions would mean nothing."""
    snapshot = _state_after(world, None).snapshot()
    for direction, rate in ((Direction.OUT, 94.1e6), (Direction.IN, 94.1e6), (Direction.DUPLEX, 188.2e6)):
        flow = flow_reading(snapshot, direction)
        assert flow.bit_s == pytest.approx(rate, rel=0.01)
        assert flow.expected is not None


def test_settings_are_fixed_by_the_test_or_by_the_far_end() -> None:
    """Each has its own reason."""
    assert why_settings_fixed(LOOPBACK, Plan()) is None
    assert "responsiveness test" in (why_settings_fixed(LOOPBACK, responsiveness_plan()) or "")
    assert "iperf3" in (why_settings_fixed(Peer.parse("iperf3://db-02"), Plan()) or "")
