"""The sums behind the evidence: of a period of a run or a part of it, of each end, and of each direction."""

from dataclasses import dataclass

from ...engine.model.counters.session_counters import SocketInfo
from ...engine.model.directions import Direction, End, sender_of
from ...engine.model.events import Started
from ...engine.model.host_info import HostInfo
from ...engine.model.plan import Mode, Settings
from ...engine.results.responsiveness.result import Responsiveness
from ...engine.results.run_totals import OpenSockets
from ...engine.results.sums.end_sum import EndSum
from ...engine.results.sums.sample_sum import ReceiverSum, SampleSum
from ...engine.results.sums.sender_sum import SenderSum


@dataclass(frozen=True, slots=True)
class EndSums:
    """One end: its host, and the sums of its samples."""

    end: End
    host: HostInfo
    usage: EndSum


@dataclass(frozen=True, slots=True)
class FlowSums:
    """The sums of a direction, and a socket of each end; the sender may be an iperf3 that shows none of its TCP."""

    flow: Direction
    received: ReceiverSum
    sent: SenderSum
    sender: SocketInfo | None
    receiver: SocketInfo | None
    is_unseen: bool

    @property
    def mss_bytes(self) -> int | None:
        """The size of a segment. Both ends have agreed on about the same."""
        known = self.receiver.mss_bytes if self.is_unseen and self.receiver is not None else None
        own = self.sent.median("mss_bytes")
        return known if own is None else own


@dataclass(frozen=True, slots=True)
class PeriodSums:
    """The sums over a part of a run with constant settings, its open sockets, and the warnings that explain them.

    `is_data_through_ssh` says whether ssh carries the payload; `other_traffic` are the other programs that exchange
    much through the near interface.
    """

    started: Started
    settings: Settings
    sums: SampleSum
    sockets: OpenSockets
    responsiveness: Responsiveness | None = None
    is_data_through_ssh: bool = False
    other_traffic: tuple[str, ...] = ()

    def end(self, end: End) -> EndSums:
        """Return the host and the sums of one end."""
        host = self.started.near if end is End.NEAR else self.started.far
        return EndSums(end, host, self.sums.ends[end])

    def flow(self, flow: Direction) -> FlowSums:
        """Return the sums of a direction."""
        end = sender_of(flow, self.sums.workload)
        sender, receiver = self.sockets.first(end, flow), self.sockets.first(end.other, flow)
        received, sent = self.sums.received[flow], self.sums.sent[flow]
        return FlowSums(flow, received, sent, sender, receiver, is_unseen=end is self.started.unseen_end)

    @property
    def mode(self) -> Mode:
        """How payload moves: as the plan says, or as the sockets tell."""
        plan = self.started.plan
        return plan.mode or self.sockets.mode(plan.workload) or Mode.COPY

    @property
    def measured_ns(self) -> int:
        """The shortest time that a receiver measured."""
        return min(self.sums.received[flow].span_ns for flow in self.settings.direction.flows)
