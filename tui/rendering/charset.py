"""Characters for terminals that cannot show those of the screen: each becomes one that they can.

Blocks, lines and marks keep their place and their meaning, one cell each. The Linux console's font has those of
code page 437; a terminal that is not told to take UTF-8 gets ASCII.
"""

from collections.abc import Mapping
from typing import Final

from rich.cells import get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_LINES: Final = "─━╌╍═╴╶╸╺"
_UPRIGHTS: Final = "│┃╏╎║▏▕"
_CORNERS: Final = "╭╮╰╯┌┐└┘├┤┬┴┼"
_BRAILLE: Final = {"\u2800": " ", **{chr(dots): ":" for dots in range(0x2801, 0x2900)}}
_ASCII: Final = {
    **_BRAILLE,
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
    "×": "x",
}  # fmt: skip
_CONSOLE: Final = {
    **_BRAILLE,
    **dict.fromkeys("╭┌", "┌"), **dict.fromkeys("╮", "┐"), **dict.fromkeys("╰", "└"), **dict.fromkeys("╯", "┘"),
    **dict.fromkeys("╌━╴╶", "─"), **dict.fromkeys("┃╏╎▏▕", "│"), "╍": "═",
    **dict.fromkeys("▇▆", "█"), **dict.fromkeys("▅▃", "▄"), **dict.fromkeys("▂▁", "_"), "▔": "▀",
    **dict.fromkeys("▉▊▋", "█"), **dict.fromkeys("▍▎", "▌"), "▬": "■",
    "✓": "√", "✗": "x", "●": "•", "◌": "○", "‖": "║", "…": "~", "–": "-", "⇄": "↔",
}  # fmt: skip


def translation_table(environment: Mapping[str, str]) -> dict[int, str] | None:
    """Return what to change for the terminal of an environment; None where it can show everything."""
    if environment.get("TERM") == "linux":
        return str.maketrans(_CONSOLE)
    locale = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    is_told = "." in locale  # a locale without a character set leaves it to the system, which means UTF-8 today
    return str.maketrans(_ASCII) if is_told and "utf" not in locale.lower() else None


class CharacterFilter(LineFilter):
    """Changes characters by a table; what is not in it, and not ASCII where nothing else is, becomes `?`."""

    def __init__(self, table: dict[int, str]) -> None:
        super().__init__()
        self._table = table
        self._ascii_only = ord("█") in table

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments with their characters changed."""
        del background
        return [
            segment
            if segment.text.isascii()
            else Segment(self._plain(segment.text), segment.style, segment.control)
            for segment in segments
        ]

    def _plain(self, text: str) -> str:
        changed = text.translate(self._table)
        if not self._ascii_only:
            return changed
        return "".join(c if c.isascii() else "?" * get_character_cell_size(c) for c in changed)
