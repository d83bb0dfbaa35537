"""The details of the run under the cursor, and a field for the label or note of one or more runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from ...engine.results.run_log import RunLog
from ..kit.drawing.styled_lines import first_fit
from ..kit.drawing.styles import MUTED
from ..kit.widgets.typed_input import TextField
from ..words import numbers
from ..words.run_line import RunLine


class RunDetail(VerticalScroll):
    """Shows a RunLine, with `brief` only its label and note; `edit` opens a field below them."""

    DEFAULT_CSS = """
    RunDetail {
        height: auto;
        max-height: 5;  /* a note may be longer: the panel scrolls */
        scrollbar-size-vertical: 1;
        padding: 0 1;
        border-top: solid $foreground 22%;
        border-title-color: $foreground 80%;
        border-title-style: bold;
        & Static { height: auto; }
        & TextField { border: none; height: 1; padding: 0 1; background: $panel; display: none; }
        &.-editing TextField { display: block; }
        &.-editing Static { display: none; }
    }
    """

    @dataclass
    class Edited(Message):
        """The user has entered the label or note of these runs."""

        run_ids: Sequence[str]
        field_name: str
        text: str

        def save(self, history: RunLog) -> None:
            """Store it in the run log.

            Raises:
                LinkgaugeError: The run log cannot be written.
            """
            save = history.set_label if self.field_name == "label" else history.set_note
            for run_id in self.run_ids:
                save(run_id, self.text)

    @dataclass
    class EditingClosed(Message):
        """The field was closed."""

    def __init__(self, *, brief: bool = False) -> None:
        super().__init__(id="detail")
        self._brief = brief
        self._line: RunLine | None = None
        self._field_name = ""
        self._edited_ids: Sequence[str] = ()
        self._initial_text = ""

    def compose(self) -> ComposeResult:
        """Lay out the text and the field."""
        yield Static(markup=False)
        yield TextField(compact=True)

    @property
    def is_editing(self) -> bool:
        """Whether the field is open."""
        return self.has_class("-editing")

    def show_detail(self, line: RunLine | None) -> None:
        """Show this run, unless the field of another is open."""
        if self.is_editing:
            return
        self._line = line
        self.border_title = Content("" if line is None else line.run_id)
        self.query_one(Static).update(Content("") if line is None else _run_text(line, brief=self._brief))

    def edit(self, field_name: str, lines: Sequence[RunLine] = ()) -> None:
        """Open the field for the `label` or `note` of these runs, by default of the one shown."""
        lines = lines or ([] if self._line is None else [self._line])
        if not lines:
            return
        self._field_name, self._edited_ids = field_name, [line.run_id for line in lines]
        texts = {line.label if field_name == "label" else line.note for line in lines}
        field = self.query_one(TextField)
        field.value = self._initial_text = texts.pop() if len(texts) == 1 else ""
        field.placeholder = "different in these runs" if texts else ""
        runs = lines[0].run_id if len(lines) == 1 else numbers.quantity(len(lines), "marked run")
        title = f"{field_name} of {runs}"
        titles = (f"{title}: enter saves, esc cancels", f"{title}: enter, esc", title)
        self.border_title = first_fit(self.size.width - 2, *map(Content, titles))
        self.add_class("-editing")
        field.focus()

    def close(self) -> None:
        """Close the field, and show the run again."""
        self.remove_class("-editing")
        self.show_detail(self._line)
        self.post_message(self.EditingClosed())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Post the entered text."""
        event.stop()
        if event.value != self._initial_text:
            self.post_message(self.Edited(self._edited_ids, self._field_name, event.value))
        self.close()


def _run_text(line: RunLine, *, brief: bool) -> Content:
    label = Content.assemble(
        ("label ", MUTED), line.label or numbers.UNKNOWN, ("   note ", MUTED), line.note or numbers.UNKNOWN
    )
    if brief:
        return label
    where = f"{line.subject} to {line.peer}, {line.test}, {line.end_words}"
    group = f", group {line.group}" if line.group else ""
    latency = [Content.assemble(("latency ", MUTED), line.latency)] if line.latency else []
    return Content("\n").join([Content.styled(f"{where}{group}", MUTED), *latency, label])
