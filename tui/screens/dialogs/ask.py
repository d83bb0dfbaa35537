"""A question with one line for an answer: which peer, which file."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ....engine.model.access import InvalidKeyError, SharedKey
from ....engine.model.errors import PlanError
from ....engine.model.peer import Peer
from ....engine.model.serialization import make_printable
from ...widgets.common.input_line import TextField

_YES_NO: Final = "(yes/no"


class AskScreen(ModalScreen[str | None]):
    """Answers the text once `check` has nothing to say against it; None where the person goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "back")]
    DEFAULT_CSS = """
    AskScreen {
        align: center middle;
        & > Vertical {
            width: 72;
            max-width: 94%;
            height: auto;
            padding: 0 1;
            border: round $primary;
            background: $surface;
            border-title-style: bold;
        }
        & Input { margin: 0; }
        & Static { color: $text-muted; height: auto; padding: 0 1; }
        & Static.-wrong { color: $text-error; }
    }
    """

    def __init__(
        self, title: str, value: str, hint: str, check: Callable[[str], str | None], *, is_secret: bool = False
    ) -> None:
        super().__init__()
        self._is_hidden = is_secret
        self._title = title
        self._value = value
        self._hint = hint
        self._check = check

    def compose(self) -> ComposeResult:
        """Lay out the line and what belongs into it."""
        with Vertical() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content("enter  esc")
            yield TextField(self._value, select_on_focus=True, compact=False, password=self._is_hidden)
            yield Static(Content(self._hint), markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the answer, or say what is wrong with it."""
        problem = self._check(event.value)
        if problem is None:
            self.dismiss(event.value)
            return
        said = self.query_one(Static)
        said.add_class("-wrong")
        said.update(Content(f"✗ {problem}"))

    def action_back(self) -> None:
        """Go back without an answer."""
        self.dismiss(None)


class SecretScreen(AskScreen):
    """Answers what ssh asks. What is typed is not shown, unless the question is for yes or no."""

    def __init__(self, question: str) -> None:
        super().__init__("ssh asks", "", "", lambda _text: None)
        self._question = [make_printable(line) for line in question.splitlines()]
        self._is_secret = _YES_NO not in question

    def compose(self) -> ComposeResult:
        """Lay out the question, and the line for its answer."""
        with Vertical() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content("enter  esc")
            yield Static(Content("\n".join(self._question)), markup=False)
            yield TextField(password=self._is_secret, compact=False)


def validate_peer(text: str) -> str | None:
    """Tell why this names no peer."""
    try:
        Peer.parse(text)
    except PlanError as error:
        return str(error)
    return None


def validate_key(text: str) -> str | None:
    """Tell why this is no key."""
    try:
        SharedKey(text.strip())
    except InvalidKeyError as error:
        return str(error)
    return None


def validate_new_path(text: str) -> str | None:
    """Tell why no new file can be made of this name."""
    path = Path(text).expanduser()
    if not text.strip() or path.is_dir():
        return "give the name of a file"
    if path.exists():
        return f"{path} exists already: give another name"
    return None if path.parent.is_dir() else f"there is no directory {path.parent}"
