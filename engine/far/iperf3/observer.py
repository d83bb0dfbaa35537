"""The options of an endpoint that serves iperf3, and the observer that writes the server's output of a test."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ...model.events import Ended, Event, Sampled, Started, Warned
from ...model.plan import SECOND_NS


class Users(Protocol):
    """Checks the user names and passwords of clients."""

    def check(self, token: str | None, now_s: float, clock_ns: int) -> str:
        """Return the user of a token that is valid at this time; raise Iperf3Refusal for any other."""
        ...


class RunObserver(Protocol):
    """Takes the events of a test, the client being its near end, and then says what they show."""

    def feed(self, event: Event) -> None:
        """Take the next event."""
        ...

    def text(self) -> str:
        """Return the output of the server as lines of text; call it once, after the last event."""
        ...

    def document(self) -> dict[str, Any]:
        """Return the output of the server as JSON; call it once, after the last event."""
        ...


class FiguresObserver:
    """The observer of an endpoint that has no better one: a line of figures of this end."""

    def __init__(self) -> None:
        self._bytes = 0
        self._span_ns = 0
        self._reason = ""
        self._lines: list[str] = []

    def feed(self, event: Event) -> None:
        """Add up the measured bytes of this end."""
        match event:
            case Started():
                self._lines.append(f"{event.far.program} on {event.far.hostname}")
            case Sampled(sample=sample) if not event.warmup and not sample.is_from_sender:
                self._bytes += sum(session.bytes for session in sample.sessions)
                self._span_ns += sample.interval_ns
            case Warned():
                self._lines.append(event.text)
            case Ended():
                self._reason = event.end.reason.value
            case _:
                pass

    def text(self) -> str:
        """Return the figures as lines."""
        seconds = self._span_ns / SECOND_NS
        megabit_s = 0.0 if not seconds else self._bytes * 8 / seconds / 1e6
        figures = f"{self._bytes} bytes in {seconds:.2f} s, {megabit_s:.1f} Mb/s, {self._reason}"
        return "\n".join([*self._lines, figures]) + "\n"

    def document(self) -> dict[str, Any]:
        """Return the figures as JSON."""
        return {"bytes": self._bytes, "seconds": self._span_ns / SECOND_NS, "reason": self._reason}


@dataclass(frozen=True, slots=True)
class Iperf3Options:
    """The service of iperf3 clients: a listening socket of its own, and what it asks of them.

    With `users` a client proves its user name and password. `make_observer` is called for each test whose client
    asks for the output of the server, which is JSON with `gives_json`.
    """

    listener: socket.socket
    users: Users | None = None
    make_observer: Callable[[], RunObserver] = FiguresObserver
    gives_json: bool = False
