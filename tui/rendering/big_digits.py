"""Figures that are read from across a room: digits of half blocks, in as many rows as there is room for.

Pure. A figure is drawn from seven segments like the display of an instrument, so that every digit takes the
same room and a number that changes moves nothing beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

from textual.content import Content

from ..text import numbers


@dataclass(frozen=True, slots=True)
class DigitFont:
    """How large figures are: rows, cells of a digit, cells of an upright stroke, cells between digits."""

    rows: int
    digit: int
    stroke: int
    gap: int = 1

    @property
    def group(self) -> int:
        """The cells more between groups of three digits."""
        return max(self.stroke, 2)

    def width(self, text: str) -> int:
        """Return the cells that a text takes."""
        return sum(self._advance(c) for c in text) - self.gap if text else 0

    def _advance(self, character: str) -> int:
        if character == numbers.NBSP:
            return self.group
        return (self.stroke if character == "." else self.digit) + self.gap


# Smallest first; a gauge takes the largest that it has room for.
DIGIT_FONTS: Final = (
    DigitFont(3, 3, 1),
    DigitFont(3, 4, 1),
    DigitFont(5, 5, 2),
    DigitFont(5, 6, 2, 2),
    DigitFont(7, 8, 2, 2),
)

#        top  upper-left  upper-right  middle  lower-left  lower-right  bottom
_SEGMENTS: Final = {
    "0": "1110111",
    "2": "1011101",
    "3": "1011011",
    "4": "0111010",
    "5": "1101011",
    "6": "1101111",
    "7": "1010010",
    "8": "1111111",
    "9": "1111011",
    "-": "0001000",
}
_HALVES: Final = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}


def largest_font(text: str, width: int, rows: int) -> DigitFont | None:
    """Return the largest face in which a text fits; None where there is no room for any."""
    fitting = [face for face in DIGIT_FONTS if face.rows <= rows and face.width(text) <= width]
    return fitting[-1] if fitting else None


def big_digits(text: str, face: DigitFont) -> list[str]:
    """Return the rows of a number: digits, `.`, `-`, spaces as wide as a digit, and groups' narrow ones."""
    rows = [""] * face.rows
    for number, character in enumerate(text):
        gap = "" if number == len(text) - 1 else " " * face.gap
        if character == numbers.NBSP:
            gap = " " * face.group
        glyph = _glyph(character, face)
        rows = [row + part + gap for row, part in zip(rows, glyph, strict=True)]
    return rows


def align_right(text: str, like: str) -> str:
    """Return a number with as many digits and groups as `like` has, so that it takes the same room."""
    text = text.replace(numbers.UNKNOWN, "-")
    digits = sum(_is_wide(c) for c in like) - sum(_is_wide(c) for c in text)
    groups = like.count(numbers.NBSP) - text.count(numbers.NBSP)
    points = max(like.count(".") - text.count("."), 0)
    return numbers.NBSP * max(groups, 0) + " " * max(digits, 0) + "_" * points + text


def style_digits(row: str, colour: str) -> Content:
    """Return a row of figures in a colour. Full blocks have it as their ground too, so that none shows a seam."""
    parts = (
        ("".join(run), f"{colour} on {colour}" if is_block else colour)
        for is_block, run in groupby(row, key="█".__eq__)
    )
    return Content.assemble(*parts)


def _is_wide(character: str) -> bool:
    return character not in {numbers.NBSP, ".", "_"}


@lru_cache(maxsize=128)
def _glyph(character: str, face: DigitFont) -> Sequence[str]:
    """Return the rows of one character; one that figures do not know is as wide as a digit, and empty."""
    if character == numbers.NBSP:
        return [""] * face.rows
    if character in "._":
        dot = ("▄" if face.rows < DIGIT_FONTS[2].rows else "█") * face.stroke
        return [*[" " * face.stroke] * (face.rows - 1), dot if character == "." else " " * face.stroke]
    lit = _one(face) if character == "1" else _lit(_SEGMENTS.get(character, "0000000"), face)
    return ["".join(_HALVES[above, below] for above, below in zip(*lit[y : y + 2], strict=True)) for y in _ys(face)]


def _ys(face: DigitFont) -> range:
    return range(0, 2 * face.rows, 2)


def _lit(segments: str, face: DigitFont) -> list[list[bool]]:
    """Return which halves of cells are lit: a bar is one half high in the small faces, else two."""
    high = 2 * face.rows
    thick = 1 if face.rows < DIGIT_FONTS[2].rows else 2
    top, upper_left, upper_right, middle, lower_left, lower_right, bottom = (s == "1" for s in segments)
    at_middle = (high - thick) // 2 // thick * thick
    lit = [[False] * face.digit for _ in range(high)]

    def fill(ys: range, xs: range) -> None:
        for y in ys:
            for x in xs:
                lit[y][x] = True

    whole, left = range(face.digit), range(face.stroke)
    right = range(face.digit - face.stroke, face.digit)
    upper, lower = range(at_middle + thick), range(at_middle, high)
    for is_lit, ys, xs in (
        (top, range(thick), whole),
        (middle, range(at_middle, at_middle + thick), whole),
        (bottom, range(high - thick, high), whole),
        (upper_left, upper, left),
        (upper_right, upper, right),
        (lower_left, lower, left),
        (lower_right, lower, right),
    ):
        if is_lit:
            fill(ys, xs)
    return lit


def _one(face: DigitFont) -> list[list[bool]]:
    """Return a 1 with a flag and a foot: two upright strokes alone would not say which digit it is."""
    high = 2 * face.rows
    thick = 1 if face.rows < DIGIT_FONTS[2].rows else 2
    start = (face.digit - face.stroke) // 2
    upright = range(start, start + face.stroke)
    return [
        [x in upright or (y < thick and x < start) or y >= high - thick for x in range(face.digit)]
        for y in range(high)
    ]
