"""The history: the stored runs as a table, to search, sort, label, open, compare, export and delete.

The log is read and changed in threads, which only post messages; the handlers own all state.
"""

import logging
from asyncio import to_thread
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from ....engine.model.errors import LinkgaugeError
from ....engine.results.run_log import RunRecord
from ....presets.catalog import Catalog
from ...actions import ScreenKind, bindings
from ...interfaces import ExportRuns, History, Sweeps
from ...rendering.styled_lines import first_fit
from ...rendering.styles import KEY
from ...services.stored_run import LETTERS
from ...services.sweeps import GROUP_PREFIX
from ...text import numbers
from ...text.run_list import SORT_KEYS, RunLine, SearchableRun, sort_lines
from ...widgets.common.key_footer import KeyFooter
from ...widgets.common.typed_input import Debounce, TextField
from ...widgets.history.run_detail import RunDetail
from ...widgets.history.run_table import RunList, RunTable
from ..base_screen import ActionScreen, app_of
from ..dialogs.export import prompt_export
from ..dialogs.prompts import ConfirmScreen
from ..sweep.sweep_screen import open_stored_sweep
from .compare_screen import CompareScreen
from .stored_run_screen import StoredRunScreen

_log = logging.getLogger(__name__)

# Typing and cursor moves are drawn first; the list and the details follow once the person pauses.
_FILTER_AFTER_S: Final = 0.04
_DETAIL_AFTER_S: Final = 0.1
_LISTED_DELETIONS: Final = 6
_DESCENDING_FIRST: Final = frozenset({"when", "rate", "%"})


class RunSelection:
    """All stored runs, the order of the list, and the marked ones."""

    def __init__(self) -> None:
        self.marked: set[str] = set()
        self.column = "when"
        self.is_descending = True
        self._runs: dict[str, SearchableRun] = {}

    def __len__(self) -> int:
        """Return the number of stored runs."""
        return len(self._runs)

    def update(self, rows: Iterable[RunRecord]) -> None:
        """Replace the runs; the marks of deleted ones go."""
        self._runs = {row.run_id: SearchableRun(row) for row in rows}
        self.marked &= self._runs.keys()

    def get(self, run_id: str | None) -> SearchableRun | None:
        """Return a run, or None if it is not stored."""
        return None if run_id is None else self._runs.get(run_id)

    def visible_lines(self, filter_text: str) -> list[RunLine]:
        """Return the lines of the runs that match a filter, in the order of the list."""
        matches = [run.line for run in self._runs.values() if run.matches(filter_text)]
        return sort_lines(matches, self.column, descending=self.is_descending)

    def toggle_mark(self, run_id: str) -> None:
        """Mark a run, or remove its mark."""
        self.marked ^= {run_id}

    def sort_by(self, column: str) -> None:
        """Sort by a column; the current one reverses its order. An unknown column changes nothing."""
        if column == self.column:
            self.reverse()
        elif column in SORT_KEYS:
            self.column, self.is_descending = column, column in _DESCENDING_FIRST

    def sort_by_next(self) -> None:
        """Sort by the next column."""
        columns = list(SORT_KEYS)
        self.sort_by(columns[(columns.index(self.column) + 1) % len(columns)])

    def reverse(self) -> None:
        """Reverse the order."""
        self.is_descending = not self.is_descending

    def targets(self, cursor_id: str | None) -> list[str]:
        """Return the marked runs, oldest first; without marks, the run at the cursor."""
        if self.marked:
            return sorted(self.marked)
        return [] if cursor_id is None else [cursor_id]

    def comparison(self, cursor_id: str | None) -> Sequence[RunRecord] | None:
        """Return the runs to compare, oldest first; None if there are too few or too many.

        A single marked run is compared with the one at the cursor.
        """
        extra = {cursor_id} if len(self.marked) == 1 and cursor_id is not None else set[str]()
        run_ids = sorted(self.marked | extra)
        if not 2 <= len(run_ids) <= len(LETTERS):
            return None
        return [self._runs[run_id].row for run_id in run_ids]

    def describe(self, run_id: str) -> str:
        """Return a run's name, preset, peer and label in one line."""
        line = self._runs[run_id].line
        return "  ".join(part for part in (run_id, line.preset, line.peer, line.label) if part)


class HistoryScreen(ActionScreen):
    """The run log as a table.

    Args:
        history: The run log.
        export: Writes runs to a file.
        catalog: Names the presets of runs.
        sweeps: Opens the sweep that a run is part of.
    """

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
        size_bytes: int

    @dataclass
    class RunLogFailed(Message):
        """The log could not be read or changed."""

        text: str

    def __init__(
        self, history: History, export: ExportRuns, catalog: Catalog, sweeps: Sweeps | None = None
    ) -> None:
        super().__init__()
        self._sweeps = sweeps
        self._history = history
        self._export = export
        self._catalog = catalog
        self._selection = RunSelection()
        self._is_loaded = False
        self._size_bytes = 0
        self._matches = 0
        self._filter_soon = Debounce(self, _FILTER_AFTER_S, self._show)
        self._detail_soon = Debounce(self, _DETAIL_AFTER_S, self._show_detail)

    def compose(self) -> ComposeResult:
        """Compose the head, the filter, the table and the details of the run at the cursor."""
        yield Static(id="head", markup=False)
        yield TextField(placeholder="filter: 10gbe db-02 short, label:before …", compact=True, id="filter")
        yield RunTable()
        yield RunDetail()
        yield KeyFooter(self.SCREEN_KIND)

    def on_mount(self) -> None:
        """Focus the table."""
        self.query_one(RunTable).focus()
        self._show()

    def on_screen_resume(self) -> None:
        """Read the log again: another screen or another process may have changed it."""
        self._change_log(lambda: None)

    # Background work: it posts messages and changes no state.

    def _change_log(self, change: Callable[[], object]) -> None:
        """Change the log in a thread, then read it again."""
        self.run_worker(self._change_and_reload(change), group="log", exit_on_error=False)

    async def _change_and_reload(self, change: Callable[[], object]) -> None:
        try:
            await to_thread(change)
        except LinkgaugeError as error:
            self.post_message(self.RunLogFailed(str(error)))
        try:
            rows = await to_thread(self._history.list_runs)
            self.post_message(self.RowsLoaded(rows, await to_thread(self._history.size_bytes)))
        except LinkgaugeError as error:
            self.post_message(self.RunLogFailed(str(error)))

    # Message handlers.

    @on(RowsLoaded)
    def _update_rows(self, message: RowsLoaded) -> None:
        self._selection.update(message.rows)
        self._size_bytes = message.size_bytes
        self._is_loaded = True
        self._show()

    @on(RunLogFailed)
    def _show_failure(self, message: RunLogFailed) -> None:
        _log.debug("run log failed: %s", message.text)
        self.notify(numbers.sanitize(message.text), title="run log", severity="error", markup=False)

    @on(Input.Changed, "#filter")
    def _schedule_filter(self) -> None:
        self._filter_soon.schedule()

    @on(Input.Submitted, "#filter")
    def _leave_filter(self) -> None:
        self._filter_soon.flush()
        self.query_one(RunTable).focus()

    @on(RunTable.Moved)
    def _schedule_detail(self) -> None:
        self._detail_soon.schedule()

    @on(RunTable.Selected)
    def _open_selected(self) -> None:
        self.action_open()

    @on(RunTable.HeaderClicked)
    def _sort_by_clicked(self, message: RunTable.HeaderClicked) -> None:
        self._selection.sort_by(message.name)
        self._show()

    @on(RunDetail.Edited)
    def _save_edit(self, message: RunDetail.Edited) -> None:
        self._change_log(lambda: message.save(self._history))

    @on(RunDetail.EditingClosed)
    def _focus_table(self) -> None:
        self.query_one(RunTable).focus()

    def _show(self) -> None:
        """Fill the table with the runs that match the filter."""
        selection = self._selection
        lines = selection.visible_lines(self.query_one("#filter", TextField).value)
        self.query_one(RunTable).show(RunList(lines, selection.marked, selection.column, selection.is_descending))
        self._matches = len(lines)
        self._show_head()
        self._detail_soon.schedule()

    def on_resize(self) -> None:
        """Give the head the words for which the new width has room."""
        self._show_head()

    def _show_head(self) -> None:
        self.query_one("#head", Static).update(self._head(self._matches), layout=False)

    def _show_detail(self) -> None:
        run = self._run_at_cursor()
        self.query_one(RunDetail).show(None if run is None else run.line)

    def _run_at_cursor(self) -> SearchableRun | None:
        """Return the run at the cursor, after a filter that is still pending."""
        self._filter_soon.flush()
        return self._selection.get(self.query_one(RunTable).run_id)

    def _cursor_id(self) -> str | None:
        run = self._run_at_cursor()
        return None if run is None else run.row.run_id

    def _head(self, matches: int) -> Content:
        total, marked = len(self._selection), len(self._selection.marked)
        runs = "run" if total == 1 else "runs"
        of_total = "" if matches == total else f" of {numbers.count(total)}"
        size = numbers.disk_size(self._size_bytes)
        text = f"{numbers.count(matches)}{of_total} saved {runs}" if total else "no saved runs yet"
        product, name = Content.styled("linkgauge  ", KEY), Content.styled("history  ", "bold")
        count = Content(text if self._is_loaded else "loading …")
        disk = Content(f", {size}" if total and self._is_loaded else "")
        marks = Content.styled(f"  ◆ {marked} marked" if marked else "", "bold $text-primary")
        width = self.size.width - 2
        return first_fit(width, product + name + count + disk + marks, name + count + marks, count + marks, count)

    # Actions of the registry.

    def action_mark(self) -> None:
        """Mark the run at the cursor, or remove its mark, and move to the next."""
        table = self.query_one(RunTable)
        run_id = self._cursor_id()
        if run_id is not None:
            self._selection.toggle_mark(run_id)
            self._show()
            if table.highlighted != table.row_count - 1:
                table.action_cursor_down()

    def action_open(self) -> None:
        """Open the run at the cursor."""
        run = self._run_at_cursor()
        if run is not None:
            app_of(self).push_screen(StoredRunScreen(run.row, self._history, self._export, self._catalog))

    def action_sweep(self) -> None:
        """Open the sweep that the run at the cursor is part of."""
        run, sweeps = self._run_at_cursor(), self._sweeps
        group = None if run is None else run.row.group
        if group is None or sweeps is None or not group.startswith(GROUP_PREFIX):
            self.notify("This run is not part of a sweep.", title="sweep", markup=False)
            return
        opening = open_stored_sweep(self, sweeps, group, self._export, self._catalog)
        self.run_worker(opening, group="sweep", exclusive=True, exit_on_error=False)

    def action_compare(self) -> None:
        """Compare the marked runs with the oldest of them."""
        rows = self._selection.comparison(self._cursor_id())
        if rows is None:
            self.notify(f"First mark 2 to {len(LETTERS)} runs with space.", title="compare", markup=False)
            return
        app_of(self).push_screen(CompareScreen(rows, self._history, self._export))

    def action_find(self) -> None:
        """Focus the filter."""
        self.query_one("#filter", TextField).focus()

    def action_label(self) -> None:
        """Edit the label of the marked runs, or of the one at the cursor."""
        self._edit("label")

    def action_note(self) -> None:
        """Edit the note of the marked runs, or of the one at the cursor."""
        self._edit("note")

    def _edit(self, field_name: str) -> None:
        self._detail_soon.flush()
        runs = [self._selection.get(run_id) for run_id in self._selection.targets(self._cursor_id())]
        self.query_one(RunDetail).edit(field_name, [run.line for run in runs if run is not None])

    def action_sort(self) -> None:
        """Sort by the next column."""
        self._selection.sort_by_next()
        self._show()

    def action_reverse(self) -> None:
        """Reverse the order."""
        self._selection.reverse()
        self._show()

    def action_delete(self) -> None:
        """Delete the marked runs, or the one at the cursor, after a confirmation."""
        run_ids = self._selection.targets(self._cursor_id())
        if not run_ids:
            return

        def delete(is_confirmed: bool | None) -> None:
            if is_confirmed:
                _log.debug("delete runs %s", run_ids)
                self._change_log(lambda: self._delete(run_ids))

        title = "delete 1 run" if len(run_ids) == 1 else f"delete {numbers.quantity(len(run_ids), 'run')}"
        lines = [self._selection.describe(run_id) for run_id in run_ids[:_LISTED_DELETIONS]]
        hidden = len(run_ids) - len(lines)
        more = [f"… and {hidden} more"] if hidden else []
        question = "\n".join([*lines, *more, "", "This cannot be undone."])
        app_of(self).push_screen(ConfirmScreen(title, question), delete)

    def _delete(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            self._history.delete(run_id)

    def action_export(self) -> None:
        """Export the marked runs, or the one at the cursor."""
        prompt_export(self, self._selection.targets(self._cursor_id()), self._export)

    def action_back(self) -> None:
        """Leave the editor, else the filter, else the screen."""
        detail, filter_field = self.query_one(RunDetail), self.query_one("#filter", TextField)
        if detail.is_editing:
            detail.close()
        elif filter_field.has_focus or filter_field.value:
            filter_field.value = ""
            self.query_one(RunTable).focus()
        else:
            app_of(self).pop_screen()
