"""The rate of a direction over the time of a run, in bounded memory, and the one change that explains it. Pure.

A path that becomes slower, or is slow at first, has two rates, and each of them is nearly constant. The best split
of a steady growth, or of the saw teeth of a congestion window, explains three quarters of the variance at most
(of a line: 1 - 1/4), so a change has to explain more.
"""

from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from ...model.plan import SECOND_NS
from ..rate_and_loss import bits_per_second

_MOST_PARTS: Final = 128
_LEAST_PARTS: Final = 3  # on each side of a change
_LEAST_SHARE: Final = 0.1  # of the time, on each side
_EXPLAINED: Final = 0.8  # of the variance of the rate
_DIFFERENT: Final = 0.2  # of the higher rate


@dataclass(frozen=True, slots=True)
class RateStep:
    """The rates before and after a change, and the time from the beginning up to it."""

    after_s: float
    before_bit_s: int
    then_bit_s: int

    @property
    def is_slower(self) -> bool:
        """Whether the rate fell."""
        return self.then_bit_s < self.before_bit_s


@dataclass(slots=True)
class RateCourse:
    """Bytes and nanoseconds of parts of the time, in order, each of `part_ns` or more.

    If there are too many, neighbours are merged, and later ones are as long.
    """

    parts: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    part_ns: int = 0

    def add_interval(self, bytes_: int, span_ns: int) -> None:
        """Add an interval that followed."""
        if self.parts and self.parts[-1][1] < self.part_ns:
            begun, begun_ns = self.parts.pop()
            bytes_, span_ns = begun + bytes_, begun_ns + span_ns
        self.parts.append((bytes_, span_ns))
        if len(self.parts) > _MOST_PARTS:
            self.part_ns = max(2 * self.part_ns, 2 * self.parts[0][1])
            parts, self.parts = self.parts, []
            for part in parts:
                self.add_interval(*part)

    def extend(self, other: "RateCourse") -> None:
        """Add a time that followed."""
        self.part_ns = max(self.part_ns, other.part_ns)
        for part in other.parts:
            self.add_interval(*part)

    @property
    def step(self) -> RateStep | None:
        """The change that explains the course of the rate; None if no single one does."""
        bytes_so_far = list(accumulate((part[0] for part in self.parts), initial=0))
        ns_so_far = list(accumulate((part[1] for part in self.parts), initial=0))
        all_bytes, all_ns = bytes_so_far[-1], ns_so_far[-1]
        splits = [
            n
            for n in range(_LEAST_PARTS, len(self.parts) - _LEAST_PARTS + 1)
            if _LEAST_SHARE * all_ns <= ns_so_far[n] <= (1 - _LEAST_SHARE) * all_ns
        ]
        if not splits or not all_bytes:
            return None

        def explained(split: int) -> float:
            first, first_ns = bytes_so_far[split], ns_so_far[split]
            return first**2 / first_ns + (all_bytes - first) ** 2 / (all_ns - first_ns) - all_bytes**2 / all_ns

        best = max(splits, key=explained)
        varies = sum(part**2 / ns for part, ns in self.parts) - all_bytes**2 / all_ns
        before = bits_per_second(bytes_so_far[best], ns_so_far[best]) or 0.0
        then = bits_per_second(all_bytes - bytes_so_far[best], all_ns - ns_so_far[best]) or 0.0
        if explained(best) < _EXPLAINED * varies or abs(before - then) < _DIFFERENT * max(before, then):
            return None
        return RateStep(ns_so_far[best] / SECOND_NS, round(before), round(then))
