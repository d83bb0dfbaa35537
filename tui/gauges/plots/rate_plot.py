"""The throughput of a run over time, with the expected rate, the warm-up and the changes of settings.

Above each period are its settings and its average, so that the user can compare before and after a change.
"""

from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor
from typing import TYPE_CHECKING, Final

from textual.content import Content

from ....engine.model.directions import Direction
from ....engine.model.expected_rate import ExpectedRate
from ...kit.drawing.canvas import EIGHTHS, Canvas, ticks, to_eighths, value_axis
from ...kit.drawing.styles import DIRECTION_STYLES, EXPECTED
from ...readings.plot_values import PlotColumn, flow_scale, peak_above, period_averages, plot_columns
from ...words import numbers

if TYPE_CHECKING:
    from ....engine.results.sums.traces import PlotPeriod
    from ...readings.cockpit_snapshot import CockpitSnapshot

_EMPTY_BIT_S: Final = 1e9  # the top of an empty axis
# A line at an eighth of a cell, from 1 to 8. It is never above a bar of the same height, nor below a lower one.
_DASHES: Final = dict(enumerate("⣀⣀⠤⠤⠒⠒⠉⠉", 1))
_DOTS: Final = dict(enumerate("⡀⡀⠄⠄⠂⠂⠁⠁", 1))
_SHADES: Final = 12
_LABEL: Final = "bold $foreground on $background"  # on a coloured area, some terminals' colours hide the text


class RatePlot:
    """Draws the throughput or the transactions a second of a snapshot."""

    def __init__(self, view: "CockpitSnapshot") -> None:
        self._view = view
        self._periods = view.readings.periods if view.readings else []
        self._other_tests = view.readings.traces.other_tests if view.readings else []
        self._scale = flow_scale(view.units, view.unit_bit_s, view.response_bits)

    def titles(self) -> Iterator[Content]:
        """Yield titles from the longest to the shortest. After a change, they have the averages around it."""
        view, periods = self._view, self._periods
        is_rate = view.response_bits is None
        name, unit = ("throughput", self._scale.unit) if is_rate else ("transactions", "/s")
        averages = period_averages(periods, view.latest_summary)
        # A period that ended before anything was measured cannot be compared.
        measured = [number for number, average in enumerate(averages[:-1]) if average is not None]
        if measured:
            first, last = periods[measured[-1]].settings, periods[-1].settings
            changes = [numbers.settings_change(last, first), numbers.settings_change(first, last)]
            before, after = averages[measured[-1]], averages[-1]
            rates = [self._scale.number(before), self._scale.number(after)]
            end = f"{numbers.NBSP}{unit}{numbers.gain(before, after)}"
            words = (f"{change} {rate}" for change, rate in zip(changes, rates, strict=True))
            yield Content(f"{name}: {' → '.join(words)}{end}")
            yield Content(f"{name}: {' → '.join(rates)}{end}")
        yield Content(f"{name}, {unit}" if is_rate else f"{name} per second")
        yield Content(name)

    def legend(self) -> list[str]:
        """Return an explanation of each mark that is drawn."""
        periods = self._periods
        parts: list[str] = []
        if any(p.warmup for period in periods for points in period.points.values() for p in points):
            parts.append("░ warm-up")
        if any(period.expected_rate() for period in periods):
            parts.append(f"{_DASHES[4] * 2} expected")
        if any(self._peak(period) for period in periods):
            parts.append(f"{_DOTS[4]} peak")
        if len(periods) > 1:
            parts.append("│ change")
        if self._other_tests:
            parts.append("× other tests")
        if periods and periods[-1].settings.direction is Direction.DUPLEX:
            parts.append("in stacked on out")
        return parts

    def top(self, before: float, rows: int) -> float:
        """Return the top of the axis of rates. The gauges' bars have the same."""
        del before, rows
        return self._view.rate_top or _EMPTY_BIT_S

    def value_axis(self, rows: int, top: float) -> list[Content]:
        """Return the cells left of each row: round rates, and the expected one in its row."""
        unit = float(self._scale.bit_s)
        rates = ticks(top / unit, max(rows // 3, 2))[1:]
        labels = {_row_of(rate * unit, top, rows): numbers.axis_number(rate) for rate in rates}
        expected = self._periods[-1].expected_rate() if self._periods else None
        if expected is not None:
            labels[_row_of(expected.bit_s, top, rows)] = self._scale.number(expected.bit_s)
        return value_axis(rows, labels)

    def draw(self, width: int, rows: int, top: float, span_s: float, *, has_colours: bool) -> Canvas:
        """Return the plot. Without colours, areas are filled with characters.

        Args:
            width: Columns of the plot.
            rows: Lines of the plot.
            top: The value at its upper edge.
            span_s: The length of the time axis.
            has_colours: Whether the terminal shows colours.
        """
        canvas = Canvas(width, rows)
        for x, column in enumerate(plot_columns(self._periods, span_s, width)):
            if column is not None:
                _draw_column(canvas, x, column, top, filling=" " if has_colours else "█")
        self._draw_rates(canvas, top, span_s)
        self._draw_other_tests(canvas, span_s)
        averages = period_averages(self._periods, self._view.latest_summary)
        draw_periods(
            canvas,
            self._periods,
            span_s,
            lambda number: "" if averages[number] is None else self._scale.number(averages[number]),
        )
        return canvas

    def _draw_rates(self, canvas: Canvas, top: float, span_s: float) -> None:
        """Draw the expected and the peak rate in dashes: a measured rate at their height shows in the gaps.

        They have the same eighths of a cell as the bars, so that a higher rate is never drawn lower.
        """
        for period in self._periods:
            until_s = period.until_s if period.until_s is not None else span_s
            for rate, length, marks in ((period.expected_rate(), 2, _DASHES), (self._peak(period), 1, _DOTS)):
                if rate is None:
                    continue
                row, eighth = divmod(to_eighths(rate.bit_s / top, canvas.height) - 1, 8)
                for x in _dashes(period.from_s, until_s, span_s / canvas.width, length):
                    canvas.overlay(x, row, marks[eighth + 1], EXPECTED)

    def _draw_other_tests(self, canvas: Canvas, span_s: float) -> None:
        """Mark at the bottom the times when other tests ran on the endpoint."""
        step_s = span_s / canvas.width
        for span in self._other_tests:
            first, last = floor(span.from_s / step_s), min(ceil(span.until_s / step_s), canvas.width)
            for x in range(first, last, 2):
                canvas.overlay(x, 0, "×", "bold $foreground")

    def _peak(self, period: "PlotPeriod") -> ExpectedRate | None:
        """Return the peak rate of a period's direction if it is above the expected one."""
        return peak_above(period.expected_rate(), self._view.peak[period.settings.direction])


def draw_periods(
    canvas: Canvas, periods: "Sequence[PlotPeriod]", span_s: float, value: Callable[[int], str]
) -> None:
    """Draw a line for each change, and above each period its settings and a value. Without a change draw nothing.

    Args:
        canvas: The plot.
        periods: The periods of the run.
        span_s: The length of the time axis.
        value: Returns the value of a period by its number, or an empty text.
    """
    if len(periods) < 2:
        return
    draw_changes(canvas, periods, span_s)
    step_s = span_s / canvas.width
    for number, period in enumerate(periods):
        x = int(period.from_s / step_s) + (number > 0)
        until = int((period.until_s if period.until_s is not None else span_s) / step_s)
        label, text = _period_label(periods, number), value(number)
        for words in (f"{label} {text}".strip(), text or label, ""):
            if len(words) < until - x:
                for column, character in enumerate(words, x):
                    canvas.put(column, canvas.height - 1, character, _LABEL)
                break


def draw_changes(canvas: Canvas, periods: "Sequence[PlotPeriod]", span_s: float) -> None:
    """Draw a line for each change of settings."""
    for period in periods[1:]:
        for y in range(canvas.height):
            canvas.overlay(int(period.from_s / span_s * canvas.width), y, "│", "bold $foreground")


def _period_label(periods: "Sequence[PlotPeriod]", number: int) -> str:
    """Return the settings that changed at the start of a period. For the first period, return those at its end."""
    other = periods[number - 1] if number else periods[1]
    return numbers.settings_change(other.settings, periods[number].settings)


def _draw_column(canvas: Canvas, x: int, column: PlotColumn, top: float, *, filling: str) -> None:
    """Draw the directions of a column on top of each other, in shades that get brighter towards the top."""
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
                canvas.put(x, y, filling, f"{shade} on {shade}" if filling.strip() else f"on {shade}")
            else:
                canvas.put(x, y, EIGHTHS[part], shade)
        base, below = high, flow


def _shade(flow: Direction, y: int, rows: int) -> str:
    level = min(y * _SHADES // max(rows, 1), _SHADES - 1)
    return f"{DIRECTION_STYLES[flow]} {35 + 65 * level // (_SHADES - 1)}%"


def _row_of(bit_s: float, top: float, rows: int) -> int:
    return max(to_eighths(bit_s / top, rows) - 1, 0) // 8


def _dashes(from_s: float, until_s: float, step_s: float, length: int) -> Iterator[int]:
    """Yield the columns of dashes: the first `length` of every four."""
    for x in range(floor(from_s / step_s), ceil(until_s / step_s) + 1):
        if x % 4 < length and from_s <= x * step_s <= until_s:
            yield x
