"""The newest events of a watch, each with its time."""

from typing import Final

from rich.text import Text

from ..kit.widgets.log_view import LogView
from .watch_figures import at_words
from .watch_values import WatchEventLine

_MARKS: Final = {"plain": "·", "good": "·", "warning": "▲", "bad": "✗", "change": "◆"}


class WatchLog(LogView[WatchEventLine]):
    """Shows the events of a watch."""

    def __init__(self) -> None:
        super().__init__(widget_id="events")
        self.border_title = "events"
        self.can_focus = False
        self.add_class("panel")

    def line_text(self, line: WatchEventLine) -> Text:
        """Return the time, a mark for the kind of event, and the text; a change stands out."""
        is_loud = line.tone == "change"
        return Text.assemble(
            (f"{at_words(line.at_s, line.at_s)} ", "dim"),
            (f"{_MARKS[line.tone]} ", "bold"),
            (line.text, "bold" if is_loud else ""),
        )
