"""The heat map of a mesh: a row for each sender, a column for each receiver, and a cursor.

Each state has a mark beside its colour, except in the overview, where a cell is half a character.
"""

from dataclasses import dataclass
from math import floor
from typing import ClassVar, Final

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ...mesh.plan import Cell
from ...presets.verdict import FAIL_PERCENT
from ..kit.actions import movement_bindings
from ..kit.drawing.styled_lines import StyledWidget, shorten_middle
from ..kit.drawing.styles import MUTED
from .map_layout import (
    HEADER_LINES,
    Density,
    choose_layout,
    column_names,
    lay_out,
    numbered_columns,
)
from .mesh_state import MeshCell, MeshMap
from .mesh_verdict import CellState

_GROUNDS: Final[dict[CellState, str]] = {
    CellState.WAITING: "$foreground 6%",
    CellState.RUNNING: "$primary",
    CellState.PASS: "$success 24%",
    CellState.LIMIT: "$error 36%",
    CellState.NO_RESULT: "$foreground 26%",
    CellState.SELF: "$background",
}
# The strength of the ink, 0 to 1. It is black or white, whichever is readable on the ground.
_INKS: Final[dict[CellState, float]] = {
    CellState.WAITING: 0.3,
    CellState.RUNNING: 1.0,
    CellState.PASS: 0.75,
    CellState.SHORT: 0.95,
    CellState.FAIL: 1.0,
    CellState.LIMIT: 1.0,
    CellState.NO_RESULT: 1.0,
    CellState.SELF: 0.35,
}
_QUIET_INK: Final = 0.4  # for the marks of thousands of cells that pass
_SHORT_STEPS: Final = (
    "$warning 52%",
    "$warning 44%",
    "$warning 36%",
    "$warning 28%",
)  # from 50 % up to the pass mark
_FAIL_STEPS: Final = ("$error 90%", "$error 78%", "$error 66%")  # from nothing up to 50 %
_CURSOR: Final = "bold $background on $foreground"
_NAME_AT_CURSOR: Final = "bold $foreground"
_LARGEST: Final = 999


class HeatMap(StyledWidget, ScrollView, can_focus=True):
    """Shows a MeshMap. `cell` is the cell of the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *movement_bindings(up="move(-1, 0)", down="move(1, 0)", left="move(0, -1)", right="move(0, 1)"),
        *movement_bindings(page_up="page(-1)", page_down="page(1)", first="move(0, -9999)", last="move(0, 9999)"),
        Binding("ctrl+home", "move(-9999, -9999)", show=False),
        Binding("ctrl+end", "move(9999, 9999)", show=False),
    ]
    DEFAULT_CSS = """
    HeatMap {
        overflow-x: auto;
        overflow-y: auto;
        scrollbar-size: 1 1;
        background: $background;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
    }
    """

    @dataclass
    class Moved(Message):
        """The cursor has moved to another cell."""

        cell: Cell

    @dataclass
    class Selected(Message):
        """The cell of the cursor was clicked."""

        cell: Cell

    @dataclass
    class DensityChanged(Message):
        """The cells have another size."""

        density: Density

    def __init__(self) -> None:
        super().__init__()
        self._map = MeshMap()
        self._names: tuple[str, ...] = ()
        self._columns: tuple[str, ...] = ()
        self._layout = lay_out((), Density.VALUES, 0)
        self._density: Density | None = None
        self._row: int = 0
        self._column: int = 1
        self._cache: dict[tuple[str, str], Style] = {}

    @property
    def cell(self) -> Cell | None:
        """The cell of the cursor; None without hosts. A host and itself is one, too."""
        if not self._names:
            return None
        return Cell(self._names[self._row], self._names[self._column])

    @property
    def density(self) -> Density:
        """The size of the cells."""
        return self._layout.density

    def show_mesh(self, mesh: MeshMap) -> None:
        """Show these cells. The cursor stays on its hosts, even if they are at another place."""
        before = self.cell
        self._map = mesh
        names = tuple(host.name for host in mesh.hosts)
        if names != self._names:
            self._names = names
            if before is not None and before.sender in names and before.receiver in names:
                self._row, self._column = names.index(before.sender), names.index(before.receiver)
            else:
                self._row, self._column = 0, min(1, max(len(names) - 1, 0))
            self._lay_out()
        self.refresh()

    def set_density(self, density: Density | None) -> None:
        """Draw cells of a size; None for the largest that fits."""
        self._density = density
        self._lay_out()
        self.refresh()

    def show_next_density(self) -> None:
        """Draw the next smaller cells; after the smallest, the largest."""
        sizes = list(Density)
        self.set_density(sizes[(sizes.index(self.density) + 1) % len(sizes)])

    def move_to(self, cell: Cell) -> None:
        """Move the cursor to a cell."""
        if cell.sender in self._names and cell.receiver in self._names:
            self._move(self._names.index(cell.sender), self._names.index(cell.receiver))

    def action_move(self, down: int, right: int) -> None:
        """Move the cursor by rows and columns, up to the last."""
        self._move(self._row + down, self._column + right)

    def action_page(self, by: int) -> None:
        """Move the cursor by a page of rows."""
        layout = self._layout
        lines = max(self.scrollable_content_region.height - HEADER_LINES, 1)
        rows = lines // layout.cell_lines * layout.density.value.hosts
        self._move(self._row + by * max(rows, 1), self._column)

    def on_resize(self, _event: Resize) -> None:
        """Choose the size of cells again."""
        self._lay_out()

    def on_click(self, event: Click) -> None:
        """Move to a clicked cell; select it if it has the cursor already."""
        offset = event.get_content_offset(self)
        if offset is None or not self._names:
            return
        x = offset.x - self._layout.label
        line = offset.y - HEADER_LINES + round(self.scroll_y)
        if x < 0 or offset.y < HEADER_LINES:
            return
        rows = self._layout.rows_at(line)
        column = (x + round(self.scroll_x)) // self._layout.cell_width
        if not rows or column >= len(self._names):
            return
        if self._row in rows and column == self._column:
            self.post_message(self.Selected(Cell(self._names[self._row], self._names[column])))
        else:
            self._move(rows[0], column)

    def render_line(self, y: int) -> Strip:
        """Return the columns' names, or a line of cells."""
        region = self.scrollable_content_region
        width = region.width
        ground = self._style("")
        if not self._names:
            return Strip.blank(width, ground)
        left, label = round(self.scroll_x), self._layout.label
        if y < HEADER_LINES:
            head, cells = self._corner(), self._head_line()
        else:
            line = y - HEADER_LINES + round(self.scroll_y)
            rows = self._layout.rows_at(line)
            if not rows or line >= self._layout.lines:
                return Strip.blank(width, ground)
            head, cells = self._label(line, rows), self._cell_line(line, rows)
        strip = Strip(cells).crop(left, left + max(width - label, 0))
        return Strip([head, *strip]).adjust_cell_length(width, ground)

    def _move(self, row: int, column: int) -> None:
        if not self._names:
            return
        last = len(self._names) - 1
        at = min(max(row, 0), last), min(max(column, 0), last)
        if at == (self._row, self._column):
            return
        self._row, self._column = at
        self._scroll_to_cursor()
        self.refresh()
        self.post_message(self.Moved(Cell(self._names[self._row], self._names[self._column])))

    def _lay_out(self) -> None:
        width, height = self.size
        before = self._layout
        if self._density is None:
            self._layout = choose_layout(self._names, width, height)
        else:
            self._layout = lay_out(self._names, self._density, width, height)
        self._columns = column_names(self._names, self._layout.density)
        self.virtual_size = Size(self._layout.width, self._layout.height)
        self._scroll_to_cursor()
        if before.density is not self._layout.density:
            self.post_message(self.DensityChanged(self._layout.density))

    def _scroll_to_cursor(self) -> None:
        """Scroll as far as needed for the cursor to be in view."""
        region, layout = self.scrollable_content_region, self._layout
        room_x, room_y = region.width - layout.label, region.height - HEADER_LINES
        if room_x <= 0 or room_y <= 0:
            return
        x = self._column * layout.cell_width
        y, lines = layout.line_of(self._row), layout.cell_lines
        left = min(max(self.scroll_x, x + layout.cell_width - room_x), x)
        top = min(max(self.scroll_y, y + lines - room_y), y)
        if (left, top) != (self.scroll_x, self.scroll_y):
            self.scroll_to(left, top, animate=False, force=True)

    def _corner(self) -> Segment:
        return Segment(set_cell_size("from\\to", self._layout.label), self._style(MUTED))

    def _head_line(self) -> list[Segment]:
        """Return the names of the columns. The name of the cursor's column stands out."""
        width, count = self._layout.cell_width, len(self._names)
        muted, bright = self._style(MUTED), self._style(_NAME_AT_CURSOR)
        if self._columns or width >= Density.VALUES.value.width:
            texts = self._columns or tuple(str(at + 1) for at in range(count))
            return [
                Segment(f"{text:^{width}}", bright if at == self._column else muted)
                for at, text in enumerate(texts)
            ]
        line = numbered_columns(count, width, self._column)
        start = min(self._column * width, len(line) - len(str(self._column + 1)))
        end = start + len(str(self._column + 1))
        return [Segment(line[:start], muted), Segment(line[start:end], bright), Segment(line[end:], muted)]

    def _label(self, line: int, rows: tuple[int, ...]) -> Segment:
        """Return the name of a row's host. Of two rows, it is the one with the cursor, else the upper one."""
        layout = self._layout
        if line % layout.cell_lines != _first_line(layout.cell_lines):
            return Segment(" " * layout.label, self._style(""))
        row = self._row if self._row in rows else rows[0]
        number = f"{row + 1:>{layout.digits}} " if layout.digits else ""
        name = shorten_middle(self._names[row], layout.label - len(number) - 1)
        return Segment(f"{number}{name} ", self._style(_NAME_AT_CURSOR if row == self._row else MUTED))

    def _cell_line(self, line: int, rows: tuple[int, ...]) -> list[Segment]:
        """Return a line of the cells of a row, or of two rows in the overview."""
        if self._layout.density is Density.OVERVIEW:
            return self._half_cells(rows)
        row = rows[0]
        part = line % self._layout.cell_lines
        return [
            Segment(
                self._text(cell, part), self._cell_style(cell, is_cursor=(row, at) == (self._row, self._column))
            )
            for at, cell in enumerate(self._map.rows[row])
        ]

    def _half_cells(self, rows: tuple[int, ...]) -> list[Segment]:
        """Return the cells of two rows, one above the other in each character."""
        lower_row = next(iter(rows[1:]), None)
        result: list[Segment] = []
        for at, upper in enumerate(self._map.rows[rows[0]]):
            if at == self._column and self._row in rows:
                result.append(
                    Segment("▀" if self._row == rows[0] else "▄", self._style("$foreground on $background"))
                )
                continue
            lower = None if lower_row is None else self._map.rows[lower_row][at]
            above, below = self._ground(upper), "$background" if lower is None else self._ground(lower)
            result.append(Segment("▀", self._half_style(above, below)))
        return result

    def _text(self, cell: MeshCell, part: int) -> str:
        """Return a line of a cell: its mark, its percent, or the rate below it."""
        mark = cell.state.value
        match self._layout.density:
            case Density.MARKS:
                return f"{mark} "
            case Density.VALUES:
                return self._value_text(cell, mark, 3)
            case _:
                return self._large_text(cell, mark, part - _first_line(self._layout.cell_lines))

    def _large_text(self, cell: MeshCell, mark: str, part: int) -> str:
        """Return the percent of a large cell, the rate below it, or an empty line."""
        figure = cell.figure
        if part == 0:
            return self._value_text(cell, mark, 6)
        text = self._map.scale.number(figure.cell) if part == 1 and figure is not None else ""
        return f"{text:>7}  ".center(self._layout.cell_width)

    def _value_text(self, cell: MeshCell, mark: str, width: int) -> str:
        """Return the percent of a cell behind its mark. A number from the pass mark on has no mark."""
        if cell.percent is None:
            return f"{mark:^{self._layout.cell_width}}"
        text = percent_text(cell.percent, self._map.pass_percent) + (" %" if width > 3 else "")
        shown = f"{' ' if cell.state is CellState.PASS else mark}{text:>{width}} "
        return shown.ljust(self._layout.density.value.width).center(self._layout.cell_width)

    def _cell_style(self, cell: MeshCell, *, is_cursor: bool) -> Style:
        if is_cursor:
            return self._style(_CURSOR)
        is_quiet = self._layout.density is Density.MARKS and cell.state is CellState.PASS
        return self._inked(self._ground(cell), _QUIET_INK if is_quiet else _INKS[cell.state])

    def _ground(self, cell: MeshCell) -> str:
        """Return the colour of a cell: the lower its rate, the deeper."""
        if cell.percent is None or cell.state in {CellState.PASS, CellState.LIMIT}:
            return _GROUNDS.get(cell.state, "$background")
        if cell.state is CellState.FAIL:
            return _FAIL_STEPS[_step(cell.percent / FAIL_PERCENT, len(_FAIL_STEPS))]
        span = max(self._map.pass_percent - FAIL_PERCENT, 1.0)
        return _SHORT_STEPS[_step((cell.percent - FAIL_PERCENT) / span, len(_SHORT_STEPS))]

    def _inked(self, ground: str, ink: float) -> Style:
        """Return the style of text on a ground."""
        key = (self._theme, f"{ink} {ground}")
        if key not in self._cache:
            color = self._color(ground)
            text = color + color.get_contrast_text(ink)
            self._cache[key] = Style(color=text.rich_color, bgcolor=color.rich_color, bold=ink == 1.0 or None)
        return self._cache[key]

    def _half_style(self, above: str, below: str) -> Style:
        """Return the style of a character whose upper half has one ground and whose lower half another."""
        key = (self._theme, f"{above} / {below}")
        if key not in self._cache:
            self._cache[key] = Style(color=self._color(above).rich_color, bgcolor=self._color(below).rich_color)
        return self._cache[key]

    def _color(self, ground: str) -> Color:
        """Return the colour of a ground, mixed with the widget's own."""
        return (self.visual_style + self._resolve_style(f"on {ground}")).background or Color(0, 0, 0)

    @property
    def _theme(self) -> str:
        return self.app.theme  # pyright: ignore[reportUnknownMemberType] (Textual: App of what)

    def _style(self, style: str) -> Style:
        """Return a style of Rich for one of ours, on the widget's ground, in the current theme."""
        key = (self._theme, style)
        if key not in self._cache:
            self._cache[key] = (self.visual_style + self._resolve_style(style)).rich_style
        return self._cache[key]


def percent_text(percent: float, pass_percent: float) -> str:
    """Return percent as a whole number of at most three digits. A value below a mark is never rounded up to it."""
    is_short = any(percent < mark <= round(percent) for mark in (pass_percent, FAIL_PERCENT))
    value = floor(percent) if is_short else round(percent)
    return str(min(value, _LARGEST))


def _first_line(lines: int) -> int:
    """Return the line of a cell that shows its percent. The rate is below it."""
    return max((lines - 1) // 2, 0)


def _step(share: float, steps: int) -> int:
    return min(max(int(share * steps), 0), steps - 1)
