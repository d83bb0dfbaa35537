"""What a report shows beside a run's summary: CPU and latency over time, and each session's share. Pure."""

from dataclasses import dataclass, field

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

_MAX_POINTS = 1_200  # twice what a plot of a page's width can show
_RTT_BITS = 8  # a median within 0.8 %: one histogram for each of up to 256 sessions


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
class SessionTotal(SessionSum):
    """What one session carried outside the warm-up, and what its sender's TCP reported; None where it did not."""

    rtts: Histogram = field(default_factory=lambda: Histogram(_RTT_BITS))

    def add(self, part: SessionSample, span_ns: int, *, is_sender: bool) -> None:
        """Add the session's part of one end's sample."""
        SessionSum.add(self, part, span_ns, is_sender=is_sender)
        if is_sender and part.rtt_us is not None:
            self.rtts.add(part.rtt_us)

    @property
    def rtt_us(self) -> int | None:
        """The median of its round trips."""
        return self.rtts.median

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
        self._order = SampleOrder()

    def feed(self, event: Event) -> None:
        """Take the run's next event."""
        if isinstance(event, Started):
            self._plan = event.plan
        elif isinstance(event, Sampled) and self._order.admits(event.sample):
            self._cpu(event.sample)
            self._latency(event.sample)
            if not event.warmup:
                self._sessions(event.sample)

    def _cpu(self, sample: Sample) -> None:
        cores = sample.cores or ()
        mean_percent, hottest_percent = host_percent(cores), hottest_core_percent(cores)
        if mean_percent is not None and hottest_percent is not None:
            at_s = sample.elapsed_ns / SECOND_NS
            points = self.cpu[sample.end]
            points.append(CpuPoint(at_s, mean_percent, hottest_percent))
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
        for flow in Direction.DUPLEX.flows:
            found = summarize_latency(latency_counts(sample, flow))
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
            is_sender = sender_of(part.direction, self._plan.workload) is sample.end
            total.add(part, sample.interval_ns, is_sender=is_sender)
