"""Substitute characters for terminals without UTF-8, and for the font of the Linux console.

Blocks, lines and marks keep their position and their meaning, one cell each. The console's font has the characters
of code page 437. A terminal whose locale is not UTF-8 gets ASCII.
"""

from collections.abc import Mapping
from typing import Final

from rich.cells import get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

_REVERSED: Final = Style(reverse=True)
_LINES: Final = "─━╌╍┄═╴╶╸╺"
_UPRIGHTS: Final = "│┃╏╎║▏▕"
_CORNERS: Final = "╭╮╰╯┌┐└┘├┤┬┴┼"
_BRAILLE: Final = {"\u2800": " ", **{chr(dots): ":" for dots in range(0x2801, 0x2900)}}
_ASCII: Final = {
    **_BRAILLE,
    **dict.fromkeys("⡀⠄⠂⠁", "."),  # the peak at four heights; with both columns of dots, the expected rate
    "⣀": "_", "⠤": "-", "⠒": "-", "⠉": '"',
    **dict.fromkeys(_LINES, "-"),
    **dict.fromkeys(_UPRIGHTS, "|"),
    **dict.fromkeys(_CORNERS, "+"),
    **dict.fromkeys("█▇▆▉▊▋", "#"),
    **dict.fromkeys("▅▄▃▍▌▎▬", "="),
    **dict.fromkeys("▂▁", "_"),
    **dict.fromkeys("▀▔", '"'),
    **dict.fromkeys("░▒▓", ":"),
    **dict.fromkeys("→", ">"),
    **dict.fromkeys("←", "<"),
    "⇄": "=", "↑": "^", "↓": "v", "▲": "^", "▼": "v", "✓": "+", "✗": "x", "●": "*", "○": "o", "◌": ".",
    "■": "#", "•": "*", "‖": "=", "…": "~", "–": "-", "±": "~", "·": ".", "≈": "~", "µ": "u", "\u00a0": " ",
    "×": "x", "╳": "x", "◆": "*",
}  # fmt: skip
_CONSOLE: Final = {
    **_BRAILLE,
    **dict.fromkeys("⡀⠄⠂⠁", "·"),
    "⣀": "_", "⠤": "─", "⠒": "─", "⠉": "▀",
    **dict.fromkeys("╭┌", "┌"), **dict.fromkeys("╮", "┐"), **dict.fromkeys("╰", "└"), **dict.fromkeys("╯", "┘"),
    **dict.fromkeys("╌━┄╴╶", "─"), **dict.fromkeys("┃╏╎▏▕", "│"), "╍": "═",
    **dict.fromkeys("▇▆", "█"), **dict.fromkeys("▅▃", "▄"), **dict.fromkeys("▂▁", "_"), "▔": "▀",
    **dict.fromkeys("▉▊▋", "█"), **dict.fromkeys("▍▎", "▌"), "▬": "■",
    "✓": "√", "✗": "x", "●": "•", "◌": "○", "‖": "║", "…": "~", "–": "-", "⇄": "↔", "╳": "x",
}  # fmt: skip


def translation_table(environment: Mapping[str, str]) -> dict[int, str] | None:
    """Return the substitutes for the terminal of an environment, or None if it can show every character."""
    if environment.get("TERM") == "linux":
        return str.maketrans(_CONSOLE)
    locale = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    has_charset = "." in locale  # a locale without a character set means UTF-8 today
    return str.maketrans(_ASCII) if has_charset and "utf" not in locale.lower() else None


class GroundFilter(LineFilter):
    """Reverses text on a coloured ground, for a terminal without colours: plots are drawn by their ground."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments; the colours themselves are left to Textual's filter."""
        del background
        return [
            Segment(segment.text, segment.style + _REVERSED, segment.control)
            if segment.style is not None and _has_ground(segment.style)
            else segment
            for segment in segments
        ]


def _has_ground(style: Style) -> bool:
    """Return whether a ground is seen; the full blocks of a bar are of the same colour as theirs."""
    ground = style.bgcolor
    return ground is not None and not ground.is_default and ground != style.color


class CharacterFilter(LineFilter):
    """Substitutes characters by a table. For an ASCII terminal, characters missing from it become `?`."""

    def __init__(self, table: dict[int, str]) -> None:
        super().__init__()
        self._table = table
        self._ascii_only = ord("█") in table

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments with substitute characters."""
        del background
        return [
            segment
            if segment.text.isascii()
            else Segment(self._substitute(segment.text), segment.style, segment.control)
            for segment in segments
        ]

    def _substitute(self, text: str) -> str:
        text = text.translate(self._table)
        if not self._ascii_only:
            return text
        return "".join(c if c.isascii() else "?" * get_character_cell_size(c) for c in text)
