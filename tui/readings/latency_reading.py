"""The readings of latency: its percentiles under load, the delay variation of datagrams, the steps of a test.

Pure. During a run the values are the newest, after it they are its results.
"""

from dataclasses import dataclass
from enum import Enum, auto
from statistics import median
from typing import TYPE_CHECKING

from ...engine.model.counters.latency_histogram import LatencySummary
from ...engine.model.directions import Direction
from .cockpit_snapshot import Phase
from .flow_reading import datagram_reading, flow_reading

if TYPE_CHECKING:
    from ...engine.results.responsiveness.result import Responsiveness
    from ...engine.results.summary import Summary
    from .cockpit_snapshot import CockpitSnapshot
    from .live_readings import LiveReadings


@dataclass(frozen=True, slots=True)
class LatencyReading:
    """The latency under load, the latency before the load (`idle`), and TCP's own round trip."""

    title: str
    latency: LatencySummary | None = None
    idle: LatencySummary | None = None
    rtt_us: int | None = None
    span: str = ""
    rtt_name: str = "RTT as TCP measures it"

    @property
    def load_ratio(self) -> float | None:
        """The median latency under load divided by the idle one; None if either is unknown."""
        if self.latency is None or self.idle is None:
            return None
        return self.latency.p50_ns / self.idle.p50_ns


def delay_variation_reading(view: "CockpitSnapshot") -> LatencyReading | None:
    """Return the delay variation of a UDP run in its first direction; None for TCP."""
    if view.readings is None:
        return None
    direction = view.readings.settings.direction.flows[0]
    reading = datagram_reading(view, direction)
    if reading is None:
        return None
    so_far = reading.so_far
    return LatencyReading(
        f"delay variation, {direction}",
        None if so_far is None else so_far.delay_variation,
        None,
        None if so_far is None else so_far.rtt_us,
        "whole run" if view.summary is not None else "since the last change",
        "RTT of the receiver's reports",
    )


def latency_reading(view: "CockpitSnapshot") -> LatencyReading | None:
    """Return the latency of the run's probe or transactions; None if it measures neither."""
    if view.readings is None:
        return None
    plan = view.readings.plan
    if plan.probe:
        return _probe_reading(view.readings, view.summary)
    return _transaction_reading(view, view.readings) if plan.workload.is_transactional else None


def _transaction_reading(view: "CockpitSnapshot", readings: "LiveReadings") -> LatencyReading:
    direction = readings.settings.direction
    title, latency = f"latency, {readings.plan.workload} {direction}", flow_reading(view, direction).latency
    if view.summary is not None:
        return LatencyReading(title, latency, None, view.summary.tcp.rtt_us, "whole run")
    rtts = [row.rtt_us for row in readings.session_rows() if row.rtt_us is not None]
    return LatencyReading(title, latency, None, round(median(rtts)) if rtts else None, "last second")


def _probe_reading(readings: "LiveReadings", summary: "Summary | None") -> LatencyReading:
    probe = summary.probe if summary is not None else None
    if probe is not None:
        idle, loaded = probe.idle, probe.loaded
        return LatencyReading(
            "latency under load",
            loaded.latency if loaded else None,
            idle.latency if idle else None,
            loaded.rtt_us if loaded else None,
            "whole run",
        )
    idle, now = readings.meter.probe.idle, readings.meter.probe.recent
    return LatencyReading(
        "latency under load", now and now.latency, idle and idle.latency, now and now.rtt_us, "last 10 s"
    )


class StepState(Enum):
    """Whether a step of the test is over, in progress, to come, or was left out because the test ended early."""

    DONE = auto()
    NOW = auto()
    TO_COME = auto()
    LEFT_OUT = auto()


@dataclass(frozen=True, slots=True)
class LoadStep:
    """A step of the test: the load in a direction, or the idle link (None)."""

    direction: Direction | None
    state: StepState


@dataclass(frozen=True, slots=True)
class ResponsivenessReading:
    """The steps of a responsiveness test in their order, and its results so far; None before the first."""

    steps: tuple[LoadStep, ...]
    result: "Responsiveness | None"
    is_over: bool


def responsiveness_reading(view: "CockpitSnapshot") -> ResponsivenessReading | None:
    """Return the steps and the results of a responsiveness test; None for another run."""
    readings = view.readings
    if readings is None or readings.plan.responsiveness is None:
        return None
    summary = view.latest_summary
    result = None if summary is None else summary.responsiveness
    is_over = view.phase is Phase.DONE
    return ResponsivenessReading(_steps(readings, result, is_over=is_over), result, is_over)


def _directions(readings: "LiveReadings") -> tuple[Direction, ...]:
    """Return the directions of a test whose user sets them, in the order of their first load."""
    settings = (*(period.settings for period in readings.periods), readings.settings)
    return tuple(dict.fromkeys(each.direction for each in settings))


def _steps(readings: "LiveReadings", result: "Responsiveness | None", *, is_over: bool) -> tuple[LoadStep, ...]:
    """Return the state of each step. A test that ended early has measured the step in progress."""
    loads = readings.plan.load_directions
    order = (None, *(loads or _directions(readings)))
    has_load = bool(readings.periods) and readings.elapsed_ns > 0
    at = order.index(readings.settings.direction) if has_load else 0
    last = at if loads or not has_load else len(order)  # a direction that the user has left was measured
    if is_over:
        measured = {load.direction for load in result.loads} if result is not None else set[Direction]()
        return tuple(
            LoadStep(step, StepState.DONE if step is None or step in measured else StepState.LEFT_OUT)
            for step in order
        )
    return tuple(
        LoadStep(step, StepState.NOW if number == at else StepState.DONE if number < last else StepState.TO_COME)
        for number, step in enumerate(order)
    )
