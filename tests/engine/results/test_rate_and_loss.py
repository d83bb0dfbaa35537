"""Percentages, and the loads of cores."""

import pytest
from linkgauge.engine.model.counters.samples import CoreTimes
from linkgauge.engine.results.rate_and_loss import core_percents, host_percent, hottest_core_percent, percent_of

BUSY, IDLE, OFF = CoreTimes(30, 20, 10, 0, 40), CoreTimes(0, 10, 0, 0, 90), CoreTimes(0, 0, 0, 0, 0)


def test_the_load_of_a_host_is_the_mean_of_the_cores_that_were_on() -> None:
    """The busiest one counts by itself; of no core at all there is no load."""
    assert core_percents((BUSY, IDLE)) == pytest.approx((60, 10))
    assert host_percent((BUSY, IDLE, OFF)) == pytest.approx(35)
    assert hottest_core_percent((BUSY, IDLE, OFF)) == pytest.approx(60)
    assert host_percent((OFF,)) is hottest_core_percent(()) is None


def test_a_percentage_of_nothing_is_nothing() -> None:
    """A percentage of an unknown value is unknown, too."""
    assert percent_of(1.0, None) is None
    assert percent_of(1.0, 0) is None
    assert percent_of(None, 3) is None
    assert percent_of(1, 4) == 25
