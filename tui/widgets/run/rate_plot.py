"""The plot of the rate over time: an area below the expected rate's line, warm-up hatched, changes marked.

Both axes stand still: they grow by steps, and never shrink during a run. Each stretch between two changes has
its settings and its average above it, so that before and after stand side by side.
"""

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10
from typing import Final

from textual.content import Content

from ....engine.model.events import ExpectedRate
from ....engine.model.plan import SECOND_NS, Direction
from ...rendering.axes import GUTTER, base_axis, ticks, value_axis
from ...rendering.canvas import EIGHTHS, Canvas, to_eighths
from ...rendering.styled_lines import LineWidget
from ...rendering.styles import DIRECTION_STYLES, EXPECTED
from ...state.instrument_values import PlotPeriod, period_averages, response_bits_of
from ...state.live_readings import CockpitSnapshot
from ...state.plot_columns import PlotColumn, plot_columns
from ...text import numbers

_HEADROOM: Final = 1.15
# How long a plot without an end is, until it has to grow; each is then kept for as long as it took to fill.
_SPANS_S: Final = (30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400)
_SHADES: Final = 12
_STEP_NS: Final = SECOND_NS // 2  # it is the largest of the instruments, and changes the least


class RatePlot(LineWidget):
    """Draws the legs of a run."""

    DEFAULT_CSS = """
    RatePlot { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(widget_id="plot")
        self._legs: list[PlotPeriod] = []
        self._view: CockpitSnapshot | None = None
        self._moment: object = None
        self._top_bit_s = 0.0
        self.set_titles("")

    def show(self, view: CockpitSnapshot) -> None:
        """Show these values from the next frame on."""
        legs = view.readings.periods if view.readings else []
        elapsed = view.readings.elapsed_ns // _STEP_NS if view.readings else 0
        moment = (len(legs), elapsed, view.summary is None, view.units)
        if legs is self._legs and moment == self._moment:
            return
        self._view, self._moment = view, moment
        if legs is not self._legs:
            self._legs, self._top_bit_s = legs, 0.0
        self.set_titles(_title(self._legs, view), _legend(self._legs, view))
        self.redraw()

    def draw(self, width: int, height: int) -> list[Content]:
        """Draw into the room there is."""
        if width < 20 or height < 4 or self._view is None:
            return []
        rows, room = height - 1, width - GUTTER
        top, span_s = self._top(), self._span_s()
        canvas = Canvas(room, rows)
        for x, column in enumerate(plot_columns(self._legs, span_s, room)):
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
        direction = self._legs[-1].settings.direction if self._legs else Direction.OUT
        peak = self._view.peak[direction] if self._view else None
        expected = max((one.bit_s for leg in self._legs if (one := leg.expected_rate())), default=0.0)
        highest = max((p.bit_s for leg in self._legs for ps in leg.points.values() for p in ps), default=0.0)
        self._top_bit_s = max(self._top_bit_s, max(expected, peak.bit_s if peak else 0.0) * _HEADROOM)
        if highest * 1.02 > self._top_bit_s:
            self._top_bit_s = _nice_above(highest * 1.02)
        return self._top_bit_s or 1e9

    def _span_s(self) -> float:
        board = self._view.readings if self._view else None
        if board is not None and board.plan.duration_ns is not None:
            return board.plan.duration_ns / SECOND_NS
        elapsed_s = (board.elapsed_ns if board else 0) / SECOND_NS
        return float(next((span for span in _SPANS_S if span >= elapsed_s), ceil(elapsed_s)))

    def _draw_rates(self, canvas: Canvas, top: float, span_s: float) -> None:
        """Draw what is expected: dashes rather than a line, so that a rate that meets it is seen between them."""
        for leg in self._legs:
            until_s = leg.until_s if leg.until_s is not None else span_s
            for one, each, mark in ((leg.expected_rate(), 2, "━"), (_peak(self._view, leg), 1, "·")):
                if one is None:
                    continue
                y = _row_of(one.bit_s, top, canvas.height)
                for x in _dashes(leg.from_s, until_s, span_s / canvas.width, each):
                    canvas.overlay(x, y, mark, EXPECTED)

    def _draw_changes(self, canvas: Canvas, span_s: float) -> None:
        """Draw a line for each change, and above each stretch its settings and what it averages."""
        if len(self._legs) < 2 or self._view is None:
            return
        step_s = span_s / canvas.width
        averages = period_averages(self._legs, self._view.latest_summary)
        for number, (leg, average) in enumerate(zip(self._legs, averages, strict=True)):
            x = int(leg.from_s / step_s)
            until = int((leg.until_s if leg.until_s is not None else span_s) / step_s)
            if number:
                for y in range(canvas.height):
                    canvas.overlay(x, y, "│", "bold $foreground")
                x += 1
            label, rate = _leg_label(self._legs, number), "" if average is None else _number(self._view, average)
            for text in (f"{label} {rate}".strip(), rate or label, ""):
                if len(text) < until - x:
                    canvas.write(x, canvas.height - 1, text, "bold $foreground")
                    break


def _leg_label(legs: Sequence[PlotPeriod], number: int) -> str:
    """Return what a leg was changed to; of the first, what was changed then."""
    other = legs[number - 1] if number else legs[1]
    return numbers.settings_change(other.settings, legs[number].settings)


def _draw_column(canvas: Canvas, x: int, column: PlotColumn, top: float) -> None:
    """Draw one direction upon the other; each cell has one of a few shades, the brighter the higher."""
    base, total, below = 0, 0.0, column.rates[0][0]
    for flow, bit_s in column.rates:
        total += bit_s
        high = max(to_eighths(total / top, canvas.height), base)
        for y in range(base // 8, ceil(high / 8)):
            part, under = min(high - 8 * y, 8), base - 8 * y
            shade = _shade(flow, y, canvas.height)
            if column.warmup:
                canvas.put(x, y, "░" if part > 2 else "▁", f"{DIRECTION_STYLES[flow]} 60%")
            elif under > 0:  # the one below ends within this cell
                ground = f" on {shade}" if part == 8 else ""
                canvas.put(x, y, EIGHTHS[under], f"{_shade(below, y, canvas.height)}{ground}")
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


def _peak(view: CockpitSnapshot | None, leg: PlotPeriod) -> ExpectedRate | None:
    """Return the best rate that is known for a direction, where that is more than what is expected."""
    peak = view.peak[leg.settings.direction] if view else None
    expected = leg.expected_rate()
    return peak if peak and expected and peak.bit_s > expected.bit_s else None


def _dashes(from_s: float, until_s: float, step_s: float, drawn: int) -> Iterator[int]:
    """Yield the columns of dashes: of four columns the first `drawn` ones."""
    for x in range(floor(from_s / step_s), ceil(until_s / step_s) + 1):
        if x % 4 < drawn and from_s <= x * step_s <= until_s:
            yield x


def _rate_labels(top: float, rows: int, unit: float) -> dict[int, str]:
    """Return the labels of the rows in which round rates lie."""
    return {_row_of(y * unit, top, rows): numbers.number(y) for y in ticks(top / unit, max(rows // 3, 2))[1:]}


def _second_labels(span_s: float, room: int) -> list[tuple[int, str]]:
    """Return the labels of the time axis: each begins where its second does."""
    return [(round(second / span_s * room), f"{second:g}") for second in ticks(span_s, max(room // 12, 2))[1:]]


def _title(legs: Sequence[PlotPeriod], view: CockpitSnapshot) -> str:
    """Return what is plotted, and what the newest change brought: before and after, side by side."""
    name, unit = ("throughput", view.units.value) if _answer_bits(view) is None else ("transactions", "/s")
    if len(legs) < 2:
        return f"{name}, {unit} over s" if name == "throughput" else f"{name} a second, over s"
    before, after = period_averages(legs, view.latest_summary)[-2:]
    names = [
        numbers.settings_change(legs[-1].settings, legs[-2].settings),
        numbers.settings_change(legs[-2].settings, legs[-1].settings),
    ]
    told = [f"{change} {_number(view, rate)}" for change, rate in zip(names, (before, after), strict=True)]
    return f"{name}: {' → '.join(told)}{numbers.NBSP}{unit}{numbers.gain(before, after)}"


def _answer_bits(view: CockpitSnapshot) -> int | None:
    """Return the payload of a transaction, where the plot counts transactions a second."""
    return response_bits_of(view.readings.plan if view.readings else view.plan)


def _unit_bits(view: CockpitSnapshot) -> float:
    """Return how many bits one step of the y axis stands for."""
    return float(_answer_bits(view) or view.units.bit_s)


def _number(view: CockpitSnapshot, bit_s: float | None) -> str:
    bits = _answer_bits(view)
    return numbers.rate_in_unit(bit_s, view.units) if bits is None else numbers.rate_number(bit_s, bits)


def _legend(legs: Sequence[PlotPeriod], view: CockpitSnapshot) -> str:
    parts: list[str] = []
    if any(p.warmup for leg in legs for points in leg.points.values() for p in points):
        parts.append("░ warm-up")
    if any(leg.expected_rate() for leg in legs):
        parts.append("━ expected")
    if any(_peak(view, leg) for leg in legs):
        parts.append("· peak")
    if len(legs) > 1:
        parts.append("│ change")
    if legs and legs[-1].settings.direction is Direction.DUPLEX:
        parts.append("in ← upon out →")
    return "   ".join(parts)


def _nice_above(value: float) -> float:
    """Return the next of 1, 1.5, 2, 3, 5, 7, 10, … above a value."""
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 5, 7, 10, 15) if step * power >= value)
