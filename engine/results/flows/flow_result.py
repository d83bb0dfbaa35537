"""The flows of each direction with their kinds, and what they say of a group of parallel links. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...model.directions import Direction
from .delay_judgement import DelayJudgement, judge_delays
from .flow_counts import FlowCounts
from .loss_judgement import LossJudgement, LossKind, judge_losses
from .member_share import MemberShare, member_share
from .parting import Parting

_REORDERED: Final = 0.01
_REORDERING_FLOWS: Final = 0.5
_MIN_PAIRS: Final = 200


class Transport(StrEnum):
    """The protocol of the flows."""

    UDP = "udp"
    TCP = "tcp"


class FlowClass(StrEnum):
    """The kind of a flow."""

    GOOD = "good"
    LOSSY = "lossy"
    SLOW = "slow"
    LOSSY_SLOW = "lossy and slow"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class DirectionFlows:
    """The flows of a direction, and the judgements of their losses and delays."""

    direction: Direction
    flows: tuple[FlowCounts, ...]
    losses: LossJudgement
    delays: DelayJudgement

    @property
    def sent(self) -> int:
        """The datagrams of all flows that count."""
        return sum(each.sent for each in self.flows)

    @property
    def lost(self) -> int:
        """Those that did not arrive."""
        return sum(each.lost for each in self.flows)

    @property
    def is_sprayed(self) -> bool:
        """Whether packets of one flow overtake each other, in most flows: each packet takes a way of its own."""
        pairs, reordered = sum(each.pairs for each in self.flows), sum(each.reordered for each in self.flows)
        reordering = sum(each.reordered > 0 for each in self.flows)
        is_common = reordering >= _REORDERING_FLOWS * len(self.flows)
        return pairs >= _MIN_PAIRS and reordered >= _REORDERED * pairs and is_common

    @property
    def has_bad_member(self) -> bool:
        """Whether some of the flows are bad: they lose more, or are slower."""
        return bool(self.losses.bad or self.delays.slow)

    def class_of(self, place: int) -> FlowClass:
        """Return the kind of a flow."""
        is_lossy, is_slow = place in self.losses.bad, place in self.delays.slow
        if is_lossy:
            return FlowClass.LOSSY_SLOW if is_slow else FlowClass.LOSSY
        if is_slow:
            return FlowClass.SLOW
        return FlowClass.UNCLEAR if place in self.losses.unclear else FlowClass.GOOD

    def classes(self) -> dict[FlowClass, list[int]]:
        """Return the flows of each kind, as places in the list."""
        found: dict[FlowClass, list[int]] = {each: [] for each in FlowClass}
        for place in range(len(self.flows)):
            found[self.class_of(place)].append(place)
        return {kind: places for kind, places in found.items() if places}


def judge_flows(direction: Direction, flows: Sequence[FlowCounts]) -> DirectionFlows:
    """Return the judgement of a direction's flows."""
    return DirectionFlows(direction, tuple(flows), judge_losses(flows), judge_delays(flows))


@dataclass(frozen=True, slots=True)
class FlowsResult:
    """A test of many flows.

    `silent_ports` are the source ports of flows on which nothing came back, whatever the direction: they are on a
    member that carries nothing. Flows of TCP have no datagrams, 0 bytes each. `rate_bit_s` is the payload of all
    flows of one direction, `seconds` the time of all rounds.
    """

    peer: str
    ip_version: int
    peer_port: int
    datagram_bytes: int
    rate_bit_s: float
    seconds: float
    directions: tuple[DirectionFlows, ...]
    silent_ports: tuple[int, ...] = ()
    partings: tuple[Parting, ...] = ()
    transport: Transport = Transport.UDP

    @property
    def silent_share(self) -> MemberShare | None:
        """The share of flows on which nothing came back; None without any."""
        opened = max((len(each.flows) for each in self.directions), default=0)
        silent = len(self.silent_ports)
        return member_share(silent, 0, silent + opened) if silent else None

    def parting(self, direction: Direction) -> Parting | None:
        """Return where a bad and a good flow of a direction part; None if they were not traced."""
        return next((each for each in self.partings if each.direction is direction), None)

    @property
    def has_bad_member(self) -> bool:
        """Whether a direction has bad flows, or some are silent."""
        return bool(self.silent_ports) or any(each.has_bad_member for each in self.directions)

    @property
    def stands(self) -> bool:
        """Whether enough was sent to tell in every direction."""
        return all(each.losses.kind is not LossKind.FEW for each in self.directions)
