"""An app that writes to its terminal only what has changed, and waits with that while the terminal is behind.

A slow line must cost frames, never data: what is drawn late is drawn as it is then.
"""

# What is replaced here is Textual's own, and its types leave open of what a screen or an app is.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false

from collections.abc import Iterable
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate, LayoutUpdate  # what the terminal gets
from textual.app import App
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

from .screen_diff import ScreenDiff

# As many pieces may wait for the terminal; a frame is up to three of them.
_PATIENCE: Final = 3
_TRY_AGAIN_S: Final = 0.1


class _Changes(CompositorUpdate):
    """The cells that differ, in place of the regions that were rendered."""

    def __init__(self, written: str) -> None:
        self._written = written

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(self._written)

    def render_segments(self, console: Console) -> str:
        """Return them as the terminal takes them."""
        del console
        return self._written


class _Sparing(Compositor):
    """Has only those lines rendered that are to be drawn anew.

    Textual has every widget that is to be seen render all of its lines, for each frame, then keeps those of the
    regions that changed: that is most of what a frame of many small changes costs.
    """

    _wanted: list[Region] | None = None

    def render_partial_update(self) -> ChopsUpdate | None:
        """Render the regions that have changed."""
        self._wanted = list(self._dirty_regions)
        try:
            return super().render_partial_update()
        finally:
            self._wanted = None

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        if self._wanted is None:
            yield from super()._get_renders(crop)
            return
        left = self._wanted
        for widget, (region, clip) in self.visible_widgets.items():  # from the front to the back
            seen = region.intersection(clip)
            of_it = [part for part in (seen.intersection(one) for one in left) if part]
            if not of_it:
                continue
            top, bottom = min(one.y for one in of_it), max(one.bottom for one in of_it)
            band = Region(seen.x, top, seen.width, bottom - top)
            yield region, band, widget.render_lines(band.translate((-region.x, -region.y)))
            left = [one for one in left if one not in seen]  # what is behind is not to be seen there


class DiffScreen(Screen[None]):
    """A screen that changes little at a time, several times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._compositor = _Sparing()


class DiffApp(App[None]):
    """Takes what Textual has rendered, and has it write what of that is new."""

    def __init__(self) -> None:
        super().__init__()
        self._frames = ScreenDiff(self.console._color_system)  # noqa: SLF001
        self._is_behind = False

    def on_mount(self) -> None:
        """Draw all of the screen after somebody else had the terminal."""
        self.app_resume_signal.subscribe(self, self._resumed)

    def _resumed(self, _app: object) -> None:
        self.action_redraw()

    def action_redraw(self) -> None:
        """Draw all of the screen, whatever the terminal shows."""
        self._frames.invalidate()
        self.refresh(layout=True)

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        """Hand the terminal the changes; where it is behind, later."""
        if self.is_headless or self._batch_count or not isinstance(renderable, ChopsUpdate | LayoutUpdate):
            super()._display(screen, renderable)
            return
        self._frames.resize(*self.size)
        apply_update(self._frames, renderable)
        self._send(screen)

    def _send(self, screen: Screen[Any]) -> None:
        """Write what is new; before there is a terminal, and after that, it stays new."""
        if not self._running or self._closed or self._driver is None:
            return
        if not self._terminal_is_behind():
            if changes := self._frames.render_changes():
                super()._display(screen, _Changes(changes))
        elif not self._is_behind:
            self._is_behind = True
            self.set_timer(_TRY_AGAIN_S, self._catch_up)

    def _catch_up(self) -> None:
        self._is_behind = False
        self._send(self.screen)

    def _terminal_is_behind(self) -> bool:
        """Tell whether what was written before still waits: Textual's writer is asked, where it has one."""
        waiting = getattr(getattr(self._driver, "_writer_thread", None), "_queue", None)
        return waiting is not None and waiting.qsize() > _PATIENCE


def apply_update(frames: ScreenDiff, update: ChopsUpdate | LayoutUpdate) -> None:
    """Put what Textual has rendered into frames of the screen's size."""
    if isinstance(update, ChopsUpdate):
        _take_chops(frames, update)
    else:
        _take_layout(frames, update)


def _take_chops(frames: ScreenDiff, update: ChopsUpdate) -> None:
    for y, start, stop in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x < stop and end > start:
                frames.put(x, y, strip, (max(x, start), min(end, stop)))


def _take_layout(frames: ScreenDiff, update: LayoutUpdate) -> None:
    region = update.region
    for y, line in enumerate(update.strips, region.y):
        segments = [segment for strip in line for segment in strip]
        frames.put(region.x, y, segments, (region.x, region.right))
