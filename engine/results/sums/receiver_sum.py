"""The receiver's sums of one direction: bytes, time, transactions, latency, and the spread of its rates."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

from ...model.events import SessionTotal
from ...model.latency_histogram import merge_counts, summarize_latency
from ...model.plan import SECOND_NS, Direction
from ...model.samples import PEAK, Sample, SessionSample
from ..confidence import Estimate, RateSeries
from ..rate_and_loss import OWN, Histogram, Sums, add_known, bits_per_second, extend_fields
from ..summary import Measurement
from ..udp.datagram_sums import DatagramSum


def latency_counts(sample: Sample, flow: Direction) -> dict[int, int]:
    """Return the transactions of a single direction, counted by latency bucket (latency_histogram.py)."""
    for counts in sample.latency:
        if counts.direction is flow:
            return dict(zip(counts.buckets, counts.counts, strict=True))
    return {}


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
class ReceiverSum:
    """The receiver's sums of one direction, and the time they cover.

    `trailing_silence_ns` is the part of the span since the last byte. `latency` counts transactions by bucket.
    `series` holds the intervals' rates for the estimate; it is None if no estimate is needed, and for a sum
    over several periods. `datagrams` has the counts of UDP from both ends' samples; None for TCP. `is_from_sender`
    is set if the sender counted some of the bytes, because the receiver has not reported its own. `unread_bytes` is
    the memory of unread data in `buffer_bytes` of receive buffers: sums over `buffer_readings` of sessions.
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

    def add_sample(self, sample: Sample, flow: Direction) -> None:
        """Add the receiver's sample, without its datagrams."""
        self.is_from_sender = self.is_from_sender or sample.is_from_sender
        bytes_, span_ns = sample.bytes_of(flow), sample.interval_ns
        self.bytes += bytes_
        self.span_ns += span_ns
        self.trailing_silence_ns = 0 if bytes_ else self.trailing_silence_ns + span_ns
        self.spread.add_sample(sample, flow)
        if self.series is not None:
            self.series.add_interval(bytes_ * 8 * SECOND_NS, span_ns)
        merge_counts(self.latency, latency_counts(sample, flow).items())
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
        if self.series is not None:
            self.series.trim_silence()

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
