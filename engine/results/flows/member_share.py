"""The share of flows that are on a bad member of a group of links, and the number of members that fits. Pure.

Routers hash flows over equal links, so the share of flows on one of k links is about 1/k. The interval is Wilson's
(1927), which holds for few flows as well.
"""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Final

from ..confidence import CONFIDENCE

_MEMBERS: Final = range(2, 17)
_Z: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True, slots=True)
class MemberShare:
    """The share of flows of a kind with its 95 % interval, from their number and the number of all."""

    count: int
    total: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share that was seen."""
        return self.count / self.total if self.total else 0.0

    @property
    def possible_members(self) -> tuple[int, ...]:
        """The numbers of members of which one has such a share."""
        return tuple(members for members in _MEMBERS if self.low <= 1 / members <= self.high)

    @property
    def members(self) -> int | None:
        """The number of members, if only one fits."""
        possible = self.possible_members
        return possible[0] if len(possible) == 1 else None


def member_share(count: int, unclear: int, total: int) -> MemberShare:
    """Return the share of `count` flows of a total; the interval allows for some that are unclear."""
    low, _ = wilson_interval(count, total)
    _, high = wilson_interval(min(total, count + unclear), total)
    return MemberShare(count, total, low, high)


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a probability by the times that something happened, of a total."""
    if not total:
        return 0.0, 1.0
    seen, square = count / total, _Z * _Z
    middle = (seen + square / (2 * total)) / (1 + square / total)
    reach = _Z / (1 + square / total) * sqrt(seen * (1 - seen) / total + square / (4 * total * total))
    return max(0.0, middle - reach), min(1.0, middle + reach)
