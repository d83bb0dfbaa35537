"""A log that follows its newest line: the base of the logs of a run, a watch and an endpoint."""

from collections.abc import Collection
from itertools import islice
from typing import Generic, TypeVar

from rich.text import Text
from textual.events import Resize
from textual.widgets import RichLog

L = TypeVar("L")


class LogView(RichLog, Generic[L]):
    """Shows the newest lines. It stays where the user scrolls back to; at its end, it follows new lines again."""

    DEFAULT_CSS = """
    LogView {
        padding: 0 1;
        background: $background;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable; /* lines that were wrapped without a scrollbar would be cut by it */
        overflow: hidden auto;
        &:focus { background-tint: $foreground 0%; background: $background; }
    }
    """

    def __init__(self, *, widget_id: str) -> None:
        super().__init__(max_lines=1_000, min_width=20, wrap=True, markup=False, highlight=False, id=widget_id)
        self._lines: Collection[L] = ()
        self._written = 0
        self._has_size = False

    def line_text(self, line: L) -> Text:
        """Return a line as text."""
        raise NotImplementedError

    def show_lines(self, lines: Collection[L], written: int) -> None:
        """Show these lines. `written` is the number of the last one; if it is lower than before, start again."""
        if written < self._written:
            self.clear()
            self._written = 0
        new = min(written - self._written, len(lines))
        self._lines, self._written = tuple(lines), written  # a copy, so that a resize shows only these
        if not self._has_size:
            return  # the first resize adds all lines
        for line in islice(lines, len(lines) - new, None):
            self._add(line)

    def on_resize(self, event: Resize) -> None:
        """Wrap the lines for the new width."""
        del event
        self._has_size = True
        self.clear()
        for line in self._lines:
            self._add(line)

    def _add(self, line: L) -> None:
        # Without a width, RichLog wraps the text at 80 cells.
        width = self.scrollable_content_region.width or None
        self.write(self.line_text(line), width, scroll_end=self.is_vertical_scroll_end)
