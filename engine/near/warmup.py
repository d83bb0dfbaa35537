"""Detection of the end of a warm-up, from the rates of the intervals.

Pure. The rule is MSER (White, 1997): cut off the beginning where the squared error of the mean of the rest is
least. MSER-5 applies it to means of five observations. An interval's rate is the mean of many packets already, so
here it is applied to each rate. A cut near the end means that the series still changes and more of it is needed.
"""

from collections.abc import Sequence
from typing import Final

MIN_SETTLED_INTERVALS: Final = 7  # with fewer after the best cut, a steady rest may be chance
_MIN_REST: Final = 3  # two rates may be alike by chance


def warmup_length(rates: Sequence[float]) -> int:
    """Return the number of rates at the beginning that MSER cuts off."""
    count = len(rates)
    best, least = 0, float("inf")
    total = squares = 0.0
    # Backwards, so that each cut's sums are those of the cut before plus one rate. The newest rate is subtracted
    # from each, so that squares of large numbers lose less precision.
    for left in range(1, count + 1):
        rate = rates[count - left] - rates[-1]
        total += rate
        squares += rate * rate
        error = max(0.0, squares - total * total / left) / (left * left)
        if left >= _MIN_REST and error <= least:
            best, least = count - left, error
    return best


class WarmupDetector:
    """Detects when the rates of one direction have settled."""

    def __init__(self) -> None:
        self._rates: list[float] = []
        self.is_settled = False

    def feed(self, rate: float) -> bool:
        """Add an interval's rate; return whether the series has settled. Once settled, it stays so."""
        if not self.is_settled:
            self._rates.append(rate)
            settled = len(self._rates) - warmup_length(self._rates)
            # A series of zeros has not settled: the first bytes are still under way.
            self.is_settled = any(self._rates) and settled >= MIN_SETTLED_INTERVALS
        return self.is_settled
