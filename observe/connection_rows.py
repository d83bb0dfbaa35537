"""Rows of the connections that are shown: figures, process, interface, and the result of the rules."""

from dataclasses import replace
from typing import Final

from ..engine.host.sockets.socket_message import ConnectionReading, SocketMessage
from ..engine.host.sockets.socket_owners import read_user_name
from ..engine.host.sockets.socket_table import Movement
from ..engine.model.directions import Direction
from ..engine.model.events import ObservedSocket
from ..engine.model.host_info import HostInfo, NicInfo
from ..engine.model.plan import SECOND_NS
from ..presets.diagnosis.evidence import Evidence
from ..presets.diagnosis.live import MIN_SPAN_NS, StableFindings, is_long_enough, make_evidence
from ..presets.diagnosis.period_sums import PeriodSums
from ..presets.diagnosis.window_bounds import flow_windows
from .connection_track import ConnectionTrack
from .expected_rates import ExpectedRates, ip_version_of
from .judgement import Circumstances, Judgement, judge
from .observation import ConnectionKey, InterfaceRates, ObservedConnection, Owner, Status
from .thread_loads import ThreadLoad

_STALLED_NS: Final = SECOND_NS
_STALLED_TRIPS: Final = 4


class TrackedConnection:
    """A connection that is read by its id: its samples, its owner and its findings over time."""

    def __init__(self, message: SocketMessage) -> None:
        self.message = message
        self.local, self.remote = message.local, message.remote
        self.user = read_user_name(message.user_and_inode[0])
        self.track: ConnectionTrack | None = None
        self.owner: Owner | None = None
        self.thread_load: ThreadLoad | None = None
        self.has_ended = self.has_local_peer = False
        self.stable = StableFindings()

    @property
    def inode(self) -> int:
        """Its inode in /proc/PID/fd; 0 if no process has it."""
        return self.message.user_and_inode[1]

    @property
    def key(self) -> ConnectionKey:
        """Its identity."""
        return ConnectionKey("tcp", self.local, self.remote, self.message.cookie)

    @property
    def identity(self) -> ObservedSocket:
        """Its addresses, and its process if that is visible, for the events of a run."""
        name, pid = (None, None) if self.owner is None else (self.owner.name, self.owner.pid)
        return ObservedSocket(str(self.local), str(self.remote), self.user, name, pid)

    def add_reading(self, reading: ConnectionReading, now_ns: int) -> None:
        """Add a reading."""
        self.message = reading.message
        if self.track is None:
            self.track = ConnectionTrack(reading, now_ns)
        else:
            self.track.add_reading(reading, now_ns)

    def add_movement(self, movement: Movement, now_ns: int) -> None:
        """Count the payload that moved from one dump to the next."""
        if self.track is not None:
            self.track.flows[Direction.OUT].add_bytes(movement.out_bytes, now_ns)
            self.track.flows[Direction.IN].add_bytes(movement.in_bytes, now_ns)

    def end_interval(self, interval_ns: int, *, has_ended: bool) -> None:
        """End the interval of its rates."""
        self.has_ended = has_ended
        for flow in () if self.track is None else self.track.flows.values():
            flow.end_interval(interval_ns)

    @property
    def rank(self) -> tuple[float, float]:
        """The order of rows: by the rate of the faster direction, then by bytes that wait."""
        flows = () if self.track is None else self.track.flows.values()
        return -max((flow.rates[-1] for flow in flows if flow.rates), default=0.0), -sum(self.message.queues)

    def is_of_interest(self, now_ns: int) -> bool:
        """Whether payload moved in the last seconds, or waits."""
        return self.track is not None and (self.has_moved(now_ns) or any(self.message.queues))

    def has_moved(self, now_ns: int) -> bool:
        """Whether payload moved in the last seconds."""
        return self.track is not None and any(flow.has_moved(now_ns) for flow in self.track.flows.values())

    def has_sent(self, now_ns: int) -> bool:
        """Whether this host sent payload in the last seconds."""
        return self.track is not None and self.track.flows[Direction.OUT].has_moved(now_ns)

    def stalled_bytes(self, now_ns: int) -> int:
        """Return the bytes that wait in its send queue while nothing moves; 0 if something does."""
        track = self.track
        waiting = self.message.queues[1]
        if track is None or not waiting or self.has_ended:
            return 0
        info = track.reading.info
        since_ns = now_ns - (track.flows[Direction.OUT].moved_ns or track.first_ns)
        patience_ns = max(_STALLED_NS, _STALLED_TRIPS * 1_000 * (info.rtt_us or 0))
        window = info.peer_window_bytes
        has_sign = bool(info.probes or info.timeouts) or (window is not None and window < info.mss_bytes)
        return waiting if since_ns >= patience_ns and has_sign else 0


class RowMaker:
    """Makes rows. `near` is this host."""

    def __init__(self, rates: ExpectedRates, near: HostInfo, pass_percent: float) -> None:
        self._rates = rates
        self._near = near
        self._pass_percent = pass_percent

    def make(
        self,
        tracked: TrackedConnection,
        nic: NicInfo | None,
        interfaces: tuple[InterfaceRates, ...],
        now_ns: int,
    ) -> ObservedConnection | None:
        """Return the row of a connection at this moment; None if it was never read."""
        track = tracked.track
        if track is None:
            return None
        sums = {flow: each.sums() for flow, each in track.flows.items()}
        out, in_ = (track.flows[flow].figures(sums[flow]) for flow in (Direction.OUT, Direction.IN))
        row = ObservedConnection(
            key=tracked.key,
            state=tracked.message.state,
            user=tracked.user,
            out=out,
            in_=in_,
            status=Status.NEW,
            reason="",
            owner=tracked.owner,
            congestion=track.reading.congestion,
            bbr=track.reading.bbr,
            nic=nic,
            observed_ns=now_ns - track.first_ns,
        )
        flow = row.direction
        expected = self._rates.find_rate(nic, flow, ip_version_of(tracked.remote))
        events = track.events(flow, replace(self._near, nic=nic), tracked.identity, expected)
        row = replace(row, expected=expected, events=events)
        if tracked.has_ended:
            return replace(row, status=Status.ENDED, reason="It ended in this interval.")
        evidence = self._evidence(events.period_sums(sums[flow]), row)
        windows = () if evidence is None else flow_windows(evidence)
        result = self._judge(tracked, track, evidence, row, interfaces, now_ns)
        return replace(row, status=result.status, reason=result.reason, findings=result.findings, windows=windows)

    def _judge(
        self,
        tracked: TrackedConnection,
        track: ConnectionTrack,
        evidence: Evidence | None,
        row: ObservedConnection,
        interfaces: tuple[InterfaceRates, ...],
        now_ns: int,
    ) -> Judgement:
        flow = row.direction
        rates = next((each for each in interfaces if row.nic is not None and each.name == row.nic.name), None)
        around = Circumstances(
            remote=tracked.identity.remote_host,
            info=track.reading.info,
            stalled=tracked.stalled_bytes(now_ns),
            has_local_peer=tracked.has_local_peer,
            program=None if tracked.owner is None else tracked.owner.name,
            thread_load=tracked.thread_load,
            is_idle=row.observed_ns >= MIN_SPAN_NS and not tracked.has_moved(now_ns),
            interface=None if rates is None else rates.name,
            interface_bit_s=None
            if rates is None
            else (rates.out_bit_s if flow is Direction.OUT else rates.in_bit_s),
        )
        result = judge(evidence, around)
        if not result.findings:
            return result
        if around.stalled:  # it is certain at once: what was said while something moved is out of date
            tracked.stable = StableFindings()
        findings = tracked.stable.update(now_ns, result.findings)
        return replace(result, reason=findings[0].text, findings=findings)

    def _evidence(self, period: PeriodSums, row: ObservedConnection) -> Evidence | None:
        """Return the evidence of the last seconds; None if they are too short."""
        if not is_long_enough(period):
            return None
        link = self._rates.find_link(row.nic, ip_version_of(row.key.remote))
        return make_evidence(period, row.expected, link=link, pass_percent=self._pass_percent)
