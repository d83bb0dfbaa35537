"""Entries of an endpoint's event log: text for a person, fields for a program. Pure."""

from collections.abc import Callable
from typing import Self

LogValue = str | int | None


class LogEntry(str):
    """A line of an endpoint's log: the string is for a person, `event` and `fields` are for a program."""

    __slots__ = ("event", "fields")

    event: str
    fields: dict[str, LogValue]

    def __new__(cls, event: str, text: str, **fields: LogValue) -> Self:
        """Return an entry. The field `client`, if any, is the prefix of its line."""
        client = fields.get("client")
        entry = super().__new__(cls, f"{client}: {text}" if client else text)
        entry.event = event
        entry.fields = {**fields, "text": text}
        return entry


LogSink = Callable[[str], None]


def discard_log(_line: str) -> None:
    """Ignore a line."""
