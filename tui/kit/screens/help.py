"""The help page: every key of the action registry, and the marks and words used on the screen."""

from collections.abc import Iterable
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen

from ..actions import Marks, ScreenKind, actions_by_topic
from ..drawing.styles import KEY
from ..widgets.scroll_views import TextPage
from .feature_app import app_of

_KEY_COLUMNS: Final = 9

_ANYWHERE: Final = (
    ("tab", "Go to the next part of the screen. Arrows, page up and page down scroll it."),
    ("^p", "Command palette: every action by name, with its key."),
)
_MARKS: Final = (
    ("┃ ━", "expected rate: the tick on a gauge's bar, the dashed line in the plot"),
    ("╏ ·", "best known rate of this kind of link, if more sessions are needed to reach it"),
    ("░", "warm-up in the plot: shown and saved, but not part of the result"),
    ("│", "change of settings in the plot; above each period, its settings and its average rate"),
    ("✓ ▼ ✗", "PASS: the pass mark or more; SHORT: less; FAIL: less than half of the expected rate"),
    ("!", "a CPU core that is at least 90 % busy"),
    ("▲", "warning or note about the results"),
)
_WORDS: Final = (
    ("RTT", "round-trip time: from sending a segment to its acknowledgement"),
    ("retx", "retransmits: segments that were sent again"),
    ("cwnd", "congestion window: how much the sender's kernel allows in flight"),
    ("window", "socket buffers of both ends: the maximum that one session can have in flight"),
    ("p50 p99", "median, and the value that 99 % of the measurements do not exceed"),
)


class HelpScreen(ModalScreen[None]):
    """One page of keys and marks.

    It opens and closes in half of the CPU time of Textual's HelpPanel, which has neither marks nor the keys of the
    screens that this one opens (bench/own_widgets.py).

    Args:
        screen: The screen whose actions are explained, with the actions of the screens that it opens.
        legend: The marks of that screen, each with its meaning.
    """

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
        self._screen_kind, self._legend = screen, legend

    def compose(self) -> ComposeResult:
        """Compose one scrollable page."""
        page = TextPage()
        page.border_title = Content("keys and marks")
        page.border_subtitle = Content("↑ ↓ PgUp PgDn scroll   esc back")
        yield page

    def on_mount(self) -> None:
        """Fill the page."""
        page = self.query_one(TextPage)
        page.show_text(self._lines)
        page.focus()

    def action_back(self) -> None:
        """Close the help."""
        self.dismiss(None)

    def _lines(self, width: int) -> list[Content]:
        lines: list[Content] = []
        keys = app_of(self).key_map
        for topic, actions in actions_by_topic(self._screen_kind).items():
            lines += _section(topic, [(keys.own(action).key_names, action.help) for action in actions], width)
        movements = [(action.key_names, action.help) for action in keys.movements()]
        lines += [*_section("Anywhere", [*_ANYWHERE, *movements], width), *_section("Marks", self._legend, width)]
        is_of_endpoint = self._screen_kind is ScreenKind.ENDPOINT
        return [*lines, *([] if is_of_endpoint else _section("Words", _WORDS, width))]


def _section(title: str, rows: Iterable[tuple[str, str]], width: int) -> Iterable[Content]:
    yield Content.styled(title, "bold $text-primary")
    for keys, text in rows:
        lines = Content(text).wrap(max(width - _KEY_COLUMNS - 3, 10))
        for number, line in enumerate(lines):
            yield Content.assemble((f"{'' if number else keys:>{_KEY_COLUMNS}}", KEY), "  ", line)
