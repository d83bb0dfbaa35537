"""The log of an endpoint, line by line, with a mark for each kind."""

from collections.abc import Collection
from itertools import islice
from typing import Final

from rich.text import Text
from textual.events import Resize
from textual.widgets import RichLog

from ...state.endpoint import EndpointLogLine
from ...text import numbers

_MARKS: Final = {
    "client": "○",
    "run_began": "●",
    "run_ended": "■",
    "refused": "✗",
    "dropped": "✗",
    "not_accepted": "✗",
    "open": "▲",
    "not_reloaded": "▲",
    "draining": "◌",
}


class EndpointLogView(RichLog):
    """Shows the newest lines. Scrolled back, it stays there; scrolled to its end, it follows new lines again."""

    DEFAULT_CSS = """
    EndpointLogView {
        padding: 0 1;
        background: $background;
        scrollbar-size-vertical: 1;
        overflow: hidden auto;
        &:focus { background-tint: $foreground 0%; background: $background; }
    }
    """

    def __init__(self) -> None:
        super().__init__(max_lines=1_000, min_width=20, wrap=True, markup=False, highlight=False, id="log")
        self.border_title = "log"
        self._lines: Collection[EndpointLogLine] = ()
        self._written = 0

    def show(self, lines: Collection[EndpointLogLine], written: int) -> None:
        """Show these lines; `written` is the number of the last one."""
        new = min(written - self._written, len(lines))
        self._lines, self._written = lines, written
        for line in islice(lines, len(lines) - new, None):
            self._add(line)

    def on_resize(self, event: Resize) -> None:
        """Wrap the lines for the new width."""
        del event
        self.clear()
        for line in self._lines:
            self._add(line)

    def _add(self, line: EndpointLogLine) -> None:
        mark = _MARKS.get(line.event, "·")
        text = Text.assemble((f"{line.time:%H:%M:%S} ", "dim"), (f"{mark} ", "bold"), numbers.sanitize(line.text))
        # Without a width, RichLog wraps the text at 80 cells.
        self.write(text, self.scrollable_content_region.width or None, scroll_end=self.is_vertical_scroll_end)
