"""A horizontal bar in eighths of a cell, with a tick; text only, so that it also reads without colour."""

from typing import Final

from textual.content import Content

from .styles import TICK, TRACK

_EIGHTHS: Final = "█▏▎▍▌▋▊▉"


def bar(fraction: float | None, width: int, style: str, tick: float | None = None) -> Content:
    """Return a bar of `width` cells, filled to `fraction`, with a tick at the fraction `tick`."""
    if width <= 0:
        return Content("")
    eighths = round(min(max(fraction or 0.0, 0.0), 1.0) * width * 8)
    whole, rest = divmod(eighths, 8)
    filled = _EIGHTHS[0] * whole + (_EIGHTHS[rest] if rest else "")
    line = Content.assemble((filled, style), ("░" * (width - len(filled)), TRACK))
    if tick is None:
        return line
    at = min(max(round(tick * width), 1), width) - 1
    return Content.assemble(line[:at], ("┃", TICK), line[at + 1 :])
