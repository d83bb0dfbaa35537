"""The datagrams of one flow, as its receiver has noted them over all rounds. Pure data.

Delays are in nanoseconds above an arbitrary one that all flows of a direction share: the ends' clocks are not
compared. None is a datagram that did not arrive.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from ..rate_and_loss import bits_per_second

LATE_NS: Final = 500_000_000
"""A datagram whose delay is this much above the least one of its flow is late."""


@dataclass(frozen=True, slots=True)
class FlowRound:
    """One round of a flow: a delay for each sweep, and the second datagrams of some sweeps.

    `pairs` are the sweeps of which both datagrams came, `reordered` those of which the second one came first.
    `unread` found no room at the receiving host. A flow of TCP has least RTTs in place of delays, the number of its
    `segments` with those that were sent again, and its `payload` in bytes with the nanoseconds that it took.
    """

    round: int
    delays: Sequence[int | None]
    pairs: int = 0
    reordered: int = 0
    duplicates: int = 0
    unread: int = 0
    segments: tuple[int, int] | None = None
    payload: tuple[int, int] | None = None

    @property
    def sent(self) -> int:
        """The datagrams that count, one a sweep; of TCP its segments."""
        return len(self.delays) if self.segments is None else self.segments[0]

    @property
    def lost(self) -> int:
        """Those that did not arrive; of TCP those that were sent again."""
        return sum(delay is None for delay in self.delays) if self.segments is None else self.segments[1]


@dataclass(slots=True)
class FlowCounts:
    """A flow by its source port, which may have sent in several rounds. `is_open` is False if it never answered."""

    port: int
    rounds: list[FlowRound] = field(default_factory=list[FlowRound])
    is_open: bool = True

    @property
    def sent(self) -> int:
        """The datagrams of all rounds."""
        return sum(each.sent for each in self.rounds)

    @property
    def lost(self) -> int:
        """Those that did not arrive."""
        return sum(each.lost for each in self.rounds)

    @property
    def pairs(self) -> int:
        """The sweeps of which both datagrams came."""
        return sum(each.pairs for each in self.rounds)

    @property
    def reordered(self) -> int:
        """Those of which the second one came first."""
        return sum(each.reordered for each in self.rounds)

    @property
    def duplicates(self) -> int:
        """The datagrams that came again."""
        return sum(each.duplicates for each in self.rounds)

    @property
    def unread(self) -> int:
        """The datagrams that found no room at the receiving host."""
        return sum(each.unread for each in self.rounds)

    @property
    def delays(self) -> list[int]:
        """The delays of what arrived."""
        return [delay for each in self.rounds for delay in each.delays if delay is not None]

    @property
    def least_ns(self) -> int | None:
        """The least delay; None if nothing arrived."""
        return min(self.delays, default=None)

    @property
    def median_ns(self) -> float | None:
        """The median delay; None if nothing arrived."""
        return median(self.delays) if self.delays else None

    @property
    def bit_s(self) -> float | None:
        """The rate of a flow of TCP; None of UDP."""
        known = [each.payload for each in self.rounds if each.payload is not None]
        return bits_per_second(sum(size for size, _ in known), sum(span_ns for _, span_ns in known))

    @property
    def late(self) -> int:
        """The datagrams that came much later than the first of the flow."""
        least_ns = self.least_ns
        return 0 if least_ns is None else sum(delay - least_ns > LATE_NS for delay in self.delays)
