"""The changed cells of a terminal as the text that updates it.

Pure. Textual writes a whole line of a widget when one digit of it has changed: over SSH that is most of the app's
output. Here rendered lines are compared with the terminal's cells, and only runs of changed cells are written. A
skipped frame loses nothing: the next one has the changes of both.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from rich.cells import cell_len, get_character_cell_size
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style

# A gap between two runs is written again if that takes no more bytes than the move `ESC [ 100 G` over it.
_LONGEST_GAP: Final = 6
_NO_STYLE: Final = Style()
_UNKNOWN: Final = "\0"
_FLAGS: Final = (
    ("bold", "1"), ("dim", "2"), ("italic", "3"), ("underline", "4"), ("blink", "5"), ("reverse", "7"),
    ("conceal", "8"), ("strike", "9"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SgrStyle:
    """The look of a cell as parameters of SGR (Select Graphic Rendition): attributes, colour, background."""

    flags: str
    foreground: str
    background: str

    def sgr_from(self, before: "SgrStyle | None") -> str:
        """Return the shortest sequence from another style to this one; None is an unknown style."""
        if before is None or before.flags != self.flags:
            return f"\x1b[0{self.flags}{self.foreground}{self.background}m"
        parts = [
            new
            for new, old in ((self.foreground, before.foreground), (self.background, before.background))
            if new != old
        ]
        return f"\x1b[{''.join(parts)[1:]}m" if parts else ""


@lru_cache(maxsize=1024)
def sgr_style(style: Style | None, system: ColorSystem | None) -> SgrStyle:
    """Return a style as SGR parameters for a colour system; None is a terminal without colours.

    Styles that look the same share one object, so that they can be compared by identity.
    """
    style = style or _NO_STYLE
    flags = "".join(f";{code}" for name, code in _FLAGS if getattr(style, name))
    if system is None:
        return _pen(flags, "", "")
    colour, ground = style.color, style.bgcolor
    return _pen(
        flags,
        ";39" if colour is None else ";" + ";".join(colour.downgrade(system).get_ansi_codes(foreground=True)),
        ";49" if ground is None else ";" + ";".join(ground.downgrade(system).get_ansi_codes(foreground=False)),
    )


@cache
def _pen(flags: str, colour: str, ground: str) -> SgrStyle:
    return SgrStyle(flags, colour, ground)


class ScreenDiff:
    """The cells of a terminal as they should be, and as they are known to be.

    Call `resize` first, `put` for each rendered line, then write the text that `render_changes` returns. Call
    `invalidate` after another program has used the terminal. The cell right of a wide character has empty text.
    """

    def __init__(self, system: ColorSystem | None) -> None:
        self.width = self.height = 0
        self._system = system
        self._blank = sgr_style(None, system)
        self._texts: list[list[str]] = []
        self._pens: list[list[SgrStyle]] = []
        self._shown_texts: list[list[str]] = []
        self._shown_pens: list[list[SgrStyle]] = []
        self._dirty: set[int] = set()

    def resize(self, width: int, height: int) -> None:
        """Set the terminal's size; after a change, the contents of the terminal count as unknown."""
        if (width, height) != (self.width, self.height):
            self.width, self.height = width, height
            self._texts = [[" "] * width for _ in range(height)]
            self._pens = [[self._blank] * width for _ in range(height)]
            self.invalidate()

    def invalidate(self) -> None:
        """Count the contents of the terminal as unknown; the next changes are the whole screen."""
        self._shown_texts = [[_UNKNOWN] * self.width for _ in range(self.height)]
        self._shown_pens = [[self._blank] * self.width for _ in range(self.height)]
        self._dirty = set(range(self.height))

    def put(self, x: int, y: int, segments: Iterable[Segment], columns: tuple[int, int]) -> None:
        """Put the segments of line `y` from column `x` on, only those within `columns` (from, until)."""
        if not 0 <= y < self.height:
            return
        start, stop = max(columns[0], 0), min(columns[1], self.width)
        texts, pens = self._texts[y], self._pens[y]
        for text, style, control in segments:
            if control or not text:
                continue
            cells = _cells(text)
            first, last = max(start - x, 0), min(stop - x, len(cells))
            if first < last:
                texts[x + first : x + last] = cells[first:last]
                _blank_halves(texts, x + first, x + last)
                pens[x + first : x + last] = [sgr_style(style, self._system)] * (last - first)
            x += len(cells)
        self._dirty.add(y)

    def render_changes(self) -> str:
        """Return the text that updates the terminal, and count it as written; empty if nothing has changed."""
        parts: list[str] = []
        pen: SgrStyle | None = None
        for y in sorted(self._dirty):
            for start, stop in self._runs(y):
                parts.append(f"\x1b[{y + 1};{start + 1}H")
                pen = self._write(parts, y, range(start, stop), pen)
            self._shown_texts[y][:] = self._texts[y]
            self._shown_pens[y][:] = self._pens[y]
        self._dirty.clear()
        if parts:
            parts.append("\x1b[0m")
        return "".join(parts)

    def _runs(self, y: int) -> list[tuple[int, int]]:
        """Return the columns (from, until) in which a line differs from the terminal's."""
        texts, pens = self._texts[y], self._pens[y]
        old_texts, old_pens = self._shown_texts[y], self._shown_pens[y]
        if texts == old_texts and pens == old_pens:
            return []
        runs: list[list[int]] = []
        for x, (text, pen, old_text, old_pen) in enumerate(zip(texts, pens, old_texts, old_pens, strict=True)):
            if text == old_text and pen is old_pen:
                continue
            if runs and x - runs[-1][1] <= _LONGEST_GAP and self._is_plain(y, runs[-1][1], x):
                runs[-1][1] = x + 1
            else:
                start = x - 1 if not text and x else x  # never begin with the second half of a wide character
                runs.append([start, x + 1])
        return [(start, stop) for start, stop in runs]

    def _is_plain(self, y: int, start: int, stop: int) -> bool:
        """Return whether a gap has the style of the cell before it, so that writing it takes no sequence."""
        pens = self._pens[y]
        return all(pens[x] is pens[start - 1] for x in range(start, stop))

    def _write(self, parts: list[str], y: int, columns: range, pen: SgrStyle | None) -> SgrStyle | None:
        texts, pens = self._texts[y], self._pens[y]
        for x in columns:
            if pens[x] is not pen:
                parts.append(pens[x].sgr_from(pen))
                pen = pens[x]
            parts.append(texts[x])
        return pen


def _blank_halves(texts: list[str], start: int, stop: int) -> None:
    """Blank the halves of wide characters cut in two at the start or the end of a piece."""
    for x in (start, stop):
        if x < len(texts) and not texts[x]:
            before = texts[x - 1] if x else ""
            if not before or get_character_cell_size(before[0]) < 2:
                texts[x] = " "
        elif x and texts[x - 1] and get_character_cell_size(texts[x - 1][0]) == 2:
            texts[x - 1] = " "


@lru_cache(maxsize=4096)
def _cells(text: str) -> list[str]:
    """Return text cell by cell: a wide character takes two, a combining one joins the cell before it."""
    if text.isascii() or (cell_len(text) == len(text) and all(map(_is_single, text))):
        return list(text)
    cells: list[str] = []
    for character in text:
        width = get_character_cell_size(character)
        if width:
            cells += [character, *[""] * (width - 1)]
        elif cells:
            cells[-1 if cells[-1] else -2] += character
    return cells


@lru_cache(maxsize=2048)
def _is_single(character: str) -> bool:
    return get_character_cell_size(character) == 1
