"""The limits of an endpoint, and how much of each is in use."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ....engine.model.limits import limit_rules
from ....engine.model.plan import SECOND_NS
from ...rendering.styles import MUTED
from ...state.endpoint import EndpointSnapshot
from ...text import numbers


class LimitsPanel(VerticalScroll):
    """Shows every limit by name, with its value and, if known, its present use."""

    DEFAULT_CSS = """
    LimitsPanel { padding: 0 1; scrollbar-size-vertical: 1; & > Static { height: auto; } }
    """

    def __init__(self) -> None:
        super().__init__(id="limits")
        self._text = Content("")
        self.border_title = "limits"

    def compose(self) -> ComposeResult:
        """Lay out the lines."""
        yield Static(markup=False)

    def show(self, snapshot: EndpointSnapshot) -> None:
        """Show these values."""
        text = Content("\n").join(_lines(snapshot))
        if not text.is_same(self._text):
            self.query_one(Static).update(text, layout=text.plain.count("\n") != self._text.plain.count("\n"))
            self._text = text


def _lines(snapshot: EndpointSnapshot) -> list[Content]:
    usage = _usage(snapshot)
    lines: list[Content] = []
    for name, value in snapshot.limits.values().items():
        now = usage.get(name, "")
        text = ", ".join(value) if isinstance(value, list) else _value(name, value)
        lines.append(
            Content.assemble((f"{name:<19} ", MUTED), (f"{now:>5}", "bold"), (" / " if now else "   "), text or "–")
        )
    return lines


def _value(name: str, value: int) -> str:
    unit = limit_rules()[name].unit
    if unit == "bit/s":
        return f"{value / 1e9:g} Gb/s" if value >= 10**9 else numbers.rate(value)
    return f"{numbers.count(value)} {'/s' if unit == 'per second' else unit}".rstrip()


def _usage(snapshot: EndpointSnapshot) -> dict[str, str]:
    """Return the present use of each limit by name, if it is known."""
    by_address: dict[str, int] = {}
    for client in snapshot.clients:
        by_address[client.address] = by_address.get(client.address, 0) + 1
    runs = [client.run for client in snapshot.clients if client.run is not None]
    rate = (snapshot.received_bit_s or 0) + (snapshot.sent_bit_s or 0)
    return {
        "clients": str(len(snapshot.clients)),
        "clients_per_address": str(max(by_address.values(), default=0)),
        "pending": str(snapshot.pending),
        "sessions": str(max((run.settings.sessions for run in runs), default=0)),
        "duration_s": str(max((run.elapsed_ns for run in runs), default=0) // SECOND_NS),
        "rate_bit_s": f"{rate / 1e9:.3g}",
    }
