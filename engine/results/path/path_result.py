"""The hops of a path in both directions, and the places of its queues and losses, as frozen dataclasses.

Pure data. `None` is unknown, `0` is measured. Times are in nanoseconds. Each direction is traced by its sender, and
its hops are counted from there: the routers on the way in may be others than those on the way out.
"""

from dataclasses import dataclass
from typing import Literal

from ...model.counters.path_trace import MtuReport
from ...model.directions import Direction, End

Answers = Literal["all", "limited", "slow", "silent"]
"""How a hop answers: all probes or nearly so, fewer than it forwards, later than it forwards, or not at all."""


@dataclass(frozen=True, slots=True)
class HopResult:
    """One hop: who answers, and the round trips to it without and under load.

    `rise_ns` is the difference of both. `kept_rise_ns` is the part of it that every later hop and the other end
    have, too: the rest is only the router's own answer. `lost_percent` are its probes without an answer, and
    `mtu_bytes` is the MTU of the link behind it, if it has refused longer packets.
    """

    ttl: int
    routers: tuple[str, ...]
    idle_ns: int | None
    loaded_ns: int | None
    rise_ns: int | None
    kept_rise_ns: int | None
    lost_percent: float | None
    answers: Answers
    is_end: bool = False
    mtu_bytes: int | None = None
    name: str | None = None

    @property
    def is_silent(self) -> bool:
        """Whether nothing has answered with this TTL."""
        return not self.routers


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a path: between the hop `after_ttl`, 0 for the sending host, and the hop `before_ttl`.

    Between them there may be hops that are silent, or whose late answers do not tell.
    """

    after_ttl: int
    before_ttl: int


@dataclass(frozen=True, slots=True)
class QueuePlace(Place):
    """A queue: what it adds to the round trip of the hop behind it, and its share of the whole rise."""

    rise_ns: int
    share: float


@dataclass(frozen=True, slots=True)
class LossPlace(Place):
    """A loss: the percentage of this end's probes that did not reach the other end.

    With `is_located` False the hops do not tell where it is.
    """

    lost_percent: float
    is_located: bool


@dataclass(frozen=True, slots=True)
class Way:
    """One direction: its hops as its sender has traced them, under the load that shows most of it.

    `queues` are sorted, the longest first. `is_reached` says that the other end is the last hop. If
    `answers_wait`, round trips rise without a queue of this direction: answers come back through the other one's.
    """

    direction: Direction
    load: Direction | None
    hops: tuple[HopResult, ...]
    is_reached: bool
    queues: tuple[QueuePlace, ...] = ()
    loss: LossPlace | None = None
    mtus: tuple[MtuReport, ...] = ()
    answers_wait: bool = False

    @property
    def sender(self) -> End:
        """The end that has traced it, and from which its hops are counted."""
        return End.NEAR if self.direction is Direction.OUT else End.FAR

    def hop(self, ttl: int) -> HopResult | None:
        """Return the hop with a TTL; None for the sending host."""
        return self.hops[ttl - 1] if 0 < ttl <= len(self.hops) else None


@dataclass(frozen=True, slots=True)
class PathResult:
    """Both directions, as far as they were traced."""

    ways: tuple[Way, ...]

    def way(self, direction: Direction) -> Way | None:
        """Return a direction; None if it was not traced."""
        return next((way for way in self.ways if way.direction is direction), None)
