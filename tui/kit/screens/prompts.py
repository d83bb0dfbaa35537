"""Dialogs with one question: for a line of text that is validated, for a secret of ssh, or for yes or no."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from ....engine.model.errors import InvalidKeyError
from ....engine.model.serialization import make_printable
from ...session.credentials import parse_pasted_key
from ..widgets.typed_input import TextField
from .base_screen import Dialog

_YES_NO: Final = "(yes/no"


class TextPrompt(Dialog[str | None]):
    """A question with one input line. It answers the text, or None.

    Args:
        title: The question.
        value: The initial text.
        hint: The texts that may be typed.
        validate: Returns the problem with a text, or None if it may be the answer.
        is_secret: Hide the text.
    """

    DEFAULT_CSS = """
    TextPrompt {
        & Input { margin: 0; }
        & Static { color: $text-muted; height: auto; padding: 0 1; }
        & Static.-wrong { color: $text-error; }
    }
    """

    def __init__(
        self,
        title: str,
        value: str,
        hint: str,
        validate: Callable[[str], str | None],
        *,
        is_secret: bool = False,
    ) -> None:
        super().__init__()
        self._is_secret = is_secret
        self._title = title
        self._value = value
        self._hint = hint
        self._find_problem = validate

    def compose(self) -> ComposeResult:
        """Compose the line and its hint."""
        with Vertical() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content("enter ok   esc cancel")
            yield TextField(self._value, select_on_focus=True, compact=False, password=self._is_secret)
            yield Static(Content(self._hint), markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer the text if it is valid, or else show the problem."""
        problem = self._find_problem(event.value)
        if problem is None:
            self.dismiss(event.value)
            return
        hint = self.query_one(Static)
        hint.add_class("-wrong")
        hint.update(Content(f"✗ {problem}"))


class SecretPrompt(TextPrompt):
    """A question of ssh. The answer is hidden unless the question is for yes or no."""

    def __init__(self, question: str) -> None:
        super().__init__("ssh asks", "", "", lambda _text: None, is_secret=_YES_NO not in question)
        self._question = [make_printable(line) for line in question.splitlines()]

    def compose(self) -> ComposeResult:
        """Compose the question and the input line."""
        with Vertical() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content("enter ok   esc cancel")
            yield Static(Content("\n".join(self._question)), markup=False)
            yield TextField(password=self._is_secret, compact=False)


def validate_key(text: str) -> str | None:
    """Return why a text is neither a shared key nor a command with a key, or None."""
    try:
        parse_pasted_key(text)
    except InvalidKeyError as error:
        return str(error)
    return None


def validate_new_path(text: str) -> str | None:
    """Return why no new file can be created at a path, or None."""
    path = Path(text).expanduser()
    if not text.strip() or path.is_dir():
        return "type the name of a file"
    if path.exists():
        return f"{path} already exists; choose another name"
    return None if path.parent.is_dir() else f"no such directory: {path.parent}"


class ConfirmScreen(Dialog[bool]):
    """Answers True after `y`, and False after every other key of the dialog."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,q,enter", "answer(False)", "no"),
    ]
    DEFAULT_CSS = """
    ConfirmScreen {
        & > Vertical { padding: 1 2; border: round $warning; }
        & Static { height: auto; }
    }
    """

    def __init__(self, title: str, question: str) -> None:
        super().__init__()
        self._title = title
        self._question = question

    def compose(self) -> ComposeResult:
        """Compose the question and its answers."""
        with Vertical() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content("y yes   n no   esc back")
            yield Static(Content(self._question), markup=False)

    def action_answer(self, is_confirmed: bool) -> None:
        """Close the dialog with an answer."""
        self.dismiss(is_confirmed)
