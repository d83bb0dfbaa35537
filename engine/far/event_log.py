"""What an endpoint has to say of itself: lines for a person that a program can read as well. Pure."""

from collections.abc import Callable
from typing import Self

Fact = str | int | None


class Entry(str):
    """A line of an endpoint's log: the text is for a person; `event` and `facts` are for a program."""

    __slots__ = ("event", "facts")

    event: str
    facts: dict[str, Fact]

    def __new__(cls, event: str, text: str, **facts: Fact) -> Self:
        """Return a line; an address that it is about stands before it."""
        client = facts.get("client")
        made = super().__new__(cls, f"{client}: {text}" if client else text)
        made.event = event
        made.facts = {**facts, "text": text}
        return made


Log = Callable[[str], None]


def no_log(_line: str) -> None:
    """Keep it to oneself."""
