"""A run of the log, in full: its plot, what was measured, its sessions and its verdict."""

from asyncio import to_thread
from dataclasses import dataclass, replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Footer, Static

from ....engine.model.errors import LinkgaugeError
from ....engine.results.run_log import RunRecord
from ....presets.catalog import Catalog
from ...actions import ScreenKind, bindings
from ...interfaces import ExportRuns, History
from ...rendering.styles import MUTED
from ...services.stored_run import StoredRun, load_stored_run
from ...text import numbers
from ...text.run_list import run_line
from ...widgets.history.run_detail import RunDetail
from ...widgets.run.instruments import Instruments
from ...widgets.run.title_bar import TitleBar
from ..dialogs.export import ask_export
from ..dialogs.help import HelpScreen
from ..layout import InstrumentScreen, app_of, preferences_of


class StoredRunScreen(InstrumentScreen):
    """One run, read in a thread."""

    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.STORED
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.STORED)
    DEFAULT_CSS = """
    StoredRunScreen > #plan { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    @dataclass
    class Loaded(Message):
        """The run was read."""

        run: StoredRun

    @dataclass
    class RunLogFailed(Message):
        """The run could not be read, or written to."""

        text: str

    def __init__(self, row: RunRecord, history: History, export: ExportRuns, catalog: Catalog) -> None:
        super().__init__()
        self._row = row
        self._history = history
        self._export = export
        self._catalog = catalog

    def compose(self) -> ComposeResult:
        """Lay out what the cockpit has, and the run's own words."""
        yield TitleBar()
        yield Static(id="plan", markup=False)
        yield Instruments()
        yield RunDetail(brief=True)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Read the run."""
        self.query_one("#plan", Static).update(Content.styled(f"reading {self._row.run_id} …", MUTED))
        self.query_one(RunDetail).show(run_line(self._row))
        self.run_worker(self._read(), exit_on_error=False)

    async def _read(self) -> None:
        try:
            self.post_message(self.Loaded(await to_thread(load_stored_run, self._history, self._row)))
        except LinkgaugeError as error:
            self.post_message(self.RunLogFailed(str(error)))

    async def _write(self, written: RunDetail.Edited) -> None:
        try:
            await to_thread(written.save, self._history)
            rows = await to_thread(self._history.list_runs)
        except LinkgaugeError as error:
            self.post_message(self.RunLogFailed(str(error)))
            return
        self._row = next((row for row in rows if row.run_id == self._row.run_id), self._row)
        self.query_one(RunDetail).show(run_line(self._row))

    @on(Loaded)
    def _was_read(self, message: Loaded) -> None:
        view = replace(message.run.snapshot(self._catalog), units=preferences_of(self).units)
        self.query_one(TitleBar).show(view)
        self.query_one(Instruments).show(view)
        line = run_line(self._row)
        preset = Content.assemble((line.preset or "no preset", "bold"))
        plan = view.plan
        parts = (numbers.workload(plan), numbers.settings(plan.settings), numbers.duration(plan.duration_ns))
        text = f"   {line.when} UTC   {', '.join(parts)}"
        self.query_one("#plan", Static).update(Content.assemble(preset, (text, MUTED)))

    @on(RunLogFailed)
    def _failed(self, message: RunLogFailed) -> None:
        self.query_one("#plan", Static).update(Content.styled("✗ this run cannot be shown", "bold $text-error"))
        self.notify(numbers.sanitize(message.text), title="the run log", severity="error", markup=False)

    @on(RunDetail.Edited)
    def _written(self, message: RunDetail.Edited) -> None:
        self.run_worker(self._write(message), exit_on_error=False)

    # What the keys do: one method for each action of the registry.

    def action_label(self) -> None:
        """Write the run's label."""
        self.query_one(RunDetail).edit("label")

    def action_note(self) -> None:
        """Write a note to the run."""
        self.query_one(RunDetail).edit("note")

    def action_export(self) -> None:
        """Export the run."""
        ask_export(self, [self._row.run_id], self._export)

    def action_help(self) -> None:
        """Explain every key."""
        app_of(self).push_screen(HelpScreen())

    def action_back(self) -> None:
        """Go back: out of what is written, then to the list."""
        detail = self.query_one(RunDetail)
        if detail.is_editing:
            detail.close()
        else:
            app_of(self).pop_screen()
