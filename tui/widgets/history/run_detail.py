"""What is known of the run that the cursor stands on, and the line to write its label or its note into."""

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from ...interfaces import History
from ...rendering.styles import MUTED
from ...text import numbers as words
from ...text.run_list import RunLine
from ..common.input_line import Field


class RunDetail(Vertical):
    """Shows a RunLine, `brief` its label and note alone; `edit` puts a line to type into below them."""

    DEFAULT_CSS = """
    RunDetail {
        height: auto;
        padding: 0 1;
        border-top: solid $foreground 22%;
        border-title-color: $foreground 80%;
        border-title-style: bold;
        & Static { height: auto; max-height: 4; }
        & Field { border: none; height: 1; padding: 0 1; background: $panel; display: none; }
        &.-editing Field { display: block; }
    }
    """

    @dataclass
    class Written(Message):
        """A person has written a run's label, or its note."""

        run_id: str
        what: str
        text: str

        def keep(self, history: History) -> None:
            """Keep it in the log; raise LinkgaugeError where that cannot be done."""
            (history.set_label if self.what == "label" else history.set_note)(self.run_id, self.text)

    @dataclass
    class Closed(Message):
        """Nothing more is written."""

    def __init__(self, *, brief: bool = False) -> None:
        super().__init__(id="detail")
        self._brief = brief
        self._line: RunLine | None = None
        self._what = ""

    def compose(self) -> ComposeResult:
        """Lay out the words, and the line to write into."""
        yield Static(markup=False)
        yield Field(compact=True)

    @property
    def is_editing(self) -> bool:
        """Whether a person writes."""
        return self.has_class("-editing")

    def show(self, line: RunLine | None) -> None:
        """Show this run from the next frame on; one that is written to stays until that is done."""
        if self.is_editing:
            return
        self._line = line
        self.border_title = Content("" if line is None else line.run_id)
        self.query_one(Static).update(Content("") if line is None else _words(line, brief=self._brief))

    def edit(self, what: str) -> None:
        """Let a person write the run's `label` or `note`."""
        if self._line is None:
            return
        self._what = what
        field = self.query_one(Field)
        field.value = self._line.label if what == "label" else self._line.note
        self.border_title = Content(f"{what} of {self._line.run_id}: enter keeps it, esc goes back")
        self.add_class("-editing")
        field.focus()

    def close(self) -> None:
        """Show the run again."""
        self.remove_class("-editing")
        self.show(self._line)
        self.post_message(self.Closed())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Tell what was written."""
        event.stop()
        if self._line is not None:
            self.post_message(self.Written(self._line.run_id, self._what, event.value))
        self.close()


def _words(line: RunLine, *, brief: bool) -> Content:
    label = Content.assemble(
        ("label ", MUTED), line.label or words.UNKNOWN, ("   note ", MUTED), line.note or words.UNKNOWN
    )
    if brief:
        return label
    where = f"{line.preset or 'no preset'} to {line.peer}, {line.test}, {line.ended}"
    group = f", group {line.group}" if line.group else ""
    return Content("\n").join([Content.styled(f"{where}{group}", MUTED), label])
