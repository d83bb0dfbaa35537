"""The sums over some samples of both ends, and the samples that belong in them: in order, or the newest ones.

Of each single direction there are its receiver's bytes, time, transactions, latency, and the spread of its rates.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Final

from ...model.counters.latency_histogram import merge_counts, summarize_latency
from ...model.counters.samples import PEAK, Sample, SessionSample, combine, latency_counts
from ...model.directions import Direction, End, sender_of
from ...model.events import Sampled, SessionTotal, Totals
from ...model.plan import SECOND_NS, Settings
from ...model.workload import Workload
from ..confidence import Estimate, RateSeries
from ..rate_and_loss import add_known, bits_per_second
from ..summary import Measurement
from ..udp.datagram_sums import DatagramSum
from .end_sum import EndSum
from .field_sums import OWN, Sums, extend_fields
from .histogram import Histogram
from .rate_course import RateCourse
from .sender_sum import SenderSum

MAX_BEHIND: Final = 2_400
"""The number of intervals by which one end may be behind the other: ten minutes of the usual ones."""


MIN_SILENCE_NS: Final = 2 * SECOND_NS // 5
"""The shortest time without payload that counts as a silence: a lost packet at the end of a window costs less."""


class SampleOrder:
    """Admits each end's samples in the order of their indexes, and none that is too far behind the other end's.

    Ask it before a sample is added anywhere: if one consumer leaves a sample out, all of them do.
    """

    def __init__(self) -> None:
        self._newest = {End.NEAR: -1, End.FAR: -1}

    def admits(self, sample: Sample) -> bool:
        """Return whether the sample follows its end's last one and lasted some time; remember its index if so."""
        if sample.index <= max(self._newest[sample.end], self._given_up) or sample.interval_ns <= 0:
            return False
        self._newest[sample.end] = sample.index
        return True

    @property
    def complete_index(self) -> int:
        """The index up to which no sample can come any more; -1 before."""
        return max(min(self._newest.values()), self._given_up)

    @property
    def reached_by_any(self) -> int:
        """The index of the newest sample of either end; -1 before."""
        return max(self._newest.values())

    @property
    def _given_up(self) -> int:
        """The index up to which samples of the end that is behind do not count: memory must have a limit."""
        return self.reached_by_any - MAX_BEHIND


@dataclass(slots=True)
class RateSpread(Sums):
    """How much the rates of a direction, and of each of its sessions, vary from interval to interval.

    `squares` is the sum of bytes² / time over the intervals; `session_squares` has one sum for each session.
    `kbit_s` counts the rates of the intervals in kb/s.
    """

    intervals: int = 0
    squares: float = 0.0
    session_bytes: dict[int, int] = field(default_factory=dict[int, int])
    session_squares: dict[int, float] = field(default_factory=dict[int, float])
    kbit_s: Histogram = field(default_factory=Histogram)

    def add_sample(self, sample: Sample, flow: Direction) -> None:
        """Add an interval of the receiver."""
        bytes_, span_ns = sample.bytes_of(flow), sample.interval_ns
        bit_s = bits_per_second(bytes_, span_ns)
        if bit_s is None:
            return
        self.intervals += 1
        self.squares += bytes_ * bytes_ / span_ns
        self.kbit_s.count_value(round(bit_s / 1_000))
        for part in sample.sessions:
            if part.direction is flow:
                number, before = part.session, self.session_squares.get(part.session, 0.0)
                self.session_bytes[number] = self.session_bytes.get(number, 0) + part.bytes
                self.session_squares[number] = before + part.bytes * part.bytes / span_ns


@dataclass(slots=True)
class Silences:
    """The times without payload. Those of `MIN_SILENCE_NS` or more count: how many, all together, and the longest.

    `leading_ns` is the one before the first payload, `trailing_ns` the one since the last; without any payload both
    are the whole time. The fields of `inner` ones are about those between payload that count.
    """

    has_payload: bool = False
    leading_ns: int = 0
    trailing_ns: int = 0
    inner_count: int = 0
    inner_ns: int = 0
    inner_longest_ns: int = 0

    def add_interval(self, span_ns: int, *, has_payload: bool) -> None:
        """Add an interval that followed."""
        silent_ns = 0 if has_payload else span_ns
        self.extend(Silences(has_payload=has_payload, leading_ns=silent_ns, trailing_ns=silent_ns))

    def extend(self, other: "Silences") -> None:
        """Add a time that followed: a silence may go on from one into the other."""
        joined_ns = self.trailing_ns + other.leading_ns
        if not self.has_payload:
            self.leading_ns = joined_ns
        elif other.has_payload and joined_ns >= MIN_SILENCE_NS:
            self._add_inner(1, joined_ns, joined_ns)
        self.trailing_ns = other.trailing_ns if other.has_payload else joined_ns
        self.has_payload = self.has_payload or other.has_payload
        self._add_inner(other.inner_count, other.inner_ns, other.inner_longest_ns)

    def _add_inner(self, count: int, span_ns: int, longest_ns: int) -> None:
        self.inner_count += count
        self.inner_ns += span_ns
        self.inner_longest_ns = max(self.inner_longest_ns, longest_ns)

    def trim(self) -> None:
        """Forget the time since the last payload."""
        self.trailing_ns = 0

    @property
    def _outer(self) -> list[int]:
        """The first and the last silence, if they count; one if they are the same."""
        outer = [self.leading_ns, self.trailing_ns] if self.has_payload else [self.trailing_ns]
        return [each_ns for each_ns in outer if each_ns >= MIN_SILENCE_NS]

    @property
    def count(self) -> int:
        """How many there were."""
        return self.inner_count + len(self._outer)

    @property
    def span_ns(self) -> int:
        """All of them together."""
        return self.inner_ns + sum(self._outer)

    @property
    def longest_ns(self) -> int:
        """The longest one."""
        return max(self.inner_longest_ns, *self._outer, 0)


@dataclass(slots=True)
class ReceiverSum:
    """The receiver's sums of one direction, and the time they cover.

    `trailing_silence_ns` is the part of the span since the last byte. `latency` counts transactions by bucket.
    `series` holds the intervals' rates for the estimate; it is None if no estimate is needed, and for a sum
    over several periods. `datagrams` has the counts of UDP from both ends' samples; None for TCP. `is_from_sender`
    is set if the sender counted some of the bytes, because the receiver has not reported its own. `unread_bytes` is
    the memory of unread data in `buffer_bytes` of receive buffers: sums over `buffer_readings` of sessions.
    `silences` has the times without payload, and `course` the rates over the time.
    """

    bytes: int = 0
    span_ns: int = 0
    trailing_silence_ns: int = field(default=0, metadata=OWN)
    is_transactional: bool = field(default=False, metadata=PEAK)
    out_of_order: int | None = None
    latency: dict[int, int] = field(default_factory=dict[int, int])
    series: RateSeries | None = field(default=None, metadata=OWN)
    datagrams: DatagramSum | None = None
    is_from_sender: bool = field(default=False, metadata=PEAK)
    unread_bytes: int = 0
    buffer_bytes: int = 0
    buffer_readings: int = 0
    spread: RateSpread = field(default_factory=RateSpread)
    silences: Silences = field(default_factory=Silences)
    course: RateCourse = field(default_factory=RateCourse)

    def add_sample(self, sample: Sample, flow: Direction) -> None:
        """Add the receiver's sample, without its datagrams."""
        self.is_from_sender = self.is_from_sender or sample.is_from_sender
        bytes_, span_ns = sample.bytes_of(flow), sample.interval_ns
        self.bytes += bytes_
        self.span_ns += span_ns
        self.trailing_silence_ns = 0 if bytes_ else self.trailing_silence_ns + span_ns
        self.silences.add_interval(span_ns, has_payload=bytes_ > 0)
        self.spread.add_sample(sample, flow)
        self.course.add_interval(bytes_, span_ns)
        if self.series is not None:
            self.series.add_interval(bytes_ * 8 * SECOND_NS, span_ns)
        merge_counts(self.latency, latency_counts(sample.latency, flow).items())
        for session in sample.sessions:
            if session.direction is flow:
                self.out_of_order = add_known(self.out_of_order, session.out_of_order)
                self._add_buffer(session)

    def _add_buffer(self, session: SessionSample) -> None:
        if session.unread_memory_bytes is not None and session.receive_buffer_bytes is not None:
            self.unread_bytes += session.unread_memory_bytes
            self.buffer_bytes += session.receive_buffer_bytes
            self.buffer_readings += 1

    def set_totals(self, sessions: Sequence[SessionTotal], span_ns: int) -> None:
        """Take bytes and time from the receiver's report at the end, in place of the sender's counts.

        Over TCP every acknowledged byte was received, so the sender's intervals still give the error of the rate.
        Over UDP they do not show the losses, so the rate has no error.
        """
        bytes_ = sum(session.bytes for session in sessions)
        if self.bytes and self.span_ns:  # the rates of the intervals keep their spread
            self.spread.squares *= (bytes_ / self.bytes) ** 2 * self.span_ns / span_ns
        self.bytes, self.span_ns, self.trailing_silence_ns = bytes_, span_ns, 0
        self.is_from_sender = False
        if self.datagrams is not None:
            self.series = None

    def extend(self, other: "ReceiverSum") -> None:
        """Add another sum, over a time that followed."""
        if other.span_ns:
            self.series = None if self.span_ns else other.series
        self.trailing_silence_ns = other.trailing_silence_ns + (0 if other.bytes else self.trailing_silence_ns)
        extend_fields(self, other)

    def trim_silence(self) -> None:
        """Let the span end with the last byte: the wait for a lost peer says nothing about the link."""
        self.span_ns -= self.trailing_silence_ns
        self.trailing_silence_ns = 0
        self.silences.trim()
        if self.series is not None:
            self.series.trim_silence()

    @property
    def silent_share(self) -> float | None:
        """The share of the time that was silent; None if no time was measured."""
        return min(1.0, self.silences.span_ns / self.span_ns) if self.span_ns > 0 else None

    @property
    def unread_share(self) -> float | None:
        """The share of the sockets' buffers that the program had not read, on average; None if unknown."""
        return self.unread_bytes / self.buffer_bytes if self.buffer_bytes else None

    @property
    def mean_buffer_bytes(self) -> int | None:
        """The mean size of a session's receive buffer; None if unknown."""
        return round(self.buffer_bytes / self.buffer_readings) if self.buffer_readings else None

    @property
    def bit_s(self) -> float | None:
        """The mean rate; None if no time was measured."""
        return bits_per_second(self.bytes, self.span_ns)

    @property
    def rate_spread(self) -> float | None:
        """The standard deviation of the intervals' rates, as a share of their mean; None without two intervals."""
        if self.spread.intervals < 2 or not self.bytes:
            return None
        return sqrt(max(0.0, self.spread.squares * self.span_ns / self.bytes**2 - 1))

    @property
    def joint_spread(self) -> float | None:
        """The variance of the rate of all sessions, as a share of the sum of theirs; None for a single session.

        It is about 1 if each session varies for itself. It is small if they share a limit: if one gets more, the
        others get less.
        """
        spread = self.spread
        if len(spread.session_bytes) < 2 or spread.intervals < 2 or not self.span_ns:
            return None
        alone = sum(
            squares - spread.session_bytes[session] ** 2 / self.span_ns
            for session, squares in spread.session_squares.items()
        )
        together = spread.squares - self.bytes**2 / self.span_ns
        return None if alone <= 0 else max(0.0, together) / alone

    @property
    def upper_bit_s(self) -> int | None:
        """The rate that a quarter of the intervals exceeds; None without intervals."""
        upper = self.spread.kbit_s.quantile(0.75)
        return None if upper is None else upper * 1_000

    @property
    def measurement(self) -> Measurement | None:
        """The sum as a measured value; None if no time was measured."""
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
        """The rate in bit/s with its error; None if too little was measured."""
        bit_s = self.bit_s
        return None if self.series is None or bit_s is None else self.series.estimate(bit_s)


class SampleSum:
    """The sums over some samples taken under one setting: of each end, and of each single direction.

    With `has_series`, the receivers' sums hold their intervals' rates, for an estimate of the error. Without
    `has_senders`, TCP's counters are left out: they take most of the time.
    """

    def __init__(self, workload: Workload, *, has_series: bool = False, has_senders: bool = True) -> None:
        self.workload = workload
        self.ends = {end: EndSum() for end in End}
        self.sent = {flow: SenderSum() for flow in Direction.DUPLEX.flows if has_senders}
        self.received = {
            flow: ReceiverSum(
                is_transactional=workload.is_transactional,
                series=RateSeries() if has_series else None,
                datagrams=DatagramSum() if workload.is_datagram else None,
            )
            for flow in Direction.DUPLEX.flows
        }

    def add_sample(self, sample: Sample, flows: Iterable[Direction]) -> None:
        """Add the directions of a sample that its setting runs. Of a drain, only the datagrams count."""
        for flow in flows:
            datagrams = self.received[flow].datagrams
            if datagrams is not None:
                datagrams.add_sample(sample, flow)
        if sample.is_drain:
            return
        self.ends[sample.end] = combine((self.ends[sample.end], EndSum.of(sample)))
        for flow in flows:
            if sender_of(flow, self.workload) is not sample.end:
                self.received[flow].add_sample(sample, flow)
            elif flow in self.sent:
                self.sent[flow].add_sample(sample, flow)

    def set_totals(self, totals: Totals, flows: Iterable[Direction]) -> None:
        """Take the figures of an end without samples: its results as receiver and as sender."""
        if totals.span_ns <= 0:
            return
        self.ends[totals.end] = self.ends[totals.end].with_totals(totals.cpu_ns, totals.span_ns)
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
    """The samples of the last `span_ns` of each end under the newest settings, by that end's clock.

    They include at least the newest one. Call `begin` with the first settings, and after each change. `newest` is
    the sample that came last, None before the first.
    """

    def __init__(self, span_ns: int) -> None:
        self._span_ns = span_ns
        self.settings: Settings | None = None
        self.newest: Sampled | None = None
        self._start_ns = 0
        self._samples: dict[End, deque[Sampled]] = {end: deque() for end in End}

    def begin(self, settings: Settings, start_ns: int) -> None:
        """Drop all samples: from now on, only those of these settings count."""
        self.settings, self._start_ns, self.newest = settings, start_ns, None
        for samples in self._samples.values():
            samples.clear()

    def keep_sample(self, event: Sampled) -> bool:
        """Add an end's next sample, which is not of the drain, and drop those that are too old now.

        Return whether it counts. A late sample counts for earlier settings only, even if they are the same.
        """
        if event.settings != self.settings or event.sample.elapsed_ns <= self._start_ns:
            return False
        samples = self._samples[event.sample.end]
        samples.append(event)
        while not _is_within(samples[0], event, self._span_ns):
            samples.popleft()
        self.newest = event
        return True

    def of_end(self, end: End, span_ns: int | None = None) -> tuple[Sample, ...]:
        """Return an end's samples, the newest one last: all of them, or those of a shorter span."""
        samples, span_ns = self._samples[end], self._span_ns if span_ns is None else span_ns
        return tuple(event.sample for event in samples if _is_within(event, samples[-1], span_ns))

    def sum_measured(self, workload: Workload, flows: Sequence[Direction]) -> SampleSum:
        """Return the sums over both ends' samples after the warm-up."""
        sums = SampleSum(workload)
        for samples in self._samples.values():
            for event in samples:
                if not event.warmup:
                    sums.add_sample(event.sample, flows)
        return sums

    def sum_shown(self, workload: Workload, flows: Sequence[Direction], span_ns: int) -> SampleSum:
        """Return the sums that the gauges show: of a shorter span, and in the warm-up, too."""
        sums = SampleSum(workload, has_senders=False)
        for end in End:
            for sample in self.of_end(end, span_ns):
                sums.add_sample(sample, flows)
        return sums


def _is_within(event: Sampled, newest: Sampled, span_ns: int) -> bool:
    return event is newest or event.sample.elapsed_ns > newest.sample.elapsed_ns - span_ns
