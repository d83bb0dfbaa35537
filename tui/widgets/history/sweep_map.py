"""The results of a sweep as lines: a shaded map of rates, the best settings, saturation points. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from textual.content import Content

from ....engine.results.saturation import find_saturation_points, reliable_estimate
from ....engine.results.sweep import Axis, Sweep, SweepPoint, SweepResult
from ...rendering.styles import MUTED
from ...text import numbers
from ...text.sweep import AXIS_NAMES, axis_value_words, best_by_direction, best_words, grids, saturation_words
from .overlay_plot import OverlayLine

_SHADES: Final = 8
_DEEPEST_PERCENT: Final = 56


def best_lines(sweep: Sweep, cells: Sequence[SweepResult]) -> list[Content]:
    """Return the fastest settings, and the most modest that are as fast; nothing for a single run."""
    lines: list[Content] = []
    if len(cells) < 2:
        return lines
    for one in best_by_direction(sweep, cells):
        way = f"{one.fastest.point.direction.value}: " if len(sweep.directions) > 1 else ""
        for number, line in enumerate(best_words(sweep, one)):
            lines.append(Content.assemble(("★ " if number == 0 else "◇ ", "bold $text-success"), f"{way}{line}"))
    return lines


def knee_lines(sweep: Sweep, cells: Sequence[SweepResult]) -> list[Content]:
    """Return the saturation points, and the number of rates that are too uncertain to count."""
    lines = [
        Content.assemble(("└ ", "bold $text-warning"), saturation_words(sweep, knee))
        for knee in find_saturation_points(cells)
    ]
    unsure = sum(reliable_estimate(cell) is None for cell in cells)
    if unsure:
        are = "is" if unsure == 1 else "are"
        text = f"{unsure} of these rates {are} not known well enough to count: give more seconds"
        lines.append(Content.assemble(("▲ ", "bold $text-warning"), text))
    return lines


def map_lines(sweep: Sweep, cells: Sequence[SweepResult]) -> list[Content]:
    """Return a map for each table of a sweep: `–` was not run yet, `*` may be the fastest."""
    found = {cell.point: cell for cell in cells}
    alike = (
        {cell.point for one in best_by_direction(sweep, cells) for cell in one.equivalent}
        if len(cells) > 1
        else set[SweepPoint]()
    )
    highest = max((cell.bit_s or 0.0 for cell in cells), default=0.0)
    lines: list[Content] = []
    for title, rows, columns, points in grids(sweep):
        if lines:
            lines.append(Content(""))
        lines.append(Content.assemble((title, "bold"), ("   Mb/s, * may be as fast as the fastest", MUTED)))
        lines += _map(sweep, rows, columns, points, found, alike, highest)
    return lines


def _map(
    sweep: Sweep,
    row_axis: Axis,
    column_axis: Axis,
    points: Sequence[SweepPoint],
    found: dict[SweepPoint, SweepResult],
    alike: set[SweepPoint],
    highest: float,
) -> Iterator[Content]:
    columns = sweep.values(column_axis)
    heads = [axis_value_words(column_axis, value) for value in columns]
    at = {(point.value(row_axis), point.value(column_axis)): point for point in points}
    texts = {point: _text(found.get(point), is_alike=point in alike) for point in points}
    width = max(len(text) for text in [*heads, *texts.values()]) + 2
    corner = f"{AXIS_NAMES[row_axis]} ╲ {AXIS_NAMES[column_axis]}"
    side = max([len(corner), *(len(axis_value_words(row_axis, value)) for value in sweep.values(row_axis))]) + 1
    yield Content.styled(f"{corner:<{side}}" + "".join(f"{head:>{width}}" for head in heads), MUTED)
    for row in sweep.values(row_axis):
        parts: list[tuple[str, str]] = [(f"{axis_value_words(row_axis, row):>{side - 1}} ", MUTED)]
        for column in columns:
            point = at.get((row, column))
            cell = None if point is None else found.get(point)
            text = numbers.UNKNOWN if point is None else texts[point]
            parts.append((f"{text:>{width}}", _shade(cell, highest, is_alike=point in alike)))
        yield Content.assemble(*parts)


def _text(cell: SweepResult | None, *, is_alike: bool) -> str:
    return f"{numbers.UNKNOWN} " if cell is None else f"{numbers.mbit(cell.bit_s)}{'*' if is_alike else ' '}"


def _shade(cell: SweepResult | None, highest: float, *, is_alike: bool) -> str:
    """Return the style of a cell: the faster, the deeper its background."""
    if cell is None or cell.bit_s is None or highest <= 0:
        return MUTED
    step = round(cell.bit_s / highest * _SHADES)
    return f"{'bold ' if is_alike else ''}$foreground on $primary {_DEEPEST_PERCENT * step // _SHADES}%"


def overlay_lines(
    sweep: Sweep, cells: Sequence[SweepResult], letters: str
) -> tuple[list[OverlayLine], list[str], list[str]]:
    """Return the first table as lines for a plot, the labels of its x axis, and the name of each line.

    A line is a column of the table. Columns without a letter are in the map only.
    """
    _, row_axis, column_axis, points = next(grids(sweep))
    rows = list(sweep.values(row_axis))
    found = {cell.point: cell for cell in cells}
    lines: list[OverlayLine] = []
    names: list[str] = []
    for letter, column in zip(letters, sweep.values(column_axis), strict=False):
        known = sorted(
            (rows.index(point.value(row_axis)), rate)
            for point in points
            if point.value(column_axis) == column and (rate := _rate(found.get(point))) is not None
        )
        lines.append(OverlayLine(letter, [float(at) for at, _ in known], [rate for _, rate in known]))
        names.append(f"{letter} {AXIS_NAMES[column_axis]} {axis_value_words(column_axis, column)}")
    return lines, [axis_value_words(row_axis, value) for value in rows], names


def _rate(cell: SweepResult | None) -> float | None:
    return None if cell is None else cell.bit_s
