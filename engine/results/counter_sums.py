"""Sums and medians of the counters in samples, of which each may be unknown, and the loads of cores."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import accumulate
from math import ceil, floor
from typing import Final

from ..model.latency_histogram import merge_counts
from ..model.samples import CoreTimes, HostDrops, NicCounts

_EXACT_BITS: Final = 12


def percent_of(part: float | None, whole: float | None) -> float | None:
    """Return a part in percent of the whole; a percentage of nothing is nothing."""
    return None if part is None or not whole else 100 * part / whole


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

    def add(self, value: int) -> None:
        """Count one value; a negative one counts as 0."""
        value = max(0, value)
        shift = max(0, value.bit_length() - self._exact_bits)
        bucket = (value >> shift) << shift
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self.sums[bucket] = self.sums.get(bucket, 0) + value

    def extend(self, other: "Histogram") -> None:
        """Count all values of another histogram of the same precision."""
        merge_counts(self.counts, other.counts.items())
        merge_counts(self.sums, other.sums.items())

    @property
    def median(self) -> int | None:
        """The middle value, or the mean of the two in the middle; None where nothing was counted."""
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
        """The mean of all values, exactly; None where nothing was counted."""
        return sum(self.sums.values()) / sum(self.counts.values()) if self.counts else None


def add_known(total: int | None, value: int | None) -> int | None:
    """Return the sum of the known values; None if both are unknown."""
    return total if value is None else (total or 0) + value


def sum_known(values: Iterable[int | None]) -> int | None:
    """Return the sum of the known values; None if all are unknown."""
    total: int | None = None
    for value in values:
        total = add_known(total, value)
    return total


def add_cores(totals: list[CoreTimes], cores: Iterable[CoreTimes]) -> None:
    """Add each core's times to its total; a core can be switched on during a run."""
    for number, core in enumerate(cores):
        if number < len(totals):
            totals[number] = _add_core_times(totals[number], core)
        else:
            totals.append(core)


def _add_core_times(first: CoreTimes, second: CoreTimes) -> CoreTimes:
    return CoreTimes(
        first.user_ns + second.user_ns,
        first.system_ns + second.system_ns,
        first.softirq_ns + second.softirq_ns,
        first.steal_ns + second.steal_ns,
        first.idle_ns + second.idle_ns,
    )


def add_nic_counts(total: NicCounts | None, counts: NicCounts | None) -> NicCounts | None:
    """Return the sums of an interface's counters; None if both are unknown."""
    if total is None or counts is None:
        return total or counts
    return NicCounts(
        total.received_bytes + counts.received_bytes,
        total.sent_bytes + counts.sent_bytes,
        total.errors + counts.errors,
        total.dropped + counts.dropped,
        total.collisions + counts.collisions,
    )


def add_host_drops(total: HostDrops | None, drops: HostDrops | None) -> HostDrops | None:
    """Return the sums of a host's drops; None if both are unknown."""
    if total is None or drops is None:
        return total or drops
    return HostDrops(
        **{
            field.name: add_known(getattr(total, field.name), getattr(drops, field.name))
            for field in fields(HostDrops)
        }
    )


def core_percents(cores: Sequence[CoreTimes]) -> tuple[float, ...]:
    """Return how busy each core was; the position is the core's number."""
    return tuple(100 * core.busy_fraction for core in cores)


def host_percent(cores: Sequence[CoreTimes]) -> float | None:
    """Return the mean load of the cores; None where none is known."""
    percents = core_percents([core for core in cores if core.busy_ns + core.idle_ns > 0])
    return sum(percents) / len(percents) if percents else None


def hottest_core_percent(cores: Sequence[CoreTimes]) -> float | None:
    """Return the load of the busiest core; None where none is known."""
    return None if host_percent(cores) is None else max(core_percents(cores))
