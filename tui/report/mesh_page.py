"""The report of a mesh: one HTML page with what is slow, the map of all cells, and every number.

`python -m linkgauge.tui.report.mesh_page GROUP FILE` writes the page of a stored mesh.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...engine.model.errors import LinkgaugeError
from ...engine.results.run_log import RunLog
from ...mesh.figures import CellFigure, MeshFinding, MeshMatrix
from ...mesh.plan import Cell
from ...mesh.reading.comparison import MeshComparison
from ...presets.diagnosis.finding_words import why_words
from ..mesh.mesh_spec import MeshSpec
from ..mesh.mesh_verdict import CellScale, CellState, legend
from ..mesh.mesh_words import (
    comparison_lines,
    conclusion_lines,
    counted_words,
    figure_words,
    headline,
    value_words,
)
from ..mesh.stored_mesh import find_mesh, load_matrix
from ..session.storage import data_dir
from ..words import numbers
from ..words.table import Column, Table
from .html_templates import render, write_page

_COLUMNS: Final = (
    Column("from", is_text=True),
    *map(Column, ("to", "result", "of expected", "beside others", "why")),
    Column("run", is_text=True),
)
_CLASSES: Final = {
    CellState.PASS: "good",
    CellState.SHORT: "slow",
    CellState.FAIL: "bad",
    CellState.LIMIT: "bad",
    CellState.NO_RESULT: "absent",
    CellState.WAITING: "waiting",
}
_MOST_NUMBERS: Final = 16  # more columns do not fit on a page with their numbers


@dataclass(frozen=True, slots=True)
class _MapCell:
    """A cell of the map: its text, what a pointer shows, and its class."""

    text: str
    title: str
    css_class: str


@dataclass(frozen=True, slots=True)
class _MapRow:
    """A row of the map: the sender and its cells."""

    number: int
    name: str
    group: str
    cells: tuple[_MapCell, ...]


def write_mesh_report(
    path: Path,
    spec: MeshSpec,
    matrix: MeshMatrix,
    findings: Sequence[MeshFinding],
    comparison: MeshComparison | None = None,
) -> None:
    """Write the page of a mesh; `comparison` is with the last mesh of the same hosts.

    Raises:
        RunLogError: The file cannot be written.
    """
    from ...mesh.reading import order_hosts

    scale, order = CellScale(matrix, spec.pass_percent), order_hosts(matrix)
    page = render(
        "mesh.html.j2",
        title=f"Mesh {matrix.group}",
        description=_description(spec, matrix),
        headline=headline(matrix, spec.pass_percent),
        conclusions=[
            *conclusion_lines(matrix, findings, spec.pass_percent),
            *(comparison_lines(comparison) if comparison is not None else ()),
        ],
        map_title="From row to column" + (f": {scale.unit}" if _has_numbers(order) else ""),
        map_columns=list(range(1, len(order) + 1)),
        map_rows=[_map_row(matrix, scale, order, number) for number in range(len(order))],
        legend=legend(scale, spec.pass_percent),
        results=Table(_COLUMNS, [_cells(figure) for _, figure in sorted(matrix.figures.items())]),
    )
    write_page(path, page)


def _description(spec: MeshSpec, matrix: MeshMatrix) -> str:
    plan = spec.plan
    groups = {host.group for host in matrix.hosts if host.group is not None}
    parts = [
        f"{numbers.quantity(len(matrix.hosts), 'host')}, tests of {numbers.duration(plan.base.duration_ns)}",
        numbers.workload(plan.base),
        numbers.sessions(plan.base.settings.sessions),
        f"order {plan.mode.value}, seed {plan.seed}",
    ]
    if groups:
        parts.append(numbers.quantity(len(groups), "group"))
    if plan.preset is not None:
        parts.append(f"preset {plan.preset}")
    return "; ".join(parts)


def _has_numbers(order: Sequence[str]) -> bool:
    return len(order) <= _MOST_NUMBERS


def _map_row(matrix: MeshMatrix, scale: CellScale, order: Sequence[str], number: int) -> _MapRow:
    sender = order[number]
    group = next((host.group for host in matrix.hosts if host.name == sender), None)
    cells = tuple(_map_cell(matrix, scale, Cell(sender, receiver), _has_numbers(order)) for receiver in order)
    return _MapRow(number + 1, sender, group or "", cells)


def _map_cell(matrix: MeshMatrix, scale: CellScale, cell: Cell, has_number: bool) -> _MapCell:
    if cell.sender == cell.receiver:
        return _MapCell("", "", "self")
    figure, mark = matrix.figures.get(cell), scale.state(cell)
    words = "not measured" if figure is None else figure_words(figure)
    character = "" if mark is CellState.PASS else mark.value
    text = f"{scale.number(cell)} {character}".strip() if has_number else character
    return _MapCell(text, f"{cell.sender} to {cell.receiver}: {words}", _CLASSES[mark])


def _cells(figure: CellFigure) -> tuple[str, ...]:
    result = figure_words(figure) if figure.failure is not None else counted_words(figure)
    beside = value_words(figure, figure.first_value) if figure.is_isolated else ""
    percent = "" if figure.percent is None else numbers.percent(figure.percent)
    return (*figure.cell, result, percent, beside, why_words(figure.why) if figure.why else "", figure.run_id or "")


def main() -> None:
    """Write the page of a stored mesh; an error becomes the last line of stderr."""
    from ...mesh.reading import find_faults

    group, path = sys.argv[1:]
    try:
        spec = find_mesh(group)
        with RunLog.open(data_dir()) as log:
            matrix = load_matrix(log, spec)
        write_mesh_report(Path(path), spec, matrix, find_faults(matrix))
    except LinkgaugeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
