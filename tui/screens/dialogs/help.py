"""Every key explained, made from the one registry."""

from collections.abc import Iterable
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen

from ...actions import ScreenKind, actions_by_topic
from ...rendering.styles import KEY
from ...widgets.common.text_page import TextPage

_KEYS: Final = 9

Marks = tuple[tuple[str, str], ...]
_ANYWHERE: Final = (
    ("tab", "Go to the next part of the screen; arrows, page up and page down scroll there."),
    ("^p", "The command palette: every action by name."),
)
_MARKS: Final = (
    ("┃ ━", "the rate to expect: the tick of a gauge's bar, the dashes in the plot"),
    ("╏ ·", "the best that is known of the link, where that takes more sessions"),
    ("░", "warm-up in the plot: shown and kept, left out of what was measured"),
    ("│", "a change of settings in the plot; above each stretch what it was changed to, and its average"),
    ("✓ ▼ ✗", "at least the pass mark; under it; under half of what is expected"),
    ("!", "a core that is 90 % busy or more"),
    ("▲", "something to know about the figures"),
)


class HelpScreen(ModalScreen[None]):
    """One page of keys and marks; any of the keys below closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,f1", "back", "back", key_display="esc"),
    ]
    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        background: $background;
        & > TextPage {
            width: 100;
            max-width: 96%;
            height: 96%;
            padding: 0 1;
            border: round $primary;
            background: $surface;
        }
    }
    """

    def __init__(self, screen: ScreenKind = ScreenKind.COCKPIT, legend: Marks = _MARKS) -> None:
        super().__init__()
        self._place, self._marks = screen, legend

    def compose(self) -> ComposeResult:
        """Lay out one page."""
        page = TextPage()
        page.border_title = Content("keys and marks")
        page.border_subtitle = Content("↑ ↓ scroll   esc back")
        yield page

    def on_mount(self) -> None:
        """Write the keys by topic, then the marks."""
        page = self.query_one(TextPage)
        page.show(self._lines)
        page.focus()

    def action_back(self) -> None:
        """Go back to where you came from."""
        self.dismiss(None)

    def _lines(self, width: int) -> list[Content]:
        lines: list[Content] = []
        for topic, actions in actions_by_topic(self._place).items():
            lines += _section(topic, [(action.key_names, action.help) for action in actions], width)
        return [*lines, *_section("Anywhere", _ANYWHERE, width), *_section("Marks", self._marks, width)]


def _section(title: str, rows: Iterable[tuple[str, str]], width: int) -> Iterable[Content]:
    yield Content.styled(title, "bold $text-primary")
    for keys, text in rows:
        told = Content(text).wrap(max(width - _KEYS - 3, 10))
        for number, line in enumerate(told):
            yield Content.assemble((f"{'' if number else keys:>{_KEYS}}", KEY), "  ", line)
