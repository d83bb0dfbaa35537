"""Percentiles of latency as bars on a logarithmic axis. Ticks show the percentiles of the idle path."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

from textual.content import Content

from ...engine.model.counters.latency_histogram import LatencySummary
from ..kit.drawing.canvas import bar
from ..kit.drawing.styled_lines import LineWidget
from ..kit.drawing.styles import LOAD, MUTED
from ..readings.latency_reading import LatencyReading
from ..words import numbers

_LABEL_CELLS: Final = 6
_VALUE_CELLS: Final = 9
_LEAST_DECADES: Final = 2
_ROOMY_ROWS: Final = 13


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis from one power of ten of nanoseconds to another."""

    low: int
    high: int

    @classmethod
    def covering(cls, values_ns: Iterable[int], before: "LogAxis | None" = None) -> "LogAxis | None":
        """Return an axis that covers the values and the previous axis, or None without either."""
        values = [value for value in values_ns if value > 0]
        if not values:
            return before
        low, high = floor(log10(min(values))), ceil(log10(max(values)))
        if before is not None:
            low, high = min(low, before.low), max(high, before.high)
        return cls(low, max(high, low + _LEAST_DECADES))

    def fraction(self, value_ns: int) -> float:
        """Return the position of a value on the axis, from 0 to 1."""
        return min(max((log10(max(value_ns, 1)) - self.low) / (self.high - self.low), 0.0), 1.0)

    def scale_line(self, width: int) -> str:
        """Return the scale: powers of ten at their positions. If not all fit, the ends come first."""
        cells = [" "] * width
        powers = [self.low, self.high, *range(self.low + 1, self.high)]
        for power in powers:
            label = _power(power)
            at = round((power - self.low) / (self.high - self.low) * width)
            text = f"╷{label}" if power < self.high else f"{label}╷"
            at = at if power < self.high else width - len(text)
            around = cells[max(at - 1, 0) : at + len(text) + 1]
            if at >= 0 and at + len(text) <= width and not any(cell != " " for cell in around):
                cells[at : at + len(text)] = text
        return "".join(cells)


def _power(power: int) -> str:
    """Return a power of ten of nanoseconds: `10 µs`."""
    thousands, rest = divmod(power, 3)
    number = 10**rest
    if thousands > 3:
        return f"{number * 10 ** (3 * (thousands - 3))}{numbers.NBSP}s"
    return f"{number}{numbers.NBSP}{('ns', 'µs', 'ms', 's')[thousands]}"


class LatencyBars(LineWidget[LatencyReading]):
    """Shows a LatencyReading. The axis grows by powers of ten, and never shrinks during a run."""

    DEFAULT_CSS = """
    LatencyBars { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(widget_id="latency")
        self._axis: LogAxis | None = None
        self._run: object = None

    def show_run(self, reading: LatencyReading, run: object) -> None:
        """Show these values of a run. Another `run` begins with a new axis."""
        if run is not self._run:
            self._run, self._axis = run, None
        summaries = [summary for summary in (reading.latency, reading.idle) if summary is not None]
        values = [ns for summary in summaries for _, ns in percentiles(summary)]
        self._axis = LogAxis.covering(values, self._axis)
        self.set_titles(reading.title, reading.span)
        self.show(reading)

    def draw(self, value: LatencyReading, width: int, height: int) -> list[Content]:
        """Return the bars, or nothing if there is no room."""
        return bar_lines(value, self._axis, width, height) if width > _LABEL_CELLS + _VALUE_CELLS else []


def percentiles(latency: LatencySummary) -> list[tuple[str, int]]:
    """Return the percentiles that are drawn, by name."""
    return [
        ("p50", latency.p50_ns),
        ("p90", latency.p90_ns),
        ("p99", latency.p99_ns),
        ("p99.9", latency.p99_9_ns),
        ("max", latency.max_ns),
    ]


def bar_lines(reading: LatencyReading, axis: LogAxis | None, width: int, height: int) -> list[Content]:
    """Return a line for each percentile, the scale, and notes about the idle path and TCP's own RTT."""
    room = width - _LABEL_CELLS - _VALUE_CELLS
    latency = percentiles(reading.latency) if reading.latency else []
    idle = dict(percentiles(reading.idle)) if reading.idle else {}
    names = [name for name, _ in latency] or list(idle) or ["p50", "p90", "p99", "p99.9", "max"]
    values = dict(latency)
    lines: list[Content] = []
    for name in names:
        value, tick = values.get(name), idle.get(name)
        fraction = None if axis is None or value is None else max(axis.fraction(value), 1 / (8 * room))
        at = None if axis is None or tick is None else axis.fraction(tick)
        lines += [
            Content.assemble(
                (f"{name:<{_LABEL_CELLS}}", MUTED),
                bar(fraction, room, LOAD, at),
                (f"{numbers.latency(value):>{_VALUE_CELLS}}", "bold"),
            ),
            *([Content("")] if height >= _ROOMY_ROWS else []),
        ]
    scale = "" if axis is None else axis.scale_line(room)
    lines.append(Content.assemble(" " * _LABEL_CELLS, (scale, MUTED)))
    lines.extend(_notes(reading, width))
    return lines[:height]


def _notes(reading: LatencyReading, width: int) -> list[Content]:
    """Return the RTT as TCP measures it, and an explanation of the ticks."""
    rtt = numbers.round_trip(reading.rtt_us)
    named = f"{reading.rtt_name} {rtt}"
    lines = [Content.styled(named if len(named) <= width else f"RTT {rtt}", MUTED)]
    if reading.idle is None:
        return lines
    idle = Content.styled(f"┃ idle {numbers.latency(reading.idle.p50_ns)}", MUTED)
    if reading.load_ratio is None:
        return [idle, *lines]
    factor = numbers.times(reading.load_ratio)
    return [Content.assemble(idle, (", loaded ", MUTED), (factor, "bold")), *lines]
