"""The results of both ends of an iperf3 test: this end's counts, for the server, and the server's totals.

Pure. The warm-up in this end's samples is the part that iperf3 calls omitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ...model.counters.samples import Sample
from ...model.directions import Direction, End
from ...model.events import SessionTotal, Totals
from ...model.plan import SECOND_NS
from ...model.texts.warning_text import bytes_implausible, clocks_differ
from ..protocol.cookie_and_streams import Stream
from ..protocol.results import EndResults, StreamResult, total_of

_Key = tuple[Direction, int]
_CLOCKS_NS: Final = SECOND_NS
_CLOCKS_DIVISOR: Final = 10
_BUFFERS_BYTES: Final = 64 << 20


@dataclass(slots=True)
class _Counts:
    """The sums of one session in one part of a test."""

    bytes: int = 0
    retransmits: int | None = None
    sent: int = 0
    advanced: int = 0
    received: int = 0

    @property
    def last_number(self) -> int:
        """The datagrams sent, or the rise of the highest number received."""
        return self.sent or self.advanced

    @property
    def lost(self) -> int:
        """The numbers that were not received."""
        return max(0, self.advanced - self.received)


@dataclass(slots=True)
class _Session:
    omitted: _Counts = field(default_factory=_Counts)
    measured: _Counts = field(default_factory=_Counts)
    jitter_s: float = 0.0


class NearCounts:
    """The sums of this end's samples, with the warm-up apart."""

    def __init__(self) -> None:
        self._sessions: dict[_Key, _Session] = {}
        self._cpu_ns = 0
        self.span_ns = 0

    def add_sample(self, sample: Sample, *, is_warmup: bool) -> None:
        """Add a sample of this end."""
        if not is_warmup and not sample.is_drain:
            self.span_ns += sample.interval_ns
            self._cpu_ns += sample.process_cpu_ns or 0
        for part in sample.sessions:
            counts = self._counts(part.direction, part.session, is_warmup=is_warmup)
            # Datagrams that came after the end are received, and count for no rate.
            counts.bytes += 0 if sample.is_drain else part.bytes
            if part.retransmits is not None:
                counts.retransmits = (counts.retransmits or 0) + part.retransmits
        for part in sample.datagrams:
            counts = self._counts(part.direction, part.session, is_warmup=is_warmup)
            counts.sent += part.sent or 0
            counts.advanced += part.advanced or 0
            counts.received += part.received or 0
            if part.jitter_sum_ns and part.jitter_count:
                session = self._sessions[part.direction, part.session]
                session.jitter_s = part.jitter_sum_ns / part.jitter_count / SECOND_NS

    def measured_bytes(self, direction: Direction, session: int) -> int:
        """Return the bytes of a session after the warm-up."""
        return self._session(direction, session).measured.bytes

    def sent_numbers(self, direction: Direction, session: int) -> int:
        """Return how many datagrams this end has sent in all."""
        counts = self._session(direction, session)
        return counts.omitted.sent + counts.measured.sent

    def received_numbers(self, direction: Direction, session: int) -> int:
        """Return how many datagrams the other end had sent when the last one that arrived left it."""
        counts = self._session(direction, session)
        return counts.omitted.advanced + counts.measured.advanced

    def make_results(self, streams: Sequence[Stream]) -> EndResults:
        """Return the results of this end for the server."""
        results = tuple(self._make_stream(*stream) for stream in streams)
        senders = [result for result, (_, flow, _) in zip(results, streams, strict=True) if flow is Direction.OUT]
        knows_retransmits = any(result.retransmits is not None for result in senders)
        return EndResults(
            streams=results,
            cpu_total_percent=100 * self._cpu_ns / max(1, self.span_ns),
            has_retransmits=int(knows_retransmits) if senders else -1,
        )

    def _make_stream(self, number: int, direction: Direction, session: int) -> StreamResult:
        counts = self._session(direction, session)
        omitted, measured = counts.omitted, counts.measured
        return StreamResult(
            number,
            measured.bytes,
            retransmits=measured.retransmits if direction is Direction.OUT else None,
            jitter_s=counts.jitter_s,
            errors=omitted.lost + measured.lost,
            omitted_errors=omitted.lost,
            packets=omitted.last_number + measured.last_number,
            omitted_packets=omitted.last_number,
            span_s=self.span_ns / SECOND_NS,
        )

    def _session(self, direction: Direction, session: int) -> _Session:
        return self._sessions.get((direction, session)) or _Session()

    def _counts(self, direction: Direction, session: int, *, is_warmup: bool) -> _Counts:
        counts = self._sessions.setdefault((direction, session), _Session())
        return counts.omitted if is_warmup else counts.measured


def build_totals(
    far: EndResults, near: NearCounts, streams: Sequence[Stream], *, is_datagram: bool
) -> Totals | None:
    """Return the totals of the server; None if it does not name any of the streams.

    Args:
        far: the results of the server.
        near: the counts of this end.
        streams: the streams of the test.
        is_datagram: whether they are of UDP.
    """
    results = {result.id: result for result in far.streams}
    known = [(results[number], direction, session) for number, direction, session in streams if number in results]
    if not known:
        return None
    counts_retransmits = far.has_retransmits == 1
    totals = tuple(
        _receiver_total(result, session, near, is_datagram=is_datagram)
        if direction is Direction.OUT
        else _sender_total(result, session, near, is_datagram=is_datagram, counts_retransmits=counts_retransmits)
        for result, direction, session in known
    )
    span_ns = max(total.span_ns for total in totals)
    return Totals(End.FAR, span_ns, totals, round(far.cpu_total_percent * span_ns / 100))


def _receiver_total(result: StreamResult, session: int, near: NearCounts, *, is_datagram: bool) -> SessionTotal:
    """Return the total of a session that the server received."""
    flow = Direction.OUT
    total = total_of(result, flow, session, max(1, near.span_ns), receives=True, is_udp=is_datagram)
    if not is_datagram:
        return total
    # Datagrams that were lost behind the last one received are in no count of the receiver.
    tail = max(0, near.sent_numbers(flow, session) - result.packets)
    # The server also counts the time in which this end waited for the last ones.
    span_ns = min(total.span_ns, near.span_ns or total.span_ns)
    return replace(total, span_ns=span_ns, lost=(total.lost or 0) + tail)


def _sender_total(
    result: StreamResult, session: int, near: NearCounts, *, is_datagram: bool, counts_retransmits: bool
) -> SessionTotal:
    """Return the total of a session that the server sent."""
    flow = Direction.IN
    total = total_of(result, flow, session, max(1, near.span_ns), receives=False, is_udp=is_datagram)
    if is_datagram:
        return replace(total, lost=max(0, result.packets - near.received_numbers(flow, session)))
    return total if counts_retransmits else replace(total, retransmits=None)


def find_discrepancies(totals: Totals, near: NearCounts) -> list[str]:
    """Return warnings about totals that contradict this end's counts."""
    warnings: list[str] = []
    if abs(totals.span_ns - near.span_ns) > _CLOCKS_NS + near.span_ns // _CLOCKS_DIVISOR:
        warnings.append(clocks_differ(near_ns=near.span_ns, far_ns=totals.span_ns))
    out = [total for total in totals.sessions if total.direction is Direction.OUT]
    received = sum(total.bytes for total in out)
    sent = sum(near.measured_bytes(total.direction, total.session) for total in out)
    if received > 2 * sent + _BUFFERS_BYTES:
        warnings.append(bytes_implausible(received=received, acknowledged=sent))
    return warnings
