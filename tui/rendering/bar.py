"""A horizontal bar in eighths of a cell, with ticks that read without colour."""

from typing import Final

from textual.content import Content

from .styles import TICK, TRACK

_EIGHTHS: Final = "█▏▎▍▌▋▊▉"
EXPECTED_TICK: Final = "┃"
PEAK_TICK: Final = "╏"


def bar(
    fraction: float | None, width: int, style: str, tick: float | None = None, peak: float | None = None
) -> Content:
    """Return a horizontal bar with up to two ticks.

    Args:
        fraction: How much of it is filled, 0 to 1; None for nothing.
        width: Its cells.
        style: The style of the filled part.
        tick: Where the expected rate's tick stands, 0 to 1.
        peak: Where the documented peak's tick stands, 0 to 1.
    """
    if width <= 0:
        return Content("")
    eighths = round(min(max(fraction or 0.0, 0.0), 1.0) * width * 8)
    whole, rest = divmod(eighths, 8)
    part = _EIGHTHS[rest] if rest else ""
    track = "░" * (width - whole - len(part))
    line = Content.assemble((_EIGHTHS[0] * whole, f"{style} on {style}"), (part, style), (track, TRACK))
    for at_fraction, mark in ((peak, PEAK_TICK), (tick, EXPECTED_TICK)):
        if at_fraction is not None:
            at = tick_cell(at_fraction, width)
            line = Content.assemble(line[:at], (mark, TICK), line[at + 1 :])
    return line


def tick_cell(fraction: float, width: int) -> int:
    """Return the cell of a tick in a bar."""
    return min(max(round(fraction * width), 1), width) - 1
