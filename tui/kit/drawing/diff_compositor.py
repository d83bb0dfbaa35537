"""App and screen classes that write only changed cells, and wait while the terminal is behind.

A slow line must cost frames, never data: a late frame shows the newest state. A terminal that takes nothing at all
holds up neither a run nor the app's end.
This is the one module that uses private parts of Textual, listed in
tests/tui/kit/drawing/test_textual_internals.py.
"""

# Textual's types leave the type parameters of Screen and App unknown.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

from ....engine.host.background_writer import write_all
from .screen_diff import ScreenDiff

# Pieces that may wait in Textual's writer thread; a frame is up to three of them.
_MOST_PIECES_WAITING: Final = 3
_RETRY_S: Final = 0.1
_CLOSE_S: Final = 10.0  # for a slow line to take the last pieces, which give the terminal back
_SIGNAL_CLOSE_S: Final = 0.5


class _CellUpdate(CompositorUpdate):
    """The cells that differ, in place of the regions that were rendered."""

    def __init__(self, sequence: str) -> None:
        self._sequence = sequence

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(self._sequence)

    def render_segments(self, console: Console) -> str:
        """Return the escape sequences and text for the terminal."""
        del console
        return self._sequence


class _DirtyLinesCompositor(Compositor):
    """Renders only the lines of widgets that lie in changed regions.

    Textual renders every line of every visible widget for each frame, then keeps those of the regions that
    changed: that is most of the cost of a frame with many small changes.
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
    """A screen for small changes several times a second: it renders only changed regions."""

    def __init__(self) -> None:
        super().__init__()
        self._compositor = _DirtyLinesCompositor()


class _UnbufferedFile:
    """The terminal as the writer thread's file.

    A thread that is blocked in the write of sys.stderr holds its lock, and the interpreter aborts at its end.
    """

    def __init__(self, stream: TextIO) -> None:
        self._fd = stream.fileno()
        self._encoding = stream.encoding
        self._parts: list[str] = []

    def write(self, text: str) -> None:
        """Add text to what is written next."""
        self._parts.append(text)

    def flush(self) -> None:
        """Write to the terminal, however long that takes. One that has gone takes nothing more."""
        data = "".join(self._parts).encode(self._encoding, "replace")
        self._parts.clear()
        with suppress(OSError):
            write_all(self._fd, data)

    def fileno(self) -> int:
        """Return the terminal's descriptor."""
        return self._fd


class _PatientDriver(LinuxDriver):
    """Textual's driver, for a terminal that may take nothing: the app neither waits to write nor to end."""

    def start_application_mode(self) -> None:
        """Take the terminal. What the app writes besides frames, such as a bell, always finds room."""
        self._file = _UnbufferedFile(cast("TextIO", sys.__stderr__))
        super().start_application_mode()
        if self._writer_thread is not None:
            self._writer_thread._queue.maxsize = 0  # noqa: SLF001

    def close(self) -> None:
        """End the writer thread. One that is blocked ends with the process."""
        thread = self._writer_thread
        if thread is not None:
            thread._queue.put(None)  # noqa: SLF001
            thread.join(_SIGNAL_CLOSE_S if getattr(self._app, "is_ended_by_signal", False) else _CLOSE_S)


class DiffApp(App[None]):
    """An app whose frames are the cells that changed since the last one."""

    def __init__(self) -> None:
        # Textual finds the driver of the variable itself: `linkgauge web` sets it for a page in a browser.
        super().__init__(driver_class=None if os.environ.get("TEXTUAL_DRIVER") else _PatientDriver)
        self.is_ended_by_signal = False  # then the terminal has only a moment to take the last pieces
        self._diff = ScreenDiff(self.console._color_system)  # noqa: SLF001
        self._is_retry_set = False

    def on_mount(self) -> None:
        """Draw the whole screen whenever the app resumes: another program has used the terminal."""
        self.app_resume_signal.subscribe(self, self._redraw_after_resume)

    def _redraw_after_resume(self, _app: object) -> None:
        self.action_redraw()

    def action_redraw(self) -> None:
        """Draw the whole screen, whatever the terminal shows."""
        self._diff.invalidate()
        self.refresh(layout=True)

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        """Write the changes to the terminal; while it is behind, later."""
        if self.is_headless or self._batch_count or not isinstance(renderable, ChopsUpdate | LayoutUpdate):
            super()._display(screen, renderable)
            return
        self._diff.resize(*self.size)
        apply_update(self._diff, renderable)
        self._write_changes(screen)

    def _write_changes(self, screen: Screen[Any]) -> None:
        """Write the changed cells. Before the terminal opens and after it closes, they are kept for later."""
        if not self._running or self._closed or self._driver is None:
            return
        if not self._is_terminal_behind():
            if changes := self._diff.render_changes():
                super()._display(screen, _CellUpdate(changes))
        elif not self._is_retry_set:
            self._is_retry_set = True
            self.set_timer(_RETRY_S, self._retry)

    def _retry(self) -> None:
        self._is_retry_set = False
        self._write_changes(self.screen)

    def _is_terminal_behind(self) -> bool:
        """Return whether earlier output still waits in the driver's writer thread. Some drivers have none."""
        queue = getattr(getattr(self._driver, "_writer_thread", None), "_queue", None)
        return queue is not None and queue.qsize() > _MOST_PIECES_WAITING


def apply_update(diff: ScreenDiff, update: ChopsUpdate | LayoutUpdate) -> None:
    """Put an update that Textual has rendered into a diff of the screen's size."""
    if isinstance(update, ChopsUpdate):
        for y, start, stop in update.spans:
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
                if strip is not None and x < stop and end > start:
                    diff.put(x, y, strip, (max(x, start), min(end, stop)))
    else:
        region = update.region
        for y, line in enumerate(update.strips, region.y):
            segments = [segment for strip in line for segment in strip]
            diff.put(region.x, y, segments, (region.x, region.right))


def screen_strips(screen: Screen[Any]) -> list[Strip]:
    """Return the contents of a screen line by line, for tests and pictures."""
    return screen._compositor.render_strips()  # noqa: SLF001
