"""The rounding of figures for programs. Pure."""

from math import floor, log10


def round_figure(value: float) -> float:
    """Round to 3 decimals, or to 3 significant digits if the value is small, so that it does not become 0."""
    decimals = 3 if value == 0 else max(3, 2 - floor(log10(abs(value))))
    return round(value, decimals)


def round_known(value: float | None) -> float | None:
    """Round a figure; None stays unknown."""
    return None if value is None else round_figure(value)


def round_ms(ns: float | None) -> float | None:
    """Return nanoseconds as rounded milliseconds; None stays unknown."""
    return None if ns is None else round_figure(ns / 1e6)
