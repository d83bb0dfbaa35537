"""An instrument that draws line by line, and repaints only the lines that have changed.

Most of what stands on the screen stays as it is from one frame to the next, and none of it moves: a line that
is the same is neither laid out nor painted again.
"""

from collections.abc import Sequence

from rich.segment import Segment
from textual.content import Content
from textual.events import Resize
from textual.geometry import Region
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

# MERGED FROM tui/widgets/inked:
# Text in the colours of the theme, as strips of the screen.


class StyledWidget(Widget):
    """Turns lines of text into strips; each style is looked up once for a theme, for each is drawn many times."""

    ALLOW_SELECT = False
    _styles: dict[tuple[str, str], Style] | None = None

    def to_strip(self, line: Content | None, width: int, base: Style | None = None) -> Strip:
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


class LineWidget(StyledWidget):
    """Shows the lines that `draw` makes of its values; you must call `redraw` once they have changed."""

    def __init__(self, *, widget_id: str | None = None) -> None:
        super().__init__(id=widget_id)
        self._lines: list[Content] = []
        self._title = self._subtitle = Content("")

    def draw(self, width: int, height: int) -> Sequence[Content]:
        """Return the lines from the top, each for `width` cells; those past `height` are left out."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw, and repaint what differs from what stands there."""
        width, height = self.size
        before = self._lines
        self._lines = list(self.draw(width, height))[:height] if width > 0 and height > 0 else []
        longest = max(len(before), len(self._lines))
        changed = [
            Region(0, y, width, 1) for y in range(longest) if not _is_same(_at(before, y), _at(self._lines, y))
        ]
        if changed:
            self.refresh(*changed)

    def set_titles(self, title: str | Content, subtitle: str | Content = "") -> None:
        """Set what stands in the frame; one that stays the same repaints nothing."""
        title, subtitle = Content.from_text(title, markup=False), Content.from_text(subtitle, markup=False)
        if not title.is_same(self._title):
            self._title = title
            self.border_title = title
        if not subtitle.is_same(self._subtitle):
            self._subtitle = subtitle
            self.border_subtitle = subtitle

    def render_line(self, y: int) -> Strip:
        """Return a line as it was last drawn, in the colours of the theme in force."""
        return self.to_strip(_at(self._lines, y), self.size.width)

    def on_resize(self, _event: Resize) -> None:
        """Fill the new size."""
        self.redraw()


def _at(lines: list[Content], y: int) -> Content | None:
    return lines[y] if 0 <= y < len(lines) else None


def _is_same(one: Content | None, other: Content | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.is_same(other)
