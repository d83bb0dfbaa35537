"""Numbers as text: grouping, significant digits, and the style of sentences."""

import pytest
from linkgauge.presets.number_text import (
    format_bytes,
    format_number,
    format_quantity,
    format_rate,
    format_time,
    format_transaction_rate,
)
from linkgauge.tui.words import numbers


def spaced(text: str) -> str:
    """Return text with the no-break spaces written as spaces."""
    return text.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("bit_s", "text"),
    [
        (0, "0 Mb/s"),
        (936, "0.94 kb/s"),
        (9_600, "9.6 kb/s"),
        (64_100, "64.1 kb/s"),
        (999_900, "999.9 kb/s"),
        (999_960, "1 Mb/s"),
        (9.48e6, "9.48 Mb/s"),
        (94.15e6, "94.15 Mb/s"),
        (941.48e6, "941.5 Mb/s"),
        (100e6, "100 Mb/s"),
        (9.4148e9, "9 415 Mb/s"),
        (9.9994e9, "9 999 Mb/s"),
        (9.9996e9, "10 Gb/s"),
        (34.132e9, "34.13 Gb/s"),
        (100e9, "100 Gb/s"),
        (758.4231e9, "758.4 Gb/s"),
        (1.2346e12, "1 235 Gb/s"),
    ],
)
def test_a_rate_in_a_sentence_has_four_significant_digits_and_no_trailing_zeros(bit_s: float, text: str) -> None:
    """Gb/s begin at 10 000 Mb/s, after rounding."""
    assert spaced(format_rate(bit_s)) == text


@pytest.mark.parametrize("bit_s", [9.484e6, 94.154e6, 941.48e6, 9_414.8e6])
def test_a_sentence_and_a_table_write_the_same_rate_alike(bit_s: float) -> None:
    """So the user sees that two numbers are of the same run."""
    assert format_rate(bit_s) == f"{numbers.mbit(bit_s)} Mb/s"
    assert format_transaction_rate(bit_s / 1e6) == f"{numbers.transaction_number(bit_s / 1e6)} transactions/s"


def test_a_rate_has_the_requested_decimals() -> None:
    """A derivation stays in Mb/s, with one decimal more than a rate of that size has."""
    assert spaced(format_rate(9_414.84e6, 1)) == "9 414.8 Mb/s"
    assert spaced(format_rate(100_000e6, 2)) == "100 000 Mb/s"


def test_numbers_of_documents_and_sizes_are_grouped_and_gain_no_digits() -> None:
    """KB appear only if they are whole."""
    assert [spaced(format_number(value)) for value in (6.0, 9.48, 1811.0, 0.06)] == ["6", "9.48", "1 811", "0.06"]
    assert [spaced(format_bytes(value)) for value in (57_344, 1_500, 1, 0)] == [
        "57 344 bytes (56 KB)", "1 500 bytes", "1 byte", "0 bytes",
    ]  # fmt: skip


def test_a_quantity_agrees_with_its_number() -> None:
    """One retransmit, two retransmits."""
    texts = [spaced(format_quantity(value, "retransmit")) for value in (0, 1, 2, 43_210)]
    assert texts == ["0 retransmits", "1 retransmit", "2 retransmits", "43 210 retransmits"]


@pytest.mark.parametrize(
    ("value_us", "text"),
    [
        (0, "0 µs"),
        (12, "12 µs"),
        (212, "212 µs"),
        (1_050, "1.05 ms"),
        (12_345, "12.3 ms"),
        (1_250_000, "1.25 s"),
        (1_250_000_000, "1 250 s"),
    ],
)
def test_a_time_has_three_significant_digits_and_the_unit_that_fits(value_us: float, text: str) -> None:
    """A sentence and a table beside it write a time alike, but a sentence drops zeros at the end."""
    assert spaced(format_time(value_us)) == text
