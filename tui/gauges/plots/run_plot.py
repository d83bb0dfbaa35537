"""The plot of a run: throughput, values of TCP or of datagrams over time, or bytes in flight and their windows.

A responsiveness test has throughput above latency on one time axis. A UDP run has a strip of its losses below the
plot: a cell is higher and warmer if more was lost then, in steps of about four, so that single losses show as well
as a collapse. A moment without loss has a dot, one without datagrams is empty.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final

from textual.content import Content

from ....engine.model.directions import Direction
from ....engine.model.plan import Plan
from ...kit.drawing.canvas import GUTTER, base_axis, time_labels
from ...kit.drawing.styled_lines import LineWidget, first_fit, join_fit
from ...kit.drawing.styles import BAD, MUTED, SHORT
from ...readings.cockpit_snapshot import CockpitSnapshot
from ...readings.plot_values import REDRAW_NS, PlotContent, plot_contents
from ...words import numbers
from .rate_plot import RatePlot
from .trace_plot import TracePlot
from .window_bars import WINDOW_TITLES, window_lines

if TYPE_CHECKING:
    from ....engine.results.sums.traces import DatagramPoint, PlotPeriod

_DIVIDER: Final = " latency, ms "
# The share from which a cell looks like this. The first one that is reached counts.
_LEVELS: Final = (
    (0.25, "█", BAD),
    (0.05, "▆", BAD),
    (0.01, "▄", BAD),
    (0.001, "▃", SHORT),
    (0.0, "▂", SHORT),
)
_NO_LOSS: Final = ("·", MUTED)
_NO_DATAGRAMS: Final = (" ", MUTED)
_ROWS_FOR_EACH_STRIP: Final = 4  # lines of the plot for one line of losses


class LoadPlot:
    """Draws the throughput and the latency of a snapshot, each in half of the lines."""

    def __init__(self, view: CockpitSnapshot) -> None:
        self._rate = RatePlot(view)
        self._latency = TracePlot(view, PlotContent.LATENCY, has_labels=False)

    def titles(self) -> Iterator[Content]:
        """Yield titles from the longest to the shortest."""
        *_, unit, name = self._rate.titles()
        yield Content.assemble(unit, ", and latency below it")
        yield unit
        yield name

    def legend(self) -> list[str]:
        """Return an explanation of each mark that is drawn."""
        return [*self._rate.legend(), *self._latency.legend()]

    def lines(
        self, width: int, rows: int, tops: dict[PlotContent, float], span_s: float, *, has_colours: bool
    ) -> list[Content]:
        """Return the lines above the time axis.

        Args:
            width: Columns of the plot, without the axis left of it.
            rows: Lines in all.
            tops: The values at the upper edges so far. They are brought up to date.
            span_s: The length of the time axis.
            has_colours: Whether the terminal shows colours.
        """
        upper = (rows - 1) // 2
        parts = (
            (self._rate, PlotContent.THROUGHPUT, upper),
            (self._latency, PlotContent.LATENCY, rows - 1 - upper),
        )
        drawn: list[list[Content]] = []
        for plot, content, high in parts:
            top = tops[content] = plot.top(tops.get(content, 0.0), high)
            canvas = plot.draw(width, high, top, span_s, has_colours=has_colours)
            axis = plot.value_axis(high, top)
            drawn.append([left + line for left, line in zip(axis, canvas.lines(), strict=True)])
        return [*drawn[0], _divider(width), *drawn[1]]


class RunPlot(LineWidget[CockpitSnapshot]):
    """Shows one PlotContent of a run, period by period. Its axes follow the values in steps.

    Args:
        contents: What it goes through, in order; empty for what the run has.
        widget_id: Its id.
    """

    DEFAULT_CSS = """
    RunPlot { padding: 0 1; }
    """

    def __init__(self, contents: tuple[PlotContent, ...] = (), *, widget_id: str = "plot") -> None:
        super().__init__(widget_id=widget_id)
        self._given_contents = contents
        self._content: PlotContent | None = None  # the first one of the run
        self._periods: list[PlotPeriod] = []
        self._moment: object = None
        self._tops: dict[PlotContent, float] = {}
        self.set_titles("")

    def show(self, value: CockpitSnapshot) -> None:
        """Show these values if the plot would look different."""
        periods = value.readings.periods if value.readings else []
        elapsed = value.readings.elapsed_ns // REDRAW_NS if value.readings else 0
        moment = (len(periods), elapsed, value.summary is None, value.units)
        if periods is self._periods and moment == self._moment:
            return
        self._moment = moment
        if periods is not self._periods:
            self._periods, self._tops = periods, {}
        super().show(value)

    def show_next_content(self) -> None:
        """Show the next content; after the last, the first."""
        contents = self._contents()
        at = contents.index(self._content) if self._content in contents else 0
        self._content = contents[at + 1] if at + 1 < len(contents) else None
        self.redraw()

    def draw(self, value: CockpitSnapshot, width: int, height: int) -> list[Content]:
        """Return the plot with its axes, or nothing if there is no room."""
        contents = self._contents()
        content = self._content if self._content in contents else contents[0]
        if content is PlotContent.LOAD:
            return self._draw_load(LoadPlot(value), width, height, value.span_s)
        if content is PlotContent.WINDOWS:
            self.set_titles(first_fit(width, *map(Content, WINDOW_TITLES)), Content(""))
            return window_lines(value.windows, width, height)
        plot = RatePlot(value) if content is PlotContent.THROUGHPUT else TracePlot(value, content)
        titles = list(plot.titles())
        if self._given_contents and content is not PlotContent.THROUGHPUT:
            titles = titles[1:]  # a single connection has no median
        self.set_titles(first_fit(width, *titles), join_fit(width, map(Content, plot.legend()), "   "))
        if width < 20 or height < 4:
            return []
        span_s = value.span_s
        has_colours = self.app.console.color_system is not None  # pyright: ignore[reportUnknownMemberType]
        strip = loss_strip(value, span_s, width - GUTTER, most=(height - 1) // _ROWS_FOR_EACH_STRIP)
        rows, room = height - 1 - len(strip), width - GUTTER
        top = self._tops[content] = plot.top(self._tops.get(content, 0.0), rows)
        canvas = plot.draw(room, rows, top, span_s, has_colours=has_colours)
        left = plot.value_axis(rows, top)
        lines = [axis + line for axis, line in zip(left, canvas.lines(), strict=True)]
        return [*lines, *strip, base_axis(room, self._axis_labels(plot, span_s, room))]

    def _draw_load(self, plot: LoadPlot, width: int, height: int, span_s: float) -> list[Content]:
        """Return throughput above latency, on one time axis."""
        self.set_titles(first_fit(width, *plot.titles()), join_fit(width, map(Content, plot.legend()), "   "))
        if width < 20 or height < 6:
            return []
        room = width - GUTTER
        has_colours = self.app.console.color_system is not None  # pyright: ignore[reportUnknownMemberType]
        lines = plot.lines(room, height - 1, self._tops, span_s, has_colours=has_colours)
        return [*lines, base_axis(room, self._axis_labels(plot, span_s, room))]

    def _contents(self) -> tuple[PlotContent, ...]:
        """Return the contents that it goes through."""
        if self._given_contents:
            return self._given_contents
        readings = self.value.readings if self.value else None
        return plot_contents(Plan() if readings is None else readings.plan)

    def _axis_labels(
        self, plot: RatePlot | TracePlot | LoadPlot, span_s: float, room: int
    ) -> list[tuple[int, str]]:
        """Return the labels of the time axis. If no border shows the plot's title, its name comes before them."""
        labels = time_labels(span_s, room)
        if self.styles.border_top[0]:
            return labels
        free = min((at for at, _ in labels), default=room) - 3
        names = (f" {title.plain} " for title in plot.titles() if title.cell_length + 2 <= free)
        return [*((1, name) for name in islice(names, 1)), *labels]


def _divider(width: int) -> Content:
    """Return the line between both parts, with the name of the lower one."""
    line = f"─{_DIVIDER}".ljust(width, "─")[:width]
    return Content.styled(f"{'├':>{GUTTER}}{line}", MUTED)


def loss_strip(view: CockpitSnapshot, span_s: float, width: int, *, most: int) -> list[Content]:
    """Return a line for each direction with datagrams. If only one fits, it is for both. TCP has none.

    Args:
        view: The snapshot with the run.
        span_s: The length of the time axis.
        width: The cells of the plot.
        most: The maximum number of lines; one is always drawn.
    """
    traces = view.readings.traces.datagrams if view.readings else {}
    known = {flow: traces[flow] for flow in Direction.DUPLEX.flows if traces.get(flow)}
    if not known or width < 1:
        return []
    shares = {flow: _column_shares(points, span_s / width, width) for flow, points in known.items()}
    if len(shares) <= max(most, 1):
        names = {flow: f"loss {numbers.arrow(flow)}" if len(shares) > 1 else "loss" for flow in shares}
        return [_strip_line(names[flow], line) for flow, line in shares.items()]
    columns = zip(*shares.values(), strict=True)
    both = [max((share for share in column if share is not None), default=None) for column in columns]
    return [_strip_line(f"loss {numbers.arrow(Direction.DUPLEX)}", both)]


def _column_shares(points: "Sequence[DatagramPoint]", step_s: float, width: int) -> list[float | None]:
    """Return the lost share of each column. An interval wider than a column fills all columns that it covers."""
    ends = [point.at_s for point in points]
    shares: list[float | None] = []
    for x in range(width):
        if x * step_s >= ends[-1]:
            break
        start, stop = bisect_left(ends, x * step_s + 1e-9), bisect_left(ends, (x + 1) * step_s + 1e-9)
        inside = points[start : max(stop, start + 1)]
        passed = sum(point.passed for point in inside)
        shares.append(min(sum(point.lost for point in inside) / passed, 1.0) if passed else None)
    return [*shares, *[None] * (width - len(shares))]


def _strip_line(name: str, shares: Sequence[float | None]) -> Content:
    cells = [_strip_cell(share) for share in shares]
    parts = [
        ("".join(character for character, _ in group), style) for style, group in groupby(cells, key=lambda c: c[1])
    ]
    return Content.assemble((f"{name:>{GUTTER - 1}} ", MUTED), *parts)


def _strip_cell(share: float | None) -> tuple[str, str]:
    """Return the character and the style of a lost share."""
    if share is None:
        return _NO_DATAGRAMS
    if share <= 0:
        return _NO_LOSS
    return next((character, style) for least, character, style in _LEVELS if share >= least)
