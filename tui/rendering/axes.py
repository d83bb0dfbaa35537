"""The axes of plots: round ticks, labels left of the rows, and the line below them. Pure."""

from collections.abc import Iterable, Mapping
from math import floor, log10
from typing import Final

from textual.content import Content

from .styles import MUTED

GUTTER: Final = 8  # cells left of a plot


def ticks(top: float, most: int) -> list[float]:
    """Return round numbers from 0 to `top`, at most `most` of them where `most` is 2 or more."""
    power = 10.0 ** floor(log10(top / most))
    steps = (step * power for step in (1, 2, 5, 10, 20, 50, 100))
    step = next(step for step in steps if floor(top / step * 1.0001) + 1 <= most)
    return [number * step for number in range(floor(top / step * 1.0001) + 1)]


def value_axis(rows: int, labels: Mapping[int, str]) -> list[Content]:
    """Return the cells left of each row, the topmost first; `labels` maps rows from the bottom to texts."""
    return [
        Content.styled(f"{labels[y]:>{GUTTER - 1}}┤" if y in labels else f"{'│':>{GUTTER}}", MUTED)
        for y in range(rows - 1, -1, -1)
    ]


def base_axis(width: int, labels: Iterable[tuple[int, str]], origin: str = "0") -> Content:
    """Return the line below a plot of `width` cells, with each label at its column, moved to fit inside."""
    line = ["─"] * width
    for column, text in labels:
        start = min(max(column, 0), width - len(text))
        if start >= 0:
            line[start : start + len(text)] = text
    return Content.styled(f"{origin:>{GUTTER - 1}}└{''.join(line)}", MUTED)
