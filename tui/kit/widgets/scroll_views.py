"""Scrolling views that draw only their visible lines: a list with a cursor, and a page of text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.console import RenderableType
from textual.binding import BindingType
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style

from ..actions import SCROLL_BINDINGS, movement_bindings
from ..drawing.styled_lines import StyledWidget

_CURSOR = "cursor-list--cursor"


class CursorList(StyledWidget, ScrollView, can_focus=True):
    """A list of `row_count` rows below a fixed header. `highlighted` is the row of the cursor, if any.

    Only rows in view are made. To move the cursor takes 2.6 ms of CPU. In Textual's DataTable of 300 rows it takes
    4.4 ms, in its OptionList 16 ms (bench/own_widgets.py).

    A subclass returns rows from `draw`, says by `is_selectable` which of them can have the cursor, and calls
    `set_rows` after each change of them.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {_CURSOR}
    BINDINGS: ClassVar[list[BindingType]] = movement_bindings(
        up="cursor_up", down="cursor_down", page_up="page_up", page_down="page_down", first="first", last="last"
    )
    DEFAULT_CSS = """
    CursorList {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
        & .cursor-list--cursor { color: $foreground; background: $block-cursor-blurred-background; }
        &:focus .cursor-list--cursor { background: $block-cursor-background 45%; text-style: bold; }
    }
    """

    @dataclass
    class Moved(Message):
        """The cursor has moved to another row."""

        highlighted: int | None

    @dataclass
    class Selected(Message):
        """The row of the cursor was clicked."""

        row: int

    def __init__(self, *, header_rows: int = 0, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self.row_count = 0
        self.highlighted: int | None = None
        self._header_rows = header_rows

    def draw(self, number: int, width: int) -> Content:
        """Return a row for `width` cells."""
        raise NotImplementedError

    def draw_header(self, width: int) -> Content:
        """Return the line above the rows."""
        del width
        return Content("")

    def is_selectable(self, number: int) -> bool:
        """Return whether a row can have the cursor."""
        del number
        return True

    @property
    def visible_rows(self) -> int:
        """The number of rows in view."""
        return max(self.scrollable_content_region.height - self._header_rows, 1)

    def set_rows(self, count: int, highlighted: int | None) -> None:
        """Show `count` rows, with the cursor on `highlighted` or the next selectable row."""
        self.row_count = count
        self.highlighted = None if highlighted is None else self._next(min(max(highlighted, 0), count - 1), 1)
        if self.highlighted is None:
            self.highlighted = self._next(0, 1)
        self._fit()
        self._scroll_to_cursor()
        self.refresh()

    def move_to(self, at: int | None) -> None:
        """Move the cursor to a row, and scroll to it."""
        if at is None or at == self.highlighted:
            return
        before, self.highlighted = self.highlighted, at
        self._scroll_to_cursor()
        for number in (before, at):
            if number is not None:
                self.refresh(Region(0, self._header_rows + number - self._above, self.size.width, 1))
        self.post_message(self.Moved(at))

    def action_cursor_up(self) -> None:
        """Go to the row above, or from the first to the last."""
        at = None if self.highlighted is None else self._next(self.highlighted - 1, -1)
        self.move_to(self._next(self.row_count - 1, -1) if at is None else at)

    def action_cursor_down(self) -> None:
        """Go to the row below, or from the last to the first."""
        at = None if self.highlighted is None else self._next(self.highlighted + 1, 1)
        self.move_to(self._next(0, 1) if at is None else at)

    def action_page_up(self) -> None:
        """Go up by a page."""
        self.move_to(self._next(max((self.highlighted or 0) - self.visible_rows, 0), 1))

    def action_page_down(self) -> None:
        """Go down by a page."""
        self.move_to(self._next(min((self.highlighted or 0) + self.visible_rows, self.row_count - 1), -1))

    def action_first(self) -> None:
        """Go to the first row."""
        self.move_to(self._next(0, 1))

    def action_last(self) -> None:
        """Go to the last row."""
        self.move_to(self._next(self.row_count - 1, -1))

    def render_line(self, y: int) -> Strip:
        """Return the header, or a row in view."""
        width = self.scrollable_content_region.width
        if y < self._header_rows:
            return self.to_strip(self.draw_header(width), width)
        number = y - self._header_rows + self._above
        if number >= self.row_count:
            return self.to_strip(None, width)
        return self.to_strip(
            self.draw(number, width), width, self._cursor_style if number == self.highlighted else None
        )

    def on_resize(self, _event: Resize) -> None:
        """Scroll to the cursor in the new height."""
        self._fit()
        self._scroll_to_cursor()

    def on_click(self, event: Click) -> None:
        """Move to a clicked row, or select it if it has the cursor already."""
        offset = event.get_content_offset(self)
        number = -1 if offset is None else offset.y - self._header_rows + self._above
        if not 0 <= number < self.row_count or not self.is_selectable(number):
            return
        if number == self.highlighted:
            self.post_message(self.Selected(number))
        else:
            self.move_to(number)

    @property
    def _cursor_style(self) -> Style:
        """The row of the cursor: reversed in the terminal's colours, which do not mix, and without colours."""
        if not self.app.native_ansi_color:  # pyright: ignore[reportUnknownMemberType] (Textual: App of what)
            return self.get_visual_style(_CURSOR)
        return self.visual_style + Style(reverse=True, bold=self.has_focus)

    @property
    def _above(self) -> int:
        return round(self.scroll_y)

    def _next(self, number: int, by: int) -> int | None:
        """Return a row or the next selectable one in a direction, or None."""
        while 0 <= number < self.row_count:
            if self.is_selectable(number):
                return number
            number += by
        return None

    def _fit(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, self.row_count + self._header_rows)

    def _scroll_to_cursor(self) -> None:
        """Scroll to the cursor. For the first selectable row, also show the headings above it."""
        if not self.size.height:
            return
        if self.highlighted is None or self.highlighted == self._next(0, 1):
            self.scroll_to(y=0, animate=False, force=True)
        elif self.highlighted < self._above:
            self.scroll_to(y=self.highlighted, animate=False, force=True)
        elif self.highlighted >= self._above + self.visible_rows:
            self.scroll_to(y=self.highlighted - self.visible_rows + 1, animate=False, force=True)


LineLayout = Callable[[int], Sequence[Content]]


class TextPage(StyledWidget, ScrollView, can_focus=True):
    """Shows a Rich renderable, or lines from a function of the width.

    Another text of 200 lines takes 13.5 ms of CPU, and 17.4 ms in Textual's Static (bench/own_widgets.py).
    """

    BINDINGS: ClassVar[list[BindingType]] = SCROLL_BINDINGS
    DEFAULT_CSS = """
    TextPage {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        scrollbar-background: $surface;
        scrollbar-background-hover: $surface;
        scrollbar-background-active: $surface;
    }
    """

    def __init__(self, *, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self._text: RenderableType | LineLayout | None = None
        self._strips: list[Strip] = []

    def show_text(self, text: RenderableType | LineLayout) -> None:
        """Show this text from its beginning."""
        self._text = text
        self._lay_out()
        self.scroll_to(y=0, animate=False, force=True)

    def on_resize(self, _event: Resize) -> None:
        """Lay the text out for its new width."""
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        """Return a line in view."""
        number, width = y + round(self.scroll_y), self.scrollable_content_region.width
        ground = self.visual_style.rich_style
        if number >= len(self._strips):
            return Strip.blank(width, ground)
        return self._strips[number].apply_style(ground).adjust_cell_length(width, ground)

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        if self._text is None or width <= 0:
            return
        if callable(self._text):
            self._strips = [self.to_strip(line, width) for line in self._text(width)]
        else:
            console = self.app.console  # pyright: ignore[reportUnknownMemberType] (Textual: App of what)
            options = console.options.update(width=width, height=None, highlight=False)
            self._strips = [Strip(line) for line in console.render_lines(self._text, options, pad=False)]
        self.virtual_size = Size(width, len(self._strips))
        self.refresh()
