"""The least change of a metric that is one: smaller changes are real at times, but nobody acts on them."""

from dataclasses import dataclass
from math import log
from typing import Final

from ..events import Metric


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change must amount to, and how values of the metric scatter.

    Args:
        share: the least change as a share of the larger of both medians.
        amount: the least change in the metric's unit.
        is_better_high: whether more of it is better.
        has_long_tail: whether it scatters by factors rather than by amounts, as latencies and counts do.
    """

    share: float
    amount: float
    is_better_high: bool
    has_long_tail: bool

    def is_reached(self, before: float, after: float, times: float = 1.0) -> bool:
        """Return whether two medians differ enough, or so many times enough."""
        return abs(after - before) >= times * max(self.amount, self.share * max(before, after))

    def scaled(self, value: float) -> float:
        """Return a value on the scale on which the metric scatters alike above and below its median.

        The amount that is added keeps values near zero apart by no more than they matter.
        """
        return log(value + self.amount) if self.has_long_tail else value

    def least_scale(self, median: float) -> float:
        """Return the least scatter that is believed, on the same scale: a level of equal values has none."""
        if self.has_long_tail:
            return _LEAST_SCATTER * log(1 + self.share)
        return _LEAST_SCATTER * max(self.amount, self.share * median)


_LEAST_SCATTER: Final = 0.2
EFFECTS: Final = {
    # Runs of a few seconds repeat to 1 or 2 % on an idle link; pass marks are given in steps of 5 %.
    Metric.GOODPUT_BIT_S: Effect(share=0.05, amount=1.0, is_better_high=True, has_long_tail=False),
    # The sleep states of a processor and the merging of interrupts are worth 0.1 ms: less says nothing of a path.
    Metric.LATENCY_S: Effect(share=0.2, amount=0.000_2, is_better_high=False, has_long_tail=True),
    # A thousandth is what one TCP session begins to suffer from at 10 ms, and voice does not hear.
    Metric.LOSS: Effect(share=0.5, amount=0.001, is_better_high=False, has_long_tail=True),
    # A gigabyte is about 690,000 segments: 100 are 0.015 %. Slow start alone repeats some tens of a run's segments.
    Metric.RETRANSMITS: Effect(share=0.5, amount=100.0, is_better_high=False, has_long_tail=True),
}
