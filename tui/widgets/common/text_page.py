"""A long text to scroll, laid out once for each width; only visible lines are painted."""

from collections.abc import Callable, Sequence

from rich.console import RenderableType
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ...rendering.styled_lines import StyledWidget

LineLayout = Callable[[int], Sequence[Content]]


class TextPage(StyledWidget, ScrollView):
    """Shows a Rich renderable, or the lines that a function returns for a width."""

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

    def show(self, text: RenderableType | LineLayout) -> None:
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
