"""A preset's sheet as text in columns, for `presets show` and for the app's list of presets."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ....presets.datasheet import Section, Sheet, SheetLine
from ...words.numbers import sanitize

_STYLES: Final = {"plain": "", "head": "dim", "result": "bold", "slip": "yellow", "note": "dim italic"}
_SLIP: Final = "▲ "
_BELOW: Final = 6
_GAP: Final = 2


def sheet_parts(sheet: Sheet) -> Iterator[RenderableType]:
    """Yield the parts of a sheet in order. The mark of a slip in its document is readable without colour."""
    yield Text.assemble((sheet.id, "bold"), "  ", sanitize(sheet.name))
    for section in sheet.sections:
        yield Text()
        yield Text(sanitize(section.title), "bold")
        yield from _section(section)


def _section(section: Section) -> Iterator[Padding]:
    """Yield a section's lines with their cells in columns. A line without cells is text between them.

    Without a heading line, cells after the first are explanations: they are below it, as one text.
    """
    labels = max((cell_len(_label(line)) for line in section.lines if line.cells), default=0)
    if any(line.kind == "head" for line in section.lines):
        yield _indented(_PrintedTable(section.lines, labels))
        return
    if any(len(line.cells) > 1 for line in section.lines):
        yield from _values_with_explanations(section.lines, labels)
        return
    for has_cells, lines in groupby(section.lines, key=lambda line: bool(line.cells)):
        if has_cells:
            yield _indented(_columns(list(lines), labels))
        else:
            for line in lines:
                yield _indented(Text(_label(line), _STYLES[line.kind]))


def _values_with_explanations(lines: Sequence[SheetLine], labels: int) -> Iterator[Padding]:
    values = max(cell_len(sanitize(line.cells[0])) for line in lines if line.cells)
    for line in lines:
        if not line.cells:
            yield _indented(Text(_label(line), _STYLES[line.kind]), _BELOW)
            continue
        row = Table.grid(padding=(0, _GAP, 0, 0))
        row.add_column(overflow="fold")  # only this column shrinks, so that values stay aligned
        row.add_column(min_width=values, no_wrap=True, style="bold")
        row.add_row(_padded(_label(line), labels), sanitize(line.cells[0]), style=_STYLES[line.kind])
        yield _indented(row)
        if line.cells[1:]:
            yield _indented(Text(sanitize(", ".join(line.cells[1:])), _STYLES[line.kind]), _BELOW)


def _columns(lines: Sequence[SheetLine], labels: int) -> Table:
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    for _ in range(2):
        grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row(_padded(_label(line), labels), sanitize(line.cells[0]), style=_STYLES[line.kind])
    return grid


class _PrintedTable:
    """A document's table. Columns that do not fit go below the others, so that no number is broken."""

    def __init__(self, lines: Sequence[SheetLine], labels: int) -> None:
        self._lines = lines
        self._labels = labels

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table in as many parts as the width needs."""
        for number, columns in enumerate(self._parts(options.max_width)):
            if number:
                yield Text()
            yield self._part(columns)

    def _parts(self, max_width: int) -> Iterator[list[int]]:
        room = max_width - self._labels - _GAP
        part: list[int] = []
        used = 0
        for column in range(max(len(line.cells) for line in self._lines)):
            width = self._narrowest(column) + _GAP
            if part and used + width > room + _GAP:
                yield part
                part, used = [], 0
            part.append(column)
            used += width
        yield part

    def _narrowest(self, column: int) -> int:
        """Return the minimum width of a column. A heading may be broken between words."""
        parts = (
            part
            for line in self._lines
            for part in (
                sanitize(line.cells[column]).split() if line.kind == "head" else [sanitize(line.cells[column])]
            )
        )
        return max(map(cell_len, parts), default=0)

    def _part(self, columns: list[int]) -> Table:
        grid = Table.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
        grid.add_column(overflow="fold", min_width=self._labels)
        for column in columns:
            grid.add_column(overflow="fold", min_width=self._narrowest(column))
        for line in self._lines:
            cells = (sanitize(line.cells[column]) for column in columns)
            grid.add_row(_label(line), *cells, style=_STYLES[line.kind])
        return grid


def _label(line: SheetLine) -> str:
    return sanitize(f"{_SLIP}{line.label}" if line.kind == "slip" else line.label)


def _padded(text: str, cells: int) -> str:
    return text + " " * (cells - cell_len(text))


def _indented(part: RenderableType, cells: int = 2) -> Padding:
    return Padding(part, (0, 0, 0, cells))
