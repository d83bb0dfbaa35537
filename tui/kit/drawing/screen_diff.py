"""Frames of only the cells that have changed, for a terminal that may be slow or take nothing at all.

Textual writes a whole line of a widget when one digit of it changes: over ssh that is most of the app's output. So
`ScreenDiff` compares rendered lines with the terminal's cells, and writes only runs of changed cells. The app has
one for all its screens. While the terminal is behind, frames are skipped: the next one has the newest state. A
terminal that takes nothing holds up neither a run nor the app's end.

A screen's compositor renders only the lines that have changed: 3.2 ms of CPU for a frame of 120x40 cells. Textual's
own compositor takes 5.2 ms.

This is the one module that uses private parts of Textual, listed in
tests/tui/kit/drawing/test_textual_internals.py.
"""

# Textual's types leave the type parameters of Screen and App unknown.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false

import asyncio
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, TextIO, cast

from rich.cells import cell_len, get_character_cell_size
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

from ....engine.host.background_writer import write_all
from ....engine.host.shortage import require_threads

# A gap between two runs is written again if that takes no more bytes than to move over it with `ESC [ 100 G`.
_LONGEST_GAP: Final = 6
_NO_STYLE: Final = Style()
_UNKNOWN: Final = "\0"
_FLAGS: Final = (
    ("bold", "1"), ("dim", "2"), ("italic", "3"), ("underline", "4"), ("blink", "5"), ("reverse", "7"),
    ("conceal", "8"), ("strike", "9"),
)  # fmt: skip
# Pieces that may wait in Textual's writer thread. A frame is up to three pieces.
_MOST_PIECES_WAITING: Final = 3
_RETRY_S: Final = 0.1
_CLOSE_S: Final = 10.0  # for a slow line to take the last pieces, which restore the terminal
_DRIVER_THREADS: Final = 3  # it reads, writes, and one more resolves names
_SIGNAL_CLOSE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class SgrStyle:
    """The look of a cell as parameters of SGR (Select Graphic Rendition): attributes, colour, background."""

    flags: str
    foreground: str
    background: str

    def sgr_from(self, before: "SgrStyle | None") -> str:
        """Return the shortest sequence from another style to this one. None is an unknown style."""
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
    """Return a style as SGR parameters for a colour system. None is a terminal without colours.

    Styles that look the same are one object, so that they can be compared by identity.
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
    """The cells of a terminal: those that it should show, and those that it is known to show.

    Call `resize` first and `put` for each rendered line. Then write the text that `render_changes` returns. Call
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
        """Set the terminal's size. After a change, the contents of the terminal are unknown."""
        if (width, height) != (self.width, self.height):
            self.width, self.height = width, height
            self._texts = [[" "] * width for _ in range(height)]
            self._pens = [[self._blank] * width for _ in range(height)]
            self.invalidate()

    def invalidate(self) -> None:
        """Forget the contents of the terminal. The next changes are the whole screen."""
        self._shown_texts = [[_UNKNOWN] * self.width for _ in range(self.height)]
        self._shown_pens = [[self._blank] * self.width for _ in range(self.height)]
        self._dirty = set(range(self.height))

    def put(self, x: int, y: int, segments: Iterable[Segment], columns: tuple[int, int]) -> None:
        """Put segments of line `y`, which begin at column `x`. Only those within `columns` (from, until) count."""
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

    def put_update(self, update: ChopsUpdate | LayoutUpdate) -> None:
        """Put an update that Textual has rendered for a screen of this size."""
        if isinstance(update, ChopsUpdate):
            for y, start, stop in update.spans:
                for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                    if strip is not None and x < stop and end > start:
                        self.put(x, y, strip, (max(x, start), min(end, stop)))
        else:
            region = update.region
            for y, line in enumerate(update.strips, region.y):
                segments = [segment for strip in line for segment in strip]
                self.put(region.x, y, segments, (region.x, region.right))

    def render_changes(self) -> str:
        """Return the text that updates the terminal, and count it as written. It is empty without a change."""
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
        """Return the columns (from, until) in which a line differs from the terminal."""
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
                start = x - 1 if not text and x else x  # not with the second half of a wide character
                runs.append([start, x + 1])
        return [(start, stop) for start, stop in runs]

    def _is_plain(self, y: int, start: int, stop: int) -> bool:
        """Return whether a gap has the style of the cell before it, so that writing it needs no sequence."""
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
    """Blank the halves of wide characters that a piece cuts at its start or its end."""
    for x in (start, stop):
        if x < len(texts) and not texts[x]:
            before = texts[x - 1] if x else ""
            if not before or get_character_cell_size(before[0]) < 2:
                texts[x] = " "
        elif x and texts[x - 1] and get_character_cell_size(texts[x - 1][0]) == 2:
            texts[x - 1] = " "


@lru_cache(maxsize=4096)
def _cells(text: str) -> list[str]:
    """Return text cell by cell. A wide character takes two, a combining one joins the cell before it."""
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


class _CellUpdate(CompositorUpdate):
    """The changed cells, in place of the rendered regions."""

    def __init__(self, sequence: str) -> None:
        self._sequence = sequence

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(self._sequence)

    def render_segments(self, console: Console) -> str:
        """Return the escape sequences and text for the terminal."""
        del console
        return self._sequence


class _DirtyLinesCompositor(Compositor):
    """Renders only the lines of widgets in changed regions.

    For each frame, Textual renders every line of every visible widget, and then keeps the changed regions. That is
    most of the cost of a frame with many small changes.
    """

    _regions: list[Region] | None = None

    def render_partial_update(self) -> ChopsUpdate | None:
        """Render the regions that have changed."""
        self._regions = list(self._dirty_regions)
        try:
            return super().render_partial_update()
        finally:
            self._regions = None

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        if self._regions is None:
            yield from super()._get_renders(crop)
            return
        uncovered = self._regions
        for widget, (region, clip) in self.visible_widgets.items():  # from the front to the back
            visible = region.intersection(clip)
            parts = [part for part in (visible.intersection(dirty) for dirty in uncovered) if part]
            if not parts:
                continue
            top, bottom = min(part.y for part in parts), max(part.bottom for part in parts)
            band = Region(visible.x, top, visible.width, bottom - top)
            yield region, band, widget.render_lines(band.translate((-region.x, -region.y)))
            uncovered = [dirty for dirty in uncovered if dirty not in visible]  # the rest is hidden behind it


class DiffScreen(Screen[None]):
    """A screen for small changes several times a second. It renders only changed regions."""

    def __init__(self) -> None:
        super().__init__()
        self._compositor = _DirtyLinesCompositor()


class _UnbufferedFile:
    """The terminal as the writer thread's file.

    A thread that blocks while it writes to sys.stderr holds its lock. The interpreter then aborts at its end.
    """

    def __init__(self, stream: TextIO) -> None:
        self._fd = stream.fileno()
        self._encoding = stream.encoding
        self._parts: list[str] = []

    def write(self, text: str) -> None:
        """Add text to the next output."""
        self._parts.append(text)

    def flush(self) -> None:
        """Write to the terminal, however long that takes. Errors of a closed terminal are ignored."""
        data = "".join(self._parts).encode(self._encoding, "replace")
        self._parts.clear()
        with suppress(OSError):
            write_all(self._fd, data)

    def fileno(self) -> int:
        """Return the terminal's descriptor."""
        return self._fd


class _PatientDriver(LinuxDriver):
    """Textual's driver, for a terminal that may take nothing: the app waits neither to write nor to end."""

    def start_application_mode(self) -> None:
        """Take the terminal. Output other than frames, such as a bell, never waits."""
        self._file = _UnbufferedFile(cast("TextIO", sys.__stderr__))
        super().start_application_mode()
        if self._writer_thread is not None:
            self._writer_thread._queue.maxsize = 0  # noqa: SLF001

    def close(self) -> None:
        """End the writer thread. A blocked one ends with the process."""
        thread = self._writer_thread
        if thread is not None:
            thread._queue.put(None)  # noqa: SLF001
            thread.join(_SIGNAL_CLOSE_S if getattr(self._app, "is_ended_by_signal", False) else _CLOSE_S)


class DiffApp(App[None]):
    """An app whose frames are the cells that changed since the last one."""

    def __init__(self) -> None:
        # Textual finds the driver of the variable itself: `linkgauge web` sets it for a page in a browser.
        driver = None if os.environ.get("TEXTUAL_DRIVER") else _PatientDriver
        # Without colours the ground is the terminal's: Textual's own way is greys on a dark one.
        super().__init__(driver_class=driver, ansi_color=True if "NO_COLOR" in os.environ else None)
        self.first_frame = asyncio.Event()  # set when the terminal has it
        self.is_ended_by_signal = False  # if so, the terminal has only a moment to take the last pieces
        self._diff = ScreenDiff(self.console._color_system)  # noqa: SLF001
        self._is_retry_set = False

    async def run_async(self, **options: Any) -> Any:
        """Run as Textual does.

        Raises RuntimeError if no threads are left: Textual's driver would not restore the terminal.
        """
        require_threads(_DRIVER_THREADS)
        return await super().run_async(**options)

    def on_mount(self) -> None:
        """Draw the whole screen when the app resumes: another program has used the terminal."""
        self.app_resume_signal.subscribe(self, self._redraw_after_resume)

    def _redraw_after_resume(self, _app: object) -> None:
        self.action_redraw()

    def action_redraw(self) -> None:
        """Draw the whole screen again."""
        self._diff.invalidate()
        self.refresh(layout=True)

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        """Write the changes to the terminal, or later if it is behind."""
        if self.is_headless or self._batch_count or not isinstance(renderable, ChopsUpdate | LayoutUpdate):
            super()._display(screen, renderable)
            return
        self._diff.resize(*self.size)
        self._diff.put_update(renderable)
        self._write_changes(screen)

    def _write_changes(self, screen: Screen[Any]) -> None:
        """Write the changed cells. While the terminal is not open, they are kept for later."""
        if not self._running or self._closed or self._driver is None:
            return
        if not self._is_terminal_behind():
            if changes := self._diff.render_changes():
                super()._display(screen, _CellUpdate(changes))
                self.first_frame.set()
        elif not self._is_retry_set:
            self._is_retry_set = True
            self.set_timer(_RETRY_S, self._retry)

    def _retry(self) -> None:
        self._is_retry_set = False
        self._write_changes(self.screen)

    def _is_terminal_behind(self) -> bool:
        """Return whether earlier output still waits in the driver's writer thread. Some drivers have no thread."""
        queue = getattr(getattr(self._driver, "_writer_thread", None), "_queue", None)
        return queue is not None and queue.qsize() > _MOST_PIECES_WAITING


def screen_strips(screen: Screen[Any]) -> list[Strip]:
    """Return the contents of a screen line by line, for tests and pictures."""
    return screen._compositor.render_strips()  # noqa: SLF001
