"""The runs that are kept: found as you type, sorted, named in their place, opened, compared, deleted.

Everything that reads or changes the log is done in a thread and posts what it found; the handlers own all state.
"""

from asyncio import to_thread
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from ...engine.errors import LinkgaugeError
from ...engine.runlog import RunRow
from ...presets.catalog import Catalog
from .. import format as words
from ..actions import Place, bindings
from ..comparing import LETTERS
from ..kept_rows import has_words
from ..ports import Export, History
from ..run_rows import SORTS, ordered, run_line
from ..widgets.field import Field
from ..widgets.run_detail import RunDetail
from ..widgets.run_table import RunList, RunTable
from ..widgets.styles import KEY, MUTED
from .compare import CompareScreen
from .confirm import ConfirmScreen
from .export import export_from
from .help import HelpScreen
from .layout import app_of
from .stored import StoredScreen

_MOST_SHOWN: Final = 1_000  # more lines than anybody reads, and few enough to be laid out at each key


class HistoryScreen(Screen[None]):
    """The log as a table. `history` is the log, `export` writes its runs."""

    PLACE: ClassVar[Place] = Place.HISTORY
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.HISTORY)
    DEFAULT_CSS = """
    HistoryScreen {
        background: $background;
        & #head { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & #filter { border: none; height: 1; padding: 0 1; background: $background; }
        & #filter:focus { background: $panel; }
    }
    """

    @dataclass
    class RowsRead(Message):
        """The log was read."""

        rows: Sequence[RunRow]

    @dataclass
    class Failed(Message):
        """The log could not be read, or written to."""

        text: str

    def __init__(self, history: History, export: Export, catalog: Catalog) -> None:
        super().__init__()
        self._history = history
        self._export = export
        self._catalog = catalog
        self._rows: dict[str, RunRow] = {}
        self._is_read = False
        self._marked: set[str] = set()
        self._sort, self._falling = "when", True

    def compose(self) -> ComposeResult:
        """Lay out the head, the filter, the table, and the run that the cursor stands on."""
        yield Static(id="head", markup=False)
        yield Field(placeholder="filter: 10gbe db-02 short, label:before …", compact=True, id="filter")
        yield RunTable()
        yield RunDetail()
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Read the log; the table has the keyboard."""
        self.query_one(RunTable).focus()
        self._show()

    def on_screen_resume(self) -> None:
        """Read the log again: another screen, or another process, may have changed it."""
        self._do(lambda: None)

    # What the workers do: they post, and change nothing here.

    def _do(self, change: Callable[[], object]) -> None:
        """Change the log, and read it again."""
        self.run_worker(self._changed(change), group="log", exit_on_error=False)

    async def _changed(self, change: Callable[[], object]) -> None:
        try:
            await to_thread(change)
        except LinkgaugeError as error:
            self.post_message(self.Failed(str(error)))
        try:
            self.post_message(self.RowsRead(await to_thread(self._history.runs)))
        except LinkgaugeError as error:
            self.post_message(self.Failed(str(error)))

    # What the messages do.

    @on(RowsRead)
    def _rows_read(self, message: RowsRead) -> None:
        self._rows = {row.run_id: row for row in message.rows}
        self._is_read = True
        self._marked &= self._rows.keys()
        self._show()

    @on(Failed)
    def _failed(self, message: Failed) -> None:
        self.notify(words.plain(message.text), title="the run log", severity="error", markup=False)

    @on(Input.Changed, "#filter")
    def _filtered(self) -> None:
        self._show()

    @on(Input.Submitted, "#filter")
    def _found(self) -> None:
        self.query_one(RunTable).focus()

    @on(DataTable.RowHighlighted)
    def _moved(self) -> None:
        self._show_detail()

    @on(DataTable.RowSelected)
    def _selected(self) -> None:
        self.action_open()

    @on(DataTable.HeaderSelected)
    def _head_clicked(self, message: DataTable.HeaderSelected) -> None:
        name = message.column_key.value
        if name in SORTS:
            self._falling = not self._falling if name == self._sort else name in {"when", "rate", "%"}
            self._sort = name
            self._show()

    @on(RunDetail.Written)
    def _written(self, message: RunDetail.Written) -> None:
        self._do(lambda: message.keep(self._history))

    @on(RunDetail.Closed)
    def _was_closed(self) -> None:
        self.query_one(RunTable).focus()

    def _show(self) -> None:
        """Fill the table with what the filter leaves, in its order."""
        text = self.query_one("#filter", Field).value
        found = [run_line(row) for row in self._rows.values() if has_words(row, text)]
        lines = ordered(found, self._sort, falling=self._falling)[:_MOST_SHOWN]
        self.query_one(RunTable).show(RunList(lines, self._marked, self._sort, self._falling))
        self.query_one("#head", Static).update(self._head(len(found), len(lines)))
        self._show_detail()

    def _show_detail(self) -> None:
        row = self._rows.get(self.query_one(RunTable).at or "")
        self.query_one(RunDetail).show(None if row is None else run_line(row))

    def _head(self, found: int, shown: int) -> Content:
        of = "" if found == len(self._rows) else f" of {words.count(len(self._rows))}"
        said = f"{words.count(found)}{of} runs kept" if self._rows else "no run is kept yet"
        return Content.assemble(
            ("linkgauge ", KEY),
            (" history  ", "bold"),
            said if self._is_read else "reading …",
            (f", the first {words.count(shown)} shown" if shown < found else "", MUTED),
            (f"  ◆ {len(self._marked)} marked" if self._marked else "", "bold $text-primary"),
        )

    # What the keys do: one method for each action of the registry.

    def action_mark(self) -> None:
        """Mark the run, or take its mark away, and go on to the next."""
        table = self.query_one(RunTable)
        if table.at is not None:
            self._marked ^= {table.at}
            self._show()
            table.action_cursor_down()

    def action_open(self) -> None:
        """Open the run."""
        row = self._rows.get(self.query_one(RunTable).at or "")
        if row is not None:
            app_of(self).push_screen(StoredScreen(row, self._history, self._export, self._catalog))

    def action_compare(self) -> None:
        """Compare the marked runs, the oldest being what the others are held against.

        A single one is compared with that at the cursor.
        """
        at = self.query_one(RunTable).at
        alone = [at] if len(self._marked) == 1 and at is not None else []
        wanted = sorted({*self._marked, *alone} & self._rows.keys())
        if not 2 <= len(wanted) <= len(LETTERS):
            self.notify(f"Mark two runs, or up to {len(LETTERS)}, with space.", title="compare", markup=False)
            return
        rows = [self._rows[run_id] for run_id in wanted]
        app_of(self).push_screen(CompareScreen(rows, self._history, self._export))

    def action_find(self) -> None:
        """Go to the filter."""
        self.query_one("#filter", Field).focus()

    def action_label(self) -> None:
        """Write the run's label."""
        self.query_one(RunDetail).edit("label")

    def action_note(self) -> None:
        """Write a note to the run."""
        self.query_one(RunDetail).edit("note")

    def action_sort(self) -> None:
        """Sort by the next column."""
        names = list(SORTS)
        self._sort = names[(names.index(self._sort) + 1) % len(names)]
        self._falling = self._sort in {"when", "rate", "%"}
        self._show()

    def action_turn(self) -> None:
        """Turn the order around."""
        self._falling = not self._falling
        self._show()

    def action_delete(self) -> None:
        """Delete the run, or those that are marked, once the person has said yes."""
        wanted = self._meant()
        if not wanted:
            return

        def answered(meant: bool | None) -> None:
            if meant:
                self._do(lambda: self._delete(wanted))

        title = "delete a run" if len(wanted) == 1 else f"delete {words.many(len(wanted), 'run')}"
        lines = [self._words_of(run_id) for run_id in wanted[:6]]
        more = [f"… and {len(wanted) - 6} more"] if len(wanted) > 6 else []
        question = "\n".join([*lines, *more, "", "What they measured is gone then, for good."])
        app_of(self).push_screen(ConfirmScreen(title, question), answered)

    def action_export(self) -> None:
        """Export the run, or those that are marked."""
        export_from(self, self._meant(), self._export)

    def action_help(self) -> None:
        """Explain every key."""
        app_of(self).push_screen(HelpScreen())

    def action_back(self) -> None:
        """Go back: out of what is written, out of the filter, then to the cockpit."""
        table, detail, filter_ = (
            self.query_one(RunTable),
            self.query_one(RunDetail),
            self.query_one("#filter", Field),
        )
        if detail.is_editing:
            detail.close()
        elif filter_.has_focus or filter_.value:
            filter_.value = ""
            table.focus()
        else:
            app_of(self).pop_screen()

    def _meant(self) -> list[str]:
        """Return the marked runs, the oldest first; without marks the one that the cursor stands on."""
        at = self.query_one(RunTable).at
        return sorted(self._marked) if self._marked else [] if at is None else [at]

    def _delete(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            self._history.delete(run_id)

    def _words_of(self, run_id: str) -> str:
        line = run_line(self._rows[run_id])
        return "  ".join(part for part in (run_id, line.preset, line.peer, line.label) if part)
