"""A question that is answered with yes or no, before something is lost."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static


class ConfirmScreen(ModalScreen[bool]):
    """Answers whether the person means it; anything but `y` is no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,q,enter", "answer(False)", "no"),
    ]
    DEFAULT_CSS = """
    ConfirmScreen {
        align: center middle;
        & > Vertical {
            width: 72;
            max-width: 94%;
            height: auto;
            padding: 1 2;
            border: round $warning;
            background: $surface;
            border-title-style: bold;
        }
        & Static { height: auto; }
    }
    """

    def __init__(self, title: str, question: str) -> None:
        super().__init__()
        self._title = title
        self._question = question

    def compose(self) -> ComposeResult:
        """Lay out the question and its answers."""
        with Vertical() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content("y yes   n no   esc back")
            yield Static(Content(self._question), markup=False)

    def action_answer(self, meant: bool) -> None:
        """Answer."""
        self.dismiss(meant)
