"""Confirmation of an action that loses data: yes or no."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from ..base_screen import Dialog


class ConfirmScreen(Dialog[bool]):
    """Answers True after `y`, False after every other key of the dialog."""

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
