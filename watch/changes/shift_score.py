"""How far beyond chance the newest values of a series are shifted against the values before them. Pure.

There are two scores, each the logarithm of a likelihood ratio, and the smaller one counts. The first is about the
size of the shift: in units of the scatter before it, squared, times the number of independent values, halved. The
second is about how often values as far out came before: goodput falls now and then, and latency rises now and then.
That makes the scatter hardly larger, and four such values in a row are still unlikely.

The scatter is measured on the side of the shift, since goodput is skewed to the left and latency to the right. The
size of a shift is the size that nearly all of the newest values reach, not their mean. Correlated values (a daily
cycle, a slow drift) count for less, by their autocorrelation.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, log
from statistics import median
from typing import Final

MOST_SHIFT: Final = 10.0
"""Larger shifts, in scatters, count as this one: nobody knows how rare they are."""

_SHOULDER: Final = ((0.84, 1.0), (0.9, 1.282))  # quantiles of a normal distribution, and how far out they are
_MOST_CORRELATION: Final = 0.9
_CORRELATED_VALUES: Final = 200


@dataclass(frozen=True, slots=True)
class Scatter:
    """The scatter of a level's values below and above their median, and the correlation of neighbours, 0 to 0.9."""

    below: float
    above: float
    correlation: float

    def at_least(self, other: "Scatter") -> "Scatter":
        """Return the larger of both, figure by figure."""
        return Scatter(
            max(self.below, other.below),
            max(self.above, other.above),
            max(self.correlation, other.correlation),
        )


def measure_scatter(values: Sequence[float], least: float) -> Scatter:
    """Return the scatter of successive values, `least` or more."""
    ordered = sorted(values)
    middle = median(ordered)
    # A few values show less scatter than there is.
    young = 1 + 4 / len(ordered)
    below = young * _shoulder([middle - each for each in reversed(ordered)])
    above = young * _shoulder([each - middle for each in ordered])
    return Scatter(max(least, below), max(least, above), _correlation(values, middle, below, above))


def _shoulder(distances: Sequence[float]) -> float:
    """Return the scatter of ordered distances to one side; the farthest value alone never decides."""
    last = len(distances) - 1
    return max(distances[min(floor(share * last), max(0, last - 1))] / out for share, out in _SHOULDER)


def _correlation(values: Sequence[float], middle: float, below: float, above: float) -> float:
    newest = values[-_CORRELATED_VALUES:]
    off = [min(above, max(-below, each - middle)) for each in newest]  # a flap does not lower the correlation
    squares = sum(each * each for each in off)
    if len(off) < 6 or not squares:
        return 0.0
    measured = sum(one * other for one, other in pairwise(off)) / squares
    # A short series looks less correlated than it is (Kendall, 1954; Marriott and Pope, 1954).
    corrected = (len(off) * measured + 1) / (len(off) - 4)
    return min(_MOST_CORRELATION, max(0.0, corrected))


def score_shift(before: Sequence[float], newest: Sequence[float], scatter: Scatter) -> tuple[float, float]:
    """Return the shift in units of scatter, and its score; both are 0 if too few of the newest values have it.

    Args:
        before: the values before them, ordered by size.
        newest: the newest values, ordered by size.
        scatter: the scatter of the values before.
    """
    middle = median(before)
    is_up = median(newest) > middle
    count, skipped = len(newest), _skipped(len(newest))
    nearest = newest[skipped] if is_up else newest[-1 - skipped]
    shift = (nearest - middle) / scatter.above if is_up else (middle - nearest) / scatter.below
    if shift <= 0:
        return 0.0, 0.0
    shift = min(shift, MOST_SHIFT)
    independent = (1 - scatter.correlation) / (1 + scatter.correlation)
    by_size = independent * len(before) * count / (len(before) + count) * shift * shift / 2
    as_far = len(before) - bisect_left(before, nearest) if is_up else bisect_right(before, nearest)
    return shift, min(by_size, _rarity(count, count - skipped, (as_far + 0.5) / (len(before) + 1)))


def _rarity(count: int, as_far: int, expected: float) -> float:
    """Return the score of `as_far` of `count` values that far out, if a share of `expected` is usual."""
    share = as_far / count
    if share <= expected:
        return 0.0
    rest = (1 - share) * log((1 - share) / (1 - expected)) if share < 1 else 0.0
    return count * (share * log(share / expected) + rest)


def _skipped(count: int) -> int:
    """Return how many of the newest values may be without the shift: none of 4, one of 5, nearly half of many."""
    return max(count // 5, count // 2 - 2)
