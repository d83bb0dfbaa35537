"""A connection over time: differences of its counters, as samples and sums of the last seconds.

Pure. The samples have the shapes of a run's: a connection that this host sends on is a run to an end without
samples, for which the sender's own counters stand in (`Sample.is_from_sender`).
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from ..engine.host.sockets.socket_message import ConnectionReading
from ..engine.host.tcp_info import TcpInfo
from ..engine.model.counters.samples import Sample, SessionSample
from ..engine.model.counters.session_counters import TCP_COUNTERS, SocketInfo, since_last
from ..engine.model.directions import Direction, End
from ..engine.model.events import ObservedSocket, Opened, Sampled, Started
from ..engine.model.expected_rate import Expectation, ExpectedRate
from ..engine.model.host_info import UNKNOWN_HOST, HostInfo
from ..engine.model.plan import SECOND_NS, Plan, Settings
from ..engine.model.workload import Workload
from ..engine.results.rate_and_loss import bits_per_second
from ..engine.results.sums.sample_sum import RecentSamples, SampleSum
from .observation import ConnectionEvents, FlowFigures

RECENT_NS: Final = 3 * SECOND_NS
"""The time that findings are about, as in a run in progress."""
_SERIES: Final = 120
_SESSION: Final = 1
_SETTINGS: Final = {flow: Settings(flow) for flow in Direction.DUPLEX.flows}
_PLANS: Final = {flow: Plan(settings, duration_ns=None, warmup_ns=0) for flow, settings in _SETTINGS.items()}
_NOT_OF: Final = {
    Direction.OUT: tuple(counter.name for counter in TCP_COUNTERS if counter.end != "sender"),
    Direction.IN: tuple(counter.name for counter in TCP_COUNTERS if counter.end != "receiver"),
}


@dataclass(slots=True)
class FlowTrack:
    """One direction of a connection: its payload, the rates of its intervals, and its samples.

    `interval_samples` are the samples of the last interval that has ended.
    """

    direction: Direction
    bytes: int = 0
    unread_bytes: int = 0  # not yet part of a rate
    rates: deque[float] = field(default_factory=lambda: deque[float](maxlen=_SERIES))
    recent: RecentSamples = field(default_factory=lambda: RecentSamples(RECENT_NS))
    sample: SessionSample | None = None
    moved_ns: int | None = None
    interval_samples: tuple[Sampled, ...] = ()
    _new_samples: list[Sampled] = field(default_factory=list[Sampled])

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
        """Make the payload since the last call the rate of an interval, and its samples those of an interval."""
        self.rates.append(bits_per_second(self.unread_bytes, interval_ns) or 0.0)
        self.unread_bytes = 0
        self.interval_samples, self._new_samples = tuple(self._new_samples), []

    def keep_sample(self, sample: Sample) -> None:
        """Add a sample of either end."""
        event = Sampled(sample, _SETTINGS[self.direction], warmup=False)
        self.recent.keep_sample(event)
        self._new_samples.append(event)

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

    def add_reading(self, reading: ConnectionReading, now_ns: int) -> None:
        """Add the next reading of the same socket."""
        before, interval_ns = self.reading.info, now_ns - self.read_ns
        if interval_ns <= 0:
            return
        self._index += 1
        self.reading, self.read_ns = reading, now_ns
        if interval_ns > RECENT_NS:  # it was not watched meanwhile: its rises are of an unknown part of that time
            return
        moved = moved_bytes(before, reading.info)
        for flow, track in self.flows.items():
            if moved[flow] or track.sample is not None or (flow is Direction.OUT and reading.message.queues[1]):
                self._add_sample(track, before, reading.info, moved[flow], interval_ns)

    def _add_sample(self, track: FlowTrack, before: TcpInfo, now: TcpInfo, moved: int, interval_ns: int) -> None:
        flow, elapsed_ns = track.direction, self.read_ns - self.first_ns
        counters = since_last(before.counters, now.counters)
        counters |= dict.fromkeys(_NOT_OF[flow])
        if flow is Direction.OUT:
            counters["needless_retransmits"] = _rise(before.needless_retransmits, now.needless_retransmits)
            counters["reordered"] = _rise(before.reordered, now.reordered)
            counters["app_limited"] = int(now.is_app_limited)
        track.sample = SessionSample(flow, _SESSION, moved, **counters)
        near = Sample(End.NEAR, self._index, elapsed_ns, interval_ns, (track.sample,))
        track.keep_sample(near)
        if flow is Direction.OUT:
            acknowledged = (SessionSample(flow, _SESSION, moved),)
            track.keep_sample(
                Sample(End.FAR, self._index, elapsed_ns, interval_ns, acknowledged, is_from_sender=True)
            )

    def events(
        self, flow: Direction, near: HostInfo, observed: ObservedSocket, expected: ExpectedRate | None
    ) -> ConnectionEvents:
        """Return the events of one direction in the last interval: those of a run whose far end is unknown."""
        host = observed.remote_host
        started = Started(
            "",
            observed.remote,
            near,
            UNKNOWN_HOST,
            _PLANS[flow],
            Expectation(out=expected) if flow is Direction.OUT else Expectation(in_=expected),
            ip_version=6 if ":" in host else 4,
            address=host.strip("[]"),
            observed=observed,
        )
        return ConnectionEvents(started, Opened(self._socket_info(flow)), self.flows[flow].interval_samples)

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


def _rise(before: int | None, now: int | None) -> int | None:
    return None if now is None else max(0, now - (before or 0))


def moved_bytes(before: TcpInfo, now: TcpInfo) -> dict[Direction, int]:
    """Return the payload that was acknowledged, and that arrived, between two readings."""
    return {
        Direction.OUT: max(0, (now.bytes_acked or 0) - (before.bytes_acked or 0)),
        Direction.IN: max(0, (now.bytes_received or 0) - (before.bytes_received or 0)),
    }
