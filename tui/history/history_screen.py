"""The history: the stored runs as a table, to search, sort, label, open, compare, export and delete.

The log is read and changed in threads, which change no state of the screen. The order of the list is read as a
whole, its lines by the page. An action waits for the filter that was typed before it.
"""

import logging
from asyncio import timeout, to_thread
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from ...engine.model.errors import LinkgaugeError
from ...engine.results.run_log import RunEntry, RunLog
from ..kit.actions import ScreenKind, bindings
from ..kit.drawing.styled_lines import first_fit
from ..kit.drawing.styles import KEY
from ..kit.screens.base_screen import ActionScreen
from ..kit.screens.export import prompt_export
from ..kit.screens.feature_app import StoredServices, app_of
from ..kit.screens.prompts import ConfirmScreen
from ..kit.widgets.typed_input import Debounce, TextField
from ..words import numbers
from ..words.comparison import LETTERS
from ..words.run_line import run_line
from .compare_screen import CompareScreen
from .listed_runs import RunLines, RunPage, RunPlace, RunSelection, describe_run, page_around, read_first_page
from .run_detail import RunDetail
from .run_table import RunList, RunTable

_log = logging.getLogger(__name__)

# Typing and cursor moves are drawn first; the list and the details follow once the user pauses.
_FILTER_AFTER_S: Final = 0.04
_DETAIL_AFTER_S: Final = 0.04
_LISTED_DELETIONS: Final = 6
_READ_TIMEOUT_S: Final = 10.0  # of a disk that hangs; 100,000 runs take some tenths of a second


class HistoryScreen(ActionScreen):
    """The run log as a table.

    Args:
        log: The run log.
        services: Name the presets of runs, export them, and open the sweep or the mesh that a run is part of.
        filter_text: The filter that is there at first.
    """

    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.HISTORY
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.HISTORY)
    DEFAULT_CSS = """
    HistoryScreen {
        & #filter { border: none; height: 1; padding: 0 1; background: $background; }
        & #filter:focus { background: $panel; }
    }
    """

    @dataclass
    class RunLogFailed(Message):
        """The log could not be read or changed."""

        text: str

    def __init__(self, log: RunLog, services: StoredServices, *, filter_text: str = "") -> None:
        super().__init__()
        self._first_filter = filter_text
        self._log = log
        self._services = services
        self._selection = RunSelection()
        self._lines = RunLines()
        self._is_loaded = False
        self._total = 0
        self._size_bytes = 0
        self._shown_filter = ""
        self._readers = 0
        self._reading = 0  # the number of the newest read of the list: an older one that ends later is not shown
        self._filter_soon = Debounce(self, _FILTER_AFTER_S, self._filter)
        self._detail_soon = Debounce(self, _DETAIL_AFTER_S, self._show_detail)

    @property
    def is_reading(self) -> bool:
        """Whether the log is being read or changed."""
        return self._readers > 0

    def compose(self) -> ComposeResult:
        """Compose the head, the filter, the table and the details of the run at the cursor."""
        yield Static(id="head", markup=False)
        placeholder = "filter: 10gbe db-02 short, label:before …"
        yield TextField(self._first_filter, placeholder=placeholder, compact=True, id="filter")
        yield RunTable()
        yield RunDetail()
        yield self.footer()

    def on_mount(self) -> None:
        """Focus the table."""
        self.query_one(RunTable).focus()
        self._show_head()
        self.run_worker(self._prepare_old_runs(), group="digests", exit_on_error=False)

    def on_screen_resume(self) -> None:
        """Read the log again: another screen or another process may have changed it."""
        self._change_log(None)

    # Reading.

    def _change_log(self, change: Callable[[], object] | None) -> None:
        """Change the log in a thread, then read it again."""
        self.run_worker(self._change_and_reload(change), group="log", exit_on_error=False)

    async def _change_and_reload(self, change: Callable[[], object] | None) -> None:
        if change is not None:
            with self._report_failure():
                await to_thread(change)
        await self._reload()

    async def _prepare_old_runs(self) -> None:
        """Prepare the runs of an older linkgauge, which can be listed meanwhile, only more slowly."""
        try:
            has_prepared = await to_thread(self._log.add_briefs)
        except LinkgaugeError as error:  # the log cannot be written: it stays as slow as it is
            _log.debug("old runs are not prepared: %s", error)
            return
        if has_prepared:
            await self._reload()

    async def _reload(self) -> None:
        """Read the order of the list and the lines near the cursor, and show them; the newest read wins."""
        self._reading += 1
        reading = self._reading
        table, numbers = self.query_one(RunTable), self._lines.numbers
        at = table.highlighted
        cursor = RunPlace() if at is None or at >= len(numbers) else RunPlace(numbers[at], at)
        text = self.query_one("#filter", TextField).value
        query = self._selection.query(text)
        with self._report_failure():
            async with timeout(_READ_TIMEOUT_S):
                page = await to_thread(read_first_page, self._log, query, cursor, self._selection.marked_numbers)
            if reading == self._reading:
                self._shown_filter = text
                self._show_list(page)

    async def _read_lines(self, at: int) -> None:
        """Read the lines around a place."""
        lines = self._lines
        numbers = page_around(lines.numbers, at)
        with self._report_failure():
            async with timeout(_READ_TIMEOUT_S):
                lines.add_entries(await to_thread(self._log.read_entries, numbers), numbers)
        if lines is self._lines:
            self._show_lines()
            self._detail_soon.schedule()

    @contextmanager
    def _report_failure(self) -> Generator[None]:
        """Post a message if the log cannot be read or changed in the context."""
        self._readers += 1
        try:
            yield
        except LinkgaugeError as error:
            self.post_message(self.RunLogFailed(str(error)))
        except TimeoutError:
            self.post_message(self.RunLogFailed("the run log cannot be read: the disk does not answer"))
        finally:
            self._readers -= 1

    # Message handlers.

    @on(RunLogFailed)
    def _show_failure(self, message: RunLogFailed) -> None:
        _log.debug("run log failed: %s", message.text)
        self.report(message.text, "run log")

    @on(Input.Changed, "#filter")
    def _schedule_filter(self) -> None:
        self._filter_soon.schedule()

    @on(Input.Submitted, "#filter")
    async def _leave_filter(self) -> None:
        await self._settle()
        self.query_one(RunTable).focus()

    @on(RunTable.Moved)
    def _schedule_detail(self) -> None:
        self._detail_soon.schedule()

    @on(RunTable.Selected)
    async def _open_selected(self) -> None:
        await self.action_open()

    @on(RunTable.HeaderClicked)
    async def _sort_by_clicked(self, message: RunTable.HeaderClicked) -> None:
        self._selection.sort_by(message.name)
        await self._reload()

    @on(RunTable.LineMissing)
    def _read_missing(self, message: RunTable.LineMissing) -> None:
        self.run_worker(self._read_lines(message.at), group="lines", exclusive=True, exit_on_error=False)

    @on(RunDetail.Edited)
    def _save_edit(self, message: RunDetail.Edited) -> None:
        self._change_log(lambda: message.save(self._log))

    @on(RunDetail.EditingClosed)
    def _focus_table(self) -> None:
        self.query_one(RunTable).focus()

    def _show_list(self, page: RunPage) -> None:
        """Show another order, or other runs."""
        self._is_loaded, self._total, self._size_bytes = True, page.total, page.size_bytes
        self._selection.update(page.marked)
        self._lines = RunLines(page.numbers, page.entries)
        self._show_lines(page.at)
        self._show_head()
        self._detail_soon.schedule()

    def _show_lines(self, at: int | None = None) -> None:
        """Show what was read or marked; `at` is the cursor's place, if that is another."""
        selection, table = self._selection, self.query_one(RunTable)
        runs = RunList(self._lines, selection.marked, selection.column, selection.is_descending)
        table.show_runs(runs, table.highlighted if at is None else at)

    def _filter(self) -> None:
        self.run_worker(self._reload(), group="filter", exclusive=True, exit_on_error=False)

    async def _settle(self) -> None:
        """Show the list of a filter that is still pending."""
        if self._filter_soon.is_pending or self.query_one("#filter", TextField).value != self._shown_filter:
            self._filter_soon.cancel()
            await self._reload()

    def on_resize(self) -> None:
        """Give the head the words for which the new width has room."""
        self._show_head()

    def _show_head(self) -> None:
        self.query_one("#head", Static).update(self._head(len(self._lines)), layout=False)

    def _show_detail(self) -> None:
        run = self._lines.entry(self.query_one(RunTable).highlighted)
        self.query_one(RunDetail).show_detail(None if run is None else run_line(run))

    async def _run_at_cursor(self) -> RunEntry | None:
        """Return the run at the cursor, after a filter that is still pending."""
        await self._settle()
        at = self.query_one(RunTable).highlighted
        if at is not None and self._lines.entry(at) is None:
            await self._read_lines(at)
        return self._lines.entry(at)

    def _head(self, matches: int) -> Content:
        total, marked = self._total, len(self._selection.marked)
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

    async def action_mark(self) -> None:
        """Mark the run at the cursor, or remove its mark, and move to the next."""
        table = self.query_one(RunTable)
        run = await self._run_at_cursor()
        if run is not None:
            self._selection.toggle_mark(run)
            self._show_lines()
            self._show_head()
            if table.highlighted != table.row_count - 1:
                table.action_cursor_down()

    async def action_open(self) -> None:
        """Open the run at the cursor."""
        run = await self._run_at_cursor()
        if run is not None:
            app_of(self).open_run(run, self._log, self._services)

    async def action_sweep(self) -> None:
        """Open the sweep or the mesh that the run at the cursor is part of."""
        run = await self._run_at_cursor()
        group = "" if run is None or run.group is None else run.group
        if not app_of(self).open_group(group, self._services):
            self.notify("This run is not part of a sweep or a mesh.", title="sweep")

    async def action_compare(self) -> None:
        """Compare the marked runs with the oldest of them."""
        runs = self._selection.comparison(await self._run_at_cursor())
        if runs is None:
            self.notify(f"First mark 2 to {len(LETTERS)} runs with {self.key_of('mark')}.", title="compare")
            return
        app_of(self).push_screen(CompareScreen([run.run_id for run in runs], self._log, self._services.export))

    def action_find(self) -> None:
        """Focus the filter."""
        self.set_focus(self.query_one("#filter", TextField))  # now: the next key is part of the text

    async def action_label(self) -> None:
        """Edit the label of the marked runs, or of the one at the cursor."""
        await self._edit("label")

    async def action_note(self) -> None:
        """Edit the note of the marked runs, or of the one at the cursor."""
        await self._edit("note")

    async def _edit(self, field_name: str) -> None:
        runs = self._selection.targets(await self._run_at_cursor())
        self._detail_soon.flush()
        self.query_one(RunDetail).edit(field_name, [run_line(run) for run in runs])

    async def action_sort(self) -> None:
        """Sort by the next column."""
        self._selection.sort_by_next()
        await self._reload()

    async def action_reverse(self) -> None:
        """Reverse the order."""
        self._selection.reverse()
        await self._reload()

    async def action_delete(self) -> None:
        """Delete the marked runs, or the one at the cursor, after a confirmation."""
        runs = self._selection.targets(await self._run_at_cursor())
        if not runs:
            return
        run_ids = [run.run_id for run in runs]

        def delete(is_confirmed: bool | None) -> None:
            if is_confirmed:
                _log.debug("delete runs %s", run_ids)
                self._change_log(lambda: self._delete(run_ids))

        title = "delete 1 run" if len(run_ids) == 1 else f"delete {numbers.quantity(len(run_ids), 'run')}"
        lines = [describe_run(run) for run in runs[:_LISTED_DELETIONS]]
        hidden = len(run_ids) - len(lines)
        more = [f"… and {hidden} more"] if hidden else []
        question = "\n".join([*lines, *more, "", "This cannot be undone."])
        app_of(self).push_screen(ConfirmScreen(title, question), delete)

    def _delete(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            self._log.delete(run_id)

    async def action_export(self) -> None:
        """Export the marked runs, or the one at the cursor."""
        runs = self._selection.targets(await self._run_at_cursor())
        prompt_export(self, [run.run_id for run in runs], self._services.export)

    def action_back(self) -> None:
        """Leave the editor, else the filter, else the screen."""
        detail, filter_field = self.query_one(RunDetail), self.query_one("#filter", TextField)
        if detail.is_editing:
            detail.close()
        elif filter_field.has_focus or filter_field.value not in {"", self._first_filter}:
            filter_field.value = ""
            self.query_one(RunTable).focus()
        else:
            app_of(self).pop_screen()
