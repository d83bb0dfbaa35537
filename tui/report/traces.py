"""CPU and latency of a run over time, and each session's totals, for the report. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from ...engine.model.events import Event, Sampled, Started
from ...engine.model.latency_histogram import summarize_latency
from ...engine.model.plan import MIB, SECOND_NS, Direction, End, Plan, sender_of
from ...engine.model.samples import Sample, SessionSample
from ...engine.results.accumulators import (
    Histogram,
    SampleOrder,
    SessionSum,
    host_percent,
    hottest_core_percent,
    latency_counts,
)

_MAX_POINTS: Final = 1_200  # twice the points that a plot of a page's width can show
_RTT_BITS: Final = 8  # a median within 0.8 %: one histogram for each of up to 256 sessions
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


@dataclass(slots=True)
class SessionTotal(SessionSum):
    """A session's payload outside the warm-up, and its sender's TCP counters; None where the kernel has none."""

    rtts: Histogram = field(default_factory=lambda: Histogram(_RTT_BITS))

    def add(self, part: SessionSample, span_ns: int, *, is_sender: bool) -> None:
        """Add the session's part of one end's sample."""
        SessionSum.add(self, part, span_ns, is_sender=is_sender)
        if is_sender and part.rtt_us is not None:
            self.rtts.add(part.rtt_us)

    @property
    def rtt_us(self) -> int | None:
        """The median of the RTT samples."""
        return self.rtts.median

    @property
    def mib(self) -> float:
        """The payload, MiB."""
        return self.bytes / MIB


class Traces:
    """Collects the traces of a run in a bounded amount of memory. Feed it every event, in order."""

    def __init__(self) -> None:
        self.cpu: dict[End, list[CpuPoint]] = {End.NEAR: [], End.FAR: []}
        self.latency: dict[Direction, list[LatencyPoint]] = {}
        self.sessions: dict[tuple[Direction, int], SessionTotal] = {}
        self._plan = Plan()
        self._order = SampleOrder()

    def feed(self, event: Event) -> None:
        """Take the run's next event."""
        if isinstance(event, Started):
            self._plan = event.plan
        elif isinstance(event, Sampled) and self._order.admits(event.sample):
            self._add_cpu(event.sample)
            self._add_latency(event.sample)
            if not event.warmup:
                self._add_sessions(event.sample)

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

    def _add_sessions(self, sample: Sample) -> None:
        for part in sample.sessions:
            total = self.sessions.setdefault((part.direction, part.session), SessionTotal())
            is_sender = sender_of(part.direction, self._plan.workload) is sample.end
            total.add(part, sample.interval_ns, is_sender=is_sender)


def _append(points: list[_Point], point: _Point, merge: Callable[[_Point, _Point], _Point]) -> None:
    """Append a point; beyond the limit, merge each pair of points into one."""
    points.append(point)
    if len(points) > _MAX_POINTS:
        points[:] = [merge(first, second) for first, second in zip(points[::2], points[1::2], strict=False)]
