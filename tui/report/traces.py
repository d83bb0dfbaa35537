"""What a report shows beside a run's summary: CPU and latency over time, and each session's share. Pure."""

from dataclasses import dataclass, field

from ...engine.model.events import Event, Sampled, Started
from ...engine.model.latency_histogram import merge_counts, summarize_latency
from ...engine.model.plan import MIB, SECOND_NS, Direction, End, Plan, sender_of
from ...engine.model.samples import Sample

_MAX_POINTS = 1_200  # twice what a plot of a page's width can show


@dataclass(frozen=True, slots=True)
class CpuPoint:
    """CPU of one end's host during an interval: the mean over its cores, and the busiest of them."""

    at_s: float
    host_percent: float
    hottest_percent: float


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """How long the transactions of an interval took, milliseconds."""

    at_s: float
    p50_ms: float
    p99_ms: float


@dataclass(slots=True)
class SessionTotal:
    """What one session carried outside the warm-up, and what its sender's TCP told; None where no kernel said."""

    bytes: int = 0
    span_ns: int = 0
    retransmits: int | None = None
    rtts_us: list[int] = field(default_factory=list[int])

    @property
    def bit_s(self) -> float | None:
        """Its mean rate."""
        return self.bytes * 8 * SECOND_NS / self.span_ns if self.span_ns else None

    @property
    def rtt_us(self) -> int | None:
        """The median of its round trips."""
        return sorted(self.rtts_us)[len(self.rtts_us) // 2] if self.rtts_us else None

    @property
    def mib(self) -> float:
        """What it carried, MiB."""
        return self.bytes / MIB


class Traces:
    """Takes every event of a run, in order, in a bounded amount of memory."""

    def __init__(self) -> None:
        self.cpu: dict[End, list[CpuPoint]] = {End.NEAR: [], End.FAR: []}
        self.latency: dict[Direction, list[LatencyPoint]] = {}
        self.sessions: dict[tuple[Direction, int], SessionTotal] = {}
        self._plan = Plan()

    def feed(self, event: Event) -> None:
        """Take the run's next event."""
        if isinstance(event, Started):
            self._plan = event.plan
        elif isinstance(event, Sampled):
            self._cpu(event.sample)
            self._latency(event.sample)
            if not event.warmup:
                self._sessions(event.sample)

    def _cpu(self, sample: Sample) -> None:
        shares = [100 * core.busy_fraction for core in sample.cores or ()]
        if shares:
            at_s = sample.elapsed_ns / SECOND_NS
            points = self.cpu[sample.end]
            points.append(CpuPoint(at_s, sum(shares) / len(shares), max(shares)))
            if len(points) > _MAX_POINTS:
                points[:] = [
                    CpuPoint(
                        b.at_s,
                        (a.host_percent + b.host_percent) / 2,
                        max(a.hottest_percent, b.hottest_percent),
                    )
                    for a, b in zip(points[::2], points[1::2], strict=False)
                ]

    def _latency(self, sample: Sample) -> None:
        for flow in {one.direction for one in sample.latency}:
            counts: dict[int, int] = {}
            for one in sample.latency:
                if one.direction is flow:
                    merge_counts(counts, zip(one.buckets, one.counts, strict=True))
            found = summarize_latency(counts)
            if found is None:
                continue
            points = self.latency.setdefault(flow, [])
            points.append(LatencyPoint(sample.elapsed_ns / SECOND_NS, found.p50_ns / 1e6, found.p99_ns / 1e6))
            if len(points) > _MAX_POINTS:
                points[:] = [
                    LatencyPoint(b.at_s, (a.p50_ms + b.p50_ms) / 2, max(a.p99_ms, b.p99_ms))
                    for a, b in zip(points[::2], points[1::2], strict=False)
                ]

    def _sessions(self, sample: Sample) -> None:
        for part in sample.sessions:
            total = self.sessions.setdefault((part.direction, part.session), SessionTotal())
            if sender_of(part.direction, self._plan.workload) is sample.end:
                if part.retransmits is not None:
                    total.retransmits = (total.retransmits or 0) + part.retransmits
                if part.rtt_us is not None and len(total.rtts_us) < _MAX_POINTS:
                    total.rtts_us.append(part.rtt_us)
            else:
                total.bytes += part.bytes
                total.span_ns += sample.interval_ns
