"""Samples: latency counts that cannot be are refused, and the busy share of a core."""

import pytest
from linkgauge.engine.model.latency_histogram import BUCKET_COUNT
from linkgauge.engine.model.plan import Direction
from linkgauge.engine.model.samples import CoreTimes, LatencyCounts


@pytest.mark.parametrize(
    ("buckets", "counts"),
    [
        ((1,), ()),
        ((1,), (1, 1)),
        ((1,), (0,)),
        ((2, 1), (1, 1)),
        ((1, 1), (1, 1)),
        ((-1,), (1,)),
        ((BUCKET_COUNT,), (1,)),
    ],
)
def test_latency_counts_that_no_histogram_has_are_refused(
    buckets: tuple[int, ...], counts: tuple[int, ...]
) -> None:
    """Percentiles are computed from them."""
    with pytest.raises(ValueError, match="latency"):
        LatencyCounts(Direction.OUT, buckets, counts)


def test_the_transactions_are_the_sum_of_the_counts() -> None:
    """The first and the last bucket are valid."""
    assert LatencyCounts(Direction.OUT, (0, BUCKET_COUNT - 1), (2, 3)).transactions == 5
    assert LatencyCounts(Direction.OUT, (), ()).transactions == 0


def test_stolen_time_counts_as_busy() -> None:
    """It was not available to this host."""
    assert CoreTimes(1, 2, 3, 4, 10).busy_fraction == 0.5
