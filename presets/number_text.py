"""The few numbers that a verdict and a preset's sheet write into their sentences."""

from typing import Final

# The wire model is told with one digit more than rates are, so that its derivations can be checked by hand.
DERIVATION_DIGITS: Final = 1


def format_rate(bit_s: float, digits: int | None = None) -> str:
    """Write a rate in Mb/s, with as many digits as tell rates apart: 0.94, 94.2, 941.2, 9415."""
    mbit_s = bit_s / 1e6
    if digits is None:
        digits = 2 if mbit_s < 10 else 1 if mbit_s < 1000 else 0
    text = f"{mbit_s:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} Mb/s"


def format_transaction_rate(transactions_s: float) -> str:
    """Write a rate of transactions: 94.2, 1811, 54320 transactions/s."""
    digits = 2 if transactions_s < 10 else 1 if transactions_s < 1000 else 0
    text = f"{transactions_s:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} transactions/s"


def format_number(value: float) -> str:
    """Write a document's number without digits that it does not have: 6, 9.48, 1811."""
    return f"{value:.10g}"


def format_bytes(value: int) -> str:
    """Write a size in bytes, and in KB where that is a whole number."""
    return f"{value} bytes ({value // 1024} KB)" if value % 1024 == 0 else f"{value} bytes"
