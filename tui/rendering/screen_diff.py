"""What stands on the terminal and what should: a frame is only the cells in which the two differ.

Pure. Textual sends a widget's whole line where one digit of it has changed. Over SSH that is most of what the app
would write, so what it renders is taken in here, held against what the terminal shows already, and sent as runs
of changed cells. Nothing is lost where a frame is skipped: the next one has what both would have changed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from rich.cells import cell_len, get_character_cell_size
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style

# A gap between two runs is written again rather than leapt over, where that takes no more bytes than `ESC [ 100 G`.
_LEAP: Final = 6
_NO_STYLE: Final = Style()
_UNKNOWN: Final = "\0"
_FLAGS: Final = (
    ("bold", "1"), ("dim", "2"), ("italic", "3"), ("underline", "4"), ("blink", "5"), ("reverse", "7"),
    ("conceal", "8"), ("strike", "9"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SgrStyle:
    """What a terminal is told before it draws a cell: attributes, colour, ground."""

    flags: str
    foreground: str
    background: str

    def sgr_from(self, before: "SgrStyle | None") -> str:
        """Return the sequence that leads from another pen to this one; from an unknown one, all of it."""
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
    """Return the pen of a style on a terminal that has so many colours; None has none.

    There is one pen for all styles that look the same, so that pens are told apart by being the same.
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
    """The cells of a terminal, as they should be and as they are known to be.

    You must `put` what is rendered, then write what `changes` returns; `forget` where the terminal was used by
    somebody else. A cell whose left neighbour is a wide character is empty text.
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
        """Take the terminal's size; with a new one nothing is known of what it shows."""
        if (width, height) != (self.width, self.height):
            self.width, self.height = width, height
            self._texts = [[" "] * width for _ in range(height)]
            self._pens = [[self._blank] * width for _ in range(height)]
            self.invalidate()

    def invalidate(self) -> None:
        """Know nothing of what the terminal shows; the next changes are all of it."""
        self._shown_texts = [[_UNKNOWN] * self.width for _ in range(self.height)]
        self._shown_pens = [[self._blank] * self.width for _ in range(self.height)]
        self._dirty = set(range(self.height))

    def put(self, x: int, y: int, segments: Iterable[Segment], columns: tuple[int, int]) -> None:
        """Take the segments of a line that begins in column `x`; only columns `within` are taken."""
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
                _mend(texts, x + first, x + last)
                pens[x + first : x + last] = [sgr_style(style, self._system)] * (last - first)
            x += len(cells)
        self._dirty.add(y)

    def render_changes(self) -> str:
        """Return what brings the terminal up to date, and count it as shown; empty where it is."""
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
        """Return where a line differs from what is shown: from, until."""
        texts, pens = self._texts[y], self._pens[y]
        old_texts, old_pens = self._shown_texts[y], self._shown_pens[y]
        if texts == old_texts and pens == old_pens:
            return []
        runs: list[list[int]] = []
        for x, (text, pen, old_text, old_pen) in enumerate(zip(texts, pens, old_texts, old_pens, strict=True)):
            if text == old_text and pen is old_pen:
                continue
            if runs and x - runs[-1][1] <= _LEAP and self._is_plain(y, runs[-1][1], x):
                runs[-1][1] = x + 1
            else:
                start = x - 1 if not text and x else x  # never with the second half of a wide character
                runs.append([start, x + 1])
        return [(start, stop) for start, stop in runs]

    def _is_plain(self, y: int, start: int, stop: int) -> bool:
        """Tell whether a gap has the pen of what is before it, so that writing it takes no colours."""
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


def _mend(texts: list[str], start: int, stop: int) -> None:
    """Blank the halves of wide characters that were cut in two where a piece begins or ends."""
    for x in (start, stop):
        if x < len(texts) and not texts[x]:
            before = texts[x - 1] if x else ""
            if not before or get_character_cell_size(before[0]) < 2:
                texts[x] = " "
        elif x and texts[x - 1] and get_character_cell_size(texts[x - 1][0]) == 2:
            texts[x - 1] = " "


@lru_cache(maxsize=4096)
def _cells(text: str) -> list[str]:
    """Return text cell by cell; a wide character takes two, a combining one none of its own."""
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
