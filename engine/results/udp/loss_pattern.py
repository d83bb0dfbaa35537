"""The pattern in which datagrams are lost: one by one at random, in bursts, or at regular distances.

Pure. For each interval, a receiver reports how many datagrams are missing, and in how many runs of numbers. Random
losses vary from interval to interval by Poisson's law: their variance is their mean. If every hundredth datagram is
lost, each interval loses nearly one percent. A cause that comes once a second leaves intervals with losses at equal
distances.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Final, Literal

from ...model.counters.samples import GAUGE, PEAK
from ..sums.field_sums import Sums

LossPattern = Literal["random", "bursts", "periodic"]
"""`random`: single losses; `bursts`: several in a row; `periodic`: at regular distances, in packets or in time."""

_MAX_ONSETS: Final = 64
_MIN_GAPS: Final = 10  # with fewer losses there is no pattern
_MIN_INTERVALS: Final = 10
_MIN_PER_INTERVAL: Final = 4
_MAX_EVEN: Final = 0.15  # of variance / mean: ten intervals of random losses are as even once in 500 runs
_MIN_ONSETS: Final = 5
_MAX_SPREAD: Final = 0.15  # of the distances' deviation / mean
_MAX_SHIFT: Final = 0.75  # intervals; an onset near the end of an interval is sometimes in the next one
_MIN_DISTANCE: Final = 3  # intervals from one onset to the next, on average
_BURST: Final = 1.6  # times the mean length of a burst if each datagram were lost by chance


@dataclass(slots=True)
class LossSeries(Sums):
    """The losses of one direction, interval by interval, in bounded memory.

    `onsets_ns` has the ends of the newest intervals with a loss that follow one without.
    """

    intervals: int = 0
    lost: int = 0
    datagrams: int = 0
    squares: float = 0.0
    longest_ns: int = field(default=0, metadata=PEAK)
    onsets_ns: deque[int] = field(default_factory=lambda: deque[int](maxlen=_MAX_ONSETS))
    had_loss: bool = field(default=False, metadata=GAUGE)

    def add_interval(self, lost: int, datagrams: int, end_ns: int, interval_ns: int) -> None:
        """Add an interval, with the datagrams that were sent in it and those of them that are missing."""
        self.longest_ns = max(self.longest_ns, interval_ns)
        if lost and not self.had_loss:
            self.onsets_ns.append(end_ns)
        self.had_loss = lost > 0
        if datagrams > 0:
            self.intervals += 1
            self.lost += lost
            self.datagrams += datagrams
            self.squares += lost * lost / datagrams

    @property
    def period_ns(self) -> int | None:
        """The time from one onset of losses to the next, if it is always about the same; else None."""
        distances = [after - before for before, after in pairwise(self.onsets_ns)]
        if len(distances) < _MIN_ONSETS - 1:
            return None
        mean = fmean(distances)
        is_even = pstdev(distances) <= max(_MAX_SPREAD * mean, _MAX_SHIFT * self.longest_ns)
        return round(mean) if is_even and mean >= _MIN_DISTANCE * self.longest_ns else None

    @property
    def is_even(self) -> bool:
        """Whether each interval has its part of the losses, more evenly than by chance.

        The measure is Pearson's: the squared difference from an interval's expected losses, over these.
        """
        if self.intervals < _MIN_INTERVALS or self.lost < _MIN_PER_INTERVAL * self.intervals:
            return False
        differences = self.squares * self.datagrams / self.lost - self.lost
        return differences <= _MAX_EVEN * self.intervals


def find_loss_pattern(lost: int, gaps: int, loss_share: float, series: LossSeries) -> LossPattern | None:
    """Return the pattern of the losses of a direction; None if they are too few to have one.

    Args:
        lost: the lost datagrams.
        gaps: their bursts, which may be one datagram long.
        loss_share: the share of the datagrams that was lost, 0 to 1.
        series: the losses by interval.
    """
    if series.period_ns is not None:
        return "periodic"
    burst = lost / gaps if gaps else 0.0
    if lost >= _MIN_GAPS and burst >= _BURST / max(0.01, 1 - loss_share):
        return "bursts"
    if gaps < _MIN_GAPS:
        return None
    return "periodic" if series.is_even else "random"
