"""The log of an endpoint as the user reads it: the words of each line, and the last lines for the screen. Pure."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ...engine.far.status import LogEntry
from ...engine.model.plan import SECOND_NS
from ...presets.number_text import format_rate
from ..words import numbers

_MAX_LINES: Final = 500


@dataclass(frozen=True, slots=True)
class EndpointLogLine:
    """A line of the log with its time and the kind of event."""

    time: datetime
    event: str
    text: str


class EndpointLog:
    """The last lines of an endpoint's log; `clock` returns the local time."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.lines: deque[EndpointLogLine] = deque(maxlen=_MAX_LINES)
        self.lines_written = 0
        self._clock = clock

    def append_entry(self, text: str) -> None:
        """Append a line."""
        event = text.event if isinstance(text, LogEntry) else "said"
        self.lines.append(EndpointLogLine(self._clock(), event, log_text(text)))
        self.lines_written += 1


def log_text(line: str) -> str:
    """Return a line of the log with its client and, at the end of a run, with its figures.

    `192.0.2.7: finished: received 1.1 GiB at 941.4 Mb/s in 10.0 s`
    """
    if not isinstance(line, LogEntry):
        return line
    fields = line.fields
    if line.event == "client" and fields.get("hostname"):
        return f"{line} ({fields['hostname']})"
    return ": ".join(part for part in (str(line), _figures(line)) if part)


def _figures(entry: LogEntry) -> str:
    """Return the bytes and rates of a run at this end; "" for other entries."""
    milliseconds = entry.fields.get("milliseconds")
    if entry.event != "run_ended" or not isinstance(milliseconds, int):
        return ""
    parts: list[str] = []
    for verb, name in (("received", "received_bytes"), ("sent", "sent_bytes")):
        count = entry.fields.get(name)
        if isinstance(count, int) and count and milliseconds:
            parts.append(f"{verb} {numbers.payload(count)} at {format_rate(count * 8_000 / milliseconds)}")
    if not parts:
        return "no payload"
    return f"{', '.join(parts)} in {numbers.duration(milliseconds * (SECOND_NS // 1_000))}"
