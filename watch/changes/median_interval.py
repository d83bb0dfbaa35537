"""The median of some values with its 95 % confidence interval, from order statistics alone.

Of n independent values, the number below the true median is binomial with chance 1/2, for any distribution. So the
interval from the r-th smallest to the r-th largest value misses the median with twice the chance that fewer than r
values are below it. With fewer than 6 values even the whole range misses it too often.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import comb, sqrt
from statistics import NormalDist, median
from typing import Final

from ..events import Level

_MISSES: Final = 0.05
_EXACT: Final = 200  # above it, the normal approximation gives the same rank or its neighbour


def make_level(values: Sequence[float], whys: Iterable[str | None] = ()) -> Level:
    """Return the level of one value or more; `whys` are the first findings of their runs, None for none."""
    ordered = sorted(values)
    rank = _rank(len(ordered))
    low, high = (None, None) if rank is None else (ordered[rank - 1], ordered[-rank])
    return Level(median(ordered), low, high, len(ordered), _most_frequent(whys))


@lru_cache(maxsize=1024)
def _rank(count: int) -> int | None:
    """Return r (from 1): the r-th smallest and largest values bound the median; None if no values do."""
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
    """Return the most frequent code; of equally frequent ones the latest. None if most runs had none."""
    counts = Counter(reversed(list(whys)))
    return counts.most_common(1)[0][0] if counts else None
