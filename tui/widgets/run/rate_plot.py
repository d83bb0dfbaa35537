"""The plot of the rate over time, with the expected rate, the warm-up and the changes of settings.

Both axes grow in steps, and never shrink during a run. Each period has its settings and its average above it, so
that those before and after a change can be compared.
"""

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10
from typing import Final

from textual.content import Content

from ....engine.model.events import ExpectedRate
from ....engine.model.plan import SECOND_NS, Direction
from ...rendering.canvas import EIGHTHS, GUTTER, Canvas, base_axis, ticks, to_eighths, value_axis
from ...rendering.styled_lines import LineWidget
from ...rendering.styles import DIRECTION_STYLES, EXPECTED
from ...state.instrument_values import PlotColumn, PlotPeriod, period_averages, plot_columns
from ...state.live_readings import CockpitSnapshot
from ...text import numbers
from ...text.summary import response_bits_of

_HEADROOM: Final = 1.15
# Lengths of the time axis of a run without a duration: a full axis grows to the next one.
_SPANS_S: Final = (30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400)
_SHADES: Final = 12
_REDRAW_NS: Final = SECOND_NS // 2  # less often than the gauges: this is the largest instrument to paint


class RatePlot(LineWidget):
    """Shows the rates of a run, period by period."""

    DEFAULT_CSS = """
    RatePlot { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(widget_id="plot")
        self._periods: list[PlotPeriod] = []
        self._view: CockpitSnapshot | None = None
        self._moment: object = None
        self._top_bit_s = 0.0
        self.set_titles("")

    def show(self, view: CockpitSnapshot) -> None:
        """Show these values."""
        periods = view.readings.periods if view.readings else []
        elapsed = view.readings.elapsed_ns // _REDRAW_NS if view.readings else 0
        moment = (len(periods), elapsed, view.summary is None, view.units)
        if periods is self._periods and moment == self._moment:
            return
        self._view, self._moment = view, moment
        if periods is not self._periods:
            self._periods, self._top_bit_s = periods, 0.0
        self.set_titles(_title(self._periods, view), _legend(self._periods, view))
        self.redraw()

    def draw(self, width: int, height: int) -> list[Content]:
        """Return the plot with its axes, or nothing if there is no room."""
        if width < 20 or height < 4 or self._view is None:
            return []
        rows, room = height - 1, width - GUTTER
        top, span_s = self._top(), self._span_s()
        canvas = Canvas(room, rows)
        for x, column in enumerate(plot_columns(self._periods, span_s, room)):
            if column is not None:
                _draw_column(canvas, x, column, top)
        self._draw_rates(canvas, top, span_s)
        self._draw_changes(canvas, span_s)
        left = value_axis(rows, _rate_labels(top, rows, _unit_bits(self._view)))
        return [
            *(axis + line for axis, line in zip(left, canvas.lines(), strict=True)),
            base_axis(room, _second_labels(span_s, room)),
        ]

    def _top(self) -> float:
        """Return the top of the y axis; it never falls during a run."""
        direction = self._periods[-1].settings.direction if self._periods else Direction.OUT
        peak = self._view.peak[direction] if self._view else None
        rates = [period.expected_rate() for period in self._periods]
        expected = max((rate.bit_s for rate in rates if rate), default=0.0)
        points = (point for period in self._periods for flow in period.points.values() for point in flow)
        highest = max((point.bit_s for point in points), default=0.0)
        self._top_bit_s = max(self._top_bit_s, max(expected, peak.bit_s if peak else 0.0) * _HEADROOM)
        if highest * 1.02 > self._top_bit_s:
            self._top_bit_s = _nice_above(highest * 1.02)
        return self._top_bit_s or 1e9

    def _span_s(self) -> float:
        """Return the length of the time axis: the duration of the run, or a step above the elapsed time."""
        readings = self._view.readings if self._view else None
        if readings is not None and readings.plan.duration_ns is not None:
            return readings.plan.duration_ns / SECOND_NS
        elapsed_s = (readings.elapsed_ns if readings else 0) / SECOND_NS
        return float(next((span for span in _SPANS_S if span >= elapsed_s), ceil(elapsed_s)))

    def _draw_rates(self, canvas: Canvas, top: float, span_s: float) -> None:
        """Draw the expected and the peak rate in dashes: a measured rate at their height shows in the gaps."""
        for period in self._periods:
            until_s = period.until_s if period.until_s is not None else span_s
            for rate, length, mark in ((period.expected_rate(), 2, "━"), (_peak(self._view, period), 1, "·")):
                if rate is None:
                    continue
                y = _row_of(rate.bit_s, top, canvas.height)
                for x in _dashes(period.from_s, until_s, span_s / canvas.width, length):
                    canvas.overlay(x, y, mark, EXPECTED)

    def _draw_changes(self, canvas: Canvas, span_s: float) -> None:
        """Draw a line for each change, and above each period its settings and its average."""
        if len(self._periods) < 2 or self._view is None:
            return
        step_s = span_s / canvas.width
        averages = period_averages(self._periods, self._view.latest_summary)
        for number, (period, average) in enumerate(zip(self._periods, averages, strict=True)):
            x = int(period.from_s / step_s)
            until = int((period.until_s if period.until_s is not None else span_s) / step_s)
            if number:
                for y in range(canvas.height):
                    canvas.overlay(x, y, "│", "bold $foreground")
                x += 1
            label = _period_label(self._periods, number)
            rate = "" if average is None else _number(self._view, average)
            for text in (f"{label} {rate}".strip(), rate or label, ""):
                if len(text) < until - x:
                    canvas.write(x, canvas.height - 1, text, "bold $foreground")
                    break


def _period_label(periods: Sequence[PlotPeriod], number: int) -> str:
    """Return the settings that changed at the start of a period, or for the first, at its end."""
    other = periods[number - 1] if number else periods[1]
    return numbers.settings_change(other.settings, periods[number].settings)


def _draw_column(canvas: Canvas, x: int, column: PlotColumn, top: float) -> None:
    """Draw the directions of a column on top of each other, in shades that are brighter towards the top."""
    base, total, below = 0, 0.0, column.rates[0][0]
    for flow, bit_s in column.rates:
        total += bit_s
        high = max(to_eighths(total / top, canvas.height), base)
        for y in range(base // 8, ceil(high / 8)):
            part, lower_part = min(high - 8 * y, 8), base - 8 * y
            shade = _shade(flow, y, canvas.height)
            if column.warmup:
                canvas.put(x, y, "░" if part > 2 else "▁", f"{DIRECTION_STYLES[flow]} 60%")
            elif lower_part > 0:  # the direction below ends within this cell
                ground = f" on {shade}" if part == 8 else ""
                canvas.put(x, y, EIGHTHS[lower_part], f"{_shade(below, y, canvas.height)}{ground}")
            elif part == 8:
                canvas.put(x, y, " ", f"on {shade}")
            else:
                canvas.put(x, y, EIGHTHS[part], shade)
        base, below = high, flow


def _shade(flow: Direction, y: int, rows: int) -> str:
    level = min(y * _SHADES // max(rows, 1), _SHADES - 1)
    return f"{DIRECTION_STYLES[flow]} {35 + 65 * level // (_SHADES - 1)}%"


def _row_of(bit_s: float, top: float, rows: int) -> int:
    return min(max(ceil(bit_s / top * rows - 1e-9) - 1, 0), rows - 1)


def _peak(view: CockpitSnapshot | None, period: PlotPeriod) -> ExpectedRate | None:
    """Return the peak rate of a direction if it is above the expected one."""
    peak = view.peak[period.settings.direction] if view else None
    expected = period.expected_rate()
    return peak if peak and expected and peak.bit_s > expected.bit_s else None


def _dashes(from_s: float, until_s: float, step_s: float, length: int) -> Iterator[int]:
    """Yield the columns of dashes: the first `length` of every four."""
    for x in range(floor(from_s / step_s), ceil(until_s / step_s) + 1):
        if x % 4 < length and from_s <= x * step_s <= until_s:
            yield x


def _rate_labels(top: float, rows: int, unit: float) -> dict[int, str]:
    """Return the labels of the rows in which round rates lie."""
    return {_row_of(y * unit, top, rows): numbers.number(y) for y in ticks(top / unit, max(rows // 3, 2))[1:]}


def _second_labels(span_s: float, room: int) -> list[tuple[int, str]]:
    """Return the labels of the time axis; each begins at the column of its second."""
    return [(round(second / span_s * room), f"{second:g}") for second in ticks(span_s, max(room // 12, 2))[1:]]


def _title(periods: Sequence[PlotPeriod], view: CockpitSnapshot) -> str:
    """Return the title: the quantity and its unit, and the averages before and after the newest change."""
    is_rate = _response_bits(view) is None
    name, unit = ("throughput", view.units.value) if is_rate else ("transactions", "/s")
    if len(periods) < 2:
        return f"{name}, {unit}" if is_rate else f"{name} per second"
    before, after = period_averages(periods, view.latest_summary)[-2:]
    names = [
        numbers.settings_change(periods[-1].settings, periods[-2].settings),
        numbers.settings_change(periods[-2].settings, periods[-1].settings),
    ]
    averages = [f"{change} {_number(view, rate)}" for change, rate in zip(names, (before, after), strict=True)]
    return f"{name}: {' → '.join(averages)}{numbers.NBSP}{unit}{numbers.gain(before, after)}"


def _response_bits(view: CockpitSnapshot) -> int | None:
    """Return the payload of a transaction if the plot shows transactions a second, else None."""
    return response_bits_of(view.readings.plan if view.readings else view.plan)


def _unit_bits(view: CockpitSnapshot) -> float:
    """Return the bits in one unit of the y axis."""
    return float(_response_bits(view) or view.units.bit_s)


def _number(view: CockpitSnapshot, bit_s: float | None) -> str:
    bits = _response_bits(view)
    return numbers.rate_in_unit(bit_s, view.units) if bits is None else numbers.rate_number(bit_s, bits)


def _legend(periods: Sequence[PlotPeriod], view: CockpitSnapshot) -> str:
    parts: list[str] = []
    if any(p.warmup for period in periods for points in period.points.values() for p in points):
        parts.append("░ warm-up")
    if any(period.expected_rate() for period in periods):
        parts.append("━ expected")
    if any(_peak(view, period) for period in periods):
        parts.append("· peak")
    if len(periods) > 1:
        parts.append("│ change")
    if periods and periods[-1].settings.direction is Direction.DUPLEX:
        parts.append("in stacked on out")
    return "   ".join(parts)


def _nice_above(value: float) -> float:
    """Return the next of 1, 1.5, 2, 3, 5, 7, 10, … above a value."""
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 5, 7, 10, 15) if step * power >= value)
