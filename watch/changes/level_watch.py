"""The level of one metric of a peer over cycles: values go in, and sometimes a change comes out. Pure.

The newest n values are compared with the level before them, for several n from 4 to 60. A shift is a change if it
is large enough to matter (EFFECTS), if it lasts (all of the newest 4 values have it, or nearly all of more), and if
it is beyond chance (`shift_score`). Large changes are found with 4 or 5 values and small ones later. One or two
flaps are never a change.

A level begins anew with each change, so that each is found once. A young level takes over the scatter of the level
before it, and a drift must go farther each time.

Segmentation with a penalty (ruptures 1.1, of the newest 80 values, anew for each value) was not better on generated
series. With least squares it had 40 to 60 false changes in 6,000 steady values at each penalty tried, since it
takes one fall for a segment. With ranks or a Gaussian kernel it was either false or late from one penalty to the
next: at the best one it found 83 % of the changes of 20 % and more within five cycles, with 3 false ones in 6,000.
This method found 94 %, with no false one, and needs no scipy.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, log
from statistics import median
from typing import Final

from ..events import ChangeFound, Level, Metric
from .median_interval import make_level
from .shift_score import Scatter, measure_scatter, score_shift

MAX_VALUES: Final = 1_000
"""A level keeps this number of its newest values."""

_WINDOWS: Final = (4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 60)
_LEAST_BEFORE: Final = 5
_LEAST_FIRST: Final = 8  # the first level has no scatter to take over
_YOUNG: Final = 20
_THRESHOLD: Final = 14.0
# So that a drift is few changes: a change in the direction of the last one takes twice as much, if the level
# between them has no more values than this.
_SETTLED: Final = 100
_MOST_TIMES: Final = 4.0
# In scatters. Correlated values stay away from their median for long: they need up to twice this.
_LEAST_SHIFT: Final = 1.5


@dataclass(frozen=True, slots=True)
class Effect:
    """The minimum change of a metric that counts, and how its values scatter.

    Smaller changes may be real, but nobody acts on them.

    Args:
        share: the minimum change as a share of the larger of both medians.
        amount: the minimum change in the metric's unit.
        is_better_high: whether more of it is better.
        has_long_tail: whether it scatters by factors instead of amounts, as latencies and counts do.
    """

    share: float
    amount: float
    is_better_high: bool
    has_long_tail: bool

    def is_reached(self, before: float, after: float, times: float = 1.0) -> bool:
        """Return whether two medians differ by the minimum change, or by several times it."""
        return abs(after - before) >= times * max(self.amount, self.share * max(before, after))

    def scaled(self, value: float) -> float:
        """Return a value on the scale on which the metric scatters equally above and below its median.

        The added amount keeps values near zero as close to each other as they matter.
        """
        return log(value + self.amount) if self.has_long_tail else value

    def least_scale(self, median: float) -> float:
        """Return the minimum scatter on the same scale: a level of equal values would have none."""
        if self.has_long_tail:
            return _LEAST_SCATTER * log(1 + self.share)
        return _LEAST_SCATTER * max(self.amount, self.share * median)


_LEAST_SCATTER: Final = 0.2
EFFECTS: Final = {
    # Runs of a few seconds repeat to 1 or 2 % on an idle link; pass marks are given in steps of 5 %.
    Metric.GOODPUT_BIT_S: Effect(share=0.05, amount=1.0, is_better_high=True, has_long_tail=False),
    # A processor's sleep states and merged interrupts cost up to 0.1 ms: less says nothing about a path.
    Metric.LATENCY_S: Effect(share=0.2, amount=0.000_2, is_better_high=False, has_long_tail=True),
    # At 10 ms, one TCP session begins to suffer from a loss of a thousandth; voice does not.
    Metric.LOSS: Effect(share=0.5, amount=0.001, is_better_high=False, has_long_tail=True),
    # A gigabyte is about 690,000 segments: 100 are 0.015 %. Slow start alone retransmits some tens in each run.
    Metric.RETRANSMITS: Effect(share=0.5, amount=100.0, is_better_high=False, has_long_tail=True),
}


@dataclass(frozen=True, slots=True)
class _Value:
    at_s: float
    raw: float
    scaled: float
    why: str | None


class LevelWatch:
    """The level of one metric of a peer. Call `add` with each value, in the order of their times."""

    def __init__(self, peer: str, metric: Metric) -> None:
        self._peer = peer
        self._metric = metric
        self._effect = EFFECTS[metric]
        self._values: deque[_Value] = deque(maxlen=MAX_VALUES)
        self._inherited: Scatter | None = None
        self._rises: bool | None = None
        self._same_way = 0

    @property
    def level(self) -> Level | None:
        """The level now; None before the first value."""
        return _level_of(self._values) if self._values else None

    @property
    def since_s(self) -> float | None:
        """The time of the oldest kept value of the level; None before the first."""
        return self._values[0].at_s if self._values else None

    def take_value(self, at_s: float, value: float, why: str | None = None) -> ChangeFound | None:
        """Take the next cycle's or probe's value; return the change that it shows, if any.

        `why` is the code of the run's first finding. A failed test has no value: do not call this for it. Values
        that are negative or not finite are left out.
        """
        if not self.recall(at_s, value, why):
            return None
        count = self._find_change()
        return None if count is None else self._change_level(at_s, self._place_change(count))

    def recall(self, at_s: float, value: float, why: str | None = None) -> bool:
        """Take a value from before a restart; return whether it counts. `follow` takes the changes from then.

        A new search for these would take minutes for a month of probes, and could find others, because the journal
        has forgotten older values since.
        """
        if not isfinite(value) or value < 0:
            return False
        self._values.append(_Value(at_s, value, self._effect.scaled(value), why))
        return True

    def follow(self, change: ChangeFound) -> None:
        """Begin the level of a change that was found before a restart."""
        count = sum(each.at_s >= change.since_s for each in self._values)
        if 0 < count < len(self._values):
            self._change_level(change.at_s, count)
        else:
            self._rises, self._same_way = change.after.median > change.before.median, 1

    def _change_level(self, at_s: float, count: int) -> ChangeFound:
        values = list(self._values)
        old, new = values[:-count], values[-count:]
        before, after = _level_of(old), _level_of(new)
        is_up = after.median > before.median
        self._same_way = self._same_way + 1 if self._rises is is_up and len(old) <= _SETTLED else 1
        self._rises = is_up
        self._inherited = self._scatter(old)
        self._values = deque(new, maxlen=MAX_VALUES)
        is_worse = is_up is not self._effect.is_better_high
        return ChangeFound(at_s, self._peer, self._metric, new[0].at_s, before, after, is_worse)

    def _find_change(self) -> int | None:
        """Return how many of the newest values are a new level; None if the level has not changed."""
        values = list(self._values)
        least = _LEAST_FIRST if self._inherited is None else _LEAST_BEFORE
        before, newest = sorted(each.raw for each in values), list[float]()
        best, found = _THRESHOLD, None
        for count in _WINDOWS:
            if len(values) - count < least:
                break
            for each in values[-count : len(values) - len(newest)]:
                del before[bisect_left(before, each.raw)]
                insort(newest, each.raw)
            old, new = _middle(before), _middle(newest)
            if not self._effect.is_reached(old, new, self._times(len(before), new > old)):
                continue
            scaled = [[self._effect.scaled(each) for each in part] for part in (before, newest)]
            scatter = self._scatter(values[:-count])
            shift, score = score_shift(scaled[0], scaled[1], scatter)
            if shift >= _LEAST_SHIFT * (1 + scatter.correlation) and score > best:
                best, found = score, count
        return found

    def _times(self, length: int, is_up: bool) -> float:
        """Return how many minimum changes the next change takes, after `length` values of this level."""
        if self._rises is not is_up or length > _SETTLED:
            return 1.0
        return min(_MOST_TIMES, 2.0**self._same_way)

    def _place_change(self, found: int) -> int:
        """Return how many of the newest values are the new level: by the split with the smallest distances."""
        scaled = [each.scaled for each in self._values]
        at = _WINDOWS.index(found)
        first, last = _WINDOWS[max(0, at - 1)], _WINDOWS[min(at + 1, len(_WINDOWS) - 1)]
        counts = [count for count in range(first, last + 1) if len(scaled) - count >= _LEAST_BEFORE]
        return min(counts, key=lambda count: _distances(scaled[:-count]) + _distances(scaled[-count:]))

    def _scatter(self, values: Sequence[_Value]) -> Scatter:
        least = self._effect.least_scale(median(each.raw for each in values))
        scatter = measure_scatter([each.scaled for each in values], least)
        if self._inherited is not None and len(values) < _YOUNG:
            return scatter.at_least(self._inherited)
        return scatter


def _level_of(values: Iterable[_Value]) -> Level:
    kept = list(values)
    return make_level([each.raw for each in kept], [each.why for each in kept])


def _distances(values: Sequence[float]) -> float:
    middle = median(values)
    return sum(abs(each - middle) for each in values)


def _middle(ordered: Sequence[float]) -> float:
    """Return the median of ordered values."""
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
