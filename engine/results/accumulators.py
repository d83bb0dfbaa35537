"""Running sums of a run: what a summary is made of, in a bounded amount of memory.

Pure. A day's run is tens of millions of session samples, so none is kept: bytes, time and CPU are sums, and
medians come from counted histograms, which give the same answer in whatever order the samples came.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from ..model.events import Expectation, ExpectedRate, Opened
from ..model.latency_histogram import merge_counts, summarize_latency
from ..model.plan import MIB, SECOND_NS, Direction, End, Mode, Settings, sender_of
from ..model.samples import ProbeSample, Sample
from ..model.socket_info import SocketInfo
from ..model.workload import Workload
from .confidence import Estimate, RateSeries
from .summary import CpuSummary, Measurement, Period, ProbeResult, ProbeSummary, TcpSummary

_EXACT_BITS: Final = 12  # values under 4096 have a bucket each, the others one for each 1/2048 of their size
_MAX_WARNINGS: Final = 32
_MOST_HALVES: Final = 4_096  # a far end whose samples never come does not fill the memory


class Histogram:
    """Counts of whole numbers. The median is exact up to 4095, and within 0.05 % above that."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._sums: dict[int, int] = {}

    def add(self, value: int) -> None:
        """Count one value; one below nothing counts as nothing."""
        value = max(0, value)
        shift = max(0, value.bit_length() - _EXACT_BITS)
        bucket = (value >> shift) << shift
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self._sums[bucket] = self._sums.get(bucket, 0) + value

    @property
    def median(self) -> int | None:
        """The middle value, or the mean of the two in the middle; None where nothing was counted."""
        if not self._counts:
            return None
        buckets = sorted(self._counts)
        upto = list(accumulate(self._counts[bucket] for bucket in buckets))
        middles = ((upto[-1] + 1) // 2, upto[-1] // 2 + 1)
        pair = [buckets[bisect_left(upto, rank)] for rank in middles]
        return round(sum(self._sums[bucket] / self._counts[bucket] for bucket in pair) / 2)


@dataclass(slots=True)
class FlowSum:
    """What a receiver counted of one direction, and over how much of its time.

    `silent_ns` is the part of the span since the last byte. `latency` counts transactions by bucket (latency.py).
    `series` has the rates one by one, to tell how sure their mean is; None for a sum of several stretches.
    """

    bytes: int = 0
    span_ns: int = 0
    trailing_silence_ns: int = 0
    is_transactional: bool = False
    latency: dict[int, int] = field(default_factory=dict[int, int])
    series: RateSeries | None = field(default_factory=RateSeries)

    def add(self, bytes_: int, span_ns: int) -> None:
        """Add an interval."""
        self._add(bytes_, span_ns)
        if self.series is not None:
            self.series.add(bytes_ * 8 * SECOND_NS, span_ns)

    def _add(self, bytes_: int, span_ns: int) -> None:
        self.bytes += bytes_
        self.span_ns += span_ns
        self.trailing_silence_ns = 0 if bytes_ else self.trailing_silence_ns + span_ns

    def add_flow(self, other: "FlowSum") -> None:
        """Add another sum, its latency too, of a time that followed."""
        if other.span_ns:
            self.series = None if self.span_ns else other.series
        self._add(other.bytes, other.span_ns)
        self.is_transactional = self.is_transactional or other.is_transactional
        merge_counts(self.latency, other.latency.items())

    def trim_silence(self) -> None:
        """Let the span end with the last byte: the time in which a lost peer was waited for is not the link's."""
        self.span_ns -= self.trailing_silence_ns
        self.trailing_silence_ns = 0
        if self.series is not None:
            self.series.trim_silence()

    @property
    def measurement(self) -> Measurement | None:
        """The sum as a measured value; None where no time was measured."""
        if not self.span_ns:
            return None
        transactions = sum(self.latency.values()) if self.is_transactional else None
        return Measurement(self.bytes, self.span_ns, transactions, summarize_latency(self.latency), self.estimate)

    @property
    def estimate(self) -> Estimate | None:
        """The rate in bit/s with its error; None where that cannot be told."""
        if self.series is None or not self.span_ns:
            return None
        return self.series.estimate(self.bytes * 8 * SECOND_NS / self.span_ns)


@dataclass(slots=True)
class PeriodSum:
    """One stretch of a run: its settings since `start_ns`, and what was measured under them."""

    settings: Settings
    expectation: Expectation
    start_ns: int
    is_transactional: bool = False
    flows: dict[Direction, FlowSum] = field(default_factory=dict[Direction, FlowSum])
    first_measured_ns: int | None = None
    _both: RateSeries = field(default_factory=RateSeries)
    _halves: dict[int, float] = field(default_factory=dict[int, float])

    def __post_init__(self) -> None:
        """Start both directions from nothing."""
        for flow in Direction.DUPLEX.flows:
            self.flows[flow] = FlowSum(is_transactional=self.is_transactional)

    def add(self, sample: Sample, flow: Direction, bytes_: int) -> None:
        """Add what a receiver counted of a direction in an interval."""
        span_ns = sample.interval_ns
        self.flows[flow].add(bytes_, span_ns)
        begun_ns = sample.elapsed_ns - span_ns
        self.first_measured_ns = (
            begun_ns if self.first_measured_ns is None else min(self.first_measured_ns, begun_ns)
        )
        if self.settings.direction is not Direction.DUPLEX:
            return
        # The two directions share machines and line, so that the error of their sum is in neither of theirs: it
        # needs the sums themselves, interval by interval. The other end's half may come seconds later, or never.
        bit_s = bytes_ * 8 * SECOND_NS / span_ns
        other_bit_s = self._halves.pop(sample.index, None)
        if other_bit_s is not None:
            self._both.add((bit_s + other_bit_s) * span_ns, span_ns)
        elif len(self._halves) < _MOST_HALVES:
            self._halves[sample.index] = bit_s

    def trim_silence(self) -> None:
        """Let each direction end with its last byte."""
        for flow in self.flows.values():
            flow.trim_silence()
        self._both.trim_silence()

    @property
    def total(self) -> FlowSum:
        """Both directions: bytes added, and the span over which they make the sum of the two rates.

        The two receivers' spans differ by a few milliseconds; the longer one alone would take 0.9 % off the sum
        of 10 s on a slow link, where the far end's last sample comes late.
        """
        out, in_ = self.flows[Direction.OUT], self.flows[Direction.IN]
        whole = FlowSum(is_transactional=self.is_transactional)
        whole.add_flow(out)
        whole.add_flow(in_)
        if out.span_ns and in_.span_ns:
            whole.series = self._both
        bytes_per_ns = sum(flow.bytes / flow.span_ns for flow in (out, in_) if flow.span_ns)
        longer_ns = max(out.span_ns, in_.span_ns)
        whole.span_ns = round(whole.bytes / bytes_per_ns) if bytes_per_ns else longer_ns
        return whole

    @property
    def period(self) -> Period:
        """The stretch as a summary has it."""
        out, in_ = self.flows[Direction.OUT].measurement, self.flows[Direction.IN].measurement
        warmup_ns = None if self.first_measured_ns is None else max(0, self.first_measured_ns - self.start_ns)
        total = self.total.measurement
        return Period(self.settings, self.expectation, out, in_, total, self.start_ns, warmup_ns)


def sum_flow(periods: Sequence[PeriodSum], flow: Direction) -> Measurement | None:
    """Return what was measured of one direction over all stretches."""
    sums = FlowSum()
    for part in periods:
        sums.add_flow(part.flows[flow])
    return sums.measurement


def sum_total(periods: Sequence[PeriodSum]) -> Measurement | None:
    """Return what was measured of both directions; stretches follow each other, so their spans add up."""
    sums = FlowSum()
    for part in periods:
        sums.add_flow(part.total)
    return sums.measurement


def mean_expectation(periods: Sequence[PeriodSum]) -> Expectation:
    """Return what to expect of a whole run: each stretch's rates, weighted with the time it was measured for.

    A total is expected only where both directions ran at once at some time; a stretch of a single direction
    counts towards it with what that direction should carry. Before anything is measured, it is what is
    expected now.
    """
    parts = [part for part in periods if part.total.span_ns] or list(periods[-1:])
    out = [(p.flows[Direction.OUT].span_ns, p.expectation.out) for p in parts if _has(p, Direction.OUT)]
    in_ = [(p.flows[Direction.IN].span_ns, p.expectation.in_) for p in parts if _has(p, Direction.IN)]
    total = [(p.total.span_ns, _expected_total(p)) for p in parts]
    both = any(p.expectation.total is not None for p in parts)
    return Expectation(_weighted(out), _weighted(in_), _weighted(total) if both else None)


def _has(part: PeriodSum, flow: Direction) -> bool:
    return flow in part.settings.direction.flows


def _expected_total(part: PeriodSum) -> ExpectedRate | None:
    expectation = part.expectation
    if part.settings.direction is Direction.DUPLEX or expectation.total is not None:
        return expectation.total
    return expectation.out if part.settings.direction is Direction.OUT else expectation.in_


def _weighted(parts: Sequence[tuple[int, ExpectedRate | None]]) -> ExpectedRate | None:
    """Return the mean of those that were measured, or the last where none was."""
    weighed = [part for part in parts if part[0]] or list(parts[-1:])
    known = [(weight or 1, expected) for weight, expected in weighed if expected is not None]
    if not known or len(known) < len(weighed):
        return None
    whole = sum(weight for weight, _ in known)
    bit_s = (sum(weight * expected.bit_s for weight, expected in known) + whole // 2) // whole
    documented = all(expected.basis == "documented" for _, expected in known)
    sources = dict.fromkeys(expected.source for _, expected in known)
    transactions = [(weight, expected.transactions_s) for weight, expected in known]
    rates = [weight * rate for weight, rate in transactions if rate is not None]
    most = [weight * expected.most_bit_s for weight, expected in known if expected.most_bit_s is not None]
    return ExpectedRate(
        bit_s,
        "documented" if documented else "computed",
        "; ".join(sources),
        sum(rates) / whole if len(rates) == len(known) else None,
        (sum(most) + whole // 2) // whole if len(most) == len(known) else None,
    )


class CpuSum:
    """CPU of one end over its samples that are no warm-up."""

    def __init__(self) -> None:
        self._busy_ns: list[int] = []
        self._whole_ns: list[int] = []
        self._process_ns = 0
        self._process_span_ns = 0
        self._span_ns = 0

    def add(self, sample: Sample) -> None:
        """Add a sample."""
        self._span_ns += sample.interval_ns
        if sample.process_cpu_ns is not None:
            self._process_ns += sample.process_cpu_ns
            self._process_span_ns += sample.interval_ns
        cores = sample.cores or ()
        missing = len(cores) - len(self._busy_ns)  # cores can be switched on during a run
        self._busy_ns += [0] * missing
        self._whole_ns += [0] * missing
        for number, core in enumerate(cores):
            self._busy_ns[number] += core.busy_ns
            self._whole_ns[number] += core.busy_ns + core.idle_ns

    def summary(self, payload_bytes: int, transactions: int = 0) -> CpuSummary:
        """Return the means, and the cost of what was received in both directions together."""
        shares = [b * 100 / w for b, w in zip(self._busy_ns, self._whole_ns, strict=True) if w > 0]
        process = self._process_ns * 100 / self._process_span_ns if self._process_span_ns else None
        # Where a sample did not know its process time, the others stand for it.
        spent_ms = None if process is None else process / 100 * self._span_ns / 1e6
        return CpuSummary(
            host_percent=sum(shares) / len(shares) if shares else None,
            hottest_core_percent=max(shares, default=None),
            process_percent=process,
            msec_per_mib=spent_ms / (payload_bytes / MIB) if spent_ms is not None and payload_bytes else None,
            msec_per_transaction=spent_ms / transactions if spent_ms is not None and transactions else None,
        )


class TcpSum:
    """What the senders' kernels told, and what both ends' kernels granted."""

    def __init__(self) -> None:
        self.workload = Workload.STREAM
        self._retransmits: int | None = None
        self._rtt_us = Histogram()
        self._mss_bytes = Histogram()
        self._open: dict[tuple[End, Direction, int], SocketInfo] = {}

    def add_session(self, event: Opened) -> None:
        """Take in what was granted; a session that is opened again replaces what it was granted before."""
        facts = event.facts
        self._open[facts.end, facts.direction, facts.session] = facts

    def apply_settings(self, settings: Settings) -> None:
        """Forget the sessions that new settings take away."""
        flows = settings.direction.flows
        self._open = {
            key: facts
            for key, facts in self._open.items()
            if facts.direction in flows and facts.session <= settings.sessions
        }

    def add(self, sample: Sample, flow: Direction) -> None:
        """Add the sender's sample of one direction."""
        for session in sample.sessions:
            if session.direction is not flow:
                continue
            if session.retransmits is not None:
                self._retransmits = (self._retransmits or 0) + session.retransmits
            if session.rtt_us is not None:
                self._rtt_us.add(session.rtt_us)
            if session.mss_bytes is not None:
                self._mss_bytes.add(session.mss_bytes)

    @property
    def summary(self) -> TcpSummary:
        """The sums as a summary has them; congestion control and MSS are the senders'."""
        senders = [facts for facts in self._open.values() if facts.end is sender_of(facts.direction, self.workload)]
        names = sorted({facts.congestion for facts in senders if facts.congestion is not None})
        mss_bytes = self._mss_bytes.median
        if mss_bytes is None:
            mss_bytes = _least(facts.mss_bytes for facts in senders)
        return TcpSummary(
            retransmits=self._retransmits,
            rtt_us=self._rtt_us.median,
            mss_bytes=mss_bytes,
            congestion=", ".join(names) or None,
            window_granted_near_bytes=self._granted(End.NEAR),
            window_granted_far_bytes=self._granted(End.FAR),
            mode=_mode_of(self._open.values(), senders),
        )

    def _granted(self, end: End) -> int | None:
        return _least(facts.window_granted_bytes for facts in self._open.values() if facts.end is end)


def _mode_of(everyone: Iterable[SocketInfo], senders: Sequence[SocketInfo]) -> Mode | None:
    """Return the mode of a run: the one that says most against its figures."""
    if any(facts.mode is Mode.DISCARD for facts in everyone if facts not in senders):
        return Mode.DISCARD
    modes = {facts.mode for facts in senders}
    return None if not modes else Mode.COPY if modes == {Mode.COPY} else Mode.SENDFILE


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


class Warnings:
    """Texts in the order of their first coming, each once, and not without end."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._left_out = 0

    def add(self, text: str) -> None:
        """Take one in."""
        if text not in self._texts:
            if len(self._texts) < _MAX_WARNINGS:
                self._texts[text] = None
            else:
                self._left_out += 1

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, and how many more there were."""
        more = (f"further warnings left out here: {self._left_out}",) if self._left_out else ()
        return (*self._texts, *more)


# MERGED FROM engine/probe:
# The probe beside a stream: how it asks, and what a run makes of its answers.
#
# Pure. The near end asks for one byte with one byte, so that a packet each way is all that it adds. One request is
# in flight at a time and none goes out sooner than 10 ms after the last: 100 a second at most, which take 0.7 % of
# a
# 10 Mb/s link and 0.007 % of one of 1 Gb/s. With more in flight, TCP would hold requests back in the sender
# and their time would be the connection's own; with one, it is the path's and both hosts'. So an answer that
# takes longer than 10 ms holds the next request back, and percentiles are of the requests that were made.


class _Sum:
    """What the probe found over some samples."""

    def __init__(self) -> None:
        self._span_ns = 0
        self._counts: dict[int, int] = {}
        self._rtt_us = Histogram()

    def add(self, sample: ProbeSample) -> None:
        self._span_ns += sample.span_ns
        merge_counts(self._counts, zip(sample.latency.buckets, sample.latency.counts, strict=True))
        if sample.rtt_us is not None:
            self._rtt_us.add(sample.rtt_us)

    @property
    def probed(self) -> ProbeResult | None:
        if not self._span_ns:
            return None
        transactions = sum(self._counts.values())
        return ProbeResult(transactions, self._span_ns, summarize_latency(self._counts), self._rtt_us.median)


class ProbeSum:
    """What the probe of a run found before the load, and under it."""

    def __init__(self) -> None:
        self._has_probe = False
        self._idle = _Sum()
        self._loaded = _Sum()

    def add_idle(self, sample: ProbeSample | None) -> None:
        """Take in what it found before payload flowed."""
        if sample is not None:
            self._has_probe = True
            self._idle.add(sample)

    def add_loaded(self, sample: ProbeSample | None) -> None:
        """Add an interval under load; the warm-up is left out by who calls."""
        if sample is not None:
            self._has_probe = True
            self._loaded.add(sample)

    @property
    def summary(self) -> ProbeSummary | None:
        """Both, None where the run had no probe."""
        return ProbeSummary(self._idle.probed, self._loaded.probed) if self._has_probe else None
