"""The usual rate of a mesh's cells, their scatter about it, and the slowness that is beyond chance. Pure.

Everything is in natural logarithms of rates: -0.1 is about 10 % less.

If a third of the hosts is slow, the healthy cells are fewer than half, and the median of all cells is a slow one.
So the usual rate is one of the rates that many cells have, and `explanation` tells which of them explains most.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import log, sqrt
from statistics import median
from typing import Final

from ...engine.results.confidence import student_t

_REACH: Final = 0.15  # cells of one rate are about this near to each other
_SAME: Final = 0.05  # rates nearer than this are one
_STARTS: Final = (0.5, 0.78, 0.875, 0.95, 0.99, 1.0)  # quantiles where the search for rates starts
_STEPS: Final = 30
# The assumed scatter before any cell is seen, and the number of cells that it counts for.
_PRIOR_SPREAD: Final = 0.05
_PRIOR_CELLS: Final = 8
_LEAST_SPREAD: Final = 0.01
_SPREAD_REACH: Final = 0.3
_MEDIAN_OF_NORMAL: Final = 0.6745  # the median distance from the mean, in standard deviations
_FALSE_PATHS: Final = 0.02  # how many cells of a healthy mesh may seem slow
_FAST: Final = log(2)  # beyond it, cells are of another kind, such as two hosts of one machine
_TAIL_CELLS: Final = 40
# If a tenth of the cells is this many deviations below, or this many times as far as a quarter, these are slow, not
# scattered.
_APART: Final = 4.0
_APART_OF_QUARTER: Final = 3.0


def usual_rates(logs: Sequence[float], *, is_absolute: bool) -> list[float]:
    """Return the rates that many cells have, the highest first; none without cells."""
    ordered = sorted(logs)
    if not ordered:
        return []
    starts = [_quantile(ordered, share) for share in _STARTS]
    if is_absolute:
        starts.append(0.0)
    least_cells = min(2, max(1, len(ordered) - 1))
    rates: list[float] = []
    for start in starts:
        rate = _centre(ordered, start)
        is_new = all(abs(rate - other) > _SAME for other in rates)
        if is_new and len(_within(ordered, rate, _REACH)) >= least_cells:
            rates.append(rate)
    return sorted(rates or [median(ordered)], reverse=True)


def _centre(ordered: Sequence[float], start: float) -> float:
    """Return the rate of the cells near `start`: the median of the near cells, repeated until it stays."""
    rate = start
    for _ in range(_STEPS):
        near = _within(ordered, rate, _REACH)
        if not near:
            return rate
        middle = _quantile(near, 0.5)
        if abs(middle - rate) < 1e-6:
            return middle
        rate = middle
    return rate


def _within(ordered: Sequence[float], rate: float, reach: float) -> Sequence[float]:
    return ordered[bisect_left(ordered, rate - reach) : bisect_right(ordered, rate + reach)]


def find_spread(logs: Sequence[float], rate: float) -> float:
    """Return the standard deviation of healthy cells about a rate.

    The cells below include the slow ones, so only the nearest count, as many as are above. A link has an upper end:
    the cells below may scatter more.
    """
    above = [value - rate for value in logs if 0 < value - rate <= _SPREAD_REACH]
    below = sorted(rate - value for value in logs if 0 < rate - value <= _SPREAD_REACH)[: len(above)]
    own = max((median(side) for side in (above, below) if side), default=0.0) / _MEDIAN_OF_NORMAL
    together = (len(above) * own**2 + _PRIOR_CELLS * _PRIOR_SPREAD**2) / (len(above) + _PRIOR_CELLS)
    return max(_LEAST_SPREAD, sqrt(together))


def slowness_beyond_chance(residuals: Sequence[float], spread: float, cells: int | None = None) -> float:
    """Return the slowness beyond which a single cell is not chance, as a positive difference of logarithms.

    `cells` is the number of candidates, by default all. Rates have longer tails than a normal distribution. The
    fast and the slow cells show how long: the tail is continued as an exponential one.
    """
    count = len(residuals)
    if not count:
        return 0.0
    chance = _FALSE_PATHS / (cells or count)
    # The spread comes from the faster half of the cells, and a few of these are chance themselves.
    normal = spread * student_t(count / 4 + 2, 1 - 2 * chance)
    if count < _TAIL_CELLS:
        return normal
    fast = sorted(min(residual, spread) if residual > _FAST else residual for residual in residuals)
    slow = sorted(-residual for residual in residuals)
    slowness = max(normal, _continued(fast, (0.10, 0.03), chance))
    quarter, tenth = _quantile(slow, 0.75), _quantile(slow, 0.9)
    if tenth < min(_APART * spread, _APART_OF_QUARTER * quarter):
        slowness = max(slowness, _continued(slow, (0.25, 0.10), chance))
    return slowness


def _continued(ordered: Sequence[float], shares: tuple[float, float], chance: float) -> float:
    """Return the value that is exceeded with a small chance, continued from two larger shares of values."""
    near, far = (_quantile(ordered, 1 - share) for share in shares)
    return far + (far - near) / log(shares[0] / shares[1]) * log(shares[1] / min(chance, shares[1]))


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which a share of sorted values lies, interpolated."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
