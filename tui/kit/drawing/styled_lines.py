"""Widgets that draw themselves as lines of styled text, and repaint only the lines that have changed.

Most of the screen stays the same from one frame to the next. An unchanged line is neither laid out nor painted: a
frame of 120x40 cells takes 16 ms of CPU instead of 18. To change one line of eight takes 2.1 ms, and 3.4 ms in a
Static of Textual (bench/own_widgets.py).
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Generic, TypeVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.content import Content
from textual.events import Resize
from textual.geometry import Region
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

V = TypeVar("V")


class StyledWidget(Widget):
    """A widget that turns lines into strips. It resolves each style once for each theme."""

    ALLOW_SELECT = False
    _styles: dict[tuple[str, str], Style] | None = None

    def to_strip(self, line: Content | None, width: int, base: Style | None = None) -> Strip:
        """Return a line in exactly `width` cells on `base` or the widget's own style; None is an empty line."""
        ground = self.visual_style if base is None else base
        if line is None or width <= 0:
            return Strip.blank(width, ground.rich_style)
        segments = [Segment(text, style.rich_style) for text, style in line.render(ground, "", self._resolve_style)]
        return Strip(segments).adjust_cell_length(width, ground.rich_style)

    def _resolve_style(self, style: str | Style) -> Style:
        if isinstance(style, Style):
            return style
        theme = self.app.theme  # pyright: ignore[reportUnknownMemberType] (Textual: App of what)
        if self._styles is None:
            self._styles = {}
        resolved = self._styles.get((theme, style))
        if resolved is None:
            resolved = Style.parse(style, self.app.theme_variables)  # pyright: ignore[reportUnknownMemberType]
            self._styles[theme, style] = resolved
        return resolved


class LineWidget(StyledWidget, Generic[V]):
    """A widget that shows a value as lines of text. None is not drawn. A subclass has `draw`."""

    def __init__(self, value: V | None = None, *, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self.value = value
        self._lines: list[Content] = []
        self._title = self._subtitle = Content("")

    def draw(self, value: V, width: int, height: int) -> Sequence[Content]:
        """Return the lines from the top, each of `width` cells; lines past `height` are left out."""
        raise NotImplementedError

    def show(self, value: V) -> None:
        """Show this value."""
        self.value = value
        self.redraw()

    def redraw(self) -> None:
        """Draw, and repaint the lines that differ from those on the screen."""
        width, height = self.scrollable_content_region.size
        before = self._lines
        self._lines = []
        if self.value is not None and width > 0 and height > 0:
            self._lines = list(self.draw(self.value, width, height))[:height]
        longest = max(len(before), len(self._lines))
        changed = [
            Region(0, y, width, 1) for y in range(longest) if not _is_same(_at(before, y), _at(self._lines, y))
        ]
        if changed:
            self.refresh(*changed)

    def set_titles(self, title: str | Content, subtitle: str | Content = "") -> None:
        """Set the texts in the frame. Unchanged texts repaint nothing."""
        title, subtitle = Content.from_text(title, markup=False), Content.from_text(subtitle, markup=False)
        if not title.is_same(self._title):
            self._title = title
            self.border_title = title
        if not subtitle.is_same(self._subtitle):
            self._subtitle = subtitle
            self.border_subtitle = subtitle

    def render_line(self, y: int) -> Strip:
        """Return a line as last drawn, in the colours of the current theme."""
        return self.to_strip(_at(self._lines, y), self.scrollable_content_region.width)

    def on_resize(self, _event: Resize) -> None:
        """Fill the new size."""
        self.redraw()


def first_fit(width: int, *lines: Content) -> Content:
    """Return the first line with at most `width` cells, or an empty one: a cut number is a wrong number."""
    return next((line for line in lines if line.cell_length <= width), Content(""))


def table_cell(text: str, width: int, *, gap: int, is_right: bool = False) -> str:
    """Return a text in exactly `width` cells, with the gap to the next column. A long text loses its middle."""
    room = width - gap
    cut = text if cell_len(text) <= room else shorten_middle(text, room)
    return set_cell_size(f"{cut:>{room}}" if is_right else cut, width)


def join_fit(width: int, parts: Iterable[Content], gap: str) -> Content:
    """Return the leading parts that fit into `width` cells, each whole, with gaps between them."""
    line = Content("")
    for part in parts:
        longer = Content.assemble(line, gap, part) if line else part
        if longer.cell_length > width:
            break
        line = longer
    return line


def cut_words(text: str, width: int) -> str:
    """Return as many words of a text as fit into `width` cells: half of a number would be another number."""
    while text and cell_len(text) > width:
        text = text.removesuffix(" …").rpartition(" ")[0].rstrip(" ,:(")
        text = f"{text} …" if text else ""
    return text


@lru_cache(maxsize=1024)
def shorten_middle(name: str, width: int) -> str:
    """Return a name in exactly `width` cells. Names differ at their ends, so its middle is cut, between numbers."""
    if cell_len(name) <= width:
        return set_cell_size(name, width)
    end = name
    while cell_len(end) > width * 2 // 5 or (end[:1].isdigit() and name[-len(end) - 1 : -len(end)].isdigit()):
        end = end[1:]
    room = width - 1 - cell_len(end)
    start = set_cell_size(name, room)
    while start and start[-1].isdigit() and name[len(start) : len(start) + 1].isdigit():
        start = start[:-1]
    return f"{set_cell_size(start, room)}…{end}"


def _at(lines: list[Content], y: int) -> Content | None:
    return lines[y] if 0 <= y < len(lines) else None


def _is_same(line: Content | None, other: Content | None) -> bool:
    if line is None or other is None:
        return line is other
    return line.is_same(other)
