"""Running sums over the samples of a run, in bounded memory.

The summary, the findings, the gauges and the reports all add up samples here, so that no two of them can differ.
A day's run is tens of millions of session samples, so none is kept: bytes, time and CPU are sums, and medians
come from histograms, which give the same answer in whatever order the samples arrived.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from operator import attrgetter
from typing import Final

from ..model.events import SessionTotal, Totals
from ..model.latency_histogram import merge_counts, summarize_latency
from ..model.plan import MIB, SECOND_NS, Direction, End, sender_of
from ..model.samples import CoreTimes, HostDrops, NicCounts, Sample, SessionSample
from ..model.workload import Workload
from .confidence import Estimate, RateSeries
from .counter_sums import (
    Histogram,
    add_cores,
    add_host_drops,
    add_known,
    add_nic_counts,
    core_percents,
    host_percent,
    hottest_core_percent,
    sum_known,
)
from .summary import CpuSummary, Measurement
from .udp.datagram_sums import DatagramSum

_SESSION_RTT_BITS: Final = 8  # a median within 0.8 %: one histogram for each of up to 256 sessions
_LOW_WINDOW: Final = 0.75  # of the largest window that the other end has advertised to a session
_MAX_UNPAIRED: Final = 4_096  # a far end whose samples never arrive does not fill the memory
_SUMMED: Final = ("bytes", "bytes_retrans", "retransmits", "busy_us", "rwnd_limited_us", "sndbuf_limited_us")
_MEDIANS: Final = ("rtt_us", "cwnd_bytes", "mss_bytes", "pacing_bit_s", "delivery_bit_s", "peer_window_bytes")

_read_summed: Callable[[SessionSample], tuple[int | None, ...]] = attrgetter(*_SUMMED)
_read_medians: Callable[[SessionSample], tuple[int | None, ...]] = attrgetter(*_MEDIANS)


def sum_bytes(sample: Sample, flow: Direction) -> int:
    """Return the bytes of all sessions of a single direction in one sample."""
    return sum(session.bytes for session in sample.sessions if session.direction is flow)


def latency_counts(sample: Sample, flow: Direction) -> dict[int, int]:
    """Return the transactions of a single direction, counted by latency bucket (latency_histogram.py)."""
    for counts in sample.latency:
        if counts.direction is flow:
            return dict(zip(counts.buckets, counts.counts, strict=True))
    return {}


def bits_per_second(bytes_: int, span_ns: int) -> float | None:
    """Return a rate; None where no time was measured."""
    return bytes_ * 8 * SECOND_NS / span_ns if span_ns > 0 else None


class SampleOrder:
    """Admits each end's samples in the order of their indexes.

    Ask it before a sample is added anywhere: what one consumer leaves out, all leave out.
    """

    def __init__(self) -> None:
        self._newest = {End.NEAR: -1, End.FAR: -1}

    def admits(self, sample: Sample) -> bool:
        """Return whether the sample follows its end's last one and lasted some time; remember its index if so."""
        if sample.index <= self._newest[sample.end] or sample.interval_ns <= 0:
            return False
        self._newest[sample.end] = sample.index
        return True

    @property
    def reached_by_both(self) -> int:
        """The index that both ends have reached; -1 before."""
        return min(self._newest.values())

    @property
    def reached_by_any(self) -> int:
        """The index of the newest sample of either end; -1 before."""
        return max(self._newest.values())


@dataclass(slots=True)
class ReceiverSum:
    """The receiver's sums of one direction, and the time they cover.

    `trailing_silence_ns` is the part of the span since the last byte. `latency` counts transactions by bucket.
    `squares` is the sum of bytes² / time over the intervals, from which their spread follows.
    `series` holds the intervals' rates for the estimate; it is None if no estimate is needed, and for a sum
    over several periods. `datagrams` has those of UDP, of both ends' samples; None for TCP. With `is_from_sender`
    some bytes are those that the sender counted, because the receiver has not reported its own.
    """

    bytes: int = 0
    span_ns: int = 0
    trailing_silence_ns: int = 0
    is_transactional: bool = False
    out_of_order: int | None = None
    intervals: int = 0
    squares: float = 0.0
    latency: dict[int, int] = field(default_factory=dict[int, int])
    series: RateSeries | None = None
    datagrams: DatagramSum | None = None
    is_from_sender: bool = False

    def add(self, sample: Sample, flow: Direction) -> None:
        """Add the receiver's sample, without its datagrams."""
        self.is_from_sender = self.is_from_sender or sample.is_from_sender
        bytes_, span_ns = sum_bytes(sample, flow), sample.interval_ns
        self._extend(bytes_, span_ns)
        if span_ns > 0:
            self.intervals += 1
            self.squares += bytes_ * bytes_ / span_ns
        if self.series is not None:
            self.series.add(bytes_ * 8 * SECOND_NS, span_ns)
        merge_counts(self.latency, latency_counts(sample, flow).items())
        for session in sample.sessions:
            if session.direction is flow:
                self.out_of_order = add_known(self.out_of_order, session.out_of_order)

    def _extend(self, bytes_: int, span_ns: int) -> None:
        self.bytes += bytes_
        self.span_ns += span_ns
        self.trailing_silence_ns = 0 if bytes_ else self.trailing_silence_ns + span_ns

    def set_totals(self, sessions: Sequence[SessionTotal], span_ns: int) -> None:
        """Take bytes and time from what the receiver reports at the end, in place of what the sender counted.

        Over TCP every acknowledged byte was received, so the sender's intervals still tell the error of the rate.
        Over UDP they know nothing of the losses: there the rate has no error.
        """
        bytes_ = sum(session.bytes for session in sessions)
        if self.bytes and self.span_ns:  # the spread of the rates stays that of the intervals
            self.squares *= (bytes_ / self.bytes) ** 2 * self.span_ns / span_ns
        self.bytes, self.span_ns, self.trailing_silence_ns = bytes_, span_ns, 0
        self.is_from_sender = False
        if self.datagrams is not None:
            self.series = None

    def extend(self, other: "ReceiverSum") -> None:
        """Add another sum, over a time that followed."""
        if other.span_ns:
            self.series = None if self.span_ns else other.series
        self._extend(other.bytes, other.span_ns)
        self.intervals += other.intervals
        self.squares += other.squares
        self.is_transactional = self.is_transactional or other.is_transactional
        self.is_from_sender = self.is_from_sender or other.is_from_sender
        self.out_of_order = add_known(self.out_of_order, other.out_of_order)
        merge_counts(self.latency, other.latency.items())
        if other.datagrams is not None:
            self.datagrams = self.datagrams or DatagramSum()
            self.datagrams.extend(other.datagrams)

    def trim_silence(self) -> None:
        """Let the span end with the last byte: the wait for a lost peer says nothing about the link."""
        self.span_ns -= self.trailing_silence_ns
        self.trailing_silence_ns = 0
        if self.series is not None:
            self.series.trim_silence()

    @property
    def bit_s(self) -> float | None:
        """The mean rate; None where no time was measured."""
        return bits_per_second(self.bytes, self.span_ns)

    @property
    def rate_spread(self) -> float | None:
        """The standard deviation of the intervals' rates, as a share of their mean; None without two intervals."""
        if self.intervals < 2 or not self.bytes:
            return None
        return sqrt(max(0.0, self.squares * self.span_ns / self.bytes**2 - 1))

    @property
    def measurement(self) -> Measurement | None:
        """The sum as a measured value; None where no time was measured."""
        if not self.span_ns:
            return None
        transactions = sum(self.latency.values()) if self.is_transactional else None
        return Measurement(
            self.bytes,
            self.span_ns,
            transactions,
            summarize_latency(self.latency),
            self.estimate,
            None if self.datagrams is None else self.datagrams.summary,
            "sender" if self.is_from_sender else "receiver",
        )

    @property
    def estimate(self) -> Estimate | None:
        """The rate in bit/s with its error; None where too little was measured."""
        if self.series is None or not self.span_ns:
            return None
        return self.series.estimate(self.bytes * 8 * SECOND_NS / self.span_ns)


@dataclass(slots=True)
class SenderSum:
    """Sums and medians of the senders' TCP counters, over sessions and samples.

    Of `windows` samples of the other end's window, `low_windows` were clearly below the largest one until then,
    which each session has in `largest_windows`.
    """

    span_ns: int = 0
    windows: int = 0
    low_windows: int = 0
    largest_windows: dict[int, int] = field(default_factory=dict[int, int])
    sessions: set[int] = field(default_factory=set[int])
    min_rtt_us: int | None = None
    counters: dict[str, int] = field(default_factory=dict[str, int])
    histograms: dict[str, Histogram] = field(default_factory=dict[str, Histogram])

    def add(self, sample: Sample, flow: Direction) -> None:
        """Add the sender's sample of one direction."""
        self.span_ns += sample.interval_ns
        for session in sample.sessions:
            if session.direction is flow:
                self._add_session(session)

    def _add_session(self, session: SessionSample) -> None:
        self.sessions.add(session.session)
        for name, value in zip(_SUMMED, _read_summed(session), strict=True):
            if value is not None:
                self.counters[name] = self.counters.get(name, 0) + value
        for name, value in zip(_MEDIANS, _read_medians(session), strict=True):
            if value is not None:
                self.histograms.setdefault(name, Histogram()).add(value)
        if session.min_rtt_us is not None:
            self.min_rtt_us = min(session.min_rtt_us, self.min_rtt_us or session.min_rtt_us)
        if session.peer_window_bytes is not None:
            self._add_window(session.session, session.peer_window_bytes)

    def _add_window(self, session: int, window_bytes: int) -> None:
        largest = max(window_bytes, self.largest_windows.get(session, 0))
        self.largest_windows[session] = largest
        self.windows += 1
        self.low_windows += window_bytes < _LOW_WINDOW * largest

    def set_totals(self, sessions: Sequence[SessionTotal], span_ns: int) -> None:
        """Take the counters from what a sender without samples reports at the end."""
        self.span_ns = span_ns
        self.sessions = {session.session for session in sessions}
        self.counters["bytes"] = sum(session.bytes for session in sessions)
        retransmits = sum_known(session.retransmits for session in sessions)
        if retransmits is not None:
            self.counters["retransmits"] = retransmits

    def extend(self, other: "SenderSum") -> None:
        """Add another sum, of another time or direction."""
        self.span_ns += other.span_ns
        self.windows += other.windows
        self.low_windows += other.low_windows
        self.sessions |= other.sessions
        merge_counts(self.counters, other.counters.items())
        for name, histogram in other.histograms.items():
            self.histograms.setdefault(name, Histogram()).extend(histogram)
        if other.min_rtt_us is not None:
            self.min_rtt_us = min(other.min_rtt_us, self.min_rtt_us or other.min_rtt_us)

    def median(self, name: str) -> int | None:
        """Return the median of a gauge such as `rtt_us`; None where no session reported it."""
        histogram = self.histograms.get(name)
        return None if histogram is None else histogram.median

    def mean(self, name: str) -> float | None:
        """Return the mean of a gauge; None where no session reported it."""
        histogram = self.histograms.get(name)
        return None if histogram is None else histogram.mean

    def time_share(self, name: str) -> float | None:
        """Return the mean share of the sessions' time that a counter of microseconds covers."""
        whole_us = self.span_ns * len(self.sessions) / 1_000
        return None if name not in self.counters or not whole_us else min(1.0, self.counters[name] / whole_us)

    @property
    def low_window_share(self) -> float | None:
        """The share of samples in which data that nobody read had made the other end's window smaller."""
        return self.low_windows / self.windows if self.windows else None

    @property
    def retransmits(self) -> int | None:
        """The retransmitted segments; None if no kernel reported them."""
        return self.counters.get("retransmits")

    def retransmitted_share(self, mss_bytes: int | None = None) -> float | None:
        """Return the share of the payload sent again; estimated from segments if the kernel does not report bytes.

        `mss_bytes` is the size of a segment, where the sender does not report its own.
        """
        again = self.counters.get("bytes_retrans")
        mss_bytes = self.median("mss_bytes") or mss_bytes
        if again is None and self.retransmits is not None and (mss_bytes is not None or not self.retransmits):
            again = self.retransmits * (mss_bytes or 0)
        whole = self.counters.get("bytes", 0) + (again or 0)
        return None if again is None or not whole else again / whole


def _time_share(time_ns: int | None, span_ns: int) -> float | None:
    """Return the share of a span, at most 1: threads and cores count their waits side by side."""
    return None if time_ns is None or not span_ns else min(1.0, time_ns / span_ns)


@dataclass(slots=True)
class EndSum:
    """The CPU times of one end's cores, linkgauge's processes and their waits, and the counters of its kernel."""

    span_ns: int = 0
    process_ns: int = 0
    process_span_ns: int = 0
    worker_ns: int | None = None
    worker_wait_ns: int | None = None
    quota_wait_ns: int | None = None
    nic: NicCounts | None = None
    drops: HostDrops | None = None
    _cores: list[CoreTimes] = field(default_factory=list[CoreTimes])

    def add(self, sample: Sample) -> None:
        """Add a sample of this end."""
        self.span_ns += sample.interval_ns
        if sample.process_cpu_ns is not None:
            self.process_ns += sample.process_cpu_ns
            self.process_span_ns += sample.interval_ns
        self._add_host(sample.busiest_worker_ns, sample.nic, sample.cores or ())
        self.drops = add_host_drops(self.drops, sample.drops)
        if sample.waits is not None:
            self._add_waits(sample.waits.worker_ns, sample.waits.quota_ns)

    def set_totals(self, cpu_ns: int | None, span_ns: int) -> None:
        """Take the CPU time of an end without samples from what it reports at the end."""
        self.span_ns = self.span_ns or span_ns
        if cpu_ns is not None:
            self.process_ns, self.process_span_ns = cpu_ns, span_ns

    def extend(self, other: "EndSum") -> None:
        """Add another sum, over another time."""
        self.span_ns += other.span_ns
        self.process_ns += other.process_ns
        self.process_span_ns += other.process_span_ns
        self._add_host(other.worker_ns, other.nic, other.cores)
        self.drops = add_host_drops(self.drops, other.drops)
        self._add_waits(other.worker_wait_ns, other.quota_wait_ns)

    def _add_waits(self, worker_ns: int | None, quota_ns: int | None) -> None:
        self.worker_wait_ns = add_known(self.worker_wait_ns, worker_ns)
        self.quota_wait_ns = add_known(self.quota_wait_ns, quota_ns)

    def _add_host(self, worker_ns: int | None, nic: NicCounts | None, cores: Iterable[CoreTimes]) -> None:
        self.worker_ns = add_known(self.worker_ns, worker_ns)
        self.nic = add_nic_counts(self.nic, nic)
        add_cores(self._cores, cores)

    @property
    def cores(self) -> tuple[CoreTimes, ...]:
        """The sums of each core's times; the position is the core's number."""
        return tuple(self._cores)

    @property
    def process_share(self) -> float | None:
        """How many cores linkgauge's processes used; None where no sample knows their CPU time."""
        return self.process_ns / self.process_span_ns if self.process_span_ns else None

    @property
    def worker_share(self) -> float | None:
        """The share of a core that the busiest worker process used."""
        return None if self.worker_ns is None or not self.span_ns else self.worker_ns / self.span_ns

    @property
    def wait_share(self) -> float | None:
        """The share of time for which the worker that waited longest was ready to run and had no core."""
        return _time_share(self.worker_wait_ns, self.span_ns)

    @property
    def quota_share(self) -> float | None:
        """The share of time for which a CPU quota stopped linkgauge's processes; None without a quota."""
        return _time_share(self.quota_wait_ns, self.span_ns)

    def summary(self, payload_bytes: int, transactions: int = 0) -> CpuSummary:
        """Return the mean loads, and the cost of the payload received in both directions together."""
        # Samples without a process time are assumed to be like the others.
        cpu_ms = None if self.process_share is None else self.process_share * self.span_ns / 1e6
        return CpuSummary(
            host_percent=host_percent(self._cores),
            hottest_core_percent=hottest_core_percent(self._cores),
            process_percent=None if self.process_share is None else 100 * self.process_share,
            msec_per_mib=cpu_ms / (payload_bytes / MIB) if cpu_ms is not None and payload_bytes else None,
            msec_per_transaction=cpu_ms / transactions if cpu_ms is not None and transactions else None,
            core_percents=core_percents(self._cores),
        )


class SampleSum:
    """The sums over some samples taken under one setting: of each end, and of each single direction.

    With `has_series`, the receivers' sums hold their intervals' rates, for an estimate of the error.
    """

    def __init__(self, workload: Workload, *, has_series: bool = False) -> None:
        self.workload = workload
        self.ends = {end: EndSum() for end in End}
        self.sent = {flow: SenderSum() for flow in Direction.DUPLEX.flows}
        self.received = {
            flow: ReceiverSum(
                is_transactional=workload.is_transactional,
                series=RateSeries() if has_series else None,
                datagrams=DatagramSum() if workload.is_datagram else None,
            )
            for flow in Direction.DUPLEX.flows
        }

    def add(self, sample: Sample, flows: Iterable[Direction]) -> None:
        """Add a sample, of the directions that its setting runs. Of a drain, only the datagrams count."""
        for flow in flows:
            datagrams = self.received[flow].datagrams
            if datagrams is not None:
                datagrams.add(sample, flow)
        if sample.is_drain:
            return
        self.ends[sample.end].add(sample)
        for flow in flows:
            if sender_of(flow, self.workload) is sample.end:
                self.sent[flow].add(sample, flow)
            else:
                self.received[flow].add(sample, flow)

    def set_totals(self, totals: Totals, flows: Iterable[Direction]) -> None:
        """Take the figures of an end without samples: the results of what it received, and what it sent."""
        if totals.span_ns <= 0:
            return
        self.ends[totals.end].set_totals(totals.cpu_ns, totals.span_ns)
        for flow in flows:
            sessions = [session for session in totals.sessions if session.direction is flow]
            if not sessions:
                continue
            span_ns = max(session.span_ns for session in sessions)
            span_ns = span_ns if span_ns > 0 else totals.span_ns
            datagrams, is_sender = self.received[flow].datagrams, sender_of(flow, self.workload) is totals.end
            if is_sender:
                self.sent[flow].set_totals(sessions, span_ns)
            else:
                self.received[flow].set_totals(sessions, span_ns)
            if datagrams is not None:
                datagrams.set_totals(flow, sessions, span_ns, is_sender=is_sender)


class RecentSamples:
    """The samples of the last `span_ns` of each end, by that end's clock; always the newest one at least."""

    def __init__(self, span_ns: int) -> None:
        self._span_ns = span_ns
        self._samples: dict[End, deque[Sample]] = {end: deque() for end in End}

    def add(self, sample: Sample) -> None:
        """Add an end's next sample, and drop those that are too old now. A drain is no part of what runs."""
        if sample.is_drain:
            return
        samples = self._samples[sample.end]
        samples.append(sample)
        while samples[0].elapsed_ns <= sample.elapsed_ns - self._span_ns and len(samples) > 1:
            samples.popleft()

    def clear(self) -> None:
        """Drop all samples, as a change of settings does."""
        for samples in self._samples.values():
            samples.clear()

    def of_end(self, end: End) -> tuple[Sample, ...]:
        """Return an end's samples, the newest one last."""
        return tuple(self._samples[end])

    def sum(self, workload: Workload, flows: Sequence[Direction]) -> SampleSum:
        """Return the sums over both ends' samples."""
        sums = SampleSum(workload)
        for samples in self._samples.values():
            for sample in samples:
                sums.add(sample, flows)
        return sums


class DuplexRates:
    """Joins the rates that the two receivers of a duplex interval report, whichever comes first."""

    def __init__(self) -> None:
        self._unpaired: dict[int, float] = {}

    def join(self, index: int, bit_s: float) -> float | None:
        """Return the sum of both directions' rates; None until the other half of the interval is there."""
        other_bit_s = self._unpaired.pop(index, None)
        if other_bit_s is not None:
            return bit_s + other_bit_s
        if len(self._unpaired) < _MAX_UNPAIRED:
            self._unpaired[index] = bit_s
        return None


@dataclass(slots=True)
class SessionSum:
    """The payload of one session in one direction, and its sender's TCP counters; None where unknown."""

    bytes: int = 0
    span_ns: int = 0
    retransmits: int | None = None
    rtts: Histogram = field(default_factory=lambda: Histogram(_SESSION_RTT_BITS))

    def add(self, part: SessionSample, span_ns: int, *, is_sender: bool) -> None:
        """Add the session's part of one end's sample."""
        if is_sender:
            self.retransmits = add_known(self.retransmits, part.retransmits)
            if part.rtt_us is not None:
                self.rtts.add(part.rtt_us)
        else:
            self.bytes += part.bytes
            self.span_ns += span_ns

    @property
    def bit_s(self) -> float | None:
        """The mean rate; None where no time was measured."""
        return bits_per_second(self.bytes, self.span_ns)

    @property
    def rtt_us(self) -> int | None:
        """The median of the RTT samples."""
        return self.rtts.median

    @property
    def mib(self) -> float:
        """The payload, MiB."""
        return self.bytes / MIB


class SessionSums:
    """The sums of every session, by direction and number."""

    def __init__(self) -> None:
        self.sessions: dict[tuple[Direction, int], SessionSum] = {}

    def add(self, sample: Sample, workload: Workload) -> None:
        """Add one end's sample of all sessions."""
        for part in sample.sessions:
            sums = self.sessions.setdefault((part.direction, part.session), SessionSum())
            is_sender = sender_of(part.direction, workload) is sample.end
            sums.add(part, sample.interval_ns, is_sender=is_sender)

    def set_totals(self, totals: Totals, workload: Workload) -> None:
        """Take the figures of an end without samples (see `SampleSum.set_totals`)."""
        for part in totals.sessions:
            sums = self.sessions.setdefault((part.direction, part.session), SessionSum())
            if sender_of(part.direction, workload) is totals.end:
                sums.retransmits = part.retransmits
            elif (span_ns := part.span_ns if part.span_ns > 0 else totals.span_ns) > 0:
                sums.bytes, sums.span_ns = part.bytes, span_ns

    @property
    def retransmits(self) -> int | None:
        """The retransmitted segments of all senders; None if no kernel reported them."""
        return sum_known(sums.retransmits for sums in self.sessions.values())
