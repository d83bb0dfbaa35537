"""The readings of a run, computed from its events: values only, no connection and no clock.

Pure. Rates and loads are means over the last second: a single interval of a quarter of a second fluctuates
too much to be read, and the counters of CPU time move in steps of 10 ms.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from ...engine.model.events import Changed, Ended, Event, Expectation, Opened, Sampled, Started, Totals, Warned
from ...engine.model.host_info import HostInfo
from ...engine.model.latency_histogram import merge_counts, summarize_latency
from ...engine.model.peer import Peer
from ...engine.model.plan import SECOND_NS, Direction, End, Plan, Settings, sender_of
from ...engine.model.samples import Sample, SessionSample, combine
from ...engine.results.counter_sums import core_percents, host_percent, percent_of
from ...engine.results.responsiveness.result import ResponsivenessPoint
from ...engine.results.summary import DatagramSummary, Measurement, Summary
from ...engine.results.sums.receiver_sum import DuplexRates, bits_per_second
from ...engine.results.sums.sample_sum import RecentSamples, SampleOrder, SampleSum
from ...engine.results.sums.session_sums import SessionSum, SessionSums
from ...engine.results.udp.datagram_sums import DatagramSum
from ...presets.diagnosis.bounds import FlowWindows
from ...presets.diagnosis.finding import Finding
from ...presets.preset import Preset
from ...presets.verdict import DEFAULT_PASS_PERCENT, Verdict
from ..text import numbers
from ..text.event_lines import EventLines
from ..text.iperf3 import live_source_text
from ..text.numbers import RateUnit
from ..text.summary import response_bits_of
from .instrument_values import (
    ChangeMark,
    CpuReading,
    DatagramReading,
    FlowReading,
    OtherTestsSpan,
    Phase,
    PlotPeriod,
    PlotPoint,
    RunProblem,
    SessionRow,
)
from .latency_readings import LatencyReading, ProbeReadings
from .plot_axes import RateAxis, highest_mark, time_span_s
from .traces import Traces

_RECENT_NS: Final = SECOND_NS
# Twice as many points as a plot of 200 columns of braille can show; beyond that, neighbours are merged.
_MAX_POINTS: Final = 1_600
_SHORT_PAUSE_S: Final = 3.0  # other tests that come back sooner are the same ones
_MAX_OTHER_TESTS: Final = 64


class LiveReadings:
    """The readings of one run.

    You must feed it every event, in order. Its rates and loads cover the last second before the newest event.
    """

    def __init__(self, plan: Plan) -> None:
        self.near: HostInfo | None = None
        self.far: HostInfo | None = None
        self.plan = plan
        self.settings = plan.settings
        self.elapsed_ns = 0
        self.in_warmup = True
        self.periods: list[PlotPeriod] = []
        self.change_marks: list[ChangeMark] = []
        self.other_tests: list[OtherTestsSpan] = []
        self.warnings: list[str] = []
        self.unseen_end: End | None = None
        self.highest_bit_s: dict[Direction, float] = {}
        self.granted_bytes: dict[End, int] = {}
        self.probe = ProbeReadings()
        self.traces = Traces()
        self.log = EventLines()
        self.rate_axis = RateAxis()
        self._order = SampleOrder()
        self._recent = RecentSamples(_RECENT_NS)
        self._recent.begin(plan.settings, 0)
        self._recent_sums: SampleSum | None = None  # made once for all gauges, and again after the next sample
        self._duplex = DuplexRates()
        self._has_totals = self._has_ended = False

    def feed(self, event: Event) -> None:
        """Process the run's next event."""
        self.probe.feed(event)
        self.log.feed(event)
        match event:
            case Started():
                self.near, self.far, self.plan = event.near, event.far, event.plan
                self.unseen_end = event.unseen_end
                self.settings = event.plan.settings
                self._recent.begin(self.settings, 0)
                self.periods = [PlotPeriod(0.0, self.settings, event.expectation)]
            case Changed():
                self._change_settings(event)
            case Sampled():
                self._sample(event)
            case Totals():
                self._has_totals = True
                self.traces.set_totals(event, self.plan.workload)
            case Ended():
                self._has_ended = True
            case Warned():
                self.warnings.append(numbers.sanitize(event.text))
            case Opened():
                granted = event.facts.window_granted_bytes
                if granted is not None:
                    before = self.granted_bytes.get(event.facts.end, granted)
                    self.granted_bytes[event.facts.end] = min(before, granted)
            case _:
                pass

    @property
    def window_in_use(self) -> int | None:
        """The smaller window of both ends, as the kernels granted it; with `auto`, a session's congestion window.

        None while unknown.
        """
        if self.granted_bytes:
            return min(self.granted_bytes.values())
        newest = [points[-1].cwnd_bytes or 0 for points in self.traces.tcp.values()]
        return max(newest, default=0) // self.settings.sessions or None

    def flow(self, direction: Direction) -> FlowReading:
        """Return the gauge's values of a direction; for duplex, of both together."""
        received = [self._recent_sum().received[flow] for flow in direction.flows]
        rates = [sums.bit_s for sums in received if sums.bit_s is not None]
        counts: dict[int, int] = {}
        for sums in received:
            merge_counts(counts, sums.latency.items())
        expectation = self.periods[-1].expectation if self.periods else Expectation()
        return FlowReading(
            direction,
            sum(rates) if len(rates) == len(received) else None,
            expectation[direction],
            self.highest_bit_s.get(direction, 0.0),
            response_bits=response_bits_of(self.plan),
            latency=summarize_latency(counts),
            source=self.source(direction),
        )

    def source(self, direction: Direction) -> str:
        """Return what the rates of a direction are of, where its receiver has not reported; else empty."""
        if self._has_totals:
            return ""
        return live_source_text(self.unseen_end, direction, is_datagram=self.plan.workload.is_datagram)

    def datagrams(self, direction: Direction) -> DatagramReading:
        """Return the datagrams of a direction in the last second; for duplex, of both together."""
        received = [self._recent_sum().received[flow] for flow in direction.flows]
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
        sums = self._recent_sum()
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
        recent = SessionSums()
        newest: dict[tuple[Direction, int], SessionSample] = {}
        packets: dict[tuple[Direction, int], int] = {}
        for end in End:
            samples = self._recent.of_end(end)
            for sample in samples:
                recent.add(sample, self.plan.workload)
                for counts in sample.datagrams:
                    if counts.received is not None:
                        key = counts.direction, counts.session
                        packets[key] = packets.get(key, 0) + counts.received
            for part in samples[-1].sessions if samples else ():
                if sender_of(part.direction, self.plan.workload) is end:
                    newest[part.direction, part.session] = part
        return tuple(
            self._row(flow, number, sums, newest.get((flow, number)), packets.get((flow, number)))
            for flow in self.settings.direction.flows
            for (direction, number), sums in sorted(recent.sessions.items())
            if direction is flow
        )

    def retransmits(self) -> int | None:
        """Return the retransmitted segments of both ends since the warm-up; None if no kernel reports them."""
        return self.traces.session_sums.retransmits

    def _recent_sum(self) -> SampleSum:
        if self._recent_sums is None:
            self._recent_sums = self._recent.sum_shown(self.plan.workload, self.settings.direction.flows)
        return self._recent_sums

    def _row(
        self,
        flow: Direction,
        number: int,
        recent: SessionSum,
        sent: SessionSample | None,
        packets: int | None,
    ) -> SessionRow:
        """Return the row of a session.

        Args:
            flow: Its direction.
            number: Its number.
            recent: Its payload of the last second.
            sent: The sender's newest sample of it.
            packets: Its datagrams of the last second; None for TCP.
        """
        known = self.traces.session_sums.sessions.get((flow, number))
        datagrams = self.traces.session_datagrams.get((flow, number))
        if self._has_ended and len(self.periods) == 1 and known is not None and known.bit_s is not None:
            recent = known
            packets = None if datagrams is None else datagrams.received
        return SessionRow(
            flow,
            number,
            recent.bit_s,
            sent.rtt_us if sent else None,
            known.retransmits if known is not None else None,
            sent.cwnd_bytes if sent else None,
            None if datagrams is None else datagrams.lost_percent,
            None if datagrams is None else datagrams.jitter_ns,
            None if packets is None or not recent.span_ns else packets * SECOND_NS / recent.span_ns,
        )

    def _note_other_tests(self, sample: Sample) -> None:
        """Extend the time of the endpoint's other tests, or begin a new one with its mark."""
        if sample.others is None or not sample.others.tests:
            return
        until_s = sample.elapsed_ns / SECOND_NS
        from_s = until_s - sample.interval_ns / SECOND_NS
        spans = self.other_tests
        if spans and (from_s - spans[-1].until_s < _SHORT_PAUSE_S or len(spans) == _MAX_OTHER_TESTS):
            spans[-1].until_s = until_s
            return
        spans.append(OtherTestsSpan(from_s, until_s))
        self.change_marks.append(ChangeMark(from_s, "other test" if sample.others.tests == 1 else "other tests"))

    def _change_settings(self, event: Changed) -> None:
        at_s = event.elapsed_ns / SECOND_NS
        if self.periods:
            self.periods[-1].until_s = at_s
        if label := numbers.settings_change(self.settings, event.settings):
            self.change_marks.append(ChangeMark(at_s, label))
        self.settings = event.settings
        self.periods.append(PlotPeriod(at_s, event.settings, event.expectation))
        self.granted_bytes.clear()
        self._duplex = DuplexRates()
        self._recent.begin(event.settings, event.elapsed_ns)
        self._recent_sums = None

    def _sample(self, event: Sampled) -> None:
        sample = event.sample
        if sample.is_drain:
            return  # the run is over: what was still on its way is no rate
        if not self._order.admits(sample):
            return
        self.elapsed_ns = max(self.elapsed_ns, sample.elapsed_ns)
        self.traces.add(sample, self.plan.workload, is_warmup=event.warmup)
        if not self._recent.add(event):
            return
        self.in_warmup = event.warmup
        self._recent_sums = None
        self._note_other_tests(sample)
        self._plot(sample, is_warmup=event.warmup)

    def _plot(self, sample: Sample, *, is_warmup: bool) -> None:
        at_s = sample.elapsed_ns / SECOND_NS
        for flow in self.settings.direction.flows:
            bit_s = bits_per_second(sample.bytes_of(flow), sample.interval_ns)
            if bit_s is None or sender_of(flow, self.plan.workload) is sample.end:
                continue
            self._add_point(flow, PlotPoint(at_s, bit_s, is_warmup))
            if self.settings.direction is Direction.DUPLEX:
                total_bit_s = self._duplex.join(sample.index, bit_s)
                if total_bit_s is not None:
                    self._add_point(Direction.DUPLEX, PlotPoint(at_s, total_bit_s, is_warmup))

    def _add_point(self, direction: Direction, point: PlotPoint) -> None:
        points = self.periods[-1].points.setdefault(direction, [])
        points.append(point)
        self.highest_bit_s[direction] = max(self.highest_bit_s.get(direction, 0.0), point.bit_s)
        flow_points = [period.points[direction] for period in self.periods if direction in period.points]
        if sum(map(len, flow_points)) > _MAX_POINTS:  # of all periods: a day may have many changes
            for points in flow_points:
                rest = points[len(points) & ~1 :]
                points[:] = [*map(combine, zip(points[::2], points[1::2], strict=False)), *rest]


@dataclass(frozen=True, slots=True)
class CockpitSnapshot:
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
    load_points: tuple[ResponsivenessPoint, ...] = ()
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
        measured = self.readings.highest_bit_s.values() if self.readings else ()
        return highest_mark(self._periods, self.peak) or max(measured, default=0.0)

    @property
    def _periods(self) -> Sequence[PlotPeriod]:
        """The periods of the run; before it, that of the next one."""
        periods = self.readings.periods if self.readings else ()
        return periods or (PlotPeriod(0.0, self.plan.settings, self.expectation),)

    @property
    def _rate_axis(self) -> RateAxis:
        return self.readings.rate_axis if self.readings else RateAxis()


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
    return readings.probe.reading
