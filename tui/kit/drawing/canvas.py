"""Plots in cells: a grid with block columns and braille lines, axes with round ticks, and horizontal bars.

Pure. The origin of a plot is at the bottom left. Rows are returned from the top.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import floor, log10
from operator import itemgetter
from typing import Final

from textual.content import Content

from .styles import MUTED, TICK, TRACK

GUTTER: Final = 8  # cells left of a plot
EXPECTED_TICK: Final = "┃"
PEAK_TICK: Final = "╏"
EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_BRAILLE: Final = 0x2800
# The bits of a braille character, by column and by row from the bottom.
_DOTS: Final = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
_DOT_COLUMNS, _DOT_ROWS = 2, 4
_BAR_EIGHTHS: Final = "█▏▎▍▌▋▊▉"


class Canvas:
    """A grid of cells. Anything outside it is not drawn."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._cells: list[list[tuple[str, str]]] = [[(" ", "")] * width for _ in range(height)]

    def put(self, x: int, y: int, character: str, style: str) -> None:
        """Draw one cell."""
        if 0 <= x < self.width and 0 <= y < self.height:
            self._cells[y][x] = (character, style)

    def overlay(self, x: int, y: int, character: str, style: str) -> None:
        """Draw one cell, and keep its background colour."""
        if 0 <= x < self.width and 0 <= y < self.height:
            below = self._cells[y][x][1]
            background = below[below.index("on ") :] if "on " in below else ""
            self._cells[y][x] = (character, f"{style} {background}".strip())

    def write(self, x: int, y: int, text: str, style: str) -> None:
        """Draw text from `x` on, and keep the background colour of each cell."""
        for column, character in enumerate(text, x):
            self.overlay(column, y, character, style)

    def draw_line(self, points: Sequence[tuple[float, float]], style: str) -> dict[int, int]:
        """Draw a line in braille dots; return its row in each column of cells.

        Points are fractions of the width and the height. A cell in which lines cross has the dots of both.
        """
        scale_x, scale_y = _DOT_COLUMNS * self.width - 1, _DOT_ROWS * self.height - 1
        dots = [(round(x * scale_x), round(y * scale_y)) for x, y in points]
        rows: dict[int, int] = {}
        for x, y in [*dots[:1], *(dot for start, end in pairwise(dots) for dot in _dots_between(start, end))]:
            column, row = x // _DOT_COLUMNS, y // _DOT_ROWS
            if 0 <= column < self.width and 0 <= row < self.height:
                self._add_dot(column, row, _DOTS[x % _DOT_COLUMNS][y % _DOT_ROWS], style)
                rows[column] = row
        return rows

    def _add_dot(self, column: int, row: int, dot: int, style: str) -> None:
        code = ord(self._cells[row][column][0]) - _BRAILLE
        self._cells[row][column] = (chr(_BRAILLE + (code | dot if 0 <= code < 0x100 else dot)), style)

    def lines(self) -> list[Content]:
        """Return the rows, the topmost first. Neighbours of one style become one span."""
        return [
            Content.assemble(
                *(("".join(map(itemgetter(0), cells)), style) for style, cells in groupby(row, key=itemgetter(1)))
            )
            for row in reversed(self._cells)
        ]


def to_eighths(fraction: float, rows: int) -> int:
    """Return a fraction of `rows` cells in eighths of a cell. Anything above 0 is at least one eighth."""
    if fraction <= 0:
        return 0
    return max(min(round(fraction * rows * 8), rows * 8), 1)


def _dots_between(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the dots of a straight line after its start, including its end."""
    (x, y), (wide, high) = start, (end[0] - start[0], end[1] - start[1])
    steps = max(abs(wide), abs(high))
    for step in range(1, steps + 1):
        yield x + round(wide * step / steps), y + round(high * step / steps)


def ticks(top: float, most: int) -> list[float]:
    """Return round numbers from 0 to `top`, at most `most` of them if `most` is 2 or more."""
    power = 10.0 ** floor(log10(top / most))
    steps = (step * power for step in (1, 2, 5, 10, 20, 50, 100))
    step = next(step for step in steps if floor(top / step * 1.0001) + 1 <= most)
    return [number * step for number in range(floor(top / step * 1.0001) + 1)]


def tick_decimals(step: float) -> int:
    """Return the decimals of round numbers with this step."""
    return next((places for places, least in enumerate((1, 0.1, 0.01)) if step >= least), 3)


def value_axis(rows: int, labels: Mapping[int, str]) -> list[Content]:
    """Return the cells left of each row, the topmost first. `labels` maps rows, from the bottom, to texts."""
    return [
        Content.styled(f"{labels[y]:>{GUTTER - 1}}┤" if y in labels else f"{'│':>{GUTTER}}", MUTED)
        for y in range(rows - 1, -1, -1)
    ]


def time_labels(span_s: float, width: int) -> list[tuple[int, str]]:
    """Return the labels of a time axis of `width` cells. Each begins at the column of its time."""
    seconds = ticks(span_s, max(width // 12, 2))[1:]
    labels = [(round(second / span_s * width), f"{second:g}") for second in seconds]
    return [*labels[:-1], *((at, f"{text} s") for at, text in labels[-1:])]


def base_axis(width: int, labels: Iterable[tuple[int, str]], origin: str = "0") -> Content:
    """Return the line below a plot of `width` cells. Each label is at its column, or moved to fit."""
    line = ["─"] * width
    for column, text in labels:
        start = min(max(column, 0), width - len(text))
        if start >= 0:
            line[start : start + len(text)] = text
    return Content.styled(f"{origin:>{GUTTER - 1}}└{''.join(line)}", MUTED)


def bar(
    fraction: float | None, width: int, style: str, tick: float | None = None, peak: float | None = None
) -> Content:
    """Return a horizontal bar with up to two ticks.

    Args:
        fraction: How much of it is filled, 0 to 1; None for nothing.
        width: Its cells.
        style: The style of the filled part.
        tick: The position of the expected rate's tick, 0 to 1.
        peak: The position of the documented peak's tick, 0 to 1.
    """
    if width <= 0:
        return Content("")
    eighths = round(min(max(fraction or 0.0, 0.0), 1.0) * width * 8)
    whole, rest = divmod(eighths, 8)
    part = _BAR_EIGHTHS[rest] if rest else ""
    track = "░" * (width - whole - len(part))
    line = Content.assemble((_BAR_EIGHTHS[0] * whole, f"{style} on {style}"), (part, style), (track, TRACK))
    for at_fraction, mark in ((peak, PEAK_TICK), (tick, EXPECTED_TICK)):
        if at_fraction is not None:
            at = tick_cell(at_fraction, width)
            line = Content.assemble(line[:at], (mark, TICK), line[at + 1 :])
    return line


def tick_cell(fraction: float, width: int) -> int:
    """Return the cell of a tick in a bar."""
    return min(max(round(fraction * width), 1), width) - 1
