"""A connection over time: differences of its counters, as samples and sums of the last seconds.

Pure. The samples have the shapes of a run's: a connection that this host sends on is a run to an end without
samples, for which the sender's own counters stand in (`Sample.is_from_sender`).
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..engine.host.sockets.socket_message import ConnectionReading
from ..engine.host.tcp_info import TcpInfo
from ..engine.model.counters.samples import Sample, SessionSample
from ..engine.model.counters.session_counters import TCP_COUNTERS, SocketInfo, since_last
from ..engine.model.directions import Direction, End
from ..engine.model.events import Opened, Sampled, Started
from ..engine.model.expected_rate import Expectation
from ..engine.model.host_info import UNKNOWN_HOST, HostInfo
from ..engine.model.plan import SECOND_NS, Plan, Settings
from ..engine.model.workload import Workload
from ..engine.results.rate_and_loss import bits_per_second
from ..engine.results.run_totals import OpenSockets
from ..engine.results.sums.sample_sum import RecentSamples, SampleSum
from ..presets.diagnosis.period_sums import PeriodSums
from .observation import FlowFigures

RECENT_NS: Final = 3 * SECOND_NS
"""The time that findings are about, as in a run in progress."""
_SERIES: Final = 120
_SESSION: Final = 1
_SETTINGS: Final = {flow: Settings(flow) for flow in Direction.DUPLEX.flows}
_PLANS: Final = {flow: Plan(settings) for flow, settings in _SETTINGS.items()}
_NOT_OF: Final = {
    Direction.OUT: tuple(counter.name for counter in TCP_COUNTERS if counter.end != "sender"),
    Direction.IN: tuple(counter.name for counter in TCP_COUNTERS if counter.end != "receiver"),
}
OBSERVED_SOFTWARE: Final = "another program"


class Disorder(NamedTuple):
    """The segments sent again that had arrived already (RFC 2883), and how often segments overtook others."""

    needless: int = 0
    reordered: int = 0


NO_DISORDER: Final = Disorder()


@dataclass(slots=True)
class FlowTrack:
    """One direction of a connection: its payload, the rates of its intervals, and its samples."""

    direction: Direction
    bytes: int = 0
    unread_bytes: int = 0  # not yet part of a rate
    rates: deque[float] = field(default_factory=lambda: deque[float](maxlen=_SERIES))
    recent: RecentSamples = field(default_factory=lambda: RecentSamples(RECENT_NS))
    sample: SessionSample | None = None
    moved_ns: int | None = None

    def __post_init__(self) -> None:
        """Begin with the settings of a run in this direction."""
        self.recent.begin(_SETTINGS[self.direction], -1)

    def add_bytes(self, moved: int, now_ns: int) -> None:
        """Count payload."""
        if moved > 0:
            self.bytes += moved
            self.unread_bytes += moved
            self.moved_ns = now_ns

    def end_interval(self, interval_ns: int) -> None:
        """Make the payload since the last call the rate of an interval."""
        self.rates.append(bits_per_second(self.unread_bytes, interval_ns) or 0.0)
        self.unread_bytes = 0

    def has_moved(self, now_ns: int) -> bool:
        """Whether payload moved in the time that findings are about."""
        return self.moved_ns is not None and now_ns - self.moved_ns <= RECENT_NS

    def sums(self) -> SampleSum:
        """Return the sums of the last seconds."""
        return self.recent.sum_measured(Workload.STREAM, (self.direction,))

    def figures(self, sums: SampleSum) -> FlowFigures:
        """Return its figures, with the shares of the last seconds."""
        sent, received = sums.sent[self.direction], sums.received[self.direction]
        return FlowFigures(
            direction=self.direction,
            bit_s=self.rates[-1] if self.rates else 0.0,
            bytes=self.bytes,
            rates=tuple(self.rates),
            sample=self.sample,
            busy=sent.time_share("busy_us"),
            rwnd_limited=sent.time_share("rwnd_limited_us"),
            sndbuf_limited=sent.time_share("sndbuf_limited_us"),
            retransmitted=sent.retransmitted_share(),
            retransmits=sent.retransmits,
            unread=received.unread_share,
        )


class ConnectionTrack:
    """The samples of a connection: the differences of two readings of the same socket, and of no other."""

    def __init__(self, reading: ConnectionReading, now_ns: int) -> None:
        self.reading = reading
        self.first_ns = self.read_ns = now_ns
        self.flows = {flow: FlowTrack(flow) for flow in Direction.DUPLEX.flows}
        self._index = -1
        self._disorder = deque([(now_ns, _disorder_of(reading.info))])

    @property
    def disorder(self) -> Disorder:
        """What came in another order in the last seconds."""
        return Disorder(*(now - was for now, was in zip(self._disorder[-1][1], self._disorder[0][1], strict=True)))

    def add_reading(self, reading: ConnectionReading, now_ns: int) -> None:
        """Add the next reading of the same socket."""
        before, interval_ns = self.reading.info, now_ns - self.read_ns
        if interval_ns <= 0:
            return
        self._index += 1
        self.reading, self.read_ns = reading, now_ns
        if interval_ns > RECENT_NS:  # it was not watched meanwhile: its rises are of an unknown part of that time
            return
        self._disorder.append((now_ns, _disorder_of(reading.info)))
        while now_ns - self._disorder[0][0] > RECENT_NS:
            self._disorder.popleft()
        moved = moved_bytes(before, reading.info)
        for flow, track in self.flows.items():
            if moved[flow] or track.sample is not None or (flow is Direction.OUT and reading.message.queues[1]):
                self._add_sample(track, before, reading.info, moved[flow], interval_ns)

    def _add_sample(self, track: FlowTrack, before: TcpInfo, now: TcpInfo, moved: int, interval_ns: int) -> None:
        flow, elapsed_ns = track.direction, self.read_ns - self.first_ns
        counters = since_last(before.counters, now.counters)
        counters |= dict.fromkeys(_NOT_OF[flow])
        track.sample = SessionSample(flow, _SESSION, moved, **counters)
        near = Sample(End.NEAR, self._index, elapsed_ns, interval_ns, (track.sample,))
        track.recent.keep_sample(Sampled(near, _SETTINGS[flow], warmup=False))
        if flow is Direction.OUT:
            acknowledged = (SessionSample(flow, _SESSION, moved),)
            far = Sample(End.FAR, self._index, elapsed_ns, interval_ns, acknowledged, is_from_sender=True)
            track.recent.keep_sample(Sampled(far, _SETTINGS[flow], warmup=False))

    def period_sums(self, flow: Direction, sums: SampleSum, near: HostInfo) -> PeriodSums:
        """Return the sums of one direction for the rules: those of a run whose far end is unknown."""
        started = Started("", "", near, UNKNOWN_HOST, _PLANS[flow], Expectation())
        sockets = OpenSockets()
        sockets.add_session(Opened(self._socket_info(flow)))
        return PeriodSums(started, _SETTINGS[flow], sums, sockets)

    def _socket_info(self, flow: Direction) -> SocketInfo:
        info = self.reading.info
        return SocketInfo(
            end=End.NEAR,
            direction=flow,
            session=_SESSION,
            congestion=self.reading.congestion,
            window_granted_bytes=None,
            mss_bytes=info.mss_bytes if flow is Direction.OUT else info.received_mss_bytes,
            timestamps=info.timestamps,
            sack=info.sack,
            window_scaling=info.window_scaling,
        )


def _disorder_of(info: TcpInfo) -> Disorder:
    return Disorder(info.needless_retransmits or 0, info.reordered or 0)


def moved_bytes(before: TcpInfo, now: TcpInfo) -> dict[Direction, int]:
    """Return the payload that was acknowledged, and that arrived, between two readings."""
    return {
        Direction.OUT: max(0, (now.bytes_acked or 0) - (before.bytes_acked or 0)),
        Direction.IN: max(0, (now.bytes_received or 0) - (before.bytes_received or 0)),
    }
