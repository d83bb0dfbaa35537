"""The lines of an endpoint's log, for people. Pure."""

from ...engine.far.status import LogEntry
from ...engine.model.plan import SECOND_NS
from ...presets.number_text import format_rate
from ..words import numbers


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
    """Return what a run received and sent at this end: empty for other entries, and where nothing flowed."""
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
