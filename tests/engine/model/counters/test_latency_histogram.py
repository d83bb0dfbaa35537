"""Latency in buckets: the error is bounded, nothing is lost, and percentiles are those of all."""

import struct
from math import ceil

from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.latency_histogram import (
    BUCKET_COUNT,
    bucket_midpoint_ns,
    bucket_of,
    diff_histograms,
    merge_counts,
    summarize_latency,
)

LEAST_NS, MOST_NS = 1_024, (1 << 36) - 1
times = st.integers(LEAST_NS, MOST_NS)
many_times = st.lists(times, min_size=1, max_size=200)

RELATIVE_ERROR = 0.008


def counted(values: list[int]) -> dict[int, int]:
    """Return values as counts."""
    counts: dict[int, int] = {}
    merge_counts(counts, ((bucket_of(value), 1) for value in values))
    return counts


@given(times)
def test_a_bucket_stands_for_its_times_within_the_error(ns: int) -> None:
    """From a microsecond to a minute, 0.8 % either way."""
    assert abs(bucket_midpoint_ns(bucket_of(ns)) - ns) <= ns * RELATIVE_ERROR


@given(st.integers(0, 1 << 62))
def test_every_time_has_a_bucket(ns: int) -> None:
    """Times out of range are in the first or the last."""
    assert 0 <= bucket_of(ns) < BUCKET_COUNT


@given(times, times)
def test_longer_is_never_in_an_earlier_bucket(shorter_ns: int, other: int) -> None:
    """Order is kept, or percentiles would mean nothing."""
    assert bucket_of(min(shorter_ns, other)) <= bucket_of(max(shorter_ns, other))


def test_every_bucket_is_reached_by_the_time_it_stands_for() -> None:
    """None is skipped, none is shared."""
    assert [bucket_of(bucket_midpoint_ns(bucket)) for bucket in range(BUCKET_COUNT)] == list(range(BUCKET_COUNT))


@given(many_times, many_times)
def test_merged_counts_are_those_of_all_values_together(some: list[int], others: list[int]) -> None:
    """Workers, sessions and intervals add up."""
    merged = counted(some)
    merge_counts(merged, counted(others).items())
    assert merged == counted(some + others)
    assert sum(merged.values()) == len(some) + len(others)


@given(many_times)
def test_percentiles_are_those_of_the_sorted_values_within_the_error(values: list[int]) -> None:
    """The nearest rank, as counted; minimum and maximum likewise."""
    found = summarize_latency(counted(values))
    assert found
    ordered = sorted(values)
    percentiles = [
        (found.min_ns, 0.0),
        (found.p50_ns, 50),
        (found.p90_ns, 90),
        (found.p99_ns, 99),
        (found.p99_9_ns, 99.9),
    ]
    for got, percent in [*percentiles, (found.max_ns, 100.0)]:
        exact = ordered[max(1, ceil(len(ordered) * round(percent * 10) / 1_000)) - 1]
        assert abs(got - exact) <= exact * RELATIVE_ERROR
    assert found.min_ns <= found.p50_ns <= found.p90_ns <= found.p99_ns <= found.p99_9_ns <= found.max_ns


def test_nothing_counted_has_no_percentiles() -> None:
    """Unknown, and not 0."""
    assert summarize_latency({}) is None


@given(many_times, many_times)
def test_a_difference_of_two_readings_is_what_was_counted_between(before: list[int], between: list[int]) -> None:
    """The words are those of the shared block."""

    def words(counts: dict[int, int]) -> bytes:
        return struct.pack(f"{BUCKET_COUNT}Q", *(counts.get(bucket, 0) for bucket in range(BUCKET_COUNT)))

    assert diff_histograms(words(counted(before)), words(counted(before + between))) == counted(between)
