"""A responsiveness test as its panel shows it: each step, whether over or to come, and its results. Pure."""

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from ...engine.iperf3.protocol.missing_features import Feature, why_unavailable
from ...engine.model.peer import Peer
from ...engine.model.plan import Direction, Plan
from ...engine.results.responsiveness.plan import responsiveness_plan
from ...engine.results.responsiveness.result import Responsiveness
from .instrument_values import Phase
from .live_readings import CockpitSnapshot, LiveReadings

_FIXED: Final = "a responsiveness test sets direction and sessions itself: press space to stop it first"


class StepState(Enum):
    """Whether a step of the test is over, in progress, still to come, or was left out because the test ended."""

    DONE = auto()
    NOW = auto()
    TO_COME = auto()
    LEFT_OUT = auto()


@dataclass(frozen=True, slots=True)
class LoadStep:
    """A step of the test: the load in a direction, or with None the link at rest."""

    direction: Direction | None
    state: StepState


@dataclass(frozen=True, slots=True)
class ResponsivenessReading:
    """The steps of a responsiveness test in their order, and its results so far; None before the first."""

    steps: tuple[LoadStep, ...]
    result: Responsiveness | None
    is_over: bool


def load_plan(plan: Plan) -> Plan:
    """Return the plan of a responsiveness test for a person who has set this one.

    Its settings are those of every such test. The options of sockets, the cores and a limit of the rate are kept.
    """
    return replace(
        responsiveness_plan(socket=plan.socket),
        rate_bit_s=plan.rate_bit_s,
        workers=plan.workers,
        near_cores=plan.near_cores,
        far_cores=plan.far_cores,
    )


def is_in_phases(view: CockpitSnapshot) -> bool:
    """Return whether a test is in progress that changes its settings by itself."""
    is_running = view.phase in {Phase.STARTING, Phase.RUNNING, Phase.STOPPING}
    return is_running and view.readings is not None and view.readings.plan.has_phases


def why_settings_fixed(peer: Peer, plan: Plan) -> str | None:
    """Return why the settings of a run cannot be changed, for a person; None if they can."""
    return _FIXED if plan.has_phases else why_unavailable(peer, Feature.LIVE_CHANGES)


def responsiveness_reading(view: CockpitSnapshot) -> ResponsivenessReading | None:
    """Return the steps and the results of a responsiveness test; None for another run."""
    readings = view.readings
    if readings is None or readings.plan.responsiveness is None:
        return None
    summary = view.latest_summary
    result = None if summary is None else summary.responsiveness
    is_over = view.phase is Phase.DONE
    return ResponsivenessReading(_steps(readings, result, is_over=is_over), result, is_over)


def _steps(readings: LiveReadings, result: Responsiveness | None, *, is_over: bool) -> tuple[LoadStep, ...]:
    """Return the state of each step. A test that ended early has measured the step that it was in."""
    order = (None, *(readings.plan.load_directions or [readings.plan.settings.direction]))
    at = order.index(readings.settings.direction) if readings.periods and readings.elapsed_ns else 0
    if is_over:
        measured = {load.direction for load in result.loads} if result is not None else set[Direction]()
        return tuple(
            LoadStep(step, StepState.DONE if step is None or step in measured else StepState.LEFT_OUT)
            for step in order
        )
    return tuple(
        LoadStep(step, StepState.DONE if number < at else StepState.NOW if number == at else StepState.TO_COME)
        for number, step in enumerate(order)
    )
