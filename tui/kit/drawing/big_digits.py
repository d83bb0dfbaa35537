"""Large digits and grades of half blocks in several sizes, readable from across a room.

Pure. Digits have seven segments, as on an instrument. All have one width, so that a changing number moves nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Final

from textual.content import Content

from ...words import numbers


@dataclass(frozen=True, slots=True)
class DigitFont:
    """A size of digits: rows, cells of a digit, cells of an upright stroke, cells between digits."""

    rows: int
    digit: int
    stroke: int
    gap: int = 1

    @property
    def thickness(self) -> int:
        """The half rows of a horizontal stroke. An even number needs no half cells."""
        return next(halves for rows, halves in ((3, 1), (9, 2), (15, 4), (21, 6)) if self.rows <= rows)

    @property
    def group(self) -> int:
        """The extra cells between groups of three digits."""
        return max(self.stroke, 2)

    def width(self, text: str) -> int:
        """Return the width of a text in cells."""
        return sum(self._advance(c) for c in text) - self.gap if text else 0

    def _advance(self, character: str) -> int:
        if character == numbers.NBSP:
            return self.group
        return (self.stroke if character == "." else self.digit) + self.gap


# Smallest first. A gauge takes the largest that fits.
DIGIT_FONTS: Final = (
    DigitFont(3, 3, 1),
    DigitFont(3, 4, 1),
    DigitFont(5, 5, 2),
    DigitFont(5, 6, 2, 2),
    DigitFont(7, 8, 2, 2),
    DigitFont(9, 10, 3, 3),
    DigitFont(11, 13, 4, 3),
    DigitFont(15, 18, 5, 4),
    DigitFont(21, 26, 8, 5),
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
GRADE_ROWS: Final = 3  # of a letter of size 1
_GRADE_GAP: Final = 1
_GRADES: Final = {
    "A": (" ### ", "#   #", "#   #", "#####", "#   #", "#   #"),
    "B": ("#### ", "#   #", "#### ", "#   #", "#   #", "#### "),
    "C": (" ####", "#    ", "#    ", "#    ", "#    ", " ####"),
    "D": ("#### ", "#   #", "#   #", "#   #", "#   #", "#### "),
    "F": ("#####", "#    ", "#### ", "#    ", "#    ", "#    "),
    "+": ("   ", "   ", " # ", "###", " # ", "   "),
}
_HALVES: Final = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}


def largest_font(text: str, width: int, rows: int) -> DigitFont | None:
    """Return the largest font in which a text fits, or None."""
    fitting = [font for font in DIGIT_FONTS if font.rows <= rows and font.width(text) <= width]
    return fitting[-1] if fitting else None


def big_digits(text: str, font: DigitFont) -> list[str]:
    """Return the rows of a number. It may have digits, `.`, `-`, spaces as wide as a digit, and group spaces."""
    rows = [""] * font.rows
    for number, character in enumerate(text):
        gap = "" if number == len(text) - 1 else " " * font.gap
        if character == numbers.NBSP:
            gap = " " * font.group
        glyph = _glyph(character, font)
        rows = [row + part + gap for row, part in zip(rows, glyph, strict=True)]
    return rows


def align_right(text: str, like: str) -> str:
    """Return a number padded to the digits and groups of `like`, so that both are equally wide."""
    text = text.replace(numbers.UNKNOWN, "-")
    digits = sum(_is_wide(c) for c in like) - sum(_is_wide(c) for c in text)
    groups = like.count(numbers.NBSP) - text.count(numbers.NBSP)
    points = max(like.count(".") - text.count("."), 0)
    return numbers.NBSP * max(groups, 0) + " " * max(digits, 0) + "_" * points + text


def style_digits(row: str, colour: str) -> Content:
    """Return a row of digits in a colour. Full blocks also have it as background, so that no seam is visible."""
    parts = (
        ("".join(run), f"{colour} on {colour}" if is_block else colour)
        for is_block, run in groupby(row, key="█".__eq__)
    )
    return Content.assemble(*parts)


def grade_letter(grade: str, style: str, size: int = 1) -> list[Content]:
    """Return the rows of a grade, `A+` to `F`, each three times the size. Unknown characters are left out."""
    glyphs = [_GRADES[character] for character in grade if character in _GRADES]
    lit = [
        (" " * _GRADE_GAP * size).join("".join(dot * size for dot in glyph[y // size]) for glyph in glyphs)
        for y in range(2 * GRADE_ROWS * size)
    ]
    return [
        style_digits(
            "".join(_HALVES[upper != " ", lower != " "] for upper, lower in zip(*lit[y : y + 2], strict=True)),
            style,
        )
        for y in range(0, 2 * GRADE_ROWS * size, 2)
    ]


def _is_wide(character: str) -> bool:
    return character not in {numbers.NBSP, ".", "_"}


@lru_cache(maxsize=128)
def _glyph(character: str, font: DigitFont) -> Sequence[str]:
    """Return the rows of a character. An unknown character is an empty digit."""
    if character == numbers.NBSP:
        return [""] * font.rows
    if character in "._":
        blank, high = " " * font.stroke, max(font.thickness // 2, 1)
        dot = blank if character == "_" else ("▄" if font.thickness == 1 else "█") * font.stroke
        return [*[blank] * (font.rows - high), *[dot] * high]
    lit = _digit_one(font) if character == "1" else _lit(_SEGMENTS.get(character, "0000000"), font)
    return ["".join(_HALVES[above, below] for above, below in zip(*lit[y : y + 2], strict=True)) for y in _ys(font)]


def _ys(font: DigitFont) -> range:
    return range(0, 2 * font.rows, 2)


def _lit(segments: str, font: DigitFont) -> list[list[bool]]:
    """Return the lit half cells of a character with these segments."""
    high = 2 * font.rows
    thick = font.thickness
    top, upper_left, upper_right, middle, lower_left, lower_right, bottom = (s == "1" for s in segments)
    at_middle = (high - thick) // 2 // thick * thick
    lit = [[False] * font.digit for _ in range(high)]

    def fill(ys: range, xs: range) -> None:
        for y in ys:
            for x in xs:
                lit[y][x] = True

    whole, left = range(font.digit), range(font.stroke)
    right = range(font.digit - font.stroke, font.digit)
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


def _digit_one(font: DigitFont) -> list[list[bool]]:
    """Return a 1 with a flag and a foot: a vertical stroke alone could be part of another digit."""
    high = 2 * font.rows
    thick = font.thickness
    start = (font.digit - font.stroke) // 2
    upright = range(start, start + font.stroke)
    return [
        [x in upright or (y < thick and x < start) or y >= high - thick for x in range(font.digit)]
        for y in range(high)
    ]
