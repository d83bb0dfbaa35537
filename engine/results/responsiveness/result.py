"""The results of a responsiveness test, as frozen dataclasses.

Pure data. `None` is unknown, `0` is measured. Times are in nanoseconds. A rise is latency under load less latency
when idle.
"""

from dataclasses import dataclass
from typing import Final, Literal

from ...model.directions import Direction, End, PerDirection
from ...model.plan import SECOND_NS
from .grade import Grade

ProbeKind = Literal["datagram", "request"]
"""The probe of the figures: echoed UDP datagrams, or, if none pass, requests on an idle connection."""
Confidence = Literal["low", "medium", "high"]
ResponsivenessClass = Literal["poor", "fair", "good", "excellent"]

# Round trips a minute, draft-ietf-ippm-responsiveness-09.
_FAIR: Final = 300
_GOOD: Final = 1_000
_EXCELLENT: Final = 6_000


@dataclass(frozen=True, slots=True)
class Latency:
    """The times of one kind of probe: how many there were, their mean, and two percentiles."""

    count: int
    mean_ns: float
    p50_ns: int
    p99_ns: int


@dataclass(frozen=True, slots=True)
class SenderQueue:
    """The queues at a sender's own host while it loaded the link: means over the measured time.

    `backlog_bytes` were in the queueing discipline of its interface, `driver_bytes` in the interface itself (byte
    queue limits), and `unsent_bytes` in its sockets, which delay no other traffic. The interface sent at
    `drain_bit_s`, with all headers.
    """

    end: End
    interface: str | None
    qdisc: str | None
    backlog_bytes: float | None
    most_backlog_bytes: int | None
    dropped: int | None
    driver_bytes: float | None
    unsent_bytes: float | None
    drain_bit_s: float | None

    @property
    def delay_ns(self) -> float | None:
        """How long a packet waited at this host before it was sent; None if both queues are unknown."""
        known = [part for part in (self.backlog_bytes, self.driver_bytes) if part is not None]
        return self._time_of(sum(known)) if known else None

    @property
    def unsent_ns(self) -> float | None:
        """How long the sender's own data waited in its sockets."""
        return None if self.unsent_bytes is None else self._time_of(self.unsent_bytes)

    def _time_of(self, size_bytes: float) -> float | None:
        return size_bytes * 8 * SECOND_NS / self.drain_bit_s if self.drain_bit_s else None


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """Round trips a minute under load (draft-ietf-ippm-responsiveness-09, for TCP without TLS), and their parts.

    The parts are trimmed means. `foreign` is the rate by new connections, `loaded` the rate by the connections
    that carry the load. The mean of both is `per_minute`.
    """

    per_minute: float
    foreign: float
    loaded: float
    handshake_ns: float
    answer_ns: float
    loaded_ns: float
    confidence: Confidence

    @property
    def classification(self) -> ResponsivenessClass:
        """The draft's word for the number."""
        if self.per_minute < _FAIR:
            return "poor"
        if self.per_minute < _GOOD:
            return "fair"
        return "good" if self.per_minute < _EXCELLENT else "excellent"


@dataclass(frozen=True, slots=True)
class LoadedLatency:
    """Latency while the link was loaded in one direction, or in both: a field for each figure of a document.

    The load lasted from `start_ns` to `end_ns` after the start of the run; figures are from `measured_ns` on, when
    the queue was full. `bit_s` is the goodput. `rise_ns` is the rise of the mean, `peak_rise_ns` the rise in the
    0.4 s with the longest latency, when the queue is full. `one_way_rise_ns` has the rise of each direction's
    one-way delay, if datagrams measure it; its total is None. `tcp_rtt` has the round trips of the senders' TCP.
    `lost_percent` is the percentage of datagram probes without an echo.
    """

    direction: Direction
    sessions: int
    start_ns: int
    measured_ns: int
    end_ns: int
    bit_s: PerDirection[float | None]
    latency: Latency | None
    rise_ns: float | None
    rise_p99_ns: float | None
    peak_rise_ns: float | None
    one_way_rise_ns: PerDirection[float | None]
    lost_percent: float | None
    handshake: Latency | None
    answer: Latency | None
    tcp_rtt: Latency | None
    queues: tuple[SenderQueue, ...]
    round_trips: RoundTrips | None
    is_steady: bool

    def handshake_rise_ns(self, idle: Latency | None) -> float | None:
        """How much longer handshakes took than probes without load; None without any.

        A kernel answers and times them: a busy process does not delay them.
        """
        return None if self.handshake is None or idle is None else self.handshake.p50_ns - idle.p50_ns


@dataclass(frozen=True, slots=True)
class Responsiveness:
    """The results of a responsiveness test.

    `rise_ns` is the mean of the rises of out and in, or the only rise if one direction or both at once were loaded.
    `grade` is its grade. `round_trips` are those with load in both directions, or in the only one.
    """

    probe: ProbeKind
    idle: Latency | None
    loads: tuple[LoadedLatency, ...]
    rise_ns: float | None
    grade: Grade | None
    round_trips: RoundTrips | None

    @property
    def graded_loads(self) -> tuple[LoadedLatency, ...]:
        """The loads behind rise and grade: out and in, or both at once if neither was loaded alone."""
        alone = [self.load_of(flow) for flow in Direction.DUPLEX.flows]
        return tuple(load for load in alone if load is not None) or self.loads[:1]

    def load_of(self, direction: Direction) -> LoadedLatency | None:
        """Return the results under load in a direction; None without such a load."""
        return next((load for load in self.loads if load.direction is direction), None)


@dataclass(frozen=True, slots=True)
class ResponsivenessPoint:
    """One interval under load, for plots: it lasted `interval_ns` and ended `elapsed_ns` after the run's start.

    Rates are the goodput of loaded directions. Percentiles are of the main probe. Rises are means of the one-way
    delays above the shortest ones.
    """

    elapsed_ns: int
    interval_ns: int
    direction: Direction
    out_bit_s: float | None
    in_bit_s: float | None
    p50_ns: int | None
    p99_ns: int | None
    rise_out_ns: float | None
    rise_in_ns: float | None
