"""Throughput above latency on one time axis: what the load of a responsiveness test does to latency."""

from collections.abc import Iterator
from typing import Final

from textual.content import Content

from ...kit.drawing.canvas import GUTTER
from ...kit.drawing.styles import MUTED
from ...readings.instrument_values import PlotContent
from ...readings.live_readings import CockpitSnapshot
from .rate_plot import RatePlot
from .trace_plot import TracePlot

_DIVIDER: Final = " latency, ms "


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
            tops: The values at the upper edges before; those of now are put in.
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


def _divider(width: int) -> Content:
    """Return the line between both parts, with the name of what is below it."""
    line = f"─{_DIVIDER}".ljust(width, "─")[:width]
    return Content.styled(f"{'├':>{GUTTER}}{line}", MUTED)
