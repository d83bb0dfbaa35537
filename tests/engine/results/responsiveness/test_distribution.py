"""Means and percentiles of counted times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.latency_histogram import BUCKET_COUNT, bucket_midpoint_ns, bucket_of
from linkgauge.engine.results.responsiveness.distribution import (
    latency_of,
    mean_ns,
    percentile_ns,
    probe_latency,
    weighted_by_time,
    without_slowest,
)

MS = 1_000_000
COUNTS = st.dictionaries(st.integers(0, BUCKET_COUNT - 1), st.integers(1, 500).map(float), min_size=1, max_size=30)


def middle(time_ms: float) -> int:
    """Return the middle of a time's bucket."""
    return bucket_midpoint_ns(bucket_of(round(time_ms * MS)))


def counted(*groups: tuple[float, int]) -> dict[int, float]:
    """Return counted times in milliseconds."""
    return {bucket_of(round(time_ms * MS)): count for time_ms, count in groups}


def test_a_slow_second_counts_as_much_as_a_fast_one() -> None:
    """A second at 1 ms has a hundred requests at their pace, one at 500 ms has two."""
    counts = counted((1, 100), (500, 2))
    weighted = weighted_by_time(counts)
    assert mean_ns(weighted) == pytest.approx((middle(1) + middle(500)) / 2, rel=0.01)
    assert mean_ns(counts) == pytest.approx((100 * middle(1) + 2 * middle(500)) / 102)


def test_a_lost_request_is_left_out_of_the_mean() -> None:
    """It waits for TCP's timer; the percentile still knows of it."""
    latency = probe_latency(counted((20, 39), (1_000, 1)), "request")
    assert latency is not None
    assert latency.mean_ns == pytest.approx(middle(20))
    assert latency.p99_ns == middle(1_000)
    assert latency.count == 40


def test_datagrams_count_one_by_one_and_all() -> None:
    """They are sent at their pace, at any latency."""
    latency = probe_latency(counted((20, 39), (1_000, 1)), "datagram")
    assert latency is not None
    assert latency.mean_ns == pytest.approx((39 * middle(20) + middle(1_000)) / 40)


def test_of_five_times_a_quarter_of_the_slowest_is_left_out() -> None:
    """5 % of five."""
    assert without_slowest(counted((10, 4), (90, 1)))[bucket_of(90 * MS)] == pytest.approx(0.75)


def test_without_times_everything_is_unknown() -> None:
    """None, and not 0."""
    assert latency_of({}) is None
    assert mean_ns(without_slowest({})) is None
    assert percentile_ns({}, 50) is None


@given(COUNTS)
def test_the_rest_has_95_percent_and_no_longer_times(counts: dict[int, float]) -> None:
    """For any counts."""
    rest = without_slowest(counts)
    assert sum(rest.values()) == pytest.approx(0.95 * sum(counts.values()))
    assert all(0 < rest[bucket] <= counts[bucket] for bucket in rest)
    assert (mean_ns(rest) or 0) <= (mean_ns(counts) or 0) * (1 + 1e-9)


@given(COUNTS)
def test_percentiles_are_times_that_were_counted(counts: dict[int, float]) -> None:
    """They ascend, and the last one is the longest."""
    times = [percentile_ns(counts, percent) for percent in (1, 50, 99, 100)]
    assert times == sorted(time for time in times if time is not None)
    assert times[-1] == bucket_midpoint_ns(max(counts))
