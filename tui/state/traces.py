"""CPU, TCP, latency and datagrams of a run over time, and each session's totals, for plots and tables. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Final, TypeVar

from ...engine.model.events import Totals
from ...engine.model.latency_histogram import summarize_latency
from ...engine.model.plan import SECOND_NS, Direction, End, sender_of
from ...engine.model.samples import DatagramSample, Sample
from ...engine.model.workload import Workload
from ...engine.results.counter_sums import add_known, host_percent, hottest_core_percent, percent_of
from ...engine.results.sums.receiver_sum import latency_counts
from ...engine.results.sums.session_sums import SessionSums

_MAX_POINTS: Final = 1_200  # twice the points that a plot of a page's width can show
_Point = TypeVar("_Point")


@dataclass(frozen=True, slots=True)
class CpuPoint:
    """CPU of one end's host during an interval: the mean over its cores, and the busiest of them."""

    at_s: float
    host_percent: float
    hottest_percent: float

    def merge(self, later: "CpuPoint") -> "CpuPoint":
        """Return one point for this one and the next."""
        mean = (self.host_percent + later.host_percent) / 2
        return CpuPoint(later.at_s, mean, max(self.hottest_percent, later.hottest_percent))


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """The latency of an interval's transactions, milliseconds."""

    at_s: float
    p50_ms: float
    p99_ms: float

    def merge(self, later: "LatencyPoint") -> "LatencyPoint":
        """Return one point for this one and the next."""
        return LatencyPoint(later.at_s, (self.p50_ms + later.p50_ms) / 2, max(self.p99_ms, later.p99_ms))


@dataclass(frozen=True, slots=True)
class TcpPoint:
    """The senders' TCP values in an interval: median RTT and sums of all sessions; None where unknown."""

    at_s: float
    rtt_us: int | None
    retransmits: int | None
    cwnd_bytes: int | None

    def merge(self, later: "TcpPoint") -> "TcpPoint":
        """Return one point for this one and the next."""
        return TcpPoint(
            later.at_s,
            _mean(self.rtt_us, later.rtt_us),
            add_known(self.retransmits, later.retransmits),
            _mean(self.cwnd_bytes, later.cwnd_bytes),
        )


@dataclass(frozen=True, slots=True)
class DatagramPoint:
    """The datagrams of a direction in an interval, by their receiver.

    Of those that `passed`, which is the rise of the highest number, `lost` had not arrived by its end. Jitter is a
    mean, and the delay variation the 99th percentile of the interval; None where there was no datagram.
    """

    at_s: float
    passed: int
    lost: int
    jitter_ms: float | None
    delay_ms: float | None

    def merge(self, later: "DatagramPoint") -> "DatagramPoint":
        """Return one point for this one and the next."""
        return DatagramPoint(
            later.at_s,
            self.passed + later.passed,
            self.lost + later.lost,
            _largest(self.jitter_ms, later.jitter_ms),
            _largest(self.delay_ms, later.delay_ms),
        )

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
            _append(self.cpu[sample.end], point, CpuPoint.merge)

    def _add_latency(self, sample: Sample) -> None:
        for direction in Direction.DUPLEX.flows:
            summary = summarize_latency(latency_counts(sample, direction))
            if summary is not None:
                point = LatencyPoint(sample.elapsed_ns / SECOND_NS, summary.p50_ns / 1e6, summary.p99_ns / 1e6)
                _append(self.latency.setdefault(direction, []), point, LatencyPoint.merge)

    def _add_tcp(self, sample: Sample, workload: Workload) -> None:
        for direction in Direction.DUPLEX.flows:
            parts = [part for part in sample.sessions if part.direction is direction]
            if not parts or sender_of(direction, workload) is not sample.end:
                continue
            datagrams = [counts for counts in sample.datagrams if counts.direction is direction]
            rtts = [part.rtt_us for part in (*parts, *datagrams) if part.rtt_us is not None]
            retransmits = cwnd_bytes = None
            for part in parts:
                retransmits = add_known(retransmits, part.retransmits)
                cwnd_bytes = add_known(cwnd_bytes, part.cwnd_bytes)
            point = TcpPoint(
                sample.elapsed_ns / SECOND_NS, round(median(rtts)) if rtts else None, retransmits, cwnd_bytes
            )
            _append(self.tcp.setdefault(direction, []), point, TcpPoint.merge)

    def _add_datagrams(self, sample: Sample) -> None:
        """Add the receiver's counts."""
        for direction in Direction.DUPLEX.flows:
            sums, is_receiver = SessionDatagrams(), False
            for counts in sample.datagrams:
                if counts.direction is direction and counts.received is not None:
                    sums.add(counts)
                    is_receiver = True
            if not is_receiver:
                continue
            delays = [counts for counts in sample.delay_variation if counts.direction is direction]
            summary = summarize_latency(
                dict(zip(delays[0].buckets, delays[0].counts, strict=True)) if delays else {}
            )
            point = DatagramPoint(
                sample.elapsed_ns / SECOND_NS,
                sums.passed,
                max(sums.passed - sums.received, 0),
                None if sums.jitter_ns is None else sums.jitter_ns / 1e6,
                None if summary is None else summary.p99_ns / 1e6,
            )
            _append(self.datagrams.setdefault(direction, []), point, DatagramPoint.merge)


def _largest(first: float | None, second: float | None) -> float | None:
    return max((value for value in (first, second) if value is not None), default=None)


def _mean(first: int | None, second: int | None) -> int | None:
    known = [value for value in (first, second) if value is not None]
    return sum(known) // len(known) if known else None


def _append(points: list[_Point], point: _Point, merge: Callable[[_Point, _Point], _Point]) -> None:
    """Append a point; beyond the limit, merge each pair of points into one."""
    points.append(point)
    if len(points) > _MAX_POINTS:
        points[:] = [merge(first, second) for first, second in zip(points[::2], points[1::2], strict=False)]
