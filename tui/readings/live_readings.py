"""The readings of a run, taken from its meter: values only, no connection and no clock.

Pure. Rates and loads are means over the last second: a single interval of a quarter of a second fluctuates
too much to be read, and the counters of CPU time move in steps of 10 ms.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Final

from ...engine.model.events import Expectation, Sampled
from ...engine.model.host_info import HostInfo
from ...engine.model.latency_histogram import merge_counts, summarize_latency
from ...engine.model.peer import Peer
from ...engine.model.plan import SECOND_NS, Direction, End, Plan, Settings, sender_of
from ...engine.model.samples import SessionSample
from ...engine.results.counter_sums import core_percents, host_percent, percent_of
from ...engine.results.meter import Meter
from ...engine.results.responsiveness.result import ResponsivenessPoint
from ...engine.results.summary import DatagramSummary, Measurement, Summary
from ...engine.results.sums.sample_sum import SampleSum
from ...engine.results.sums.session_sums import SessionSum, SessionSums
from ...engine.results.sums.traces import PlotPeriod, Traces
from ...engine.results.udp.datagram_sums import DatagramSum
from ...presets.diagnosis.finding import Finding
from ...presets.diagnosis.window_bounds import FlowWindows
from ...presets.preset import Preset
from ...presets.verdict import DEFAULT_PASS_PERCENT, Verdict
from ..words import numbers
from ..words.event_lines import EventLines
from ..words.iperf3 import live_source_text
from ..words.numbers import RateUnit
from ..words.summary import response_bits_of
from .instrument_values import (
    ChangeMark,
    CpuReading,
    DatagramReading,
    FlowRate,
    FlowReading,
    LatencyReading,
    Phase,
    RunProblem,
    SessionRow,
)
from .plot_axes import REDRAW_NS, RateAxis, highest_mark, time_span_s

_RECENT_NS: Final = SECOND_NS


class LiveReadings:
    """The readings of one run: a view over its meter, which must have traces.

    Its rates and loads cover the last second before the newest sample. You must feed every event, in order, to its
    log. Before the run is open, the meter is an empty one.
    """

    def __init__(self, plan: Plan, meter: Meter | None = None) -> None:
        self.meter = meter or Meter(has_traces=True)
        self.log = EventLines()
        self.rate_axis = RateAxis()
        self._plan = plan
        self._load_points: tuple[object, tuple[ResponsivenessPoint, ...]] | None = None
        self._recent_sums: tuple[Sampled | None, SampleSum] | None = None  # made once for all gauges of a sample

    @property
    def warnings(self) -> list[str]:
        """The warnings of the run, in words for the screen."""
        return [numbers.sanitize(text) for text in self.meter.warnings.texts]

    @property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self.meter.started.plan if self.meter.started else self._plan

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.meter.recent.settings or self._plan.settings

    @property
    def elapsed_ns(self) -> int:
        """The end of the newest interval."""
        return self.meter.elapsed_ns

    @property
    def in_warmup(self) -> bool:
        """Whether the newest sample does not count yet."""
        newest = self.meter.recent.newest
        return newest is None or newest.warmup

    @property
    def traces(self) -> Traces:
        """The run over time."""
        return self.meter.traces

    @property
    def load_points(self) -> tuple[ResponsivenessPoint, ...]:
        """Latency over time of a responsiveness test: made anew twice a second, as its plot is drawn."""
        moment = self.meter.elapsed_ns // REDRAW_NS, self.meter.has_ended
        if self._load_points is None or self._load_points[0] != moment:
            self._load_points = moment, self.meter.responsiveness_series
        return self._load_points[1]

    @property
    def periods(self) -> list[PlotPeriod]:
        """The periods of the plot."""
        return self.traces.periods

    @property
    def change_marks(self) -> list[ChangeMark]:
        """Where the plot says what changed: the settings, or the other tests of the endpoint."""
        changes = (
            ChangeMark(after.from_s, numbers.settings_change(before.settings, after.settings))
            for before, after in pairwise(self.periods)
        )
        others = (
            ChangeMark(span.from_s, "other test" if span.tests == 1 else "other tests")
            for span in self.traces.other_tests
        )
        return sorted((mark for mark in (*changes, *others) if mark.label), key=lambda mark: mark.at_s)

    @property
    def granted_bytes(self) -> dict[End, int]:
        """The smallest window that each end's kernel has granted to a session, where one is known."""
        granted = {end: self.meter.sockets.granted_bytes(end) for end in End}
        return {end: window_bytes for end, window_bytes in granted.items() if window_bytes is not None}

    @property
    def window_in_use(self) -> int | None:
        """The smaller window of both ends, as the kernels granted it; with `auto`, a session's congestion window.

        None while unknown.
        """
        if granted := self.granted_bytes:
            return min(granted.values())
        newest = [points[-1].cwnd_bytes or 0 for points in self.traces.tcp.values()]
        return max(newest, default=0) // self.settings.sessions or None

    def flow(self, direction: Direction) -> FlowRate:
        """Return the rate of a direction in the last second; for duplex, of both together."""
        received = [self._recent_sum.received[flow] for flow in direction.flows]
        rates = [sums.bit_s for sums in received if sums.bit_s is not None]
        counts: dict[int, int] = {}
        for sums in received:
            merge_counts(counts, sums.latency.items())
        expectation = self.periods[-1].expectation if self.periods else Expectation()
        bit_s = sum(rates) if len(rates) == len(received) else None
        return FlowRate(bit_s, expectation[direction], summarize_latency(counts))

    def highest_bit_s(self, direction: Direction) -> float:
        """Return the highest rate that a gauge has shown; of two beside each other, that of both."""
        flows = self.settings.direction.flows
        flows = flows if direction in flows else (direction,)
        return max(self.traces.highest_bit_s.get(flow, 0.0) for flow in flows)

    def source(self, direction: Direction) -> str:
        """Return what the rates of a direction are of, where its receiver has not reported; else empty."""
        started = self.meter.started
        if started is None or self.traces.has_totals:
            return ""
        return live_source_text(started.unseen_end, direction, is_datagram=self.plan.workload.is_datagram)

    def datagrams(self, direction: Direction) -> DatagramReading:
        """Return the datagrams of a direction in the last second; for duplex, of both together."""
        received = [self._recent_sum.received[flow] for flow in direction.flows]
        sums = DatagramSum()
        for each in received:
            if each.datagrams is not None:
                sums.extend(each.datagrams)
        span_ns = max(each.span_ns for each in received)
        count = sums.in_time
        packets_s = None if count is None or not span_ns else count * SECOND_NS / span_ns
        summary = sums.summary
        return DatagramReading(direction, packets_s, summary, summary)

    def cpu(self, end: End) -> CpuReading:
        """Return the load of one end."""
        sums = self._recent_sum
        payload_bytes = sum(sums.received[flow].bytes for flow in self.settings.direction.flows)
        cost = sums.ends[end].summary(payload_bytes).msec_per_mib
        cores = sums.ends[end].cores
        if not cores:
            return CpuReading(end, msec_per_mib=cost)
        percents = core_percents(cores)
        hottest = max(range(len(cores)), key=lambda core: percents[core])
        whole = cores[hottest].busy_ns + cores[hottest].idle_ns
        kernel = cores[hottest].system_ns + cores[hottest].softirq_ns
        return CpuReading(
            end,
            host_percent=host_percent(cores),
            hottest_core=hottest,
            hottest_percent=percents[hottest],
            hottest_kernel_percent=percent_of(kernel, whole),
            msec_per_mib=cost,
            cores=percents,
        )

    def session_rows(self) -> tuple[SessionRow, ...]:
        """Return the open sessions by direction and number.

        Their rates are those of the last second; of a run of one setting that has ended, its means, as the gauge's.
        """
        recent, workload = SessionSums(), self.plan.workload
        newest: dict[tuple[Direction, int], SessionSample] = {}
        for end in End:
            samples = self.meter.recent.of_end(end, _RECENT_NS)
            for sample in samples:
                recent.add(sample, workload)
            for part in samples[-1].sessions if samples else ():
                if sender_of(part.direction, workload) is end:
                    newest[part.direction, part.session] = part
        return tuple(
            self._row(key, sums, newest.get(key))
            for flow in self.settings.direction.flows
            for key, sums in sorted(recent.sessions.items())
            if key[0] is flow
        )

    def _row(self, key: tuple[Direction, int], recent: SessionSum, sent: SessionSample | None) -> SessionRow:
        """Return the row of a session, with its sums of the last second and the sender's newest sample of it."""
        known = self.traces.session_sums.sessions.get(key) or SessionSum()
        if self.meter.has_ended and len(self.periods) == 1 and known.bit_s is not None:
            recent = known
        packets = None if recent.datagrams is None else recent.datagrams.received
        return SessionRow(
            *key,
            recent.bit_s,
            sent.rtt_us if sent else None,
            known.retransmits,
            sent.cwnd_bytes if sent else None,
            None if known.datagrams is None else known.datagrams.lost_percent,
            None if known.datagrams is None else known.datagrams.jitter_ns,
            None if packets is None or not recent.span_ns else packets * SECOND_NS / recent.span_ns,
        )

    def retransmits(self) -> int | None:
        """Return the retransmitted segments of both ends since the warm-up; None if no kernel reports them."""
        return self.traces.session_sums.retransmits

    @property
    def _recent_sum(self) -> SampleSum:
        recent = self.meter.recent
        if self._recent_sums is None or self._recent_sums[0] is not recent.newest:
            flows = self.settings.direction.flows
            self._recent_sums = recent.newest, recent.sum_shown(self.plan.workload, flows, _RECENT_NS)
        return self._recent_sums[1]


@dataclass(frozen=True, slots=True)
class CockpitSnapshot:  # all that the instruments need, so that each frame is of one moment
    """The instruments' values at one moment.

    `preset` and `plan` are of the run that is shown, live or ended, and before the first run of the next one.
    Beside a run, `next_plan` and `next_preset` are what is chosen for the next one; a preset only if it differs.
    """

    phase: Phase
    preset: Preset
    plan: Plan
    peer: Peer
    near: HostInfo | None = None
    far: HostInfo | None = None
    readings: LiveReadings | None = None
    summary: Summary | None = None
    verdict: Verdict | None = None
    expectation: Expectation = field(default_factory=Expectation)
    interim_summary: Summary | None = None
    peak: Expectation = field(default_factory=Expectation)
    problem: RunProblem | None = None
    notices: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    windows: tuple[FlowWindows, ...] = ()
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
        """The settings in force, with a change that the run has yet to report."""
        return self.requested or (self.readings.settings if self.readings else self.plan.settings)

    @property
    def latest_summary(self) -> Summary | None:
        """The summary of the ended run, or the interim one of the current run."""
        return self.summary or self.interim_summary

    @property
    def span_s(self) -> float:
        """The length of the plot's time axis."""
        plan, elapsed_ns = (self.readings.plan, self.readings.elapsed_ns) if self.readings else (self.plan, 0)
        return time_span_s(plan, elapsed_ns, has_ended=self.summary is not None)

    @property
    def rate_top(self) -> float:
        """The rate at the top of the plot and at the end of each gauge's bar; 0 while nothing is known."""
        elapsed_ns = self.readings.elapsed_ns if self.readings else 0
        return self._rate_axis.top(self._periods, self.peak, self.span_s, elapsed_ns)

    @property
    def unit_bit_s(self) -> float:
        """The rate that sets the unit of gauges and plot: the highest expected one, else the highest measured.

        A unit by a measured rate would cut the digits of the expected one.
        """
        measured = self.readings.traces.highest_bit_s.values() if self.readings else ()
        return highest_mark(self._periods, self.peak) or max(measured, default=0.0)

    @property
    def _periods(self) -> Sequence[PlotPeriod]:
        """The periods of the run; before it, that of the next one."""
        periods = self.readings.periods if self.readings else ()
        return periods or (PlotPeriod(0.0, self.plan.settings, self.expectation),)

    @property
    def _rate_axis(self) -> RateAxis:
        return self.readings.rate_axis if self.readings else RateAxis()


def flow_reading(view: CockpitSnapshot, direction: Direction) -> FlowReading:
    """Return a gauge's values: of the last second during a run, its result after it."""
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
        response_bits=response_bits_of(view.plan if readings is None else readings.plan),
        latency=rate.latency,
        peak=view.peak[direction],
        margin_percent=rate.margin_percent,
        units=view.units,
        least_unit_bit_s=view.unit_bit_s,
        datagrams=datagram_reading(view, direction),
        source="" if readings is None else readings.source(direction),
        full_bit_s=view.rate_top,
    )


def _result_rate(summary: Summary, direction: Direction) -> FlowRate:
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


def _loaded_rate(summary: Summary, direction: Direction) -> FlowRate | None:
    """Return the rate of a direction in a responsiveness test when it was loaded alone.

    The total is that of both at once. None for another run, and for a load that was not measured.
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

    During a run its losses are those of the period so far: what happened at another rate says nothing of this one.
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


def _current_measurement(view: CockpitSnapshot, direction: Direction) -> DatagramSummary | None:
    """Return the datagrams of the current period without its warm-up; None before the first."""
    interim, readings = view.interim_summary, view.readings
    if interim is None or readings is None or readings.in_warmup or not interim.periods:
        return None
    period = interim.periods[-1]
    measured: Measurement | None = period.measured[direction]
    return measured.datagrams if measured is not None and period.settings == readings.settings else None


def delay_variation_reading(view: CockpitSnapshot) -> LatencyReading | None:
    """Return the delay variation of a run of datagrams in its first direction; None for TCP."""
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


def _transaction_reading(readings: LiveReadings, summary: Summary | None) -> LatencyReading:
    direction = readings.settings.direction
    title = f"latency, {readings.plan.workload} {direction}"
    if summary is not None:
        measured = summary.measured[direction]
        latency = measured.latency if measured else None
        return LatencyReading(title, latency, None, summary.tcp.rtt_us, "whole run")
    rtts = [row.rtt_us for row in readings.session_rows() if row.rtt_us is not None]
    latency = readings.flow(direction).latency
    return LatencyReading(title, latency, None, round(median(rtts)) if rtts else None, "last second")


def _probe_reading(readings: LiveReadings, summary: Summary | None) -> LatencyReading:
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
