"""The median of a level and its interval."""

import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.watch.changes.median_interval import make_level

VALUES = st.lists(st.floats(0, 1e12), min_size=1, max_size=300)


@given(VALUES)
def test_the_median_is_within_its_interval(values: list[float]) -> None:
    """And the interval is within the values."""
    level = make_level(values)
    assert level.count == len(values)
    assert level.median == median(values)
    assert (level.low is None) == (level.high is None) == (len(values) < 6)
    if level.low is not None and level.high is not None:
        assert min(values) <= level.low <= level.median <= level.high <= max(values)


@pytest.mark.parametrize(("count", "rank"), [(6, 1), (8, 1), (9, 2), (20, 6), (100, 40), (1_000, 469)])
def test_the_ranks_are_those_of_the_tables(count: int, rank: int) -> None:
    """Of the sign test at 5 %, two-sided (Conover, Practical Nonparametric Statistics)."""
    level = make_level([float(each) for each in range(1, count + 1)])
    assert (level.low, level.high) == (rank, count + 1 - rank)


@pytest.mark.parametrize("count", [8, 30, 250])
def test_the_interval_has_the_true_median_in_95_of_100_series(count: int) -> None:
    """For any distribution; here a skewed one."""
    draw = random.Random(count)  # noqa: S311 - chance, not secrets
    covered = 0
    for _ in range(2_000):
        level = make_level([draw.lognormvariate(0, 1) for _ in range(count)])
        assert level.low is not None
        assert level.high is not None
        covered += level.low <= 1 <= level.high
    assert covered >= 0.94 * 2_000


def test_the_most_frequent_finding_says_why() -> None:
    """Of equally frequent ones the latest; runs without a finding have a vote too."""
    assert make_level([1.0] * 3, ["loss", "window", "loss"]).why == "loss"
    assert make_level([1.0] * 2, ["loss", "window"]).why == "window"
    assert make_level([1.0] * 3, [None, "window", None]).why is None
    assert make_level([1.0]).why is None
