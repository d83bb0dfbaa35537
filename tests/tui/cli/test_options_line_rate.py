"""What a person types for the rate of a line."""

import pytest
from linkgauge.engine.model.errors import PlanError
from linkgauge.tui.text.parsing import line_rate_bit_s


@pytest.mark.parametrize(
    ("text", "bit_s"),
    [
        ("2.5G", 2_500_000_000),
        ("100M", 100_000_000),
        ("10Gb", 10_000_000_000),
        ("10g", 10_000_000_000),
        (" 622.08 Mbit/s ", 622_080_000),
        ("1Gbps", 1_000_000_000),
        ("64kbit", 64_000),
        ("1.6T", 1_600_000_000_000),
    ],
)
def test_a_line_rate_is_bits_a_second_in_powers_of_1000(text: str, bit_s: int) -> None:
    """As every data sheet has it."""
    assert line_rate_bit_s(text) == bit_s


@pytest.mark.parametrize(
    "text", ["", "fast", "10", "10GB", "-1G", "0G", "100T", "1e9", "1GiB", "0.0000001G", "9" * 50 + "G", "１G"]
)
def test_what_is_no_line_rate_is_refused_with_an_example(text: str) -> None:
    """A bare number is refused as well: 10 would be ten bits a second."""
    with pytest.raises(PlanError, match=r"line rate: .* 2\.5G"):
        line_rate_bit_s(text)
