"""CPU, TCP, latency and datagrams of a run over time, and each session's totals, for plots and tables. Pure."""

from dataclasses import dataclass, field
from statistics import median
from typing import Final, TypeVar

from ...engine.model.events import Totals
from ...engine.model.latency_histogram import summarize_latency
from ...engine.model.plan import SECOND_NS, Direction, End, sender_of
from ...engine.model.samples import GAUGE, MEAN, PEAK, DatagramSample, Sample, combine, sum_known
from ...engine.model.workload import Workload
from ...engine.results.counter_sums import host_percent, hottest_core_percent, percent_of
from ...engine.results.sums.receiver_sum import latency_counts
from ...engine.results.sums.session_sums import SessionSums
from ...engine.results.udp.datagram_sums import datagrams_of, delays_of, missing_datagrams

_MAX_POINTS: Final = 1_200  # twice the points that a plot of a page's width can show
_Point = TypeVar("_Point")


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
    """The senders' TCP values in an interval: median RTT and sums of all sessions; None where unknown."""

    at_s: float = field(metadata=GAUGE)
    rtt_us: int | None = field(metadata=MEAN)
    retransmits: int | None
    cwnd_bytes: int | None = field(metadata=MEAN)


@dataclass(frozen=True, slots=True)
class DatagramPoint:
    """The datagrams of a direction in an interval, by their receiver.

    Of those that `passed`, which is the rise of the highest number, `lost` had not arrived by its end. Jitter is a
    mean, and the delay variation the 99th percentile of the interval; None where there was no datagram.
    """

    at_s: float = field(metadata=GAUGE)
    passed: int
    lost: int
    jitter_ms: float | None = field(metadata=PEAK)
    delay_ms: float | None = field(metadata=PEAK)

    @property
    def lost_share(self) -> float | None:
        """The lost part of those that passed, 0 to 1; None where none did."""
        return min(self.lost / self.passed, 1.0) if self.passed else None


@dataclass(slots=True)
class SessionDatagrams:
    """The sums of a UDP session in one direction, by its receiver."""

    passed: int = 0
    received: int = 0
    jitter_sum_ns: int = 0
    jitter_count: int = 0

    def add(self, counts: DatagramSample) -> None:
        """Add the receiver's counts of an interval."""
        self.passed += counts.advanced or 0
        self.received += counts.received or 0
        self.jitter_sum_ns += counts.jitter_sum_ns or 0
        self.jitter_count += counts.jitter_count or 0

    @property
    def lost_percent(self) -> float | None:
        """The missing ones in percent of those that passed; None before any."""
        return percent_of(max(self.passed - self.received, 0), self.passed)

    @property
    def jitter_ns(self) -> float | None:
        """The mean jitter; None before any."""
        return self.jitter_sum_ns / self.jitter_count if self.jitter_count else None


class Traces:
    """Collects the traces of a run in a bounded amount of memory.

    Add every admitted sample in order, but not what the drain at the end still brought.
    """

    def __init__(self) -> None:
        self.cpu: dict[End, list[CpuPoint]] = {End.NEAR: [], End.FAR: []}
        self.latency: dict[Direction, list[LatencyPoint]] = {}
        self.tcp: dict[Direction, list[TcpPoint]] = {}
        self.datagrams: dict[Direction, list[DatagramPoint]] = {}
        self.session_sums = SessionSums()
        self.session_datagrams: dict[tuple[Direction, int], SessionDatagrams] = {}

    def add(self, sample: Sample, workload: Workload, *, is_warmup: bool) -> None:
        """Add a sample; sessions' totals leave the warm-up out."""
        self._add_cpu(sample)
        self._add_latency(sample)
        self._add_tcp(sample, workload)
        if sample.datagrams:
            self._add_datagrams(sample)
        if not is_warmup:
            self.session_sums.add(sample, workload)
            for counts in sample.datagrams:
                if counts.received is not None:
                    key = counts.direction, counts.session
                    self.session_datagrams.setdefault(key, SessionDatagrams()).add(counts)

    def set_totals(self, totals: Totals, workload: Workload) -> None:
        """Take each session's totals from what an end without samples reports at the end."""
        self.session_sums.set_totals(totals, workload)
        for part in totals.sessions:
            if part.received is not None and sender_of(part.direction, workload) is not totals.end:
                self.session_datagrams[part.direction, part.session] = SessionDatagrams(
                    part.received + (part.lost or 0), part.received, part.jitter_ns or 0, part.jitter_ns is not None
                )

    def _add_cpu(self, sample: Sample) -> None:
        mean, hottest = host_percent(sample.cores or ()), hottest_core_percent(sample.cores or ())
        if mean is not None and hottest is not None:
            point = CpuPoint(sample.elapsed_ns / SECOND_NS, mean, hottest)
            _append(self.cpu[sample.end], point)

    def _add_latency(self, sample: Sample) -> None:
        for direction in Direction.DUPLEX.flows:
            summary = summarize_latency(latency_counts(sample, direction))
            if summary is not None:
                point = LatencyPoint(sample.elapsed_ns / SECOND_NS, summary.p50_ns / 1e6, summary.p99_ns / 1e6)
                _append(self.latency.setdefault(direction, []), point)

    def _add_tcp(self, sample: Sample, workload: Workload) -> None:
        for direction in Direction.DUPLEX.flows:
            parts = [part for part in sample.sessions if part.direction is direction]
            if not parts or sender_of(direction, workload) is not sample.end:
                continue
            datagrams = [counts for counts in sample.datagrams if counts.direction is direction]
            rtts = [part.rtt_us for part in (*parts, *datagrams) if part.rtt_us is not None]
            point = TcpPoint(
                sample.elapsed_ns / SECOND_NS,
                round(median(rtts)) if rtts else None,
                sum_known(part.retransmits for part in parts),
                sum_known(part.cwnd_bytes for part in parts),
            )
            _append(self.tcp.setdefault(direction, []), point)

    def _add_datagrams(self, sample: Sample) -> None:
        """Add the receiver's counts."""
        for direction in Direction.DUPLEX.flows:
            parts = [part for part in datagrams_of(sample, direction).values() if part.received is not None]
            if not parts:
                continue
            sums = SessionDatagrams()
            for part in parts:
                sums.add(part)
            delays = delays_of(sample, direction)
            summary = summarize_latency(dict(zip(delays.buckets, delays.counts, strict=True)) if delays else {})
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
        points[:] = map(combine, zip(points[::2], points[1::2], strict=False))
