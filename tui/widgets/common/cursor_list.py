"""A list of lines with a cursor: only those in sight are made, however many there are."""

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ...rendering.styled_lines import StyledWidget

_CURSOR = "cursor-list--cursor"


class CursorList(StyledWidget, ScrollView, can_focus=True):
    """A list of `count` lines, below a head that stays where it is; `at` is the line of the cursor, if any.

    Whoever makes one says what its lines are (`draw`) and on which of them the cursor may stand (`can_stand`), and
    calls `fill` once that has changed.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {_CURSOR}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "cursor_up", show=False),
        Binding("down", "cursor_down", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
        Binding("home", "first", show=False),
        Binding("end", "last", show=False),
    ]
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
        """The cursor stands on another line."""

        highlighted: int | None

    @dataclass
    class Selected(Message):
        """The line of the cursor was clicked on."""

        row: int

    def __init__(self, *, header_rows: int = 0, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self.row_count = 0
        self.highlighted: int | None = None
        self._head_rows = header_rows

    def draw(self, number: int, width: int) -> Content:
        """Return a line for `width` cells."""
        raise NotImplementedError

    def draw_header(self, width: int) -> Content:
        """Return the line above the list."""
        del width
        return Content("")

    def is_selectable(self, number: int) -> bool:
        """Tell whether the cursor may stand on a line."""
        del number
        return True

    @property
    def visible_rows(self) -> int:
        """How many lines are in sight."""
        return max(self.scrollable_content_region.height - self._head_rows, 1)

    def set_rows(self, count: int, highlighted: int | None) -> None:
        """Show so many lines, with the cursor on one of them, or on the next that it may stand on."""
        self.row_count = count
        self.highlighted = None if highlighted is None else self._next(min(max(highlighted, 0), count - 1), 1)
        if self.highlighted is None:
            self.highlighted = self._next(0, 1)
        self._fit()
        self._see()
        self.refresh()

    def move_to(self, at: int | None) -> None:
        """Put the cursor on a line, and have that in sight."""
        if at is None or at == self.highlighted:
            return
        before, self.highlighted = self.highlighted, at
        self._see()
        for number in (before, at):
            if number is not None:
                self.refresh(Region(0, self._head_rows + number - self._above, self.size.width, 1))
        self.post_message(self.Moved(at))

    def action_cursor_up(self) -> None:
        """Go to the line above; from the first one to the last."""
        at = None if self.highlighted is None else self._next(self.highlighted - 1, -1)
        self.move_to(self._next(self.row_count - 1, -1) if at is None else at)

    def action_cursor_down(self) -> None:
        """Go to the line below; from the last one to the first."""
        at = None if self.highlighted is None else self._next(self.highlighted + 1, 1)
        self.move_to(self._next(0, 1) if at is None else at)

    def action_page_up(self) -> None:
        """Go up by what is in sight."""
        self.move_to(self._next(max((self.highlighted or 0) - self.visible_rows, 0), 1))

    def action_page_down(self) -> None:
        """Go down by what is in sight."""
        self.move_to(self._next(min((self.highlighted or 0) + self.visible_rows, self.row_count - 1), -1))

    def action_first(self) -> None:
        """Go to the first line."""
        self.move_to(self._next(0, 1))

    def action_last(self) -> None:
        """Go to the last line."""
        self.move_to(self._next(self.row_count - 1, -1))

    def render_line(self, y: int) -> Strip:
        """Draw the head, or a line that is scrolled to."""
        width = self.scrollable_content_region.width
        if y < self._head_rows:
            return self.to_strip(self.draw_header(width), width)
        number = y - self._head_rows + self._above
        if number >= self.row_count:
            return self.to_strip(None, width)
        base = self.get_visual_style(_CURSOR) if number == self.highlighted else None
        return self.to_strip(self.draw(number, width), width, base)

    def on_resize(self, _event: Resize) -> None:
        """Have the cursor in sight in the new height."""
        self._fit()
        self._see()

    def on_click(self, event: Click) -> None:
        """Go to the line that was clicked on; on that of the cursor, choose it."""
        offset = event.get_content_offset(self)
        number = -1 if offset is None else offset.y - self._head_rows + self._above
        if not 0 <= number < self.row_count or not self.is_selectable(number):
            return
        if number == self.highlighted:
            self.post_message(self.Selected(number))
        else:
            self.move_to(number)

    @property
    def _above(self) -> int:
        return round(self.scroll_y)

    def _next(self, number: int, by: int) -> int | None:
        """Return a line, or the next in a direction, that the cursor may stand on."""
        while 0 <= number < self.row_count:
            if self.is_selectable(number):
                return number
            number += by
        return None

    def _fit(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, self.row_count + self._head_rows)

    def _see(self) -> None:
        """Scroll to the cursor; at the first line that it may stand on, up to what is above that."""
        if not self.size.height:
            return
        if self.highlighted is None or self.highlighted == self._next(0, 1):
            self.scroll_to(y=0, animate=False, force=True)
        elif self.highlighted < self._above:
            self.scroll_to(y=self.highlighted, animate=False, force=True)
        elif self.highlighted >= self._above + self.visible_rows:
            self.scroll_to(y=self.highlighted - self.visible_rows + 1, animate=False, force=True)
