"""What the instruments of a run show at one moment, and the values of each: of a run that is live, ended or stored.

Pure. During a run the values are of the last second, after it they are its results.
"""

from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING, Final

from ...engine.iperf3.protocol.missing_features import Feature, why_unavailable
from ...engine.model.events import Expectation
from ...engine.model.host_info import HostInfo
from ...engine.model.peer import Peer
from ...engine.model.plan import Direction, Plan, Settings
from ...presets.preset import Preset
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ..words.numbers import RateUnit
from ..words.summary import response_bits_of
from .instrument_values import (
    DatagramReading,
    FlowRate,
    FlowReading,
    LatencyReading,
    LoadStep,
    Phase,
    ResponsivenessReading,
    RunProblem,
    StepState,
)
from .plot_values import RateAxis, highest_mark, marks, time_span_s

if TYPE_CHECKING:
    from ...engine.results.responsiveness.result import Responsiveness
    from ...engine.results.summary import DatagramSummary, Measurement, Summary
    from ...presets.diagnosis.finding import Finding
    from ...presets.diagnosis.window_bounds import FlowWindows
    from ...presets.verdict import Verdict
    from .live_readings import LiveReadings

_FIXED: Final = "a responsiveness test sets direction and sessions itself: press space to stop it first"


@dataclass(frozen=True, slots=True)
class CockpitSnapshot:  # its many fields are all that the instruments need: each frame is of one moment
    """The instruments' values at one moment.

    `preset` and `plan` are of the run that is shown, live or ended. Before the first run, they are of the next one.
    `next_plan` and `next_preset` are for the run after the one that is shown; None if there is nothing to tell.
    """

    phase: Phase
    preset: Preset
    plan: Plan
    peer: Peer
    near: HostInfo | None = None
    far: HostInfo | None = None
    readings: "LiveReadings | None" = None
    summary: "Summary | None" = None
    verdict: "Verdict | None" = None
    expectation: Expectation = field(default_factory=Expectation)
    interim_summary: "Summary | None" = None
    peak: Expectation = field(default_factory=Expectation)
    problem: RunProblem | None = None
    notices: tuple[str, ...] = ()
    findings: "tuple[Finding, ...]" = ()
    windows: "tuple[FlowWindows, ...]" = ()
    is_paused: bool = False
    language: str = "en"
    units: RateUnit = RateUnit.MBIT
    pass_percent: float = DEFAULT_PASS_PERCENT
    is_preset_auto: bool = False
    expected_sending_bit_s: int | None = None
    requested: Settings | None = None
    next_plan: Plan | None = None
    next_preset: Preset | None = None

    @property
    def settings(self) -> Settings:
        """The settings in force, including a change that the run has not reported yet."""
        return self.requested or (self.readings.settings if self.readings else self.plan.settings)

    @property
    def latest_summary(self) -> "Summary | None":
        """The summary of the ended run, or the interim one of the current run."""
        return self.summary or self.interim_summary

    @property
    def is_in_phases(self) -> bool:
        """Whether a test is in progress that changes its settings by itself."""
        return self.phase.is_busy and self.readings is not None and self.readings.plan.has_phases

    @property
    def span_s(self) -> float:
        """The length of the plot's time axis."""
        elapsed_ns = self.readings.elapsed_ns if self.readings else 0
        return time_span_s(self.plan, elapsed_ns, has_ended=self.summary is not None)

    @property
    def response_bits(self) -> int | None:
        """The payload of a transaction if rates are shown as transactions a second, else None."""
        return response_bits_of(self.plan)

    @property
    def rate_top(self) -> float:
        """The rate at the top of the plot and at the end of each gauge's bar; 0 while nothing is known."""
        readings = self.readings
        if readings is None:
            return RateAxis().top((), self._highest_mark, self.span_s, 0)
        return readings.rate_axis.top(readings.periods, self._highest_mark, self.span_s, readings.elapsed_ns)

    @property
    def unit_bit_s(self) -> float:
        """The rate that sets the unit of gauges and plot: the highest expected one, or else the highest measured.

        A measured rate could set a unit that cuts the digits of the expected rate.
        """
        measured = self.readings.traces.highest_bit_s.values() if self.readings else ()
        return self._highest_mark or max(measured, default=0.0)

    @property
    def _highest_mark(self) -> float:
        """The highest expected rate of the run's periods, or of the next run before the first period."""
        if self.readings is not None and self.readings.periods:
            return highest_mark(self.readings.periods, self.peak)
        direction = self.plan.settings.direction
        return max((mark.bit_s for mark in marks(self.expectation[direction], self.peak[direction])), default=0.0)


def flow_reading(view: CockpitSnapshot, direction: Direction) -> FlowReading:
    """Return a gauge's values: the last second during a run, the result after it."""
    readings, summary = view.readings, view.summary
    if readings is None:
        rate = FlowRate(expected=view.expectation[direction])
    elif summary is None:
        rate = readings.flow(direction)
    else:
        rate = _loaded_rate(summary, direction) or _result_rate(summary, direction)
    return FlowReading(
        direction,
        rate.bit_s,
        rate.expected,
        0.0 if readings is None else readings.highest_bit_s(direction),
        is_final=summary is not None,
        is_judged=summary is None or summary.is_whole,
        response_bits=view.response_bits,
        latency=rate.latency,
        peak=view.peak[direction],
        margin_percent=rate.margin_percent,
        units=view.units,
        least_unit_bit_s=view.unit_bit_s,
        datagrams=datagram_reading(view, direction),
        source="" if readings is None else readings.source(direction),
        full_bit_s=view.rate_top,
        is_idle=readings is None,
    )


def _result_rate(summary: "Summary", direction: Direction) -> FlowRate:
    """Return the result of an ended run in a direction."""
    measured, expected = summary.measured[direction], summary.expectation[direction]
    if measured is None:
        return FlowRate(expected=expected)
    return FlowRate(
        measured.result_bit_s if measured.span_ns > 0 else None,
        expected,
        measured.latency,
        None if measured.estimate is None else measured.estimate.half_width_percent,
    )


def _loaded_rate(summary: "Summary", direction: Direction) -> FlowRate | None:
    """Return the rate of a direction in a responsiveness test while only that direction was loaded.

    The total is the rate of both at once. None for another run, and for a load that was not measured.
    """
    load = None if summary.responsiveness is None else summary.responsiveness.load_of(direction)
    if load is None:
        return None
    expected = next(
        (each.expectation for each in summary.periods if each.settings.direction is direction), Expectation()
    )
    return FlowRate(load.bit_s[direction], expected[direction])


def datagram_reading(view: CockpitSnapshot, direction: Direction) -> DatagramReading | None:
    """Return the datagrams of a direction; None for TCP, and before a run.

    During a run, losses are counted from the last change on: losses at another rate say nothing about this one.
    """
    readings = view.readings
    if readings is None or not readings.plan.workload.is_datagram:
        return None
    if view.summary is not None:
        measured = view.summary.measured[direction]
        whole = None if measured is None else measured.datagrams
        return DatagramReading(direction, None if measured is None else measured.packets_s, whole, whole)
    now = readings.datagrams(direction)
    period = _current_measurement(view, direction)
    return now if period is None else replace(now, so_far=period)


def _current_measurement(view: CockpitSnapshot, direction: Direction) -> "DatagramSummary | None":
    """Return the datagrams of the current period without its warm-up; None before the first."""
    interim, readings = view.interim_summary, view.readings
    if interim is None or readings is None or readings.in_warmup or not interim.periods:
        return None
    period = interim.periods[-1]
    measured: Measurement | None = period.measured[direction]
    return measured.datagrams if measured is not None and period.settings == readings.settings else None


def delay_variation_reading(view: CockpitSnapshot) -> LatencyReading | None:
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


def latency_reading(view: CockpitSnapshot) -> LatencyReading | None:
    """Return the latency of the run's probe or transactions; None if it measures neither."""
    if view.readings is None:
        return None
    plan = view.readings.plan
    if plan.probe:
        return _probe_reading(view.readings, view.summary)
    return _transaction_reading(view.readings, view.summary) if plan.workload.is_transactional else None


def _transaction_reading(readings: "LiveReadings", summary: "Summary | None") -> LatencyReading:
    direction = readings.settings.direction
    title = f"latency, {readings.plan.workload} {direction}"
    if summary is not None:
        measured = summary.measured[direction]
        latency = measured.latency if measured else None
        return LatencyReading(title, latency, None, summary.tcp.rtt_us, "whole run")
    rtts = [row.rtt_us for row in readings.session_rows() if row.rtt_us is not None]
    latency = readings.flow(direction).latency
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


def why_settings_fixed(peer: Peer, plan: Plan) -> str | None:
    """Return why the settings of a run cannot be changed, in words for the user; None if they can."""
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


def _steps(readings: "LiveReadings", result: "Responsiveness | None", *, is_over: bool) -> tuple[LoadStep, ...]:
    """Return the state of each step. A test that ended early has measured the step in progress."""
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
