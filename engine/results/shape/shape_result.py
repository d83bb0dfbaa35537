"""The policer or shaper of each direction, from the readings of many bursts. Pure.

Medians of ten bursts, with their 95 % intervals by order statistics: a burst that a busy host has spoilt moves
neither.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import comb, floor, log10
from statistics import median
from typing import Final

from ...model.directions import Direction
from ..confidence import CONFIDENCE
from .burst_reading import SECOND_NS, BurstReading

MIN_READINGS: Final = 3
_NO_BUCKET_FRAMES: Final = 2.5  # a line lets one frame pass, and an interface may hand over two at once
_FITTING: Final = 0.98  # of CIR: the clocks and the paces of two hosts differ
_DIGITS: Final = 3


class LimitKind(StrEnum):
    """What limits a direction.

    A `line` is a rate without a bucket: a slow link, or a shaper without a burst allowance. `none` is no limit up
    to the rate that was sent; `unknown` is too few readings.
    """

    POLICER = "policer"
    SHAPER = "shaper"
    LINE = "line"
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Spread:
    """A median, and its 95 % interval; of fewer than six values their range."""

    median: float
    low: float
    high: float

    @classmethod
    def of_values(cls, values: Sequence[float]) -> "Spread":
        """Return it for one or more values."""
        ordered = sorted(values)
        rank = _rank(len(ordered))
        return cls(float(median(ordered)), ordered[rank], ordered[-1 - rank])


def _rank(count: int) -> int:
    """Return the place from either end whose values bound the median in 95 % of samples."""
    rank, tail = 0, 1 / 2**count
    while rank + 1 < count / 2:
        tail += comb(count, rank + 1) / 2**count
        if 1 - 2 * tail < CONFIDENCE:
            break
        rank += 1
    return rank


@dataclass(frozen=True, slots=True)
class DirectionShape:
    """The limit of a direction. Rates and sizes are of Ethernet frames, without preamble and checksum.

    `cir` is in bit/s, `cbs` and `queue` in bytes, `queue_ns` in nanoseconds; None without that limit or queue.
    With `queue_is_full` the queue dropped what it had no room for, otherwise it is longer. `offered_bit_s` is the
    highest rate of the bursts. `pause_ns` is the idle time before each burst; unless `is_settled`, the bucket still
    grew with the pause, so that it is at least of this size.
    """

    direction: Direction
    kind: LimitKind
    bursts: int
    datagram_bytes: int
    frame_bytes: int
    offered_bit_s: float
    pause_ns: int
    is_settled: bool = True
    cir: Spread | None = None
    cbs: Spread | None = None
    queue: Spread | None = None
    queue_ns: Spread | None = None
    queue_is_full: bool = False

    @property
    def payload_bit_s(self) -> float | None:
        """CIR in bits of UDP payload a second, for datagrams of this size."""
        return None if self.cir is None else self.cir.median * self.datagram_bytes / self.frame_bytes

    @property
    def fitting_bit_s(self) -> int | None:
        """The rate of UDP payload that passes without loss: a little below the low end of CIR, to three digits."""
        if self.cir is None:
            return None
        target = _FITTING * min(self.cir.low, self.cir.median) * self.datagram_bytes / self.frame_bytes
        if target < 1:
            return None
        unit = 10 ** max(0, floor(log10(target)) + 1 - _DIGITS)
        return floor(target / unit) * unit

    def round_trip_bytes(self, round_trip_ns: int | None) -> float | None:
        """Return what CIR carries in a round trip: TCP needs as large a bucket to keep its rate at a policer."""
        if self.cir is None or round_trip_ns is None:
            return None
        return self.cir.median / 8 * round_trip_ns / SECOND_NS

    def holds_round_trip(self, round_trip_ns: int | None) -> bool | None:
        """Return whether the bucket holds a round trip of CIR; None if either is unknown, or without a bucket."""
        needed = self.round_trip_bytes(round_trip_ns)
        if needed is None or self.cbs is None or self.kind not in {LimitKind.POLICER, LimitKind.SHAPER}:
            return None
        return self.cbs.median >= needed


@dataclass(frozen=True, slots=True)
class ShapeResult:
    """The limits of the measured directions, and the round trip without load."""

    peer: str
    ip_version: int
    round_trip_ns: int | None
    directions: tuple[DirectionShape, ...]

    @property
    def stands(self) -> bool:
        """Whether every direction has a result."""
        return all(each.kind is not LimitKind.UNKNOWN for each in self.directions)


def judge_direction(
    direction: Direction,
    readings: Iterable[BurstReading],
    *,
    datagram_bytes: int,
    frame_bytes: int,
    pause_ns: int = 0,
    is_settled: bool = True,
) -> DirectionShape:
    """Return the limit of a direction from the readings of its bursts."""
    every = list(readings)
    limited = [each for each in every if each.cir_bit_s is not None]
    offered_bit_s = max((each.offered_bit_s for each in every), default=0.0)
    common = (direction, LimitKind.UNKNOWN, len(every), datagram_bytes, frame_bytes, offered_bit_s, pause_ns)
    if len(every) - len(limited) >= max(MIN_READINGS, len(every) / 2):
        return DirectionShape(direction, LimitKind.NONE, *common[2:], is_settled=is_settled)
    if len(limited) < MIN_READINGS:
        return DirectionShape(*common, is_settled=is_settled)

    def spread(value: Callable[[BurstReading], float], of: Sequence[BurstReading] = limited) -> Spread:
        return Spread.of_values([value(each) for each in of])

    waiting = [each for each in limited if each.waits]
    cbs = spread(lambda each: each.cbs_bytes)
    kind = LimitKind.POLICER
    if 2 * len(waiting) > len(limited):
        kind = LimitKind.LINE if cbs.median <= _NO_BUCKET_FRAMES * frame_bytes else LimitKind.SHAPER
    has_queue = kind is not LimitKind.POLICER
    return DirectionShape(
        direction,
        kind,
        len(limited),
        *common[3:],
        is_settled=is_settled,
        cir=spread(lambda each: each.cir_bit_s or 0.0),
        cbs=cbs,
        queue=spread(lambda each: each.queue_bytes, waiting) if has_queue else None,
        queue_ns=spread(lambda each: each.queue_ns, waiting) if has_queue else None,
        queue_is_full=has_queue and 2 * sum(each.has_loss for each in waiting) > len(waiting),
    )
