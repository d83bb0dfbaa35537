"""The plot of the rate over time, with the expected rate as a line, warm-up shaded and changes marked."""

from collections.abc import Iterator
from math import ceil, floor, log10
from typing import Any, ClassVar, Final, cast

from rich.text import Text
from textual_plotext import PlotextPlot

from ...engine.plan import SECOND_NS, Direction
from .. import format as words
from .board import View
from .values import Leg, Point

_HEADROOM: Final = 1.15
# How long a plot without an end is, until it has to grow; each is then kept for as long as it took to fill.
_SPANS_S: Final = (30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400)

Rgb = tuple[int, int, int]


class RatePlot(PlotextPlot):
    """Draws the legs of a run. Both axes stand still: they grow by steps, and never shrink during a run."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"rate-plot--{name}"
        for name in ("out", "out-fill", "in", "in-fill", "duplex", "expected", "warmup", "tick", "label")
    }
    DEFAULT_CSS = """
    RatePlot {
        padding: 0 1;
        & .rate-plot--out { color: $primary; }
        & .rate-plot--out-fill { color: $primary 45%; }
        & .rate-plot--in { color: $success; }
        & .rate-plot--in-fill { color: $success 45%; }
        & .rate-plot--duplex { color: $foreground 80%; }
        & .rate-plot--expected { color: $warning; }
        & .rate-plot--warmup { color: $foreground 18%; }
        & .rate-plot--tick { color: $foreground 60%; }
        & .rate-plot--label { color: $foreground; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="plot")
        self._legs: list[Leg] = []
        self._view: View | None = None
        self._top_bit_s = 0.0
        self.border_title = "throughput, Mb/s over s"

    def show(self, view: View) -> None:
        """Show these values from the next frame on."""
        self._view = view
        legs = view.board.legs if view.board else []
        if legs is not self._legs:
            self._legs, self._top_bit_s = legs, 0.0
        self.border_subtitle = _legend(legs, view)
        self.refresh()

    def render(self) -> Text:
        """Draw into the room there is."""
        width, height = self.size
        if width < 12 or height < 4 or self._view is None:
            return Text("")
        plt = cast("Any", self.plt)
        plt.clear_figure()
        plt.plotsize(width, height)
        plt._set_size(width, height)  # noqa: SLF001 (plotsize alone does not take after a resize; as PlotextPlot does)
        for colour in (plt.canvas_color, plt.axes_color):
            colour("default")
        plt.ticks_color(self._rgb("tick"))
        plt.xaxes(True, False)
        plt.yaxes(True, False)
        top = self._top()
        span_s = self._span_s()
        self._axes(plt, top, span_s, width, height)
        for leg in self._legs:
            self._draw_leg(plt, leg, top, height - 2)
        for leg in self._legs:
            self._draw_expected(plt, leg, span_s, width)
        self._draw_marks(plt, top, height - 2, span_s, span_s / max(width - 10, 1))
        return Text.from_ansi(str(plt.build()))

    def _rgb(self, name: str) -> Rgb:
        """Return the colour of a component class, blended into the background as far as it is transparent."""
        colour = self.get_component_styles(f"rate-plot--{name}").color
        return self.background_colors[1].blend(colour, colour.a, alpha=1.0).rgb

    def _top(self) -> float:
        """Return the top of the y axis in Mb/s; it never falls during a run."""
        expected = max((one.bit_s for leg in self._legs if (one := leg.expected())), default=0.0)
        highest = max((p.bit_s for leg in self._legs for ps in leg.points.values() for p in ps), default=0.0)
        self._top_bit_s = max(self._top_bit_s, expected * _HEADROOM)
        if highest * 1.02 > self._top_bit_s:
            self._top_bit_s = _nice_above(highest * 1.02)
        return (self._top_bit_s or 1e9) / 1e6

    def _span_s(self) -> float:
        view = self._view
        if view is not None and view.board is not None and view.board.plan.duration_ns is not None:
            return view.board.plan.duration_ns / SECOND_NS
        elapsed_s = (view.board.elapsed_ns if view and view.board else 0) / SECOND_NS
        return float(next((span for span in _SPANS_S if span >= elapsed_s), ceil(elapsed_s)))

    def _axes(self, plt: Any, top: float, span_s: float, width: int, height: int) -> None:
        plt.xlim(0, span_s)
        plt.ylim(0, top)
        ys = _ticks(top, max(height // 4, 2))
        plt.yticks(ys, [f"{words.number(y):>7}" for y in ys])
        xs = _ticks(span_s, max(width // 12, 2))
        plt.xticks(xs, [f"{x:g}" for x in xs])

    def _draw_leg(self, plt: Any, leg: Leg, top: float, rows: int) -> None:
        warm_s = max((p.at_s for points in leg.points.values() for p in points if p.warmup), default=None)
        if warm_s is not None:
            shade = self._rgb("warmup")
            plt.rectangle([leg.from_s, warm_s], [0, top], lines=False, fill=True, marker="░", color=shade)
        flows = leg.settings.direction.flows
        for flow in (*flows, Direction.DUPLEX) if len(flows) == 2 else flows:
            points = leg.points.get(flow, [])
            first = next((n for n, p in enumerate(points) if not p.warmup), len(points))
            warm, counted = points[: first + 1], points[first:]
            if len(flows) == 1 and counted:
                self._fill(plt, flow, points[max(first - 1, 0) :], top, rows)
            else:
                warm = points
            if warm:
                xs = [leg.from_s, *(p.at_s for p in warm)]
                ys = [warm[0].bit_s / 1e6, *(p.bit_s / 1e6 for p in warm)]
                plt.plot(xs, ys, marker="braille", color=self._rgb(flow))

    def _fill(self, plt: Any, flow: Direction, points: list[Point], top: float, rows: int) -> None:
        """Draw a bright line over a dim area."""
        xs, ys = [p.at_s for p in points], [p.bit_s / 1e6 for p in points]
        plt.plot(xs, ys, marker="braille", fillx=True, color=self._rgb(flow))
        below = [_cell_below(y, top, rows) for y in ys]
        plt.plot(xs, below, marker="braille", fillx=True, color=self._rgb(f"{flow}-fill"))

    def _draw_expected(self, plt: Any, leg: Leg, span_s: float, width: int) -> None:
        """Draw dashes rather than a line, so that a rate that is as expected can be seen between them."""
        expected = leg.expected()
        if expected is None:
            return
        until_s = leg.until_s if leg.until_s is not None else span_s
        step = span_s / max(width - 10, 1)
        xs = list(_dashes(leg.from_s, until_s, step))
        plt.scatter(xs, [expected.bit_s / 1e6] * len(xs), marker="━", color=self._rgb("expected"))

    def _draw_marks(self, plt: Any, top: float, rows: int, span_s: float, cell_s: float) -> None:
        """Draw a line for each change, and what changed beside it where there is room for the words."""
        board = self._view.board if self._view else None
        ys = [row / max(rows - 1, 1) * top for row in range(rows)]
        free_from = [0.0] * (1 if rows < 8 else 3)
        marks = board.marks if board else []
        for mark in marks:
            plt.scatter([mark.at_s] * rows, ys, marker="│", color=self._rgb("label"))
        for mark in marks:
            line = next((n for n, end_s in enumerate(free_from) if end_s <= mark.at_s), None)
            if line is None:
                continue
            end_s = mark.at_s + (len(mark.label) + 2) * cell_s
            free_from[line] = end_s
            text, side = (f" {mark.label}", "left") if end_s <= span_s else (f"{mark.label} ", "right")
            plt.text(text, mark.at_s, ys[-1 - line], color=self._rgb("label"), alignment=side)


def _cell_below(value: float, top: float, rows: int) -> float:
    """Return the value that fills the cells below the one that `value` ends in.

    A cell has four dots of braille and one colour: the topmost cell is left to the bright line.
    """
    dots = 4 * rows - 1
    return max((round(value / top * dots) // 4 * 4 - 1) / dots * top, 0.0)


def _dashes(from_s: float, until_s: float, step: float) -> Iterator[float]:
    """Yield the columns of dashes: two drawn, two left free."""
    for column in range(floor(from_s / step), ceil(until_s / step) + 1):
        if column % 4 < 2 and from_s <= column * step <= until_s:
            yield column * step


def _legend(legs: list[Leg], view: View) -> str:
    parts: list[str] = []
    if any(p.warmup for leg in legs for points in leg.points.values() for p in points):
        parts.append("░ warm-up")
    if any(leg.expected() for leg in legs):
        parts.append("━ ━ expected")
    if view.board and view.board.marks:
        parts.append("│ change")
    return "   ".join(parts)


def _nice_above(value: float) -> float:
    """Return the next of 1, 1.5, 2, 3, 5, 7, 10, … above a value."""
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 5, 7, 10, 15) if step * power >= value)


def _ticks(top: float, most: int) -> list[float]:
    """Return round numbers from 0 to `top`, at most `most` of them where `most` is 2 or more."""
    power = 10.0 ** floor(log10(top / most))
    steps = (step * power for step in (1, 2, 5, 10, 20, 50, 100))
    step = next(step for step in steps if floor(top / step * 1.0001) + 1 <= most)
    return [number * step for number in range(floor(top / step * 1.0001) + 1)]
