"""The plot of a run: throughput, values of TCP or of datagrams over time, or bytes in flight and their windows."""

from itertools import islice
from typing import Final

from textual.content import Content

from ....engine.model.plan import Plan
from ....engine.results.sums.traces import PlotPeriod
from ...kit.drawing.canvas import GUTTER, base_axis, time_labels
from ...kit.drawing.styled_lines import LineWidget, first_fit, join_fit
from ...readings.instrument_values import PlotContent, plot_contents
from ...readings.live_readings import CockpitSnapshot
from ...readings.plot_axes import REDRAW_NS
from .load_plot import LoadPlot
from .loss_strip import loss_strip
from .rate_plot import RatePlot
from .trace_plot import TracePlot
from .window_bars import WINDOW_TITLES, window_lines

_ROWS_FOR_EACH_STRIP: Final = 4  # lines of the plot that each line of losses may cost one of


class RunPlot(LineWidget[CockpitSnapshot]):
    """Shows one PlotContent of a run, period by period. Its axes go in steps, by what is seen."""

    DEFAULT_CSS = """
    RunPlot { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(widget_id="plot")
        self._content: PlotContent | None = None  # the first one of the run
        self._periods: list[PlotPeriod] = []
        self._moment: object = None
        self._tops: dict[PlotContent, float] = {}
        self.set_titles("")

    def show(self, value: CockpitSnapshot) -> None:
        """Show these values, if the plot would look different."""
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
        self.set_titles(first_fit(width, *plot.titles()), join_fit(width, map(Content, plot.legend()), "   "))
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
        """Return the contents of the run."""
        readings = self.value.readings if self.value else None
        return plot_contents(Plan() if readings is None else readings.plan)

    def _axis_labels(
        self, plot: RatePlot | TracePlot | LoadPlot, span_s: float, room: int
    ) -> list[tuple[int, str]]:
        """Return the labels of the time axis, and before them the plot's name where no border shows its title."""
        labels = time_labels(span_s, room)
        if self.styles.border_top[0]:
            return labels
        free = min((at for at, _ in labels), default=room) - 3
        names = (f" {title.plain} " for title in plot.titles() if title.cell_length + 2 <= free)
        return [*((1, name) for name in islice(names, 1)), *labels]
