"""Latency as counts in buckets of constant relative width.

Pure. 64 buckets an octave from 1 µs to 69 s: the middle of a bucket is within 0.8 % of every value in it, whatever
its size. Counts of several sessions, intervals and workers add up bucket by bucket without loss: a percentile of
the whole comes from the sum, never from other percentiles. The number of transactions is the sum of the counts, so
that the two cannot disagree.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeVar

SUB_BUCKET_BITS: Final = 6
_PER_OCTAVE: Final = 1 << SUB_BUCKET_BITS
_FIRST_OCTAVE: Final = 10  # 2**10 ns are 1.02 µs
_OCTAVES: Final = 26  # up to 2**36 ns, 68.7 s
BUCKET_COUNT: Final = _PER_OCTAVE * _OCTAVES
CHUNK_BUCKETS: Final = _PER_OCTAVE
SIGNIFICANT_BITS: Final = SUB_BUCKET_BITS + 1
MIN_SHIFT: Final = _FIRST_OCTAVE - SUB_BUCKET_BITS
MAX_SHIFT: Final = MIN_SHIFT + _OCTAVES - 1
# bucket = (shift << 6) + (ns >> shift) - BASE, and shift leaves seven bits: the hottest path has it inline.
BUCKET_BASE: Final = (MIN_SHIFT << SUB_BUCKET_BITS) + _PER_OCTAVE
_Key = TypeVar("_Key", int, str)


def bucket_of(ns: int) -> int:
    """Return the bucket of a time: the first or the last one for a time beyond the range."""
    shift = ns.bit_length() - SIGNIFICANT_BITS
    bucket = (shift << SUB_BUCKET_BITS) + (ns >> shift if shift >= 0 else 0) - BUCKET_BASE
    return 0 if bucket < 0 else bucket if bucket < BUCKET_COUNT else BUCKET_COUNT - 1


def bucket_midpoint_ns(bucket: int) -> int:
    """Return the time in the middle of a bucket."""
    octave, part = divmod(bucket, _PER_OCTAVE)
    shift = octave + _FIRST_OCTAVE - SUB_BUCKET_BITS
    return ((_PER_OCTAVE + part) << shift) + (1 << shift >> 1)


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """The latency of transactions: the shortest, four percentiles, the longest."""

    min_ns: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    p99_9_ns: int
    max_ns: int


def _rank(whole: int, percent: float) -> int:
    """Return the number of values at or below a percentile, at least 1."""
    return max(1, -(-whole * round(percent * 10) // 1_000))


def summarize_latency(counts: Mapping[int, int]) -> LatencySummary | None:
    """Return the percentiles of counts; None if there are none."""
    if not counts:
        return None
    ascending = sorted(counts)
    whole = sum(counts.values())
    upto = list(accumulate(counts[bucket] for bucket in ascending))
    p50, p90, p99, p99_9 = (
        bucket_midpoint_ns(ascending[bisect_left(upto, _rank(whole, percent))]) for percent in (50, 90, 99, 99.9)
    )
    return LatencySummary(bucket_midpoint_ns(ascending[0]), p50, p90, p99, p99_9, bucket_midpoint_ns(ascending[-1]))


def merge_counts(into: dict[_Key, int], counts: Iterable[tuple[_Key, int]]) -> None:
    """Add counts, as pairs of bucket and count, to others."""
    for bucket, count in counts:
        into[bucket] = into.get(bucket, 0) + count


def diff_histograms(before: bytes, after: bytes) -> dict[int, int]:
    """Return the counts between two readings of a whole histogram of 64-bit words.

    Equal octaves are skipped as a whole: most are equal, and a sample reads up to 256 histograms.
    """
    counts: dict[int, int] = {}
    width = CHUNK_BUCKETS * 8
    for start in range(0, BUCKET_COUNT * 8, width):
        now = after[start : start + width]
        then = before[start : start + width]
        if now != then:
            pairs = zip(memoryview(then).cast("Q"), memoryview(now).cast("Q"), strict=True)
            first = start // 8
            counts.update({first + i: b - a for i, (a, b) in enumerate(pairs) if b > a})
    return counts
