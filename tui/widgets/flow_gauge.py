"""The gauge of a direction: one big number, its percentage of the expected rate, and a bar with a tick."""

from math import floor, log10
from typing import Final

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Resize
from textual.widgets import Digits, Static

from ...engine.latency import Latency
from ...engine.plan import Direction
from ...engine.samples import Expected
from ...presets.verdict import DEFAULT_PASS_PERCENT, FAIL_PERCENT
from .. import format as words
from .bar import bar
from .styles import BAD, FLOWS, GOOD, MUTED, SHORT
from .values import FlowReading

# The tick stands at nine tenths of the bar, so that a rate above what is expected has room to show.
_TICK: Final = 0.9
_ROOMY: Final = 54
_UNIT_LINES: Final = 3
_NAMES: Final = {Direction.OUT: "out →", Direction.IN: "in ←", Direction.DUPLEX: "total ⇄"}
_SENDERS: Final = {Direction.OUT: "near sends", Direction.IN: "far sends", Direction.DUPLEX: "both send"}

_ASKERS: Final = {Direction.OUT: "near asks", Direction.IN: "far asks", Direction.DUPLEX: "both ask"}


class FlowGauge(Vertical):
    """Shows a FlowReading; how roomy it is follows from its own width."""

    DEFAULT_CSS = """
    FlowGauge {
        height: auto;
        padding: 0 1;
        & > Horizontal { height: 3; }
        & Digits { width: auto; text-style: bold; }
        & .unit { width: auto; height: 3; padding: 0 0 0 1; }
        & .percent { width: auto; min-width: 0; margin: 0 0 0 4; }
        & .bar { height: 1; }
        & .scale { height: 1; color: $text-muted; display: none; }
        & .-pass { color: $text-success; }
        & .-short { color: $text-warning; }
        & .-fail { color: $text-error; }
    }
    """

    def __init__(self, direction: Direction, *, pass_percent: float = DEFAULT_PASS_PERCENT) -> None:
        super().__init__(id=f"gauge-{direction}")
        self._reading = FlowReading(direction)
        self._pass_percent = pass_percent

    def compose(self) -> ComposeResult:
        """Lay out the number, its units, the percentage and the bar."""
        with Horizontal():
            yield Digits("", classes="rate")
            yield Static(classes="unit rate-unit", markup=False)
            yield Digits("", classes="percent")
            yield Static(classes="unit percent-unit", markup=False)
        yield Static(classes="bar", markup=False)
        yield Static(classes="scale", markup=False)

    def show(self, reading: FlowReading) -> None:
        """Show these values from the next frame on."""
        self._reading = reading
        self._paint()

    def on_resize(self, _event: Resize) -> None:
        """Fill the new width."""
        self._paint()

    def _paint(self) -> None:
        reading = self._reading
        expected = reading.expected
        top = max(expected.bit_s if expected else 0.0, reading.highest_bit_s)
        places = words.decimals(top)
        widest = reading.number(top, places) if top else "000"
        self.query_one(".rate", Digits).update(_right(reading.number(reading.bit_s, places), widest))
        roomy = self.content_size.width >= _ROOMY
        style = self._judged_style(reading.percent)
        beside = _beside(reading, roomy=roomy)
        self.border_title = Content(f"{_NAMES[reading.direction]} {beside}")
        self.query_one(".rate-unit", Static).update(self._units(reading, roomy=roomy, style=style))
        self._paint_percent(reading, roomy=roomy, style=style)
        self._paint_bar(reading)

    def _units(self, reading: FlowReading, *, roomy: bool, style: str) -> Content:
        lines = [Content.styled("Mb/s" if reading.answer_bits is None else "trans/s", "bold")]
        if roomy and reading.answer_bits is not None:
            lines += [Content.styled(text, MUTED) for text in _percentiles(reading.latency)]
        elif roomy:
            lines.append(Content.styled(words.mib_rate(reading.bit_s), MUTED))
        elif reading.expected is not None:
            judged = f"{self._mark(reading.percent)}{words.percent(reading.percent, mark=self._pass_percent)}"
            lines.append(Content.styled(judged, f"bold {style}"))
        if reading.is_final and len(lines) < _UNIT_LINES:
            lines.append(Content.styled("mean", MUTED))
        return Content("\n").join(lines)

    def _paint_percent(self, reading: FlowReading, *, roomy: bool, style: str) -> None:
        number, unit = self.query_one(".percent", Digits), self.query_one(".percent-unit", Static)
        number.display = unit.display = roomy and reading.expected is not None
        if not roomy or reading.expected is None:
            return
        number.update(_right(words.percent(reading.percent, mark=self._pass_percent)[:-2], "100.0"))
        for name in ("-pass", "-short", "-fail"):
            number.set_class(name == self._judged_class(reading.percent), name)
        judged = {"✓": "good", "▼": "short", "✗": "far too little", " ": ""}[self._mark(reading.percent)]
        unit.update(
            Content.assemble(
                ("%", "bold"),
                (f"\nof {reading.number(reading.expected.bit_s)} expected\n", MUTED),
                (f"{self._mark(reading.percent)} {judged}", f"bold {style}"),
            )
        )

    def _paint_bar(self, reading: FlowReading) -> None:
        width = self.content_size.width
        expected = reading.expected
        full = expected.bit_s / _TICK if expected else _round_up(reading.highest_bit_s)
        fraction = (reading.bit_s or 0.0) / full if full else None
        drawn = bar(fraction, width, FLOWS[reading.direction], _TICK if expected else None)
        self.query_one(".bar", Static).update(drawn)
        self.border_subtitle = Content(_source(expected)) if expected else Content("nothing to expect")
        self.query_one(".scale", Static).update(_scale(reading, full, width))

    def _judged_class(self, percent: float | None) -> str:
        if percent is None:
            return ""
        return "-pass" if percent >= self._pass_percent else "-short" if percent >= FAIL_PERCENT else "-fail"

    def _judged_style(self, percent: float | None) -> str:
        styles = {"-pass": GOOD, "-short": SHORT, "-fail": BAD, "": MUTED}
        return styles[self._judged_class(percent)]

    def _mark(self, percent: float | None) -> str:
        return {"-pass": "✓", "-short": "▼", "-fail": "✗", "": " "}[self._judged_class(percent)]


def _beside(reading: FlowReading, *, roomy: bool) -> str:
    if reading.answer_bits is not None:
        return _ASKERS[reading.direction] if roomy else " ".join(_percentiles(reading.latency))
    return _SENDERS[reading.direction] if roomy else words.mib_rate(reading.bit_s)


def _percentiles(latency: Latency | None) -> tuple[str, str]:
    """Return how long half of the transactions took at most, and how long all but a hundredth."""
    p50, p99 = (latency.p50_ns, latency.p99_ns) if latency else (None, None)
    return f"p50 {words.latency(p50)}", f"p99 {words.latency(p99)}"


def _source(expected: Expected) -> str:
    return f"┃ {expected.basis}: {words.plain(expected.source)}"


def _scale(reading: FlowReading, full: float, width: int) -> Content:
    """Return the line below the bar: zero, the tick's rate, and the end of the scale."""
    end = reading.number(full, 0) if full else ""
    line = "0".ljust(width - len(end)) + end
    if reading.expected is None:
        return Content(line)
    label = f"▲ {reading.number(reading.expected.bit_s)}"
    at = max(min(round(_TICK * width), width) - 1, 0)
    start = at if at + len(label) <= width else at - len(label) + 1
    label = label if start == at else f"{reading.number(reading.expected.bit_s)} ▲"
    return Content("0".ljust(start) + label)


def _right(text: str, like: str) -> str:
    """Right-align for Digits, where a digit or a space is three cells wide and all else is one."""
    text = text.replace(words.UNKNOWN, "-")
    wide = sum(c.isdigit() for c in like) - sum(c.isdigit() or c == "-" for c in text)
    narrow = sum(not c.isdigit() for c in like) - sum(not (c.isdigit() or c == "-") for c in text)
    return " " * max(wide, 0) + words.GROUP * max(narrow, 0) + text


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 5, 10, … above a value: a scale that does not follow every flutter."""
    if value <= 0:
        return 0.0
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in (1, 2, 5, 10, 20) if step * power >= value)
