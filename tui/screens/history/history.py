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
from textual.widgets import Footer, Input, Static

from ....engine.model.errors import LinkgaugeError
from ....engine.results.run_log import RunRecord
from ....presets.catalog import Catalog
from ...actions import ScreenKind, bindings
from ...interfaces import ExportRuns, History, Sweeps
from ...rendering.styles import KEY
from ...services.run_comparison import LETTERS
from ...services.sweeps import GROUP_PREFIX
from ...text import numbers
from ...text.run_list import SORT_KEYS, SearchableRun, sort_lines
from ...widgets.common.debounce import Debounce
from ...widgets.common.input_line import TextField
from ...widgets.history.run_detail import RunDetail
from ...widgets.history.run_table import RunList, RunTable
from ..dialogs.confirm import ConfirmScreen
from ..dialogs.export import ask_export
from ..dialogs.help import HelpScreen
from ..layout import app_of
from ..sweep.open_sweep import open_stored_sweep
from .compare import CompareScreen
from .saved_run import StoredRunScreen

# A letter, and the cursor, are seen first: what follows from them is made once the hands rest.
_FILTER_AFTER_S: Final = 0.04
_DETAIL_AFTER_S: Final = 0.1


class HistoryScreen(Screen[None]):
    """The log as a table. `history` is the log, `export` writes its runs."""

    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.HISTORY
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.HISTORY)
    DEFAULT_CSS = """
    HistoryScreen {
        background: $background;
        & #head { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & #filter { border: none; height: 1; padding: 0 1; background: $background; }
        & #filter:focus { background: $panel; }
    }
    """

    @dataclass
    class RowsLoaded(Message):
        """The log was read."""

        rows: Sequence[RunRecord]

    @dataclass
    class RunLogFailed(Message):
        """The log could not be read, or written to."""

        text: str

    def __init__(
        self, history: History, export: ExportRuns, catalog: Catalog, sweeps: Sweeps | None = None
    ) -> None:
        super().__init__()
        self._sweeps = sweeps
        self._history = history
        self._export = export
        self._catalog = catalog
        self._kept: dict[str, SearchableRun] = {}
        self._is_read = False
        self._marked: set[str] = set()
        self._sort, self._falling = "when", True
        self._filter_soon = Debounce(self, _FILTER_AFTER_S, self._show)
        self._detail_soon = Debounce(self, _DETAIL_AFTER_S, self._show_detail)

    def compose(self) -> ComposeResult:
        """Lay out the head, the filter, the table, and the run that the cursor stands on."""
        yield Static(id="head", markup=False)
        yield TextField(placeholder="filter: 10gbe db-02 short, label:before …", compact=True, id="filter")
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
            self.post_message(self.RunLogFailed(str(error)))
        try:
            self.post_message(self.RowsLoaded(await to_thread(self._history.list_runs)))
        except LinkgaugeError as error:
            self.post_message(self.RunLogFailed(str(error)))

    # What the messages do.

    @on(RowsLoaded)
    def _rows_read(self, message: RowsLoaded) -> None:
        self._kept = {row.run_id: SearchableRun(row) for row in message.rows}
        self._is_read = True
        self._marked &= self._kept.keys()
        self._show()

    @on(RunLogFailed)
    def _failed(self, message: RunLogFailed) -> None:
        self.notify(numbers.sanitize(message.text), title="the run log", severity="error", markup=False)

    @on(Input.Changed, "#filter")
    def _filtered(self) -> None:
        self._filter_soon.schedule()

    @on(Input.Submitted, "#filter")
    def _found(self) -> None:
        self._filter_soon.flush()
        self.query_one(RunTable).focus()

    @on(RunTable.Moved)
    def _moved(self) -> None:
        self._detail_soon.schedule()

    @on(RunTable.Selected)
    def _chosen(self) -> None:
        self.action_open()

    @on(RunTable.HeaderClicked)
    def _head_clicked(self, message: RunTable.HeaderClicked) -> None:
        name = message.name
        if name in SORT_KEYS:
            self._falling = not self._falling if name == self._sort else name in {"when", "rate", "%"}
            self._sort = name
            self._show()

    @on(RunDetail.Edited)
    def _written(self, message: RunDetail.Edited) -> None:
        self._do(lambda: message.save(self._history))

    @on(RunDetail.EditingClosed)
    def _was_closed(self) -> None:
        self.query_one(RunTable).focus()

    def _show(self) -> None:
        """Fill the table with what the filter leaves, in its order."""
        text = self.query_one("#filter", TextField).value
        found = [kept.line for kept in self._kept.values() if kept.matches(text)]
        lines = sort_lines(found, self._sort, descending=self._falling)
        self.query_one(RunTable).show(RunList(lines, self._marked, self._sort, self._falling))
        self.query_one("#head", Static).update(self._head(len(found)), layout=False)
        self._detail_soon.schedule()

    def _show_detail(self) -> None:
        kept = self._at_cursor()
        self.query_one(RunDetail).show(None if kept is None else kept.line)

    def _at_cursor(self) -> SearchableRun | None:
        """Return the run that the cursor stands on, in the table as the filter leaves it."""
        self._filter_soon.flush()
        return self._kept.get(self.query_one(RunTable).run_id or "")

    def _head(self, found: int) -> Content:
        of = "" if found == len(self._kept) else f" of {numbers.count(len(self._kept))}"
        said = f"{numbers.count(found)}{of} runs kept" if self._kept else "no run is kept yet"
        return Content.assemble(
            ("linkgauge ", KEY),
            (" history  ", "bold"),
            said if self._is_read else "reading …",
            (f"  ◆ {len(self._marked)} marked" if self._marked else "", "bold $text-primary"),
        )

    # What the keys do: one method for each action of the registry.

    def action_mark(self) -> None:
        """Mark the run, or take its mark away, and go on to the next."""
        table = self.query_one(RunTable)
        kept = self._at_cursor()
        if kept is not None:
            self._marked ^= {kept.row.run_id}
            self._show()
            if table.highlighted != table.row_count - 1:
                table.action_cursor_down()

    def action_open(self) -> None:
        """Open the run."""
        kept = self._at_cursor()
        if kept is not None:
            app_of(self).push_screen(StoredRunScreen(kept.row, self._history, self._export, self._catalog))

    def action_sweep(self) -> None:
        """Open the sweep that the run is part of."""
        kept, sweeps = self._at_cursor(), self._sweeps
        group = None if kept is None else kept.row.group
        if group is None or sweeps is None or not group.startswith(GROUP_PREFIX):
            self.notify("This run is not part of a sweep.", title="sweep", markup=False)
            return
        opening = open_stored_sweep(self, sweeps, group, self._export, self._catalog)
        self.run_worker(opening, group="sweep", exclusive=True, exit_on_error=False)

    def action_compare(self) -> None:
        """Compare the marked runs, the oldest being what the others are held against.

        A single one is compared with that at the cursor.
        """
        at = self._at_cursor()
        alone = [at.row.run_id] if len(self._marked) == 1 and at is not None else []
        wanted = sorted({*self._marked, *alone} & self._kept.keys())
        if not 2 <= len(wanted) <= len(LETTERS):
            self.notify(f"Mark two runs, or up to {len(LETTERS)}, with space.", title="compare", markup=False)
            return
        rows = [self._kept[run_id].row for run_id in wanted]
        app_of(self).push_screen(CompareScreen(rows, self._history, self._export))

    def action_find(self) -> None:
        """Go to the filter."""
        self.query_one("#filter", TextField).focus()

    def action_label(self) -> None:
        """Write the run's label."""
        self._detail_soon.flush()
        self.query_one(RunDetail).edit("label")

    def action_note(self) -> None:
        """Write a note to the run."""
        self._detail_soon.flush()
        self.query_one(RunDetail).edit("note")

    def action_sort(self) -> None:
        """Sort by the next column."""
        names = list(SORT_KEYS)
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

        title = "delete a run" if len(wanted) == 1 else f"delete {numbers.quantity(len(wanted), 'run')}"
        lines = [self._words_of(run_id) for run_id in wanted[:6]]
        more = [f"… and {len(wanted) - 6} more"] if len(wanted) > 6 else []
        question = "\n".join([*lines, *more, "", "What they measured is gone then, for good."])
        app_of(self).push_screen(ConfirmScreen(title, question), answered)

    def action_export(self) -> None:
        """Export the run, or those that are marked."""
        ask_export(self, self._meant(), self._export)

    def action_help(self) -> None:
        """Explain every key."""
        app_of(self).push_screen(HelpScreen())

    def action_back(self) -> None:
        """Go back: out of what is written, out of the filter, then to the cockpit."""
        table, detail, filter_ = (
            self.query_one(RunTable),
            self.query_one(RunDetail),
            self.query_one("#filter", TextField),
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
        at = self._at_cursor()
        return sorted(self._marked) if self._marked else [] if at is None else [at.row.run_id]

    def _delete(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            self._history.delete(run_id)

    def _words_of(self, run_id: str) -> str:
        line = self._kept[run_id].line
        return "  ".join(part for part in (run_id, line.preset, line.peer, line.label) if part)
