"""When a run has settled: found in its rates rather than guessed.

Pure. The rule is MSER (White, 1997): of all places where the beginning could be cut off, the best is the one after
which the mean is known best, that is where the squared error of the mean of the rest is least. MSER-5 applies it to
means of five observations; an interval's rate is the mean of many packets already, so it is applied to each.
A cut near the end says that the series is still on its way, and more of it must be seen.
"""

from collections.abc import Sequence
from typing import Final

MIN_SETTLED_INTERVALS: Final = 7  # so many after the best cut are a rest, and no chance
_LEAST_LEFT: Final = 3  # two that are alike by chance are no rest to compare with


def warmup_length(rates: Sequence[float]) -> int:
    """Return how many of the first rates MSER leaves out as warm-up."""
    count = len(rates)
    best, least = 0, float("inf")
    total = squares = 0.0
    # From the end to the beginning: each place's sums are the last one's and one rate more. Less the newest rate,
    # so that squares of large numbers cancel less.
    for left in range(1, count + 1):
        rate = rates[count - left] - rates[-1]
        total += rate
        squares += rate * rate
        error = max(0.0, squares - total * total / left) / (left * left)
        if left >= _LEAST_LEFT and error <= least:
            best, least = count - left, error
    return best


class WarmupDetector:
    """Takes the rates of one direction as they come, and says when they have settled."""

    def __init__(self) -> None:
        self._rates: list[float] = []
        self.is_settled = False

    def feed(self, rate: float) -> bool:
        """Take the next interval's rate; return whether the series has settled by now. What has, stays so."""
        if not self.is_settled:
            self._rates.append(rate)
            # Nothing at all is no rate to settle at: the first bytes are still on their way.
            calm = len(self._rates) - warmup_length(self._rates)
            self.is_settled = any(self._rates) and calm >= MIN_SETTLED_INTERVALS
        return self.is_settled
