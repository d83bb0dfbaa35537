"""A sweep's result in a terminal: a table of rates for each direction, the best settings, the knees."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from ....engine.results.sweep import Axis, Sweep, SweepPoint, SweepResult
from ...kit.drawing.printed_table import indented
from ...sweep.sweep_words import (
    AXIS_NAMES,
    axis_value_words,
    best_by_direction,
    grids,
    missing_lines,
    noise_words,
    ranking_lines,
    saturation_lines,
)
from ...words import numbers
from ...words.table import Column, Strong, Table


def sweep_parts(
    sweep: Sweep, cells: Sequence[SweepResult], failures: Mapping[SweepPoint, str]
) -> Iterator[RenderableType]:
    """Yield the parts of the result; a point without a result is a dash, and `failures` says why."""
    results = {cell.point: cell for cell in cells}
    best = best_by_direction(sweep, cells)
    alike = {cell.point for settings in best for cell in settings.equivalent}
    yield Text(_headline(sweep, cells))
    for title, row_axis, column_axis, points in grids(sweep):
        yield Text()
        yield Text(f"{title}: Mb/s")
        yield indented(_table(sweep, row_axis, column_axis, points, results, alike))
    if ranking := ranking_lines(sweep, cells):
        yield Text()
        if best:
            yield Text("* may be as fast as the fastest of its direction", "dim")
        for _, line in ranking:
            yield Text(line)
        for line in saturation_lines(sweep, cells):
            yield Text(line)
    if noise := noise_words(cells):
        yield Text(noise)
    for line in missing_lines(sweep, cells, failures):
        yield Text(line)


def _headline(sweep: Sweep, cells: Sequence[SweepResult]) -> str:
    preset = f", preset {sweep.preset}" if sweep.preset else ""
    peer = numbers.sanitize(sweep.peer)
    return f"sweep {sweep.group}: {len(cells)} of {len(sweep.points)} runs, peer {peer}{preset}"


def _table(
    sweep: Sweep,
    row_axis: Axis,
    column_axis: Axis,
    points: Sequence[SweepPoint],
    results: dict[SweepPoint, SweepResult],
    alike: set[SweepPoint],
) -> Table:
    columns = sweep.values(column_axis)
    titles = (f"{AXIS_NAMES[column_axis]} {axis_value_words(column_axis, value)}" for value in columns)
    at = {(point.value(row_axis), point.value(column_axis)): point for point in points}
    return Table(
        (Column(AXIS_NAMES[row_axis]), *map(Column, titles)),
        [
            (
                axis_value_words(row_axis, row),
                *(_cell(at.get((row, column)), results, alike) for column in columns),
            )
            for row in sweep.values(row_axis)
        ],
    )


def _cell(point: SweepPoint | None, results: dict[SweepPoint, SweepResult], alike: set[SweepPoint]) -> str:
    cell = None if point is None else results.get(point)
    if point is None or cell is None:
        return f"{numbers.UNKNOWN} "
    rate = numbers.mbit(cell.bit_s)
    return Strong(f"{rate}*") if point in alike else f"{rate} "
