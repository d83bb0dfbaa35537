"""The end of an automatic warm-up, by MSER (White, 1997).

Pure. MSER cuts off the beginning so that the squared error of the mean of the rest is smallest. MSER-5 applies it
to means of five observations. An interval's rate is the mean of many packets already, so here each rate is an
observation. A cut near the end means that the series still changes, and that more of it is needed.
"""

from collections.abc import Sequence
from typing import Final

MIN_SETTLED_INTERVALS: Final = 7  # with fewer rates after the best cut, a steady rest may be chance
_MIN_REST: Final = 3  # two rates may be alike by chance


def warmup_length(rates: Sequence[float]) -> int:
    """Return the number of rates at the beginning that MSER cuts off."""
    count = len(rates)
    best, smallest = 0, float("inf")
    total = squares = 0.0
    # Backwards, so that the sums of each cut are those of the cut before it plus one rate. Each rate is relative to
    # the newest one, so that squares of large numbers lose less precision.
    for length in range(1, count + 1):
        rate = rates[count - length] - rates[-1]
        total += rate
        squares += rate * rate
        error = max(0.0, squares - total * total / length) / (length * length)
        if length >= _MIN_REST and error <= smallest:
            best, smallest = count - length, error
    return best


class WarmupDetector:
    """Tells when the rates of one direction have settled."""

    def __init__(self) -> None:
        self._rates: list[float] = []
        self.is_settled = False

    def note_rate(self, rate: float) -> bool:
        """Add an interval's rate; return whether the series has settled. Once settled, it stays so."""
        if not self.is_settled:
            self._rates.append(rate)
            settled = len(self._rates) - warmup_length(self._rates)
            # A series of zeros has not settled: the first bytes are still under way.
            self.is_settled = any(self._rates) and settled >= MIN_SETTLED_INTERVALS
        return self.is_settled
