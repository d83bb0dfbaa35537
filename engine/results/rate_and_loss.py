"""Rates, percentages, sums and medians of counters that may be unknown, and the loads of cores."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from itertools import accumulate
from math import ceil, floor
from typing import Any, Final, Self, TypeVar, cast

from ..model.counters.latency_histogram import merge_counts
from ..model.counters.samples import COMBINING, CoreTimes
from ..model.plan import SECOND_NS

_EXACT_BITS: Final = 12
T = TypeVar("T")


def bits_per_second(bytes_: float, span_ns: int) -> float | None:
    """Return a rate; None if no time was measured."""
    return bytes_ * 8 * SECOND_NS / span_ns if span_ns > 0 else None


def per_second(count: float | None, span_ns: int) -> float | None:
    """Return how many things there were in a second; None if that is unknown, or no time was measured."""
    return None if count is None or span_ns <= 0 else count * SECOND_NS / span_ns


def percent_of(part: float | None, whole: float | None) -> float | None:
    """Return a part in percent of the whole; None if either is unknown, or the whole is 0."""
    return None if part is None or not whole else 100 * part / whole


def change_percent(before: float, after: float) -> float:
    """Return how much larger the second value is, in percent of the first."""
    return 100 * (after / before - 1)


def msec_each(cpu_ns: float | None, count: float | None) -> float | None:
    """Return the CPU time of each of some things, milliseconds; None if either is unknown, or there were none."""
    return None if cpu_ns is None or not count else cpu_ns / 1e6 / count


def lost_percent(lost: int | None, received: int | None) -> float | None:
    """Return lost datagrams in percent of those that were due; None if that is unknown, or there were none."""
    return None if lost is None or received is None else percent_of(lost, lost + received)


class Histogram:
    """Counts of whole numbers in buckets, whose median is exact for small values and close for large ones.

    Values below `2 ** exact_bits` have a bucket each, larger ones share one with values of nearly their size: the
    median is exact up to 4095 and within 0.05 % above that, for 12 bits.
    """

    def __init__(self, exact_bits: int = _EXACT_BITS) -> None:
        self._exact_bits = exact_bits
        self.counts: dict[int, int] = {}
        self.sums: dict[int, int] = {}

    def count_value(self, value: int) -> None:
        """Count one value; a negative one counts as 0."""
        value = max(0, value)
        shift = value.bit_length() - self._exact_bits
        bucket = value if shift <= 0 else (value >> shift) << shift
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self.sums[bucket] = self.sums.get(bucket, 0) + value

    def empty(self) -> "Histogram":
        """Return a histogram of the same precision without values."""
        return Histogram(self._exact_bits)

    def extend(self, other: "Histogram") -> None:
        """Count all values of another histogram of the same precision."""
        merge_counts(self.counts, other.counts.items())
        merge_counts(self.sums, other.sums.items())

    @property
    def median(self) -> int | None:
        """The middle value, or the mean of the two in the middle; None if nothing was counted."""
        return self.quantile(0.5)

    def quantile(self, share: float) -> int | None:
        """Return the value that a share of the values does not exceed, or the mean of the two at that place."""
        if not self.counts:
            return None
        buckets = sorted(self.counts)
        cumulative = list(accumulate(self.counts[bucket] for bucket in buckets))
        place = share * (cumulative[-1] - 1)
        ranks = (floor(place) + 1, ceil(place) + 1)
        middle = [buckets[bisect_left(cumulative, rank)] for rank in ranks]
        return round(sum(self.sums[bucket] / self.counts[bucket] for bucket in middle) / 2)

    @property
    def mean(self) -> float | None:
        """The mean of all values, exactly; None if nothing was counted."""
        return sum(self.sums.values()) / sum(self.counts.values()) if self.counts else None


OWN: Final[dict[str, object]] = {"combines": None}
"""The metadata of a field that its class combines itself, or that has no meaning over several times."""


class Sums:
    """Sums over samples, in a dataclass: the sums of two times combine field by field, as samples do."""

    __slots__ = ()

    def extend(self, other: Self) -> None:
        """Add the sums of a time that followed, or of another direction."""
        extend_fields(self, other)

    def empty(self) -> Self:
        """Return sums of the same kind without samples."""
        return type(self)()


def extend_fields(sums: T, other: T) -> None:
    """Add the fields of `other` to those of `sums`, without the fields that the class combines itself."""
    for name, kind in _kinds(type(sums)):
        setattr(sums, name, _join(getattr(sums, name), getattr(other, name), kind))


@cache
def _kinds(sums: type[Any]) -> tuple[tuple[str, str], ...]:
    kinds = ((each.name, each.metadata.get("combines", "cumulative")) for each in fields(sums))
    return tuple((name, kind) for name, kind in kinds if kind is not None)


def _join(mine: Any, theirs: Any, kind: str) -> Any:
    """Return two values of a field as one. A value with `extend` is extended; it never shares parts with theirs."""
    if isinstance(theirs, dict):
        parts = cast("dict[Any, Any]", theirs)
        if kind == "cumulative" and isinstance(next(iter(parts.values()), None), int | float):
            merge_counts(mine, parts.items())  # the fast way for counts by bucket, which are many
        else:
            mine.update({key: _join(mine.get(key), part, kind) for key, part in parts.items()})
        return mine
    if isinstance(theirs, set | tuple):
        values = cast("set[Any] | tuple[Any, ...]", theirs)
        return type(values)([*(mine or ()), *values])
    if mine is None and hasattr(theirs, "empty"):
        mine = theirs.empty()
    if mine is None or not hasattr(mine, "extend"):
        return COMBINING[kind]((mine, theirs))
    if theirs is not None:
        mine.extend(theirs)
    return mine


def add_known(total: int | None, value: int | None) -> int | None:
    """Return the sum of the known values; None if both are unknown."""
    return total if value is None else (total or 0) + value


def core_percents(cores: Sequence[CoreTimes]) -> tuple[float, ...]:
    """Return how busy each core was; the position is the core's number."""
    return tuple(100 * core.busy_fraction for core in cores)


def host_percent(cores: Sequence[CoreTimes]) -> float | None:
    """Return the mean load of the cores; None if none is known."""
    percents = core_percents([core for core in cores if core.busy_ns + core.idle_ns > 0])
    return sum(percents) / len(percents) if percents else None


def hottest_core_percent(cores: Sequence[CoreTimes]) -> float | None:
    """Return the load of the busiest core; None if none is known."""
    return None if host_percent(cores) is None else max(core_percents(cores))
