"""A run over time, for plots and tables: rates, CPU, TCP, latency, datagrams, and each session's totals. Pure."""

from dataclasses import dataclass, field
from typing import Final, TypeVar

from ...model.counters.latency_histogram import summarize_latency
from ...model.counters.samples import GAUGE, LEAST, MEAN, PEAK, Sample, combine, latency_counts, sum_known
from ...model.directions import Direction, End, sender_of
from ...model.events import Sampled, Totals
from ...model.expected_rate import Expectation, ExpectedRate
from ...model.plan import SECOND_NS, Settings
from ...model.workload import Workload
from ..rate_and_loss import bits_per_second, host_percent, hottest_core_percent, percent_of
from ..udp.datagram_sums import datagrams_of, missing_datagrams
from .sender_sum import tcp_gauges
from .session_sums import SessionDatagrams, SessionSums

_MAX_POINTS: Final = 1_200  # twice the points that a plot of a page's width can show
# Twice as many points as a plot of 200 columns of braille can show; beyond that, neighbours are merged.
_MAX_RATE_POINTS: Final = 1_600
_SHORT_PAUSE_S: Final = 3.0  # other tests that come back sooner are the same tests
_MAX_OTHER_TESTS: Final = 64
_Point = TypeVar("_Point")


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """An interval in the plot; `at_s` is its end."""

    at_s: float = field(metadata=GAUGE)
    bit_s: float = field(metadata=MEAN)
    warmup: bool = field(metadata=LEAST)


@dataclass(slots=True)
class OtherTestsSpan:
    """A time in which other tests ran on the endpoint, with their number at its beginning."""

    from_s: float
    until_s: float
    tests: int = 1


@dataclass(slots=True)
class PlotPeriod:
    """A period of a plot, between two changes of settings: its settings, expectation and points."""

    from_s: float
    settings: Settings
    expectation: Expectation
    points: dict[Direction, list[PlotPoint]] = field(default_factory=dict[Direction, list[PlotPoint]])
    until_s: float | None = None

    def expected_rate(self) -> ExpectedRate | None:
        """Return the rate of the plot's line for the expectation."""
        return self.expectation[self.settings.direction]


@dataclass(frozen=True, slots=True)
class CpuPoint:
    """CPU of one end's host during an interval: the mean over its cores, and the busiest of them."""

    at_s: float = field(metadata=GAUGE)
    host_percent: float = field(metadata=MEAN)
    hottest_percent: float = field(metadata=PEAK)


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """The latency of an interval's transactions, milliseconds."""

    at_s: float = field(metadata=GAUGE)
    p50_ms: float = field(metadata=MEAN)
    p99_ms: float = field(metadata=PEAK)


@dataclass(frozen=True, slots=True)
class TcpPoint:
    """The senders' TCP values in an interval: median RTT and sums of all sessions; None if unknown."""

    at_s: float = field(metadata=GAUGE)
    rtt_us: int | None = field(metadata=MEAN)
    retransmits: int | None
    cwnd_bytes: int | None = field(metadata=MEAN)


@dataclass(frozen=True, slots=True)
class DatagramPoint:
    """The datagrams of a direction in an interval, by their receiver.

    `passed` is the rise of the highest number. `lost` of these had not arrived by the end of the interval. Jitter
    is a mean, and the delay variation the 99th percentile; None without datagrams.
    """

    at_s: float = field(metadata=GAUGE)
    passed: int
    lost: int
    jitter_ms: float | None = field(metadata=PEAK)
    delay_ms: float | None = field(metadata=PEAK)

    @property
    def lost_percent(self) -> float | None:
        """The lost ones in percent of those that passed; None if none did."""
        return percent_of(self.lost, self.passed)


class Traces:
    """Collects the traces of a run in a bounded amount of memory. Its meter feeds it.

    A period has points of the time in which its settings were in force: a late sample has none.
    """

    def __init__(self) -> None:
        self.periods: list[PlotPeriod] = []
        self.highest_bit_s: dict[Direction, float] = {}
        self.other_tests: list[OtherTestsSpan] = []
        self.cpu: dict[End, list[CpuPoint]] = {End.NEAR: [], End.FAR: []}
        self.latency: dict[Direction, list[LatencyPoint]] = {}
        self.tcp: dict[Direction, list[TcpPoint]] = {}
        self.datagrams: dict[Direction, list[DatagramPoint]] = {}
        self.session_sums = SessionSums()
        self.has_totals = False

    def begin_period(self, start_ns: int, settings: Settings, expectation: Expectation) -> None:
        """Begin the points of new settings."""
        start_s = start_ns / SECOND_NS
        for period in self.periods[-1:]:
            period.until_s = start_s
        self.periods.append(PlotPeriod(start_s, settings, expectation))

    def add_event(self, event: Sampled, workload: Workload) -> None:
        """Add a sample that is not of the drain; sessions' totals leave the warm-up out."""
        sample = event.sample
        self._add_cpu(sample)
        self._add_latency(sample)
        self._add_tcp(sample, workload)
        if sample.datagrams:
            self._add_datagrams(sample)
        if not event.warmup:
            self.session_sums.add_sample(sample, workload)

    def add_rates(self, event: Sampled, workload: Workload, duplex_bit_s: float | None) -> None:
        """Add the rates of a sample of the newest settings; `duplex_bit_s` is the rate of both directions."""
        sample, at_s = event.sample, event.sample.elapsed_ns / SECOND_NS
        self._note_other_tests(sample)
        for flow in event.settings.direction.flows:
            bit_s = bits_per_second(sample.bytes_of(flow), sample.interval_ns)
            if bit_s is not None and sender_of(flow, workload) is not sample.end:
                self._add_rate(flow, PlotPoint(at_s, bit_s, event.warmup))
        if duplex_bit_s is not None:
            self._add_rate(Direction.DUPLEX, PlotPoint(at_s, duplex_bit_s, event.warmup))

    def set_totals(self, totals: Totals, workload: Workload) -> None:
        """Take each session's totals from the report of an end without samples."""
        self.session_sums.set_totals(totals, workload)
        self.has_totals = True

    def _add_rate(self, direction: Direction, point: PlotPoint) -> None:
        self.periods[-1].points.setdefault(direction, []).append(point)
        self.highest_bit_s[direction] = max(self.highest_bit_s.get(direction, 0.0), point.bit_s)
        flow_points = [period.points[direction] for period in self.periods if direction in period.points]
        if sum(map(len, flow_points)) > _MAX_RATE_POINTS:  # of all periods: a day may have many changes
            for points in flow_points:
                _halve(points)

    def _note_other_tests(self, sample: Sample) -> None:
        """Extend the time of the endpoint's other tests, or begin a new one."""
        if sample.others is None or not sample.others.tests:
            return
        until_s = sample.elapsed_ns / SECOND_NS
        from_s = until_s - sample.interval_ns / SECOND_NS
        spans = self.other_tests
        if spans and (from_s - spans[-1].until_s < _SHORT_PAUSE_S or len(spans) == _MAX_OTHER_TESTS):
            spans[-1].until_s = until_s
        else:
            spans.append(OtherTestsSpan(from_s, until_s, sample.others.tests))

    def _add_cpu(self, sample: Sample) -> None:
        mean, hottest = host_percent(sample.cores or ()), hottest_core_percent(sample.cores or ())
        if mean is not None and hottest is not None:
            point = CpuPoint(sample.elapsed_ns / SECOND_NS, mean, hottest)
            _append(self.cpu[sample.end], point)

    def _add_latency(self, sample: Sample) -> None:
        for direction in Direction.DUPLEX.flows:
            summary = summarize_latency(latency_counts(sample.latency, direction))
            if summary is not None:
                point = LatencyPoint(sample.elapsed_ns / SECOND_NS, summary.p50_ns / 1e6, summary.p99_ns / 1e6)
                _append(self.latency.setdefault(direction, []), point)

    def _add_tcp(self, sample: Sample, workload: Workload) -> None:
        for direction in Direction.DUPLEX.flows:
            parts = [part for part in sample.sessions if part.direction is direction]
            if not parts or sender_of(direction, workload) is not sample.end:
                continue
            datagrams = [counts for counts in sample.datagrams if counts.direction is direction]
            point = TcpPoint(sample.elapsed_ns / SECOND_NS, *tcp_gauges(parts, datagrams))
            _append(self.tcp.setdefault(direction, []), point)

    def _add_datagrams(self, sample: Sample) -> None:
        """Add the receiver's counts."""
        for direction in Direction.DUPLEX.flows:
            parts = [part for part in datagrams_of(sample, direction).values() if part.received is not None]
            if not parts:
                continue
            sums = SessionDatagrams()
            for part in parts:
                sums.add_datagrams(part)
            summary = summarize_latency(latency_counts(sample.delay_variation, direction))
            point = DatagramPoint(
                sample.elapsed_ns / SECOND_NS,
                sums.passed,
                sum_known(map(missing_datagrams, parts)) or 0,
                None if sums.jitter_ns is None else sums.jitter_ns / 1e6,
                None if summary is None else summary.p99_ns / 1e6,
            )
            _append(self.datagrams.setdefault(direction, []), point)


def _append(points: list[_Point], point: _Point) -> None:
    """Append a point; beyond the limit, combine each pair of points to one."""
    points.append(point)
    if len(points) > _MAX_POINTS:
        _halve(points)


def _halve(points: list[_Point]) -> None:
    """Combine each pair of points to one; the last of an odd number stays."""
    rest = points[len(points) & ~1 :]
    points[:] = [*map(combine, zip(points[::2], points[1::2], strict=False)), *rest]
