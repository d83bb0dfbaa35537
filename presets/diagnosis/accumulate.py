"""What a stretch of a run adds up to, of both its ends and of each direction: sums and histograms.

Pure. However long it lasts, it takes no more memory than a minute.
"""

from dataclasses import dataclass, field
from typing import Final

from ...engine.model.events import Expectation
from ...engine.model.plan import SECOND_NS, Direction, End, Plan, Settings, sender_of
from ...engine.model.samples import NicCounts, Sample, SessionSample
from ...engine.results.accumulators import Histogram
from ...engine.results.meter import sum_bytes
from .evidence import CoreLoad

# CPU counters move in steps of 10 ms and TCP's round trips in its own rhythm: in less time than this a share of
# time is noise, and nothing is said.
MIN_SPAN_NS: Final = SECOND_NS // 2
_MICRO: Final = 1_000


@dataclass(slots=True)
class FlowAccumulator:
    """One single direction of a stretch."""

    received_bytes: int = 0
    received_ns: int = 0
    sent_ns: int = 0
    sessions: set[int] = field(default_factory=set[int])
    counters: dict[str, int] = field(default_factory=dict[str, int])
    histograms: dict[str, Histogram] = field(default_factory=dict[str, Histogram])
    min_rtt_us: int | None = None

    def add_received(self, sample: Sample, flow: Direction) -> None:
        """Add the receiver's sample."""
        self.received_bytes += sum_bytes(sample, flow)
        self.received_ns += sample.interval_ns
        for session in _sessions(sample, flow):
            self._sum("out_of_order", session.out_of_order)

    def add_sent(self, sample: Sample, flow: Direction) -> None:
        """Add the sender's sample."""
        self.sent_ns += sample.interval_ns
        for session in _sessions(sample, flow):
            self.sessions.add(session.session)
            for name in ("bytes", "bytes_retrans", "retransmits", *_SHARES):
                self._sum(name, getattr(session, name))
            for name in _MEDIANS:
                value: int | None = getattr(session, name)
                if value is not None:
                    self.histograms.setdefault(name, Histogram()).add(value)
            if session.min_rtt_us is not None:
                self.min_rtt_us = min(session.min_rtt_us, self.min_rtt_us or session.min_rtt_us)

    def _sum(self, name: str, value: int | None) -> None:
        if value is not None:
            self.counters[name] = self.counters.get(name, 0) + value

    def time_share(self, name: str) -> float | None:
        """Return the mean share of the sessions' time that a counter of microseconds took."""
        whole_us = self.sent_ns * len(self.sessions) / _MICRO
        return None if name not in self.counters or not whole_us else min(1.0, self.counters[name] / whole_us)

    def median(self, name: str) -> int | None:
        """Return the median of what sessions told."""
        found = self.histograms.get(name)
        return None if found is None else found.median

    @property
    def retransmitted_share(self) -> float | None:
        """Which share of what was sent was sent again; by segments where the kernel does not tell bytes."""
        again = self.counters.get("bytes_retrans")
        if again is None and "retransmits" in self.counters:
            again = self.counters["retransmits"] * (self.median("mss_bytes") or 0)
        whole = self.counters.get("bytes", 0) + (again or 0)
        return None if again is None or not whole else again / whole


_SHARES: Final = ("busy_us", "rwnd_limited_us", "sndbuf_limited_us")
_MEDIANS: Final = ("rtt_us", "cwnd_bytes", "mss_bytes", "pacing_bit_s", "delivery_bit_s", "peer_window_bytes")


@dataclass(slots=True)
class EndAccumulator:
    """One end of a stretch."""

    span_ns: int = 0
    cores: list[list[int]] = field(default_factory=list[list[int]])
    worker_ns: int | None = None
    process_ns: int | None = None
    nic_counts: NicCounts | None = None

    def add(self, sample: Sample) -> None:
        """Add a sample of this end."""
        self.span_ns += sample.interval_ns
        cores = sample.cores or ()
        self.cores += [[0] * 5 for _ in range(len(cores) - len(self.cores))]
        for sums, core in zip(self.cores, cores, strict=False):
            for place, value in enumerate(
                (core.user_ns, core.system_ns, core.softirq_ns, core.steal_ns, core.idle_ns)
            ):
                sums[place] += value
        if sample.busiest_worker_ns is not None:
            self.worker_ns = (self.worker_ns or 0) + sample.busiest_worker_ns
        if sample.process_cpu_ns is not None:
            self.process_ns = (self.process_ns or 0) + sample.process_cpu_ns
        if sample.nic is not None:
            self.nic_counts = _added(self.nic_counts, sample.nic)

    def core_loads(self) -> tuple[CoreLoad, ...]:
        """Return how each core spent the time."""
        shares = [[part / max(1, sum(sums)) for part in sums] for sums in self.cores]
        return tuple(CoreLoad(*share[:4]) for share in shares)


class PeriodAccumulator:
    """A stretch: its settings, and what both ends counted under them."""

    def __init__(self, settings: Settings, expectation: Expectation, plan: Plan) -> None:
        self.settings = settings
        self.expectation = expectation
        self.plan = plan
        self.flows = {flow: FlowAccumulator() for flow in settings.direction.flows}
        self.ends = {end: EndAccumulator() for end in End}

    def add(self, sample: Sample) -> None:
        """Add a sample that was taken under these settings."""
        self.ends[sample.end].add(sample)
        for flow, sums in self.flows.items():
            if sender_of(flow, self.plan.workload) is sample.end:
                sums.add_sent(sample, flow)
            else:
                sums.add_received(sample, flow)

    @property
    def span_ns(self) -> int:
        """How long was measured, by the receiver that measured least."""
        return min(sums.received_ns for sums in self.flows.values())

    @property
    def is_long_enough(self) -> bool:
        """Whether both ends told enough to say anything."""
        return self.span_ns >= MIN_SPAN_NS and all(sums.span_ns >= MIN_SPAN_NS for sums in self.ends.values())


def _sessions(sample: Sample, flow: Direction) -> list[SessionSample]:
    return [session for session in sample.sessions if session.direction is flow]


def _added(before: NicCounts | None, more: NicCounts) -> NicCounts:
    if before is None:
        return more
    return NicCounts(
        before.received_bytes + more.received_bytes,
        before.sent_bytes + more.sent_bytes,
        before.errors + more.errors,
        before.dropped + more.dropped,
        before.collisions + more.collisions,
    )
