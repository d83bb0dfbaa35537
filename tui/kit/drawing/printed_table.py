"""A table in a terminal. If there is no room for all of its columns, some are left out, and no number is cut."""

from collections.abc import Iterator
from typing import Final

from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.text import Text

from ...words.table import Column, Strong, Table

_NAMES_WIDTH: Final = 7  # cells of the names of rows, so that tables of a result stand below each other
_MIN_WRAPPED: Final = 14  # cells of a column that wraps
_GAP: Final = 2


class PrintedTable:
    """A table as Rich prints it, with as many columns as the width has room for."""

    def __init__(self, table: Table, *, names_width: int = 0) -> None:
        """Set the table, and the minimum width of its first column if that has text."""
        self._columns = {number: column for number, column in enumerate(table.columns) if not column.is_extra}
        self._rows = table.rows
        self._names_width = names_width

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the table."""
        columns = dict(self._columns)
        for number in sorted((n for n, column in columns.items() if column.rank), key=lambda n: columns[n].rank):
            if self._min_width(columns) <= options.max_width:
                break
            del columns[number]
        printed = rich_table.Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
        for number, column in columns.items():
            printed.add_column(
                Text(column.title),
                justify="left" if column.is_text else "right",
                min_width=self._title_width(number, column),
                no_wrap=not column.wraps,
                overflow="fold" if column.wraps else "ellipsis",
                style="bold" if column.is_key else "dim" if number == 0 else "",
            )
        for row in self._rows:
            cells = (row[number] for number in columns)
            printed.add_row(*(Text(cell, "bold" if isinstance(cell, Strong) else "") for cell in cells))
        yield printed

    def _title_width(self, number: int, column: Column) -> int:
        width = max(map(cell_len, column.title.split("\n")))
        return max(width, self._names_width) if number == 0 and column.is_text else width

    def _min_width(self, columns: dict[int, Column]) -> int:
        """Return the width below which a cell of these columns would be cut."""
        total = _GAP * (len(columns) - 1)
        for number, column in columns.items():
            width = max([self._title_width(number, column), *(cell_len(row[number]) for row in self._rows)])
            total += min(width, _MIN_WRAPPED) if column.wraps else width
        return total


def indented(table: Table) -> Padding:
    """Return a table of a result with its margin."""
    return Padding(PrintedTable(table, names_width=_NAMES_WIDTH), (0, 0, 0, 2), expand=False)
