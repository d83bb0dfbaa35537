"""The plots of a sweep, drawn by matplotlib as SVG that stands inside a page: a heat map, and lines with errors.

matplotlib takes a second to load: import this module where a report is made, and nowhere else.
"""

import io
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import matplotlib as mpl
from matplotlib.figure import Figure

from ...engine.results.sweep import Axis, Sweep, SweepPoint, SweepResult
from ..text import numbers
from ..text.sweep import AXIS_NAMES, axis_value_words, expected_rate_of

_WIDTH_IN: Final = 9.6
_COLOURS: Final = ("#1f6feb", "#bc4c00", "#1a7f37", "#8250df", "#cf222e", "#9a6700", "#0a7ea4", "#57606a")
_DASHES: Final = ("-", "--", "-.", ":")
_MARKERS: Final = "osD^v<>P"
_EXPECTED: Final = "#57606a"
_STYLE: Final[dict[str, Any]] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8c959f",
    "grid.color": "#d8dee4",
    "grid.linewidth": 0.6,
    "xtick.color": "#57606a",
    "ytick.color": "#57606a",
    "text.color": "#24292f",
    "legend.frameon": False,
}

SweepGrid = tuple[str, Axis, Axis, list[SweepPoint]]


def heat_map(sweep: Sweep, grid: SweepGrid, found: dict[SweepPoint, SweepResult], alike: set[SweepPoint]) -> str:
    """Return the rates of a table as shades with their numbers; what may be as fast as the fastest has a star."""
    _, row_axis, column_axis, points = grid
    rows, columns = sweep.values(row_axis), sweep.values(column_axis)
    at = {(point.value(row_axis), point.value(column_axis)): point for point in points}
    rates: list[list[float]] = []
    labels: list[list[str]] = []
    for row in rows:
        here = [at.get((row, column)) for column in columns]
        cells = [None if point is None else found.get(point) for point in here]
        known = [None if cell is None else cell.bit_s for cell in cells]
        rates.append([float("nan") if bit_s is None else bit_s / 1e6 for bit_s in known])
        labels.append(
            [
                f"{numbers.mbit(bit_s)}{'*' if point in alike else ''}"
                for bit_s, point in zip(known, here, strict=True)
            ]
        )

    def draw(axes: Any) -> None:
        highest = max((rate for line in rates for rate in line if rate == rate), default=1.0)  # noqa: PLR0124 (not NaN)
        axes.imshow(rates, aspect="auto", cmap="Blues", vmin=0, vmax=highest * 1.15)
        axes.set_xticks(range(len(columns)), [axis_value_words(column_axis, value) for value in columns])
        axes.set_yticks(range(len(rows)), [axis_value_words(row_axis, value) for value in rows])
        axes.set_xlabel(AXIS_NAMES[column_axis])
        axes.set_ylabel(AXIS_NAMES[row_axis])
        for y, line in enumerate(labels):
            for x, text in enumerate(line):
                dark = rates[y][x] > highest * 0.6
                axes.text(x, y, text, ha="center", va="center", color="#ffffff" if dark else "#24292f")

    return _svg(f"{sweep.group} heat", max(1.6, 0.32 * len(rows) + 0.8), draw)


def line_plot(sweep: Sweep, grid: SweepGrid, found: dict[SweepPoint, SweepResult]) -> str:
    """Return the rate over the longest axis, a line for each value of the other, with 95 % intervals as bars."""
    _, row_axis, column_axis, points = grid
    rows = list(sweep.values(row_axis))
    columns = sweep.values(column_axis)

    def draw(axes: Any) -> None:
        for number, column in enumerate(columns):
            cells = [found[one] for one in points if one.value(column_axis) == column and one in found]
            cells.sort(key=lambda cell: rows.index(cell.point.value(row_axis)))
            known = [cell for cell in cells if cell.bit_s is not None]
            axes.errorbar(
                [rows.index(cell.point.value(row_axis)) for cell in known],
                [(cell.bit_s or 0.0) / 1e6 for cell in known],
                yerr=[_half_mbit(cell) for cell in known],
                color=_COLOURS[number % len(_COLOURS)],
                linestyle=_DASHES[number // len(_COLOURS) % len(_DASHES)],
                marker=_MARKERS[number % len(_MARKERS)],
                markersize=4,
                linewidth=1.4,
                capsize=2.5,
                label=f"{AXIS_NAMES[column_axis]} {axis_value_words(column_axis, column)}",
            )
        _expected(axes, [found[one] for one in points if one in found])
        axes.set_xticks(range(len(rows)), [axis_value_words(row_axis, value) for value in rows])
        axes.set_xlabel(AXIS_NAMES[row_axis])
        axes.set_ylabel("Mb/s")
        axes.set_ylim(bottom=0)
        axes.grid(visible=True)
        axes.set_axisbelow(b=True)

    return _svg(f"{sweep.group} lines", 3.4, draw)


def _half_mbit(cell: SweepResult) -> float:
    """Return half of a cell's interval; one that is wider than its rate is drawn as wide as that."""
    total = cell.summary.total
    steady = None if total is None else total.estimate
    return 0.0 if steady is None else min(steady.half_width(), steady.mean) / 1e6


def _expected(axes: Any, cells: Sequence[SweepResult]) -> None:
    rates = {expected.bit_s for cell in cells if (expected := expected_rate_of(cell)) is not None}
    if len(rates) == 1:
        axes.axhline(rates.pop() / 1e6, color=_EXPECTED, linestyle=(0, (5, 3)), linewidth=1.2, label="expected")


def _svg(name: str, height_in: float, draw: Callable[[Any], None]) -> str:
    """Return a figure as SVG: without a header, a date, or anything that has to be fetched."""
    with cast("Any", mpl).rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = cast("Any", Figure(figsize=(_WIDTH_IN, height_in), layout="constrained"))
        axes = figure.add_subplot()
        draw(axes)
        if axes.get_legend_handles_labels()[0]:
            figure.legend(loc="outside upper right", ncols=5)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    made = text.getvalue()
    made = re.sub(r"<metadata>.*?</metadata>", "", made[made.index("<svg") :], flags=re.DOTALL)
    # Sizes in points would not shrink with the page.
    return re.sub(r' (?:width|height)="[^"]*pt"', "", made, count=2)
