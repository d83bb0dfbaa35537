"""Values over time beside the rate: RTT, retransmits and cwnd of TCP; loss, jitter and delay variation of UDP.

A responsiveness test has a line of latency, too.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from textual.content import Content

from ....engine.model.directions import Direction
from ....engine.model.plan import SECOND_NS
from ...kit.drawing.canvas import Canvas, tick_decimals, ticks, value_axis
from ...kit.drawing.styles import DIRECTION_STYLES, MUTED
from ...readings.plot_values import PlotContent, follow_values
from ...words import numbers
from .rate_plot import draw_changes, draw_periods

if TYPE_CHECKING:
    from ....engine.results.responsiveness.result import ResponsivenessPoint
    from ....engine.results.sums.traces import DatagramPoint, TcpPoint
    from ...readings.cockpit_snapshot import CockpitSnapshot

_TITLES: Final = {
    PlotContent.LATENCY: ("latency, ms, median and p99 of each interval", "latency, ms"),
    PlotContent.RTT: ("RTT, ms, median of all sessions", "RTT, ms"),
    PlotContent.RETRANSMITS: ("retransmits per second, all sessions", "retransmits per second", "retransmits/s"),
    PlotContent.CWND: ("congestion window, KiB, sum of all sessions", "cwnd, KiB"),
    PlotContent.LOSS: ("lost datagrams, % of each interval", "loss, %"),
    PlotContent.JITTER: ("jitter, ms, mean of each interval (RFC 3550)", "jitter, ms"),
    PlotContent.DELAY_VARIATION: (
        "delay variation, ms, p99 of each interval (RFC 5481)",
        "delay variation, ms",
        "delay, ms",
    ),
}
# The value of a point in the unit of the title; retransmits become a rate.
_VALUES: Final[dict[PlotContent, Callable[[Any], float | None]]] = {
    PlotContent.RTT: lambda point: None if point.rtt_us is None else point.rtt_us / 1_000,
    PlotContent.RETRANSMITS: attrgetter("retransmits"),
    PlotContent.CWND: lambda point: None if point.cwnd_bytes is None else point.cwnd_bytes / numbers.KIB,
    PlotContent.LOSS: attrgetter("lost_percent"),
    PlotContent.JITTER: attrgetter("jitter_ms"),
    PlotContent.DELAY_VARIATION: attrgetter("delay_ms"),
}
_OF_DATAGRAMS: Final = frozenset({PlotContent.LOSS, PlotContent.JITTER, PlotContent.DELAY_VARIATION})
_MEDIAN: Final = "bold $foreground"
_FAINT: Final = "$foreground 45%"
_ARROW_EVERY: Final = 22  # cells
_NOTHING: Final = "no values from the kernel yet"
_NO_DATAGRAMS: Final = "no datagrams yet"


@dataclass(frozen=True, slots=True)
class _Value:
    """A value at a time, in the unit of the axis; None is unknown."""

    at_s: float
    value: float | None


class TracePlot:
    """Draws one content of a snapshot as a line for each direction. Latency has its median, and fainter its p99.

    Without `has_labels`, the periods have no texts, because the plot above has them.
    """

    def __init__(self, view: "CockpitSnapshot", content: PlotContent, *, has_labels: bool = True) -> None:
        self._content = content
        self._has_labels = has_labels
        self._slowest = _slowest(view) if content is PlotContent.LATENCY else []
        self._periods = view.readings.periods if view.readings else []
        self._lines = _lines(view, content)

    def titles(self) -> Iterator[Content]:
        """Yield titles from the longest to the shortest."""
        yield from map(Content, _TITLES[self._content])

    def legend(self) -> list[str]:
        """Return an explanation of each mark that is drawn."""
        if self._slowest:
            return ["lower line median, upper p99"]
        return [f"{numbers.arrow(flow)} {flow}" for flow in self._lines if len(self._lines) > 1]

    def top(self, before: float, rows: int) -> float:
        """Return the top of the axis; it follows the one before. The first row is left to the labels of periods."""
        lines = (*self._lines.values(), self._slowest)
        known = [each.value for line in lines for each in line if each.value is not None]
        highest = max(known, default=0.0)
        if len(self._periods) > 1 and rows > 1 and self._has_labels:
            highest *= (4 * rows - 1) / (4 * rows - 5)
        return follow_values(before, highest * 1.05) or 1.0

    def value_axis(self, rows: int, top: float) -> list[Content]:
        """Return the cells left of each row, with round values."""
        values = ticks(top, max(rows // 3, 2))[1:]
        decimals = tick_decimals(values[0])
        return value_axis(rows, {_row_of(value, top, rows): numbers.number(value, decimals) for value in values})

    def draw(self, width: int, rows: int, top: float, span_s: float, *, has_colours: bool) -> Canvas:
        """Return the plot. Arrows distinguish two lines.

        Args:
            width: Columns of the plot.
            rows: Lines of the plot.
            top: The value at its upper edge.
            span_s: The length of the time axis.
            has_colours: Not used: arrows need none.
        """
        del has_colours
        canvas = Canvas(width, rows)
        self._draw(canvas, self._slowest, top, span_s, _FAINT)
        for number, (flow, line) in enumerate(self._lines.items()):
            path = self._draw(canvas, line, top, span_s, _MEDIAN if self._slowest else DIRECTION_STYLES[flow])
            if len(self._lines) > 1:
                first = _ARROW_EVERY * (1 + number) // 3
                for x in range(first, width, _ARROW_EVERY):
                    if x in path:
                        canvas.put(x, path[x], numbers.arrow(flow), f"bold {DIRECTION_STYLES[flow]}")
        if not any(each.value is not None for line in self._lines.values() for each in line):
            text = _NO_DATAGRAMS if self._content in _OF_DATAGRAMS else _NOTHING
            canvas.write(max((width - len(text)) // 2, 0), rows // 2, text, MUTED)
        if self._has_labels:
            draw_periods(canvas, self._periods, span_s, self._mean_text)
        else:
            draw_changes(canvas, self._periods, span_s)
        return canvas

    @staticmethod
    def _draw(canvas: Canvas, line: Sequence[_Value], top: float, span_s: float, style: str) -> dict[int, int]:
        """Draw a line with gaps for unknown values; return its row in each column."""
        path: dict[int, int] = {}
        for run in _known_runs(_column_means(line, span_s / canvas.width)):
            points = [(min(each.at_s / span_s, 1.0), (each.value or 0.0) / top) for each in run]
            path |= canvas.draw_line(points, style)
        return path

    def _mean_text(self, number: int) -> str:
        """Return the mean of a period in each of its directions, or an empty text.

        Latency has no mean here: it rises until the queue is full, and only then it counts.
        """
        period = self._periods[number]
        until_s = float("inf") if period.until_s is None else period.until_s
        texts: list[str] = []
        for flow in period.settings.direction.flows:
            values = [
                each.value
                for each in self._lines.get(flow, ())
                if period.from_s < each.at_s <= until_s and each.value is not None
            ]
            if values:
                texts.append(f"{numbers.arrow(flow)}{_text(fmean(values))}")
        return texts[0][1:] if len(texts) == 1 else " ".join(texts)


def _lines(view: "CockpitSnapshot", content: PlotContent) -> dict[Direction, list[_Value]]:
    """Return the values of each direction that has points."""
    if view.readings is None:
        return {}
    traces = view.readings.traces
    if content is PlotContent.LATENCY:
        return {Direction.DUPLEX: [_latency(point, point.p50_ns) for point in view.readings.load_points]}
    points = traces.datagrams if content in _OF_DATAGRAMS else traces.tcp
    return {flow: _values(points[flow], content) for flow in sorted(points) if points[flow]}


def _slowest(view: "CockpitSnapshot") -> list[_Value]:
    """Return the 99th percentile of each interval's latency."""
    points = view.readings.load_points if view.readings else ()
    return [_latency(point, point.p99_ns) for point in points]


def _latency(point: "ResponsivenessPoint", value_ns: int | None) -> _Value:
    return _Value(point.elapsed_ns / SECOND_NS, None if value_ns is None else value_ns / 1e6)


def _values(points: "Sequence[TcpPoint | DatagramPoint]", content: PlotContent) -> list[_Value]:
    """Return the values of points: milliseconds, percent, KiB, or retransmits a second."""
    values = [_VALUES[content](point) for point in points]
    if content is PlotContent.RETRANSMITS:
        spans = [points[0].at_s, *(after.at_s - before.at_s for before, after in pairwise(points))]
        values = [
            None if value is None or span_s <= 0 else value / span_s
            for value, span_s in zip(values, spans, strict=True)
        ]
    return [_Value(point.at_s, value) for point, value in zip(points, values, strict=True)]


def _column_means(line: Sequence[_Value], step_s: float) -> Iterator[_Value]:
    """Yield the mean of each column with points. Drawing all 1200 points took 40 ms, drawing the means takes 6."""
    for _, points in groupby(line, key=lambda point: int(point.at_s / step_s - 1e-9)):
        column = list(points)
        known = [point.value for point in column if point.value is not None]
        yield _Value(column[-1].at_s, fmean(known) if known else None)


def _known_runs(line: Iterable[_Value]) -> Iterator[list[_Value]]:
    """Yield the runs of successive known values. An unknown value is a gap, not a zero."""
    run: list[_Value] = []
    for each in line:
        if each.value is not None:
            run.append(each)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _text(value: float) -> str:
    return numbers.number(value, 2 if value < 9.995 else 1 if value < 99.95 else 0)


def _row_of(value: float, top: float, rows: int) -> int:
    """Return the row of a value in a plot of braille lines."""
    return min(round(value / top * (4 * rows - 1)) // 4, rows - 1)
