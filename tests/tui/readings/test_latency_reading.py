"""The steps of a responsiveness test."""

from typing import Any

import pytest
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import Plan
from linkgauge.tui.readings.latency_reading import StepState, responsiveness_reading
from linkgauge.tui.run.cockpit_state import CockpitState

from ..scripted_loads import A_LOAD, state_after

DONE, NOW, TO_COME, LEFT_OUT = StepState.DONE, StepState.NOW, StepState.TO_COME, StepState.LEFT_OUT


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
    assert _steps(state_after(world, most)) == steps


def test_a_test_that_was_stopped_has_left_out_the_rest(world: Any) -> None:
    """The results until then stay."""
    assert _steps(state_after(world, A_LOAD + 10, is_stopped=True)) == [DONE, DONE, DONE, LEFT_OUT]


def test_another_run_has_no_steps(world: Any) -> None:
    """Even with a probe."""
    state = CockpitState(LOOPBACK, Plan(probe=True), world.catalog.find("100mb-fd"), 95.0)
    assert responsiveness_reading(state.snapshot()) is None
    state.begin_run(state.plan)
    assert responsiveness_reading(state.snapshot()) is None
    assert state.why_fixed is None
