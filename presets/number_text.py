"""Numbers as text: the grouping of digits, significant digits and units of the whole project. Pure.

Digits are grouped in threes with a no-break space: every terminal font has it, and it never breaks a line. These
functions are for sentences: trailing zeros are dropped, a rate below 1 Mb/s is in kb/s, and one from 10 000 Mb/s on
in Gb/s. tui/words/numbers.py builds on them for gauges and tables.
"""

from typing import Final

from ..engine.model.directions import Direction

NBSP: Final = "\u00a0"
# The wire model states its rates with one decimal more, so that its derivations can be checked by hand.
DERIVATION_DIGITS: Final = 1
LOAD_NAMES: Final = {Direction.OUT: "out", Direction.IN: "in", Direction.DUPLEX: "both ways"}
"""The directions of the load under which latency was measured."""
_MIN_GBIT_S: Final = 9_999_500_000  # 10 000 Mb/s when rounded
_MIN_MBIT_S: Final = 999_950  # 1 000 kb/s when rounded


def group_digits(value: float, decimals: int = 0) -> str:
    """Return a number with its digits in groups of three: `12 345.6`."""
    return f"{value:,.{decimals}f}".replace(",", NBSP)


def significant_decimals(value: float) -> int:
    """Return the decimals for four significant digits of a number from 10 on: 94.15, 941.5, 9415."""
    return 0 if abs(value) >= 1_000 else 1 if abs(value) >= 100 else 2


def is_slow_rate(bit_s: float) -> bool:
    """Return whether a rate is stated in kb/s: one below 1 Mb/s, after rounding. A rate of 0 is 0 Mb/s."""
    return 0 < bit_s < _MIN_MBIT_S


def is_fast_rate(bit_s: float) -> bool:
    """Return whether a rate is stated in Gb/s: 10 000 Mb/s or more, after rounding."""
    return bit_s >= _MIN_GBIT_S


def format_rate(bit_s: float, decimals: int | None = None) -> str:
    """Return a rate for a sentence: `64.1 kb/s`, `94.15 Mb/s`, `9 415 Mb/s`, `34.13 Gb/s`.

    With `decimals`, every rate from 1 Mb/s on is in Mb/s, as in a derivation.
    """
    if is_slow_rate(bit_s):
        kbit_s = bit_s / 1e3
        return f"{_trimmed(kbit_s, significant_decimals(kbit_s) if decimals is None else decimals)} kb/s"
    mbit_s = bit_s / 1e6
    if decimals is not None:
        return f"{_trimmed(mbit_s, decimals)} Mb/s"
    if is_fast_rate(bit_s):
        return f"{_trimmed(mbit_s / 1e3, significant_decimals(mbit_s / 1e3))} Gb/s"
    return f"{_trimmed(mbit_s, significant_decimals(mbit_s))} Mb/s"


def format_transaction_rate(transactions_s: float) -> str:
    """Return a rate of transactions to four significant digits: `94.15 transactions/s`."""
    return f"{_trimmed(transactions_s, significant_decimals(transactions_s))} transactions/s"


def format_number(value: float) -> str:
    """Return a document's number with the digits that the document prints: `6`, `9.48`, `1 811`."""
    text = f"{value:.10f}".rstrip("0").rstrip(".")
    return group_digits(value, len(text.partition(".")[2]))


def format_quantity(value: int, noun: str) -> str:
    """Return a number of things: `1 session`, `2 000 sessions`."""
    return f"{group_digits(value)} {noun}{'' if value == 1 else 's'}"


def format_bytes(value: int) -> str:
    """Return a size in bytes, and in KB too if that is a whole number: `57 344 bytes (56 KB)`."""
    text = format_quantity(value, "byte")
    return f"{text} ({group_digits(value // 1024)} KB)" if value and value % 1024 == 0 else text


def scale_time(value_us: float) -> tuple[float, int, str]:
    """Return a short time in the unit that fits, its number of decimals for three digits, and the unit."""
    value, unit = value_us, "µs"
    for larger in ("ms", "s"):
        if value < 999.5:
            break
        value, unit = value / 1e3, larger
    return value, 2 if value < 9.995 else 1 if value < 99.95 else 0, unit


def format_time(value_us: float) -> str:
    """Return a short time for a sentence, to three significant digits: `212 µs`, `12.3 ms`, `1.25 s`."""
    value, decimals, unit = scale_time(value_us)
    return f"{_trimmed(value, decimals)} {unit}"


def format_percent(share: float) -> str:
    """Return a share of 0 to 1 in percent, to two significant digits below ten: `0.03 %`, `2 %`, `98 %`."""
    percent = 100 * share
    return f"{_trimmed(percent, 0 if percent >= 9.95 else 1 if percent >= 0.995 else 2)} %"


def format_share(share: float | None) -> str:
    """Return a share of 0 to 1 in whole percent, as fine as a sampled time or load is: `38 %`."""
    return "an unknown share" if share is None else f"{100 * share:.0f} %"


def _trimmed(value: float, decimals: int) -> str:
    text = group_digits(value, decimals)
    return text.rstrip("0").rstrip(".") if "." in text else text
