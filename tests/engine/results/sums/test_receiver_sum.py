"""The receiver's sums of one direction."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.plan import SECOND_NS, Direction, End
from linkgauge.engine.model.samples import Sample, SessionSample
from linkgauge.engine.results.sums.receiver_sum import ReceiverSum


def _receiver_sum(intervals: list[tuple[int, int]]) -> ReceiverSum:
    """Return the sum over intervals of these bytes and nanoseconds."""
    sums = ReceiverSum()
    for index, (amount, span_ns) in enumerate(intervals):
        part = SessionSample(Direction.OUT, 1, amount)
        sums.add_sample(Sample(End.FAR, index, (index + 1) * SECOND_NS, span_ns, (part,)), Direction.OUT)
    return sums


@given(st.lists(st.integers(1, 10**12), min_size=2), st.integers(1, 100))
def test_the_spread_of_rates_is_their_standard_deviation(amounts: list[int], split: int) -> None:
    """As a share of the mean, over intervals of one length, in one sum or in two."""
    intervals = [(amount, SECOND_NS) for amount in amounts]
    first, second = _receiver_sum(intervals[:split]), _receiver_sum(intervals[split:])
    first.extend(second)
    for sums in (_receiver_sum(intervals), first):
        assert sums.rate_spread == pytest.approx(statistics.pstdev(amounts) / statistics.fmean(amounts), abs=1e-5)


def test_the_spread_of_rates_is_unknown_without_two_intervals_of_payload() -> None:
    """Nothing is divided by zero, and intervals of another length at the same rate do not spread."""
    assert _receiver_sum([(5, SECOND_NS)]).rate_spread is None
    assert _receiver_sum([(0, SECOND_NS)] * 2).rate_spread is None
    assert _receiver_sum([(5, 0), (5, SECOND_NS)]).rate_spread is None
    assert _receiver_sum([(100, SECOND_NS), (200, 2 * SECOND_NS)]).rate_spread == pytest.approx(0, abs=1e-7)
