"""The size and place of each cell of a mesh's heat map, for a number of hosts and a size of the screen. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

HEADER_LINES: Final = 1
_NEARLY_ALL: Final = 0.75  # with this share of the rows in view, larger cells are worth scrolling
_LARGEST_CELL: Final = (18, 4)  # columns and lines, for a few hosts on a large screen
_WIDE: Final = 110
_HUGE: Final = 160
_TALL: Final = 28
_LONGEST_NAME: Final = 18
_LABEL_SHARE: Final = 4  # a row's label takes at most one part in so many of the width
_EVERY: Final = 5  # of narrow columns, every fifth has its number


@dataclass(frozen=True, slots=True)
class _Size:
    """The size of a cell, in characters. `hosts` is the number of rows of the matrix in a line of the screen."""

    width: int
    lines: int
    hosts: int = 1


class Density(Enum):
    """The kind of a cell, by the room that it has."""

    RATES = _Size(9, 2)
    """Percent, and the rate below it."""
    VALUES = _Size(5, 1)
    """Percent."""
    MARKS = _Size(2, 1)
    """A mark on a colour."""
    OVERVIEW = _Size(1, 1, 2)
    """Half a character, of a colour."""


@dataclass(frozen=True, slots=True)
class MapLayout:
    """The places of rows and columns.

    Args:
        density: the kind of cells.
        count: the number of hosts.
        label: the width of the rows' labels, with the gap to the cells.
        digits: the width of a host's number in its label; 0 if columns have names.
        cell_width: the columns of the screen for a cell.
        cell_lines: the lines of the screen for a cell.
    """

    density: Density
    count: int
    label: int
    digits: int
    cell_width: int
    cell_lines: int

    @property
    def width(self) -> int:
        """The columns of the screen for the whole map."""
        return self.label + self.count * self.cell_width

    @property
    def lines(self) -> int:
        """The lines of the screen for the rows."""
        return -(-self.count // self.density.value.hosts) * self.cell_lines

    @property
    def height(self) -> int:
        """The lines of the screen for the whole map."""
        return HEADER_LINES + self.lines

    def line_of(self, row: int) -> int:
        """Return the first line of a row, counted from the first row's."""
        return row // self.density.value.hosts * self.cell_lines

    def rows_at(self, line: int) -> tuple[int, ...]:
        """Return the rows of a line, the upper one first; none past the last."""
        hosts = self.density.value.hosts
        first = line // self.cell_lines * hosts
        return tuple(row for row in range(first, first + hosts) if row < self.count)


def lay_out(names: Sequence[str], density: Density, width: int, height: int = 0) -> MapLayout:
    """Return the layout of hosts at a density. Cells with rates grow if there is room."""
    digits = 0 if column_names(names, density) else len(str(len(names)))
    longest = max((len(name) for name in names), default=0)
    name_room = min(longest, _LONGEST_NAME, max(width // _LABEL_SHARE - digits - 1, 4))
    label = max(name_room + 1 + (digits + 1 if digits else 0), len("from/to") + 1)
    cell_width, cell_lines = density.value.width, density.value.lines
    if density is Density.RATES and names:
        cell_width = max(cell_width, min((width - label) // len(names), _LARGEST_CELL[0]))
        cell_lines = max(cell_lines, min((height - HEADER_LINES) // len(names), _LARGEST_CELL[1]))
    return MapLayout(density, len(names), label, digits, cell_width, cell_lines)


def choose_layout(names: Sequence[str], width: int, height: int) -> MapLayout:
    """Return the layout with the largest cells that nearly all fit; if none does, one that scrolls."""
    layouts = {density: lay_out(names, density, width, height) for density in Density}
    for density in (Density.RATES, Density.VALUES, Density.MARKS):
        layout = layouts[density]
        in_view = height - HEADER_LINES if density is Density.RATES else (height - HEADER_LINES) / _NEARLY_ALL
        if layout.width <= width and layout.lines <= in_view:
            return layout
    overview = layouts[Density.OVERVIEW]
    if overview.width <= width and overview.height <= height:
        return overview
    return layouts[Density.VALUES if layouts[Density.VALUES].width <= width else Density.MARKS]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Where the panels are: beside the map, or below it."""

    is_beside: bool
    panels: int
    """The columns or lines of the screen for the panels."""


def arrange(names: Sequence[str], width: int, height: int) -> Arrangement:
    """Return the place of the panels that leaves the map larger cells; `height` is without head and footer."""
    beside = Arrangement(is_beside=True, panels=60 if width >= _HUGE else 43)
    below = Arrangement(is_beside=False, panels=6 if height < _TALL else 10)
    first, second = (beside, below) if width >= _HUGE else (below, beside)
    if width < _WIDE:
        return below
    return max((first, second), key=lambda each: _suits(names, each, width, height))


def _suits(names: Sequence[str], arrangement: Arrangement, width: int, height: int) -> tuple[bool, int]:
    """Return how well the map fits: whether nearly all of it is in view, and how wide its cells are."""
    if arrangement.is_beside:
        width -= arrangement.panels
    else:
        height -= arrangement.panels
    layout = choose_layout(names, width, height)
    fits = layout.width <= width and layout.lines * _NEARLY_ALL <= height - HEADER_LINES
    return fits, layout.density.value.width


def column_names(names: Sequence[str], density: Density) -> tuple[str, ...]:
    """Return the part of each name that differs, for the head of a column: `01` of `db-01`; () if too long."""
    room = density.value.width - 1
    if density in {Density.MARKS, Density.OVERVIEW} or not names:
        return ()
    if max(map(len, names)) <= room:
        return tuple(names)
    start = _cut_before_digits(names[0], _shared_length(names))
    end = _shared_length([name[::-1] for name in names])
    while end and names[0][len(names[0]) - end].isalnum():  # `01.lan` of `db-01.lan` loses `.lan`, but not a digit
        end -= 1
    parts = tuple(name[start : len(name) - end] for name in names)
    if len(set(parts)) < len(names) or not all(parts) or max(map(len, parts)) > room:
        return ()
    return parts


def numbered_columns(count: int, cell_width: int, cursor: int | None) -> str:
    """Return the line above narrow columns: the numbers of the first, every fifth, and the cursor's column.

    Each begins at its column, or further to the left if the line would end before the number.
    """
    room = count * cell_width

    def place(text: str) -> int:
        return min((int(text) - 1) * cell_width, room - len(text))

    texts = [str(at + 1) for at in range(count) if at == 0 or (at + 1) % _EVERY == 0]
    # The last number and the cursor's are whole: numbers that would touch them give way.
    for text in (*texts[-1:], *([] if cursor is None else [str(cursor + 1)])):
        start, end = place(text), place(text) + len(text)
        left = [other for other in texts if place(other) + len(other) < start]
        right = [other for other in texts if min(place(other), (int(other) - 1) * cell_width - 1) > end]
        texts = [*left, text, *right]
    line = ""
    for text in texts:
        line = f"{line:<{place(text)}}{text}"
    return line.ljust(room)


def _shared_length(names: Sequence[str]) -> int:
    """Return the length of the common beginning of names."""
    return next(
        (at for at, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1),
        min(map(len, names)),
    )


def _cut_before_digits(name: str, end: int) -> int:
    """Return the place of the number at the end of a common beginning: `db-1` of `db-11` and `db-12` is `db-`."""
    while end and name[end - 1].isdigit():
        end -= 1
    return end
