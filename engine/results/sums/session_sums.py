"""The sums of each single session: its payload, its sender's TCP counters, and its datagrams."""

from dataclasses import dataclass, field
from typing import Final

from ...model.counters.samples import DatagramSample, Sample, SessionSample, sum_known
from ...model.directions import Direction, sender_of
from ...model.events import SessionTotal, Totals
from ...model.plan import MIB
from ...model.workload import Workload
from ..rate_and_loss import add_known, bits_per_second, lost_percent
from .histogram import Histogram

_SESSION_RTT_BITS: Final = 8  # a median within 0.8 %: one histogram for each of up to 256 sessions


@dataclass(slots=True)
class SessionDatagrams:
    """The sums of a UDP session in one direction, by its receiver."""

    passed: int = 0
    received: int = 0
    jitter_sum_ns: int = 0
    jitter_count: int = 0

    def add_datagrams(self, counts: DatagramSample) -> None:
        """Add the receiver's counts of an interval."""
        self.passed += counts.advanced or 0
        self.received += counts.received or 0
        self.jitter_sum_ns += counts.jitter_sum_ns or 0
        self.jitter_count += counts.jitter_count or 0

    @property
    def lost_percent(self) -> float | None:
        """The missing ones in percent of those that were due; None before any."""
        return lost_percent(max(self.passed - self.received, 0), self.received)

    @property
    def jitter_ns(self) -> float | None:
        """The mean jitter; None before any."""
        return self.jitter_sum_ns / self.jitter_count if self.jitter_count else None


@dataclass(slots=True)
class SessionSum:
    """The payload of one session in one direction, and its sender's TCP counters; None if unknown.

    A UDP session has `datagrams`.
    """

    bytes: int = 0
    span_ns: int = 0
    retransmits: int | None = None
    rtts: Histogram = field(default_factory=lambda: Histogram(_SESSION_RTT_BITS))
    datagrams: SessionDatagrams | None = None

    def add_session(self, part: SessionSample, span_ns: int, *, is_sender: bool) -> None:
        """Add the session's part of one end's sample."""
        if is_sender:
            self.retransmits = add_known(self.retransmits, part.retransmits)
            if part.rtt_us is not None:
                self.rtts.count_value(part.rtt_us)
        else:
            self.bytes += part.bytes
            self.span_ns += span_ns

    @property
    def bit_s(self) -> float | None:
        """The mean rate; None if no time was measured."""
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

    def add_sample(self, sample: Sample, workload: Workload) -> None:
        """Add one end's sample of all sessions."""
        for part in sample.sessions:
            is_sender = sender_of(part.direction, workload) is sample.end
            self._sum_of(part).add_session(part, sample.interval_ns, is_sender=is_sender)
        for counts in sample.datagrams:
            if counts.received is not None:
                sums = self._sum_of(counts)
                sums.datagrams = sums.datagrams or SessionDatagrams()
                sums.datagrams.add_datagrams(counts)

    def set_totals(self, totals: Totals, workload: Workload) -> None:
        """Take the figures of an end without samples (see `SampleSum.set_totals`)."""
        for part in totals.sessions:
            sums = self._sum_of(part)
            if sender_of(part.direction, workload) is totals.end:
                sums.retransmits = part.retransmits
                continue
            if (span_ns := part.span_ns if part.span_ns > 0 else totals.span_ns) > 0:
                sums.bytes, sums.span_ns = part.bytes, span_ns
            if part.received is not None:
                passed = part.received + (part.lost or 0)
                jitters = int(part.jitter_ns is not None)
                sums.datagrams = SessionDatagrams(passed, part.received, part.jitter_ns or 0, jitters)

    def _sum_of(self, part: SessionSample | DatagramSample | SessionTotal) -> SessionSum:
        return self.sessions.setdefault((part.direction, part.session), SessionSum())

    @property
    def retransmits(self) -> int | None:
        """The retransmitted segments of all senders; None if no kernel reported them."""
        return sum_known(sums.retransmits for sums in self.sessions.values())
