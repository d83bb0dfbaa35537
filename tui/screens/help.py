"""Every key explained, made from the one registry."""

from collections.abc import Iterable
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ..actions import topics

_ANYWHERE: Final = (
    ("tab", "Go to the sessions, the verdict or the plot; arrows, page up and page down scroll there."),
    ("^p", "The command palette: every action by name, and the themes."),
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
        & > VerticalScroll {
            width: 100;
            max-width: 96%;
            height: auto;
            max-height: 96%;
            padding: 0 1;
            border: round $primary;
            background: $surface;
            scrollbar-size-vertical: 1;
        }
        & Horizontal { height: auto; }
        & .topic { height: auto; color: $text-primary; text-style: bold; }
        & .keys { width: 9; height: auto; text-align: right; color: $footer-key-foreground; text-style: bold; }
        & .text { width: 1fr; height: auto; padding: 0 0 0 2; }
    }
    """

    def compose(self) -> ComposeResult:
        """Lay out the keys by topic, then the marks."""
        with VerticalScroll() as page:
            page.border_title = Content("keys and marks")
            page.border_subtitle = Content("↑ ↓ scroll   esc back")
            for topic, actions in topics().items():
                yield from _section(topic, [(action.key_names, action.help) for action in actions])
            yield from _section("Anywhere", _ANYWHERE)
            yield from _section("Marks", _MARKS)

    def action_back(self) -> None:
        """Go back to the cockpit."""
        self.dismiss(None)


def _section(title: str, rows: Iterable[tuple[str, str]]) -> ComposeResult:
    yield Static(Content(title), classes="topic", markup=False)
    for keys, text in rows:
        with Horizontal():
            yield Static(Content(keys), classes="keys", markup=False)
            yield Static(Content(text), classes="text", markup=False)
