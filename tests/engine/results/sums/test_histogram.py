"""Medians of any number of values in a bounded amount of memory."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.results.sums.histogram import Histogram


def _median(values: list[int]) -> int | None:
    histogram = Histogram()
    for value in values:
        histogram.count_value(value)
    return histogram.median


def test_the_median_of_nothing_is_unknown() -> None:
    """None is unknown."""
    assert _median([]) is None


@given(st.lists(st.integers(0, 4095), min_size=1))
def test_small_values_have_their_exact_median(values: list[int]) -> None:
    """A round trip under 4 ms is told to the microsecond."""
    assert _median(values) == round(statistics.median(values))


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1))
def test_large_values_have_a_close_median_in_any_order(values: list[int]) -> None:
    """Within 1/2000, and the same in any order."""
    assert _median(values) == pytest.approx(statistics.median(values), rel=1 / 2000, abs=1)
    assert _median(values) == _median(values[::-1])


def test_a_constant_value_is_reported_exactly() -> None:
    """A bucket that holds one value only loses nothing of it."""
    assert _median([123_457] * 9) == 123_457


@given(st.lists(st.integers(0, 2**40), min_size=1), st.integers(0, 100))
def test_a_mean_is_exact_for_any_buckets(values: list[int], split: int) -> None:
    """Buckets keep the sums of their values; two histograms have the mean of all values together."""
    first, second = Histogram(), Histogram()
    for value in values[:split]:
        first.count_value(value)
    for value in values[split:]:
        second.count_value(value)
    first.extend(second)
    assert first.mean == pytest.approx(statistics.fmean(values))
    assert Histogram().mean is None
