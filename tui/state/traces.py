"""CPU, TCP and latency of a run over time, and each session's totals, for plots and tables. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Final, TypeVar

from ...engine.model.latency_histogram import summarize_latency
from ...engine.model.plan import SECOND_NS, Direction, End, sender_of
from ...engine.model.samples import Sample
from ...engine.model.workload import Workload
from ...engine.results.accumulators import SessionSums, latency_counts
from ...engine.results.counter_sums import add_known, host_percent, hottest_core_percent

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


class Traces:
    """Collects the traces of a run in a bounded amount of memory. Add every admitted sample, in order."""

    def __init__(self) -> None:
        self.cpu: dict[End, list[CpuPoint]] = {End.NEAR: [], End.FAR: []}
        self.latency: dict[Direction, list[LatencyPoint]] = {}
        self.tcp: dict[Direction, list[TcpPoint]] = {}
        self.session_sums = SessionSums()

    def add(self, sample: Sample, workload: Workload, *, is_warmup: bool) -> None:
        """Add a sample; sessions' totals leave the warm-up out."""
        self._add_cpu(sample)
        self._add_latency(sample)
        self._add_tcp(sample, workload)
        if not is_warmup:
            self.session_sums.add(sample, workload)

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
            rtts = [part.rtt_us for part in parts if part.rtt_us is not None]
            retransmits = cwnd_bytes = None
            for part in parts:
                retransmits = add_known(retransmits, part.retransmits)
                cwnd_bytes = add_known(cwnd_bytes, part.cwnd_bytes)
            point = TcpPoint(
                sample.elapsed_ns / SECOND_NS, round(median(rtts)) if rtts else None, retransmits, cwnd_bytes
            )
            _append(self.tcp.setdefault(direction, []), point, TcpPoint.merge)


def _mean(first: int | None, second: int | None) -> int | None:
    known = [value for value in (first, second) if value is not None]
    return sum(known) // len(known) if known else None


def _append(points: list[_Point], point: _Point, merge: Callable[[_Point, _Point], _Point]) -> None:
    """Append a point; beyond the limit, merge each pair of points into one."""
    points.append(point)
    if len(points) > _MAX_POINTS:
        points[:] = [merge(first, second) for first, second in zip(points[::2], points[1::2], strict=False)]
