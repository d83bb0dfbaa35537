"""The panels of an endpoint: its state and totals, the rate of each direction, its limits and its log."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ...engine.model.ip_address import client_network
from ...engine.model.limits import limit_rules
from ...engine.model.plan import SECOND_NS
from ..kit.drawing.big_digits import align_right, big_digits, largest_font, style_digits
from ..kit.drawing.canvas import EIGHTHS, Canvas, to_eighths
from ..kit.drawing.styled_lines import LineWidget, first_fit, join_fit
from ..kit.drawing.styles import KEY, MUTED
from ..kit.widgets.log_view import LogView
from ..words import numbers
from ..words.numbers import RateUnit
from .endpoint_log import EndpointLogLine
from .endpoint_rates import EndpointSnapshot

_NAMES: Final = {"received": "← receives", "sent": "→ sends"}
_COLOURS: Final = {"received": "$primary", "sent": "$success"}
_NOTE_CELLS: Final = 16  # right of the digits: the unit, and the rate in the other unit
_MARKS: Final = {
    "client": "○",
    "run_began": "●",
    "run_ended": "■",
    "refused": "✗",
    "dropped": "✗",
    "not_accepted": "✗",
    "udp_dropped": "✗",
    "no_udp": "▲",
    "open": "▲",
    "not_reloaded": "▲",
    "not_recorded": "▲",
    "draining": "◌",
}


_ROOM_FOR_ADDRESS: Final = 36  # cells: with fewer, the product's name would take nearly all of them


class EndpointHeader(LineWidget[EndpointSnapshot]):
    """Shows address and access policy on the left, state, uptime and totals on the right."""

    DEFAULT_CSS = """
    EndpointHeader { height: 2; padding: 0 1; }
    """

    def draw(self, value: EndpointSnapshot, width: int, height: int) -> list[Content]:
        """Return both lines; the right side is never cut."""
        del height
        state = _state(value)
        lines = (
            (_address(value, width - state.cell_length - 2), state),
            (_access(value), _totals(value, width)),
        )
        return [_two_sides(left, right, width) for left, right in lines]


def _two_sides(left: Content, right: Content, width: int) -> Content:
    room = max(width - right.cell_length - 2, 0)
    return Content.assemble(left.truncate(room, ellipsis=True, pad=True), "  ", right)


def _address(snapshot: EndpointSnapshot, width: int) -> Content:
    info = snapshot.info
    product, host = Content.styled("linkgauge  ", KEY), numbers.sanitize(info.hostname)
    named = Content.assemble(("endpoint ", MUTED), (host, "bold"))
    if width < _ROOM_FOR_ADDRESS:
        return first_fit(width, named, Content.styled(host, "bold"))
    return Content.assemble(product, named, ("  on ", MUTED), (info.address, "bold"))


def _access(snapshot: EndpointSnapshot) -> Content:
    tls = "" if snapshot.info.tls is None else "   TLS on the control connection"
    iperf3 = f"   iperf3: {numbers.sanitize(snapshot.info.iperf3)}" if snapshot.info.iperf3 else ""
    return Content.assemble((numbers.sanitize(snapshot.info.access_policy), ""), (iperf3, ""), (tls, MUTED))


def _state(snapshot: EndpointSnapshot) -> Content:
    if snapshot.drain_left_ns is not None:
        return Content.assemble(
            ("◌ DRAINING", "bold $text-warning"), f" {numbers.clock(snapshot.drain_left_ns)} left"
        )
    return Content.assemble(("● SERVING", "bold $text-success"), (f" {numbers.clock(snapshot.uptime_ns)}", "bold"))


def _totals(snapshot: EndpointSnapshot, width: int) -> Content:
    totals = snapshot.totals
    if not (totals.clients or totals.refused):
        return Content("")
    parts = [numbers.quantity(totals.runs, "run"), numbers.payload(totals.bytes)]
    if width >= 100:
        parts.insert(0, numbers.quantity(totals.clients, "client"))
        parts.append(f"{numbers.count(totals.refused)} rejected")
    elif totals.refused:
        parts.append(f"{numbers.count(totals.refused)} rejected")
    return Content.styled(f"so far {', '.join(parts)}", MUTED)


@dataclass(frozen=True, slots=True)
class RateHistory:
    """A rate, the rates of the seconds before it, and their unit."""

    bit_s: float | None
    past: Sequence[float]
    units: RateUnit


class EndpointGauge(LineWidget[RateHistory]):
    """Shows a rate in large digits, and below it a plot with one column for each second."""

    DEFAULT_CSS = """
    EndpointGauge { padding: 0 1; }
    """

    def __init__(self, rate_name: str) -> None:
        super().__init__(widget_id=f"serving-{rate_name}")
        self._rate_name = rate_name

    def draw(self, value: RateHistory, width: int, height: int) -> list[Content]:
        """Return the digits, and below them the plot in the remaining rows."""
        past = value.past[-width:]
        top = max([*past, value.bit_s or 0.0], default=0.0)
        scale = numbers.rate_scale(value.units, top)
        self.set_titles(
            _NAMES[self._rate_name], f"highest {scale.number(top)}{numbers.NBSP}{scale.unit}" if top else ""
        )
        number = scale.number(value.bit_s)
        widest = max(scale.number(top), number, key=len)
        font = largest_font(widest, width - _NOTE_CELLS, max(height - 1, 1))
        notes = [
            Content.styled(scale.unit, "bold"),
            Content.styled(numbers.rate_with_unit(value.bit_s, value.units.other), MUTED),
        ]
        if font is None:
            rate = Content.assemble((number, "bold"), " ", notes[0])
            lines = [join_fit(width, (rate, notes[1]), "  ")]
        else:
            rows = big_digits(align_right(number, widest), font)
            notes += [Content("")] * (len(rows) - len(notes))
            lines = [
                Content.assemble(style_digits(row, "$foreground"), " ", note)
                for row, note in zip(rows, notes, strict=False)
            ]
        return [*lines[:height], *self._plot(past, width, height - len(lines), top)]

    def _plot(self, past: Sequence[float], width: int, rows: int, top: float) -> list[Content]:
        """Return the plot, the newest second at the right."""
        if rows <= 0:
            return []
        canvas = Canvas(width, rows)
        for x in range(width):
            canvas.put(x, 0, "▁", "$foreground 22%")
        colour = _COLOURS[self._rate_name]
        for x, bit_s in enumerate(past, width - len(past)):
            high = to_eighths(bit_s / top, rows) if top else 0
            for y in range((high + 7) // 8):
                part = min(high - 8 * y, 8)
                ground = f" on {colour}" if part == 8 else ""  # as in digits: no seam between rows
                canvas.put(x, y, EIGHTHS[part], f"{colour}{ground}")
        return canvas.lines()


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

    def show_snapshot(self, snapshot: EndpointSnapshot) -> None:
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
        return numbers.rate(value)
    if unit == "bytes":
        return numbers.payload(value)
    if unit == "per second":
        return f"{numbers.count(value)}/s"
    return f"{numbers.count(value)} {unit}".rstrip()


def _usage(snapshot: EndpointSnapshot) -> dict[str, str]:
    """Return the present use of each limit by name, if it is known."""
    by_kind = Counter(client.is_iperf3 for client in snapshot.clients)
    by_address = Counter((client_network(client.address), client.is_iperf3) for client in snapshot.clients)
    runs = [client.run for client in snapshot.clients if client.run is not None]
    rate = (snapshot.received_bit_s or 0) + (snapshot.sent_bit_s or 0)
    return {
        "clients": str(max(by_kind.values(), default=0)),
        "clients_per_address": str(max(by_address.values(), default=0)),
        "pending": str(snapshot.pending),
        "sessions": str(max((run.settings.sessions for run in runs), default=0)),
        "duration_s": str(max((run.elapsed_ns for run in runs), default=0) // SECOND_NS),
        "rate_bit_s": f"{rate / 1e9:.3g}",
    }


class EndpointLogView(LogView[EndpointLogLine]):
    """Shows the log of an endpoint, with a mark for each kind of event."""

    def __init__(self) -> None:
        super().__init__(widget_id="log")
        self.border_title = "log"

    def line_text(self, line: EndpointLogLine) -> Text:
        """Return the time, the mark and the text."""
        mark = _MARKS.get(line.event, "·")
        return Text.assemble((f"{line.time:%H:%M:%S} ", "dim"), (f"{mark} ", "bold"), numbers.sanitize(line.text))
