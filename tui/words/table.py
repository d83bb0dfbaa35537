"""A table in plain values: columns, and rows of cells that are ready to print. Pure.

The words of results make tables. A terminal, a page and the app each print every table with the same loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


class Strong(str):
    """A cell that stands out from the others of its column."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers, which are aligned on the right and never broken; or of text, on the left.

    A narrow terminal leaves out the columns with a `rank`, the lowest rank first. No terminal has the `is_extra`
    columns. The cells of a column that `wraps` may be broken. The column that matters most `is_key`.
    """

    title: str = ""
    is_text: bool = False
    wraps: bool = False
    rank: int = 0
    is_key: bool = False
    is_extra: bool = False


NAMES: Final = Column(is_text=True)
"""The first column of most tables: the names of the rows, without a heading."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with a cell for each column. The title is printed if several tables need one."""

    columns: tuple[Column, ...]
    rows: Sequence[tuple[str, ...]]
    title: str = ""
