"""The letter of a grade in half blocks, to be seen from across a room. Pure."""

from typing import Final

from textual.content import Content

from .big_digits import style_digits

ROWS: Final = 3  # of a letter of size 1
_GAP: Final = 1
_HIGH: Final = 2 * ROWS
_GLYPHS: Final = {
    "A": (" ### ", "#   #", "#   #", "#####", "#   #", "#   #"),
    "B": ("#### ", "#   #", "#### ", "#   #", "#   #", "#### "),
    "C": (" ####", "#    ", "#    ", "#    ", "#    ", " ####"),
    "D": ("#### ", "#   #", "#   #", "#   #", "#   #", "#### "),
    "F": ("#####", "#    ", "#### ", "#    ", "#    ", "#    "),
    "+": ("   ", "   ", " # ", "###", " # ", "   "),
}
_HALVES: Final = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}


def grade_letter(grade: str, style: str, size: int = 1) -> list[Content]:
    """Return the rows of a grade, `A+` to `F`, ROWS times the size; a character without a shape is left out."""
    glyphs = [_GLYPHS[character] for character in grade if character in _GLYPHS]
    lit = [
        (" " * _GAP * size).join("".join(dot * size for dot in glyph[y // size]) for glyph in glyphs)
        for y in range(_HIGH * size)
    ]
    return [
        style_digits(
            "".join(_HALVES[upper != " ", lower != " "] for upper, lower in zip(*lit[y : y + 2], strict=True)),
            style,
        )
        for y in range(0, _HIGH * size, 2)
    ]
