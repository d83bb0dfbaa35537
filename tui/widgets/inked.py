"""Text in the colours of the theme, as strips of the screen."""

from rich.segment import Segment
from textual.content import Content
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget


class Inked(Widget):
    """Turns lines of text into strips; each style is looked up once for a theme, for each is drawn many times."""

    ALLOW_SELECT = False
    _styles: dict[tuple[str, str], Style] | None = None

    def strip(self, line: Content | None, width: int, base: Style | None = None) -> Strip:
        """Return a line in just so many cells, upon `base` or the widget's own ground; None is an empty one."""
        ground = self.visual_style if base is None else base
        if line is None or width <= 0:
            return Strip.blank(width, ground.rich_style)
        segments = [Segment(text, style.rich_style) for text, style in line.render(ground, "", self._style_of)]
        return Strip(segments).adjust_cell_length(width, ground.rich_style)

    def _style_of(self, style: str | Style) -> Style:
        if isinstance(style, Style):
            return style
        theme = self.app.theme  # pyright: ignore[reportUnknownMemberType] (Textual: App of what)
        if self._styles is None:
            self._styles = {}
        found = self._styles.get((theme, style))
        if found is None:
            found = Style.parse(style, self.app.theme_variables)  # pyright: ignore[reportUnknownMemberType]
            self._styles[theme, style] = found
        return found
