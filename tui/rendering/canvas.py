"""A picture of characters and styles, drawn cell by cell: what a plot is made of before it is text.

Pure. The origin is at the bottom left, as in a plot; `lines` gives the rows from the top.
"""

from itertools import groupby
from operator import itemgetter
from typing import Final

from textual.content import Content

EIGHTHS: Final = " ▁▂▃▄▅▆▇█"


class Canvas:
    """A grid of cells; what is drawn outside of it is left out."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._cells: list[list[tuple[str, str]]] = [[(" ", "")] * width for _ in range(height)]

    def put(self, x: int, y: int, character: str, style: str) -> None:
        """Draw one cell."""
        if 0 <= x < self.width and 0 <= y < self.height:
            self._cells[y][x] = (character, style)

    def overlay(self, x: int, y: int, character: str, style: str) -> None:
        """Draw one cell, and leave the colour that is below it."""
        if 0 <= x < self.width and 0 <= y < self.height:
            below = self._cells[y][x][1]
            ground = below[below.index("on ") :] if "on " in below else ""
            self._cells[y][x] = (character, f"{style} {ground}".strip())

    def write(self, x: int, y: int, text: str, style: str) -> None:
        """Draw text from `x` on, over what is there."""
        for at, character in enumerate(text, x):
            self.overlay(at, y, character, style)

    def lines(self) -> list[Content]:
        """Return the rows, the topmost first; neighbours of one style become one span."""
        return [
            Content.assemble(
                *(("".join(map(itemgetter(0), run)), style) for style, run in groupby(row, key=itemgetter(1)))
            )
            for row in reversed(self._cells)
        ]


def to_eighths(fraction: float, rows: int) -> int:
    """Return how many eighths of cells a part of a column of `rows` cells is; what is there is at least one."""
    if fraction <= 0:
        return 0
    return max(min(round(fraction * rows * 8), rows * 8), 1)
