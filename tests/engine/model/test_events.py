"""Events: when a run ended as wanted, and when a rate exceeds what a wire carries."""

import pytest
from linkgauge.engine.model.events import Expectation, ExpectedRate, Reason
from linkgauge.engine.model.plan import Direction


def test_only_a_completed_or_stopped_run_ended_as_wanted() -> None:
    """Every other reason is a failure to a program."""
    assert {reason for reason in Reason if reason.is_regular} == {Reason.COMPLETED, Reason.STOPPED}


@pytest.mark.parametrize(
    ("most_bit_s", "bit_s", "is_exceeded"),
    [(1_000, 1_201, True), (1_000, 1_200, False), (1_000, None, False), (None, 10**12, False)],
)
def test_a_rate_exceeds_a_wire_only_by_more_than_a_burst(
    most_bit_s: int | None, bit_s: float | None, is_exceeded: bool
) -> None:
    """Delayed bytes that arrive at once are above the rate for a moment."""
    expected = ExpectedRate(900, "computed", "the wire", most_bit_s=most_bit_s)
    assert expected.is_exceeded_by(bit_s) is is_exceeded


def test_an_expectation_is_indexed_by_direction() -> None:
    """None is no expectation."""
    rate = ExpectedRate(1, "documented", "table 1")
    expectation = Expectation(in_=rate)
    assert [expectation[direction] for direction in (Direction.OUT, Direction.IN, Direction.DUPLEX)] == [
        None,
        rate,
        None,
    ]
