"""The intervals of a load: latency, goodput and queues by both ends' samples, joined by their numbers.

Pure. Memory is bounded: if there are too many intervals, each two neighbours become one.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...model.counters.samples import GAUGE, PEAK, ProbeSample, QueueSample, Sample, SessionSample
from ...model.directions import Direction, End
from ..rate_and_loss import bits_per_second
from ..sums.field_sums import OWN, Sums, extend_fields
from .distribution import (
    Counts,
    add_counts,
    add_time,
    mean_ns,
    merged_counts,
    weighted_by_time,
)
from .result import ProbeKind

_MOST: Final = 256  # a minute of the usual intervals
_MIN_WINDOW_NS: Final = 350_000_000  # two intervals of about 0.2 s must make a window of 0.4 s


@dataclass(slots=True)
class QueueSum(Sums):
    """The queues at one end during an interval, in its interface and in its sockets: sums over readings."""

    backlog: float = 0.0
    backlog_readings: int = 0
    most_backlog_bytes: int | None = field(default=None, metadata=PEAK)
    dropped: int | None = None
    driver: float = 0.0
    driver_readings: int = 0
    unsent: float = 0.0
    unsent_readings: int = 0
    sent_bytes: int = 0
    sent_ns: int = 0

    def add_sample(self, sample: Sample, flows: Sequence[Direction]) -> None:
        """Add a sample of this end, which sends these directions."""
        if sample.queue is not None:
            self._add_queue(sample.queue)
        unsent = [
            session.unsent_bytes
            for session in sample.sessions
            if session.direction in flows and session.unsent_bytes is not None
        ]
        if unsent:
            self.unsent += sum(unsent)
            self.unsent_readings += 1
        if sample.nic is not None:
            self.sent_bytes += sample.nic.sent_bytes
            self.sent_ns += sample.interval_ns

    def _add_queue(self, queue: QueueSample) -> None:
        if queue.backlog_bytes is not None:
            self.backlog += queue.backlog_bytes * queue.readings
            self.backlog_readings += queue.readings
        if queue.driver_bytes is not None:
            self.driver += queue.driver_bytes * queue.readings
            self.driver_readings += queue.readings
        if queue.most_backlog_bytes is not None:
            self.most_backlog_bytes = max(queue.most_backlog_bytes, self.most_backlog_bytes or 0)
        if queue.dropped is not None:
            self.dropped = (self.dropped or 0) + queue.dropped


@dataclass(slots=True)
class LoadInterval:
    """One interval under load, or several in a row: numbers `first` to `last`. It has a field for each sum.

    Times are counted by bucket, without weights for `requests` and `datagrams`. `received_bytes` of each direction
    arrived in `received_ns` of its receiver's clock. `peaks_ns` has the longest mean of a short time within, once
    intervals have been joined. `is_probed` says whether the interval has a sample of the near end, which has the
    probes.
    """

    first: int = field(metadata=OWN)
    last: int = field(metadata=GAUGE)
    start_ns: int = field(metadata=OWN)
    end_ns: int = field(metadata=GAUGE)
    sessions: int = field(metadata=GAUGE)
    is_probed: bool = field(default=False, metadata=PEAK)
    requests: dict[int, float] = field(default_factory=dict[int, float])
    datagrams: dict[int, float] = field(default_factory=dict[int, float])
    rise_out: dict[int, float] = field(default_factory=dict[int, float])
    rise_in: dict[int, float] = field(default_factory=dict[int, float])
    connect: dict[int, float] = field(default_factory=dict[int, float])
    answer: dict[int, float] = field(default_factory=dict[int, float])
    tcp_rtt: dict[int, float] = field(default_factory=dict[int, float])
    sent: int = 0
    answered: int = 0
    received_bytes: dict[Direction, int] = field(default_factory=dict[Direction, int])
    received_ns: dict[Direction, int] = field(default_factory=dict[Direction, int])
    queues: dict[End, QueueSum] = field(default_factory=lambda: {end: QueueSum() for end in End})
    peaks_ns: dict[ProbeKind, float] = field(default_factory=dict[ProbeKind, float], metadata=OWN)

    def probes(self, probe: ProbeKind) -> Counts:
        """Return the times of a probe."""
        return self.datagrams if probe == "datagram" else self.requests

    def add_sample(self, sample: Sample, flows: Sequence[Direction], sessions: int) -> None:
        """Add an end's sample of a load with these directions."""
        self.sessions = sessions
        if sample.end is End.NEAR:
            self.is_probed = True
            self.start_ns = min(self.start_ns, sample.elapsed_ns - sample.interval_ns)
            self.end_ns = max(self.end_ns, sample.elapsed_ns)
        if sample.probe is not None:
            self._add_probe(sample.probe)
        sends = Direction.OUT if sample.end is End.NEAR else Direction.IN
        for flow in flows:
            if flow is sends:
                self._add_round_trips(session for session in sample.sessions if session.direction is flow)
            else:
                self.received_bytes[flow] = self.received_bytes.get(flow, 0) + sample.bytes_of(flow)
                self.received_ns[flow] = self.received_ns.get(flow, 0) + sample.interval_ns
        self.queues[sample.end].add_sample(sample, [flow for flow in flows if flow is sends])

    def _add_probe(self, probe: ProbeSample) -> None:
        add_counts(self.requests, probe.latency)
        if probe.handshakes is not None:
            add_counts(self.connect, probe.handshakes.connect)
            add_counts(self.answer, probe.handshakes.answer)
        if probe.datagrams is not None:
            self.sent += probe.datagrams.sent
            self.answered += probe.datagrams.answered
            add_counts(self.datagrams, probe.datagrams.latency)
            add_counts(self.rise_out, probe.datagrams.rise_out)
            add_counts(self.rise_in, probe.datagrams.rise_in)

    def _add_round_trips(self, sessions: Iterable[SessionSample]) -> None:
        for session in sessions:
            if session.rtt_us:  # the kernel reports 0 before its first measurement
                add_time(self.tcp_rtt, session.rtt_us * 1_000)

    def extend(self, other: "LoadInterval") -> None:
        """Add the interval that follows."""
        for probe, peak_ns in short_means(self, other):
            self.peaks_ns[probe] = max(peak_ns, self.peaks_ns.get(probe, 0.0), other.peaks_ns.get(probe, 0.0))
        extend_fields(self, other)

    def bit_s(self, flow: Direction) -> float | None:
        """Return the goodput of a single direction; None without its receiver's sample."""
        return goodput([self], flow)


def short_means(first: LoadInterval, second: LoadInterval) -> Iterator[tuple[ProbeKind, float]]:
    """Yield the mean latency of two neighbours together, for each probe that measured it."""
    for probe in ("datagram", "request"):
        mean = _mean_of([first, second], probe, None)
        if mean is not None:
            yield probe, mean


class LoadIntervals:
    """The intervals of one load, in order of their numbers. Intervals from before `settled_ns` do not count."""

    def __init__(self, settled_ns: int) -> None:
        self._settled_ns = settled_ns
        self._intervals: list[LoadInterval] = []

    def add_sample(self, sample: Sample, flows: Sequence[Direction], sessions: int) -> None:
        """Add an end's sample, which may be late."""
        self._find(sample, sessions).add_sample(sample, flows, sessions)
        if len(self._intervals) > _MOST:
            self._join_pairs()

    def __iter__(self) -> Iterator[LoadInterval]:
        return iter(self._intervals)

    @property
    def settled(self) -> list[LoadInterval]:
        """The intervals that count. At the end of a run the far end's samples show only the queue that drains."""
        last = max((interval.last for interval in self._intervals if interval.is_probed), default=-1)
        return [each for each in self._intervals if each.start_ns >= self._settled_ns and each.first <= last]

    def _find(self, sample: Sample, sessions: int) -> LoadInterval:
        """Return the interval with the sample's number, or a new one."""
        place = bisect_right(self._intervals, sample.index, key=lambda interval: interval.first)
        if place and sample.index <= self._intervals[place - 1].last:
            return self._intervals[place - 1]
        start_ns, end_ns = sample.elapsed_ns - sample.interval_ns, sample.elapsed_ns
        interval = LoadInterval(sample.index, sample.index, start_ns, end_ns, sessions)
        self._intervals.insert(place, interval)
        return interval

    def _join_pairs(self) -> None:
        """Join neighbours, but not one from before the load settled with one from after that."""
        joined: list[LoadInterval] = []
        can_extend = False
        for interval in self._intervals:
            is_settled = interval.start_ns >= self._settled_ns
            if can_extend and is_settled is (joined[-1].start_ns >= self._settled_ns):
                joined[-1].extend(interval)
                can_extend = False
            else:
                joined.append(interval)
                can_extend = True
        self._intervals = joined


@dataclass(frozen=True, slots=True)
class Window:
    """The mean latency of neighbouring intervals, 0.4 s in all; the last one begins at `newest_ns`."""

    newest_ns: int
    end_ns: int
    mean_ns: float


def latency_windows(
    intervals: Sequence[LoadInterval], probe: ProbeKind, longest_bucket: int | None = None
) -> list[Window]:
    """Return the windows that end with each interval, without incomplete ones.

    Times beyond `longest_bucket` are left out.
    """
    windows: list[Window] = []
    for place, newest in enumerate(intervals):
        first = place
        while first > 0 and newest.end_ns - intervals[first].start_ns < _MIN_WINDOW_NS:
            first -= 1
        if newest.end_ns - intervals[first].start_ns < _MIN_WINDOW_NS:
            continue
        mean = _mean_of(intervals[first : place + 1], probe, longest_bucket)
        if mean is not None:
            windows.append(Window(newest.start_ns, newest.end_ns, mean))
    return windows


def _mean_of(intervals: Sequence[LoadInterval], probe: ProbeKind, longest_bucket: int | None) -> float | None:
    counts: Counts = merged_counts(interval.probes(probe) for interval in intervals)
    if longest_bucket is not None:
        counts = {bucket: count for bucket, count in counts.items() if bucket <= longest_bucket}
    return mean_ns(counts if probe == "datagram" else weighted_by_time(counts))


def goodput(intervals: Iterable[LoadInterval], flow: Direction) -> float | None:
    """Return the rate at which a direction's payload arrived in intervals; None without samples of its receiver."""
    bytes_ = span_ns = 0
    for interval in intervals:
        bytes_ += interval.received_bytes.get(flow, 0)
        span_ns += interval.received_ns.get(flow, 0)
    return bits_per_second(bytes_, span_ns)
