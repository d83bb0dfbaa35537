"""The results of a sweep as lines: a shaded map of rates, the best settings, saturation points. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from textual.content import Content

from ...engine.results.sweep import Axis, Sweep, SweepPoint, SweepResult
from ..gauges.plots.overlay_plot import Overlay, OverlayLine
from ..kit.drawing.styles import MUTED
from ..words import numbers
from .sweep_words import (
    AXIS_NAMES,
    RankingMark,
    axis_value_words,
    best_by_direction,
    grids,
    missing_lines,
    noise_words,
    ranking_lines,
    saturation_lines,
)

_SHADES: Final = 8
_DEEPEST_PERCENT: Final = 56
_MARKS: Final[dict[RankingMark, tuple[str, str]]] = {
    "fastest": ("★ ", "bold $text-success"),
    "less": ("◇ ", "bold $text-success"),
    "noisy": ("▲ ", "bold $text-warning"),
}


def best_lines(sweep: Sweep, cells: Sequence[SweepResult]) -> list[Content]:
    """Return the fastest settings, and the smallest that are as fast; nothing for a single run."""
    return [Content.assemble(_MARKS[mark], line) for mark, line in ranking_lines(sweep, cells)]


def knee_lines(sweep: Sweep, cells: Sequence[SweepResult]) -> list[Content]:
    """Return the saturation points, and the number of rates with too wide a confidence interval."""
    lines = [Content.assemble(("└ ", "bold $text-warning"), line) for line in saturation_lines(sweep, cells)]
    if noise := noise_words(cells):
        lines.append(Content.assemble(_MARKS["noisy"], noise))
    return lines


def failure_lines(sweep: Sweep, cells: Sequence[SweepResult], failures: Mapping[SweepPoint, str]) -> list[Content]:
    """Return the points without a result and why; nothing if none has failed."""
    lines = missing_lines(sweep, cells, failures) if failures else []
    return [Content.assemble(_MARKS["noisy"], line) for line in lines]


@dataclass(frozen=True, slots=True)
class _Cells:
    """The results of a map by their settings: those within the margin of the fastest, and the highest rate."""

    results: Mapping[SweepPoint, SweepResult]
    equivalent: Collection[SweepPoint]
    highest: float

    def text(self, point: SweepPoint | None) -> str:
        """Return the rate of a cell, `*` behind it for one of the fastest."""
        if point is None:
            return numbers.UNKNOWN
        cell = self.results.get(point)
        mark = "*" if point in self.equivalent else " "
        return f"{numbers.UNKNOWN} " if cell is None else f"{numbers.mbit(cell.bit_s)}{mark}"

    def style(self, point: SweepPoint | None) -> str:
        """Return the style of a cell: the faster, the deeper its background."""
        cell = None if point is None else self.results.get(point)
        if cell is None or cell.bit_s is None or self.highest <= 0:
            return MUTED
        step = round(cell.bit_s / self.highest * _SHADES)
        weight = "bold " if point in self.equivalent else ""
        return f"{weight}$foreground on $primary {_DEEPEST_PERCENT * step // _SHADES}%"


def map_lines(sweep: Sweep, cells: Sequence[SweepResult]) -> list[Content]:
    """Return a map for each table of a sweep: `–` for settings without a run yet, `*` for the fastest."""
    best = best_by_direction(sweep, cells) if len(cells) > 1 else []
    shown = _Cells(
        {cell.point: cell for cell in cells},
        {cell.point for each in best for cell in each.equivalent},
        max((cell.bit_s or 0.0 for cell in cells), default=0.0),
    )
    lines: list[Content] = []
    for title, rows, columns, points in grids(sweep):
        if lines:
            lines.append(Content(""))
        lines.append(
            Content.assemble((title, "bold"), ("   Mb/s; * within the margin of error of the fastest", MUTED))
        )
        lines += _map(sweep, rows, columns, points, shown)
    return lines


def _map(
    sweep: Sweep, row_axis: Axis, column_axis: Axis, points: Sequence[SweepPoint], cells: _Cells
) -> Iterator[Content]:
    columns = sweep.values(column_axis)
    heads = [axis_value_words(column_axis, value) for value in columns]
    at = {(point.value(row_axis), point.value(column_axis)): point for point in points}
    width = max(map(len, [*heads, *map(cells.text, points)])) + 2
    corner = f"{AXIS_NAMES[row_axis]} ╲ {AXIS_NAMES[column_axis]}"
    side = max([len(corner), *(len(axis_value_words(row_axis, value)) for value in sweep.values(row_axis))]) + 1
    yield Content.styled(f"{corner:<{side}}" + "".join(f"{head:>{width}}" for head in heads), MUTED)
    for row in sweep.values(row_axis):
        line = [at.get((row, column)) for column in columns]
        yield Content.assemble(
            (f"{axis_value_words(row_axis, row):>{side - 1}} ", MUTED),
            *((f"{cells.text(point):>{width}}", cells.style(point)) for point in line),
        )


def sweep_overlay(sweep: Sweep, cells: Sequence[SweepResult], letters: str) -> tuple[Overlay, list[str]]:
    """Return the first table as lines for a plot, and the name of each line.

    A line is a column of the table. Columns without a letter are in the map only.
    """
    _, row_axis, column_axis, points = next(grids(sweep))
    rows = list(sweep.values(row_axis))
    results = {cell.point: cell for cell in cells}
    lines: list[OverlayLine] = []
    names: list[str] = []
    for letter, column in zip(letters, sweep.values(column_axis), strict=False):
        rates = sorted(
            (rows.index(point.value(row_axis)), rate)
            for point in points
            if point.value(column_axis) == column
            and (cell := results.get(point)) is not None
            and (rate := cell.bit_s) is not None
        )
        lines.append(OverlayLine(letter, [float(at) for at, _ in rates], [rate for _, rate in rates]))
        names.append(f"{letter} {AXIS_NAMES[column_axis]} {axis_value_words(column_axis, column)}")
    return Overlay(lines, [axis_value_words(row_axis, value) for value in rows]), names


def axis_of_plot(sweep: Sweep) -> str:
    """Return the name of the axis below the lines of `sweep_overlay`."""
    _, row_axis, _, _ = next(grids(sweep))
    return AXIS_NAMES[row_axis]
