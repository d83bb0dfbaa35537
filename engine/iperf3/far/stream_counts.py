"""The counts of a test's streams, and the results that both ends make of theirs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...metering.shared_counters import SharedCounters
from ...model.counters.session_counters import DATAGRAM_COUNTER_NAMES, TCP_COUNTER_NAMES
from ...model.directions import Direction, End
from ...model.events import Totals
from ...model.plan import SECOND_NS
from ..protocol.cookie_and_streams import Stream
from ..protocol.results import EndResults, StreamResult, total_of

_RETRANSMITS: Final = TCP_COUNTER_NAMES.index("retransmits")
_CPU_PERCENT: Final = 100


@dataclass(frozen=True, slots=True)
class StreamCounts:
    """This end's counts of a stream since its start.

    `packets` is the highest number of a datagram that came, or the last one that was sent.
    """

    bytes: int = 0
    retransmits: int | None = None
    packets: int = 0
    lost: int = 0
    jitter_sum_ns: int = 0
    jitter_count: int = 0


def read_counts(counters: SharedCounters, direction: Direction, session: int, *, is_udp: bool) -> StreamCounts:
    """Return the counts of a stream at this moment. The server sends those of `in`."""
    slot = counters.read(direction, session)
    carried = 0 if slot is None else slot.bytes
    if not is_udp:
        retransmits = slot.tcp[_RETRANSMITS] if slot is not None and direction is Direction.IN else None
        return StreamCounts(carried, retransmits)
    read = dict(zip(DATAGRAM_COUNTER_NAMES, counters.read_datagrams(direction, session), strict=True))
    if direction is Direction.IN:
        return StreamCounts(carried, packets=read["sent"] or 0)
    packets = read["advanced"] or 0
    return StreamCounts(
        carried,
        packets=packets,
        lost=max(0, packets - (read["received"] or 0)),
        jitter_sum_ns=read["jitter_sum_ns"] or 0,
        jitter_count=read["jitter_count"] or 0,
    )


class TestCounts:
    """The counts of a test at its three moments: its start, the end of the omitted part, its end."""

    __test__ = False  # no class of tests, for pytest

    def __init__(self, counters: SharedCounters, streams: Sequence[Stream], *, is_udp: bool) -> None:
        self._counters = counters
        self._streams = streams
        self._is_udp = is_udp
        self._omitted = {stream: StreamCounts() for stream in streams}
        self._final: dict[Stream, StreamCounts] = {}
        self._began_ns = self._ended_ns = 0
        self._began_cpu_ns = self._ended_cpu_ns = 0

    @property
    def span_ns(self) -> int:
        """The measured time."""
        return max(1, self._ended_ns - self._began_ns)

    def begin(self, now_ns: int) -> None:
        """Measure from now on: call it at the start, and again when the omitted part is over."""
        self._omitted = {stream: self._read(stream) for stream in self._streams}
        self._began_ns, self._began_cpu_ns = now_ns, sum(self._counters.workers_cpu_ns())

    def end(self, now_ns: int, direction: Direction) -> None:
        """Take the final counts of a direction; a later call replaces them."""
        self._ended_ns = max(self._ended_ns, now_ns)
        self._ended_cpu_ns = sum(self._counters.workers_cpu_ns())
        for stream in self._streams:
            if stream[1] is direction:
                self._final[stream] = self._read(stream)

    def measured_bytes(self, direction: Direction) -> int:
        """Return the bytes of a direction since `begin`, at this moment."""
        return sum(
            self._read(stream).bytes - self._omitted[stream].bytes
            for stream in self._streams
            if stream[1] is direction
        )

    def results(self, congestion: str | None) -> EndResults:
        """Return this end's report to its client."""
        percent = _CPU_PERCENT * max(0, self._ended_cpu_ns - self._began_cpu_ns) / self.span_ns
        sends = any(direction is Direction.IN for _, direction, _ in self._streams)
        return EndResults(
            streams=tuple(self._result_of(stream) for stream in self._streams),
            cpu_total_percent=percent,
            cpu_system_percent=percent,  # copies of payload: the time outside of the kernel is small
            has_retransmits=int(not self._is_udp) if sends else -1,
            congestion=congestion,
        )

    def _read(self, stream: Stream) -> StreamCounts:
        _, direction, session = stream
        return read_counts(self._counters, direction, session, is_udp=self._is_udp)

    def _result_of(self, stream: Stream) -> StreamResult:
        before, after = self._omitted[stream], self._final.get(stream, StreamCounts())
        jitter_count = after.jitter_count - before.jitter_count
        jitter_ns = (after.jitter_sum_ns - before.jitter_sum_ns) / jitter_count if jitter_count > 0 else 0.0
        retransmits = None if after.retransmits is None else after.retransmits - (before.retransmits or 0)
        return StreamResult(
            id=stream[0],
            bytes=max(0, after.bytes - before.bytes),
            retransmits=None if retransmits is None else max(0, retransmits),
            jitter_s=max(0.0, jitter_ns / SECOND_NS),
            errors=after.lost,
            omitted_errors=before.lost,
            packets=after.packets,
            omitted_packets=before.packets,
            span_s=self.span_ns / SECOND_NS,
        )


def totals_of_client(theirs: EndResults, streams: Sequence[Stream], span_ns: int, *, is_udp: bool) -> Totals:
    """Return the results of a client as the totals of the near end; `span_ns` if it does not name a time."""
    by_id = {result.id: result for result in theirs.streams}
    sessions = tuple(
        total_of(by_id[number], flow, session, span_ns, receives=flow is Direction.IN, is_udp=is_udp)
        for number, flow, session in streams
        if number in by_id
    )
    whole_ns = max((total.span_ns for total in sessions), default=span_ns)
    return Totals(End.NEAR, whole_ns, sessions, round(theirs.cpu_total_percent / _CPU_PERCENT * whole_ns))
