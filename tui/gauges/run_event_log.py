"""The event log of a run. It is imported when it is first opened: its base would delay the app's start by 7 ms."""

from typing import Final

from rich.text import Text

from ..kit.widgets.log_view import LogView
from ..words import numbers
from ..words.event_lines import EventLine

_EVENT_MARKS: Final = {
    "start": "●",
    "connection": "○",
    "phase": "·",
    "change": "◆",
    "warning": "▲",
    "end": "■",
}


class EventLog(LogView[EventLine]):
    """Shows the events of a run."""

    def __init__(self) -> None:
        super().__init__(widget_id="events")
        self.border_title = "events"

    def line_text(self, line: EventLine) -> Text:
        """Return the time, a mark for the kind of event, and the text."""
        mark = _EVENT_MARKS[line.kind]
        return Text.assemble((f"{numbers.clock(line.at_ns)} ", "dim"), (f"{mark} ", "bold"), line.text)
