"""Which flows have a longer delay than the others. Pure.

In each sweep, every flow has sent one datagram within some milliseconds. So a datagram's delay above the least one
of its sweep neither has the drift of the two clocks nor a queue that all flows shared. A flow's figure is its
median. Flows are split in two at the gap that leaves the least variance (Otsu, 1979). They are of two kinds if the
kinds are further apart than their own spread explains, and if every other sweep alone gives the same kinds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt
from statistics import fmean, median
from typing import Final

from .flow_counts import FlowCounts
from .member_share import MemberShare, member_share

LEAST_DIFFERENCE_NS: Final = 100_000  # receive queues of one host differ by some microseconds
_LEAST_SPREADS: Final = 6.0  # one normal distribution, cut in two, has 2.6; an even one 3.5
_LEAST_FLOWS: Final = 3
_AGREEMENT: Final = 0.97


@dataclass(frozen=True, slots=True)
class DelayJudgement:
    """The flows of a direction by their delays: the slow ones as places in its list of flows, and how much slower.

    `slow` is empty if all are alike. `spread_ns` is the spread within a kind.
    """

    slow: tuple[int, ...]
    slower_ns: float
    spread_ns: float
    total: int

    @property
    def share(self) -> MemberShare | None:
        """The share of slow flows; None without any."""
        return member_share(len(self.slow), 0, self.total) if self.slow else None


def judge_delays(flows: Sequence[FlowCounts]) -> DelayJudgement:
    """Return the judgement of a direction's flows, from their first round, in which all of them took part."""
    known = [place for place, each in enumerate(flows) if each.rounds]
    sweeps = [flows[place].rounds[0].delays for place in known]
    above = _above_least(sweeps)
    none = DelayJudgement((), 0.0, 0.0, len(known))
    whole = _split([_middle(each) for each in above])
    if whole is None:
        return none
    slow, slower_ns, spread_ns = whole
    halves = [_split([_middle(each[start::2]) for each in above]) for start in (0, 1)]
    for half in halves:
        if half is None or len(half[0] ^ slow) > (1 - _AGREEMENT) * len(known):
            return DelayJudgement((), 0.0, spread_ns, len(known))
    return DelayJudgement(tuple(known[place] for place in sorted(slow)), slower_ns, spread_ns, len(known))


def _above_least(sweeps: Sequence[Sequence[int | None]]) -> list[list[int | None]]:
    """Return each delay above the least one of all flows in its sweep."""
    count = min(map(len, sweeps), default=0)
    least = [min((each[at] or 0 for each in sweeps if each[at] is not None), default=0) for at in range(count)]
    return [[None if (delay := each[at]) is None else delay - least[at] for at in range(count)] for each in sweeps]


def _middle(delays: Sequence[int | None]) -> float | None:
    known = [delay for delay in delays if delay is not None]
    return median(known) if known else None


def _split(figures: Sequence[float | None]) -> tuple[set[int], float, float] | None:
    """Return the places of the slow flows, the difference of both kinds and their spread; None if all are alike."""
    ordered = sorted((figure, place) for place, figure in enumerate(figures) if figure is not None)
    count = len(ordered)
    if count < 2 * _LEAST_FLOWS:
        return None
    sums = [0.0, *accumulate(figure for figure, _ in ordered)]

    def between(cut: int) -> float:
        fast, slow = sums[cut] / cut, (sums[count] - sums[cut]) / (count - cut)
        return cut * (count - cut) * (slow - fast) ** 2

    cut = max(range(_LEAST_FLOWS, count - _LEAST_FLOWS + 1), key=between)
    kinds = [figure for figure, _ in ordered[:cut]], [figure for figure, _ in ordered[cut:]]
    middles = [median(kind) for kind in kinds]
    squares = sum((figure - fmean(kind)) ** 2 for kind in kinds for figure in kind)
    spread = sqrt(squares / count)
    slower = middles[1] - middles[0]
    if slower < max(LEAST_DIFFERENCE_NS, _LEAST_SPREADS * spread):
        return None
    return {place for _, place in ordered[cut:]}, slower, spread
