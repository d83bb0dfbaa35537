"""Digits of rates, transactions and sizes in sentences."""

import pytest
from linkgauge.presets.number_text import format_bytes, format_number, format_rate, format_transaction_rate
from linkgauge.tui.text import numbers


@pytest.mark.parametrize(
    ("bit_s", "text"),
    [(0, "0"), (9.48e6, "9.48"), (94.15e6, "94.15"), (941.48e6, "941.5"), (100e6, "100"), (9.4148e9, "9415")],
)
def test_a_rate_has_four_significant_digits_and_no_trailing_zeros(bit_s: float, text: str) -> None:
    """As many as tell one link from another."""
    assert format_rate(bit_s) == f"{text} Mb/s"


@pytest.mark.parametrize("bit_s", [9.484e6, 94.154e6, 941.48e6])
def test_a_sentence_and_a_table_write_the_same_rate_alike(bit_s: float) -> None:
    """Nobody has to wonder whether two numbers are of the same run."""
    assert format_rate(bit_s) == f"{numbers.mbit(bit_s)} Mb/s"
    assert format_transaction_rate(bit_s / 1e6) == f"{numbers.transaction_number(bit_s / 1e6)} transactions/s"


def test_a_rate_has_the_requested_decimals() -> None:
    """One more than a rate of that size has."""
    assert format_rate(9_414.84e6, 1) == "9414.8 Mb/s"


def test_numbers_of_documents_and_sizes_are_written_as_printed() -> None:
    """No digit is added, and KB only where they are whole."""
    assert [format_number(value) for value in (6.0, 9.48, 1811.0)] == ["6", "9.48", "1811"]
    assert [format_bytes(value) for value in (57_344, 1_500)] == ["57344 bytes (56 KB)", "1500 bytes"]
