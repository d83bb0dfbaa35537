"""A rate that is more than the link can carry."""

import pytest
from linkgauge.engine.model.expected_rate import ExpectedRate


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
