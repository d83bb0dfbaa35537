"""A mesh's result in a terminal: the map of all cells, what is slow, and what has no result."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ....mesh.figures import MeshFinding, MeshMatrix
from ....mesh.plan import Cell
from ....presets.verdict import DEFAULT_PASS_PERCENT
from ...mesh.mesh_verdict import CellScale, CellState, legend
from ...mesh.mesh_words import conclusion_lines, headline
from ...words import numbers

_STYLES: Final = {
    CellState.SHORT: "yellow",
    CellState.FAIL: "bold red",
    CellState.LIMIT: "bold red",
    CellState.NO_RESULT: "bold red",
}
_LONGEST_NAME: Final = 24
_MARGIN: Final = 5  # the number of a row, and spaces


def mesh_parts(
    matrix: MeshMatrix,
    findings: Sequence[MeshFinding],
    order: Sequence[str],
    *,
    width: int,
    pass_percent: float = DEFAULT_PASS_PERCENT,
) -> Iterator[RenderableType]:
    """Yield the parts of the result.

    Args:
        matrix: the results.
        findings: what is slow.
        order: the hosts' names in the order of rows and columns.
        width: the width of the terminal in cells; the map has no numbers if they do not fit.
        pass_percent: the pass mark in percent of the expected rate.
    """
    scale = CellScale(matrix, pass_percent)
    names = max((len(name) for name in order), default=0)
    longest = max((len(scale.number(cell)) for cell in matrix.figures), default=0)
    has_numbers = min(names, _LONGEST_NAME) + _MARGIN + len(order) * (longest + 2) <= width
    yield Text(headline(matrix, pass_percent))
    yield Text()
    values = f": {scale.unit}" if has_numbers else ""
    yield Text(f"from row to column{values}", "dim")
    table = _value_table(scale, order) if has_numbers else _mark_table(scale, order)
    yield Padding(table, (0, 0, 0, 2), expand=False)
    yield Text(legend(scale, pass_percent), "dim")
    yield Text()
    for line in conclusion_lines(matrix, findings, pass_percent):
        yield Text(numbers.sanitize(line))


def _value_table(scale: CellScale, order: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("", justify="right", style="dim")
    table.add_column("", style="dim", max_width=_LONGEST_NAME, overflow="ellipsis", no_wrap=True)
    for place in range(1, len(order) + 1):
        table.add_column(f"{place} ", justify="right")
    for place, sender in enumerate(order, 1):
        cells = [_value(scale, Cell(sender, receiver)) for receiver in order]
        table.add_row(str(place), Text(sender), *cells)
    return table


def _value(scale: CellScale, cell: Cell) -> Text:
    if cell.sender == cell.receiver:
        return Text("  ")
    mark = scale.state(cell)
    character = " " if mark is CellState.PASS else mark.value
    return Text(f"{scale.number(cell)}{character}", _STYLES.get(mark, ""))


def _mark_table(scale: CellScale, order: Sequence[str]) -> Table:
    """Return a map with a character for each cell; its columns are in the order of its rows."""
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1, 0, 0))
    table.add_column(justify="right", style="dim")
    table.add_column(style="dim", max_width=_LONGEST_NAME, overflow="ellipsis", no_wrap=True)
    table.add_column(no_wrap=True)
    for place, sender in enumerate(order, 1):
        marks = Text()
        for receiver in order:
            mark = scale.state(Cell(sender, receiver))
            is_self = sender == receiver
            marks.append(" " if is_self else mark.value, "" if is_self else _STYLES.get(mark, ""))
        table.add_row(str(place), Text(sender), marks)
    return table
