"""The median of some values with its 95 % confidence interval, from order statistics alone.

How many of n independent values are below the true median is binomial with chance 1/2, whatever they are
distributed like: the interval between the r-th smallest and the r-th largest value misses it with twice the chance
of fewer than r below. With fewer than 6 values even the whole range misses it too often.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import comb, sqrt
from statistics import NormalDist, median
from typing import Final

from ..events import Level

_MISSES: Final = 0.05
_EXACT: Final = 200  # above, the normal approximation gives the same ranks, give or take one


def make_level(values: Sequence[float], whys: Iterable[str | None] = ()) -> Level:
    """Return the level of one value or more; `whys` are the first findings of their runs, None for none."""
    ordered = sorted(values)
    rank = _rank(len(ordered))
    low, high = (None, None) if rank is None else (ordered[rank - 1], ordered[-rank])
    return Level(median(ordered), low, high, len(ordered), _most_frequent(whys))


@lru_cache(maxsize=1024)
def _rank(count: int) -> int | None:
    """Return r, from 1, of the r-th smallest and largest values that bound the median; None where none do."""
    if count > _EXACT:
        return int((count - NormalDist().inv_cdf(1 - _MISSES / 2) * sqrt(count)) / 2)
    rank, below = 0, 0
    for below_count in range(count):
        below += comb(count, below_count)
        if 2 * below > _MISSES * 2**count:
            break
        rank = below_count + 1
    return rank or None


def _most_frequent(whys: Iterable[str | None]) -> str | None:
    """Return the most frequent code; of equally frequent ones the latest. None where most runs had none."""
    counts = Counter(reversed(list(whys)))
    return counts.most_common(1)[0][0] if counts else None
