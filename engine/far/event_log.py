"""What an endpoint has to say of itself: lines for a person that a program can read as well. Pure."""

from collections.abc import Callable
from typing import Self

LogValue = str | int | None


class LogEntry(str):
    """A line of an endpoint's log: the text is for a person; `event` and `facts` are for a program."""

    __slots__ = ("event", "fields")

    event: str
    fields: dict[str, LogValue]

    def __new__(cls, event: str, text: str, **facts: LogValue) -> Self:
        """Return a line; an address that it is about stands before it."""
        client = facts.get("client")
        made = super().__new__(cls, f"{client}: {text}" if client else text)
        made.event = event
        made.fields = {**facts, "text": text}
        return made


LogSink = Callable[[str], None]


def discard_log(_line: str) -> None:
    """Keep it to oneself."""
