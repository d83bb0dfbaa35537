"""What the instruments show, made from a run's events: values only, no connection and no clock.

Pure. A `Board` takes every event of a run and answers what a person wants to see now. Rates and loads are
means over the last second: one interval of a quarter of a second is too nervous to be read, and the
counters of CPU time move in steps of 10 ms.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from ...engine.model.events import Changed, Event, Expectation, Opened, Sampled, Started, Warned
from ...engine.model.host_info import HostInfo
from ...engine.model.latency_histogram import merge_counts, summarize_latency
from ...engine.model.peer import Peer
from ...engine.model.plan import MIB, SECOND_NS, Direction, End, Plan, sender_of
from ...engine.model.samples import CoreTimes, SessionSample
from ...engine.results.meter import latency_counts
from ...engine.results.summary import Summary
from ...presets.diagnosis.finding import Finding
from ...presets.preset import Preset
from ...presets.verdict import DEFAULT_PASS_PERCENT, Verdict
from ..text import numbers
from ..text.numbers import RateUnit
from .instrument_values import (
    ChangeMark,
    CpuReading,
    FlowReading,
    Phase,
    PlotPeriod,
    PlotPoint,
    RunProblem,
    SessionRow,
    expected_of,
    response_bits_of,
)
from .latency_readings import LatencyReading, ProbeReadings

_RECENT_NS: Final = SECOND_NS
# Twice as many points as a plot of 200 columns of braille can show; beyond that, neighbours are merged.
_MAX_POINTS: Final = 1_600


class LiveReadings:
    """The readings of one run.

    You must feed it every event, in order; what it answers is about the last second before the newest one.
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
        self.warnings: list[str] = []
        self.highest_bit_s: dict[Direction, float] = {}
        self.granted_bytes: dict[End, int] = {}
        self.probe = ProbeReadings()
        self._recent: dict[End, deque[Sampled]] = {End.NEAR: deque(), End.FAR: deque()}
        self._retransmits: dict[tuple[Direction, int], int] = {}
        self._halves: dict[int, dict[Direction, float]] = {}

    def feed(self, event: Event) -> None:
        """Take the run's next event."""
        self.probe.feed(event)
        match event:
            case Started():
                self.near, self.far, self.plan = event.near, event.far, event.plan
                self.settings = event.plan.settings
                self.periods = [PlotPeriod(0.0, self.settings, event.expectation)]
            case Changed():
                self._change(event)
            case Sampled():
                self._sample(event)
            case Warned():
                self.warnings.append(numbers.sanitize(event.text))
            case Opened():
                granted = event.facts.window_granted_bytes
                if granted is not None:
                    before = self.granted_bytes.get(event.facts.end, granted)
                    self.granted_bytes[event.facts.end] = min(before, granted)
            case _:
                pass

    def flow(self, direction: Direction) -> FlowReading:
        """Return the gauge of a direction; of duplex, the sum of both."""
        rates = [self._rate(self._received(flow)) for flow in direction.flows]
        known = [rate for rate in rates if rate is not None]
        expectation = self.periods[-1].expectation if self.periods else Expectation()
        return FlowReading(
            direction,
            sum(known) if len(known) == len(rates) else None,
            expected_of(expectation, direction),
            self.highest_bit_s.get(direction, 0.0),
            response_bits=response_bits_of(self.plan),
            latency=summarize_latency(self._latency(direction)),
        )

    def _latency(self, direction: Direction) -> dict[int, int]:
        """Return the recent transactions by how long they took."""
        counts: dict[int, int] = {}
        for flow in direction.flows:
            for one in self._recent[sender_of(flow, self.plan.workload).other]:
                merge_counts(counts, latency_counts(one.sample, flow).items())
        return counts

    def cpu(self, end: End) -> CpuReading:
        """Return the load of one end."""
        recent = self._recent[end]
        cores = _cores(one.sample.cores for one in recent if one.sample.cores is not None)
        if not cores:
            return CpuReading(end, msec_per_mib=self._cost(end))
        percents = tuple(100 * core.busy_fraction for core in cores)
        hottest = max(range(len(cores)), key=lambda core: percents[core])
        whole = cores[hottest].busy_ns + cores[hottest].idle_ns
        kernel = cores[hottest].system_ns + cores[hottest].softirq_ns
        return CpuReading(
            end,
            host_percent=sum(percents) / len(percents),
            hottest_core=hottest,
            hottest_percent=percents[hottest],
            hottest_kernel_percent=numbers.share(kernel, whole),
            msec_per_mib=self._cost(end),
            cores=percents,
        )

    def session_rows(self) -> tuple[SessionRow, ...]:
        """Return the sessions that are open now, by direction and number."""
        rows: list[SessionRow] = []
        for flow in self.settings.direction.flows:
            sends = sender_of(flow, self.plan.workload)
            receiver, sender = self._recent[sends.other], self._recent[sends]
            sent = {s.session: s for s in sender[-1].sample.sessions if s.direction is flow} if sender else {}
            got: dict[int, list[tuple[int, int]]] = {}
            for one in receiver:
                for part in one.sample.sessions:
                    if part.direction is flow:
                        got.setdefault(part.session, []).append((part.bytes, one.sample.interval_ns))
            rows.extend(
                self._row(flow, number, self._rate(got.get(number, [])), sent.get(number))
                for number in sorted(got.keys() | sent.keys())
            )
        return tuple(rows)

    def retransmits(self) -> int | None:
        """Return the segments sent again so far, by both ends; None where no kernel said."""
        return sum(self._retransmits.values()) if self._retransmits else None

    def _row(self, flow: Direction, number: int, bit_s: float | None, sent: SessionSample | None) -> SessionRow:
        return SessionRow(
            flow,
            number,
            bit_s,
            sent.rtt_us if sent else None,
            self._retransmits.get((flow, number)),
            sent.cwnd_bytes if sent else None,
        )

    def _change(self, event: Changed) -> None:
        at_s = event.elapsed_ns / SECOND_NS
        if self.periods:
            self.periods[-1].until_s = at_s
        if label := numbers.settings_change(self.settings, event.settings):
            self.change_marks.append(ChangeMark(at_s, label))
        self.settings = event.settings
        self.periods.append(PlotPeriod(at_s, event.settings, event.expectation))
        self.granted_bytes.clear()
        self._halves.clear()
        for recent in self._recent.values():
            recent.clear()

    def _sample(self, event: Sampled) -> None:
        sample = event.sample
        self.elapsed_ns = max(self.elapsed_ns, sample.elapsed_ns)
        for part in sample.sessions:
            if part.retransmits is not None:
                key = (part.direction, part.session)
                self._retransmits[key] = self._retransmits.get(key, 0) + part.retransmits
        if event.settings != self.settings:
            return  # a late sample of the stretch before: it is in the log, and not what goes on now
        self.in_warmup = event.warmup
        recent = self._recent[sample.end]
        recent.append(event)
        while len(recent) > 1 and recent[0].sample.elapsed_ns <= sample.elapsed_ns - _RECENT_NS:
            recent.popleft()
        self._plot(event)

    def _plot(self, event: Sampled) -> None:
        sample = event.sample
        at_s = sample.elapsed_ns / SECOND_NS
        flows = self.settings.direction.flows
        for flow in flows:
            if sender_of(flow, self.plan.workload) is sample.end or sample.interval_ns <= 0:
                continue
            carried = sum(part.bytes for part in sample.sessions if part.direction is flow)
            bit_s = carried * 8 * SECOND_NS / sample.interval_ns
            self._add_point(flow, PlotPoint(at_s, bit_s, event.warmup))
            if len(flows) == 2:
                halves = self._halves.setdefault(sample.index, {})
                halves[flow] = bit_s
                if len(halves) == 2:
                    del self._halves[sample.index]
                    self._add_point(Direction.DUPLEX, PlotPoint(at_s, sum(halves.values()), event.warmup))

    def _add_point(self, direction: Direction, point: PlotPoint) -> None:
        points = self.periods[-1].points.setdefault(direction, [])
        points.append(point)
        self.highest_bit_s[direction] = max(self.highest_bit_s.get(direction, 0.0), point.bit_s)
        if len(points) > _MAX_POINTS:
            points[:] = [_merged(a, b) for a, b in zip(points[::2], points[1::2], strict=False)]

    def _received(self, flow: Direction) -> list[tuple[int, int]]:
        """Bytes and nanoseconds of each recent interval, as the receiver counted them."""
        return [
            (sum(s.bytes for s in one.sample.sessions if s.direction is flow), one.sample.interval_ns)
            for one in self._recent[sender_of(flow, self.plan.workload).other]
        ]

    @staticmethod
    def _rate(parts: list[tuple[int, int]]) -> float | None:
        span_ns = sum(ns for _, ns in parts)
        return sum(carried for carried, _ in parts) * 8 * SECOND_NS / span_ns if span_ns > 0 else None

    def _cost(self, end: End) -> float | None:
        recent = [one.sample for one in self._recent[end] if one.sample.process_cpu_ns is not None]
        carried = sum(part.bytes for sample in recent for part in sample.sessions)
        busy_ns = sum(sample.process_cpu_ns or 0 for sample in recent)
        return busy_ns / 1e6 / (carried / MIB) if carried else None


def _cores(samples: Iterable[tuple[CoreTimes, ...]]) -> list[CoreTimes]:
    """Add up each core's times; a core that came or went leaves only those that were there throughout."""
    return [
        CoreTimes(
            sum(c.user_ns for c in core),
            sum(c.system_ns for c in core),
            sum(c.softirq_ns for c in core),
            sum(c.steal_ns for c in core),
            sum(c.idle_ns for c in core),
        )
        for core in zip(*samples, strict=False)
    ]


def _merged(first: PlotPoint, second: PlotPoint) -> PlotPoint:
    return PlotPoint(second.at_s, (first.bit_s + second.bit_s) / 2, first.warmup and second.warmup)


@dataclass(frozen=True, slots=True)
class CockpitSnapshot:
    """All that the instruments show at one moment."""

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
    is_paused: bool = False
    language: str = "en"
    units: RateUnit = RateUnit.MBIT
    pass_percent: float = DEFAULT_PASS_PERCENT

    @property
    def latest_summary(self) -> Summary | None:
        """What was measured: of the whole run, or so far."""
        return self.summary or self.interim_summary


def latency_reading(view: CockpitSnapshot) -> LatencyReading | None:
    """Return what there is to show of a run; None where it tells no latency."""
    if view.readings is None:
        return None
    plan = view.readings.plan
    if plan.probe:
        return _probed(view.readings, view.summary)
    return _asked(view.readings, view.summary) if plan.workload.is_transactional else None


def _asked(board: LiveReadings, summary: Summary | None) -> LatencyReading:
    direction = board.settings.direction
    title = f"latency, {board.plan.workload} {direction}"
    if summary is not None:
        told = {Direction.OUT: summary.out, Direction.IN: summary.in_, Direction.DUPLEX: summary.total}[direction]
        return LatencyReading(title, told.latency if told else None, None, summary.tcp.rtt_us, "whole run")
    rtts = [row.rtt_us for row in board.session_rows() if row.rtt_us is not None]
    latency = board.flow(direction).latency
    return LatencyReading(title, latency, None, round(median(rtts)) if rtts else None, "last second")


def _probed(board: LiveReadings, summary: Summary | None) -> LatencyReading:
    found = summary.probe if summary is not None else None
    if found is not None:
        idle, loaded = found.idle, found.loaded
        return LatencyReading(
            "latency under load",
            loaded.latency if loaded else None,
            idle.latency if idle else None,
            loaded.rtt_us if loaded else None,
            "whole run",
        )
    return board.probe.reading
