"""Rates, counts of transactions and sizes as digits: how many of them, and how a sentence writes them.

Pure. Every text of a rate has the same digits: gauges and tables pad them (tui/text/numbers.py), sentences drop
trailing zeros.
"""

from typing import Final

# The wire model states its rates with one decimal more, so that its derivations can be checked by hand.
DERIVATION_DIGITS: Final = 1


def significant_decimals(value: float) -> int:
    """Return how many decimals show four significant digits of a number from 10 on: 94.15, 941.5, 9415."""
    return 0 if abs(value) >= 1_000 else 1 if abs(value) >= 100 else 2


def format_rate(bit_s: float, decimals: int | None = None) -> str:
    """Return a rate in Mb/s, to four significant digits unless `decimals` are given: `94.15 Mb/s`."""
    mbit_s = bit_s / 1e6
    return f"{_trimmed(mbit_s, significant_decimals(mbit_s) if decimals is None else decimals)} Mb/s"


def format_transaction_rate(transactions_s: float) -> str:
    """Return a rate of transactions to four significant digits: `94.15 transactions/s`."""
    return f"{_trimmed(transactions_s, significant_decimals(transactions_s))} transactions/s"


def format_number(value: float) -> str:
    """Return a document's number with the digits that the document prints: `6`, `9.48`, `1811`."""
    return f"{value:.10g}"


def format_bytes(value: int) -> str:
    """Return a size in bytes, and in KB too where that is a whole number."""
    return f"{value} bytes ({value // 1024} KB)" if value % 1024 == 0 else f"{value} bytes"


def _trimmed(value: float, decimals: int) -> str:
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
