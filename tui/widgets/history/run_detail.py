"""The details of the run under the cursor, and a field for its label or note."""

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from ...interfaces import History
from ...rendering.styles import MUTED
from ...text import numbers
from ...text.run_list import RunLine
from ..common.typed_input import TextField


class RunDetail(Vertical):
    """Shows a RunLine, with `brief` only its label and note; `edit` opens a field below them."""

    DEFAULT_CSS = """
    RunDetail {
        height: auto;
        padding: 0 1;
        border-top: solid $foreground 22%;
        border-title-color: $foreground 80%;
        border-title-style: bold;
        & Static { height: auto; max-height: 4; }
        & TextField { border: none; height: 1; padding: 0 1; background: $panel; display: none; }
        &.-editing TextField { display: block; }
    }
    """

    @dataclass
    class Edited(Message):
        """A person has entered a run's label or note."""

        run_id: str
        field_name: str
        text: str

        def save(self, history: History) -> None:
            """Store it in the run log.

            Raises:
                LinkgaugeError: The run log cannot be written.
            """
            (history.set_label if self.field_name == "label" else history.set_note)(self.run_id, self.text)

    @dataclass
    class EditingClosed(Message):
        """The field was closed."""

    def __init__(self, *, brief: bool = False) -> None:
        super().__init__(id="detail")
        self._brief = brief
        self._line: RunLine | None = None
        self._field_name = ""

    def compose(self) -> ComposeResult:
        """Lay out the text and the field."""
        yield Static(markup=False)
        yield TextField(compact=True)

    @property
    def is_editing(self) -> bool:
        """Whether the field is open."""
        return self.has_class("-editing")

    def show(self, line: RunLine | None) -> None:
        """Show this run, unless the field of another is open."""
        if self.is_editing:
            return
        self._line = line
        self.border_title = Content("" if line is None else line.run_id)
        self.query_one(Static).update(Content("") if line is None else _run_text(line, brief=self._brief))

    def edit(self, field_name: str) -> None:
        """Open the field for the run's `label` or `note`."""
        if self._line is None:
            return
        self._field_name = field_name
        field = self.query_one(TextField)
        field.value = self._line.label if field_name == "label" else self._line.note
        self.border_title = Content(f"{field_name} of {self._line.run_id}: enter saves, esc cancels")
        self.add_class("-editing")
        field.focus()

    def close(self) -> None:
        """Close the field, and show the run again."""
        self.remove_class("-editing")
        self.show(self._line)
        self.post_message(self.EditingClosed())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Post the entered text."""
        event.stop()
        if self._line is not None:
            self.post_message(self.Edited(self._line.run_id, self._field_name, event.value))
        self.close()


def _run_text(line: RunLine, *, brief: bool) -> Content:
    label = Content.assemble(
        ("label ", MUTED), line.label or numbers.UNKNOWN, ("   note ", MUTED), line.note or numbers.UNKNOWN
    )
    if brief:
        return label
    where = f"{line.preset or 'no preset'} to {line.peer}, {line.test}, {line.end_words}"
    group = f", group {line.group}" if line.group else ""
    return Content("\n").join([Content.styled(f"{where}{group}", MUTED), label])
