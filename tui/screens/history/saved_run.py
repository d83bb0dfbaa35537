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
from ....engine.results.run_log import RunRow
from ....presets.catalog import Catalog
from ...actions import Place, bindings
from ...interfaces import Export, History
from ...rendering.styles import MUTED
from ...services.stored_run import StoredRun, stored_run
from ...text import numbers as words
from ...text.run_list import run_line
from ...widgets.history.run_detail import RunDetail
from ...widgets.run.instruments import Instruments
from ...widgets.run.title_bar import TitleBar
from ..dialogs.export import export_from
from ..dialogs.help import HelpScreen
from ..layout import InstrumentScreen, app_of, preferences_of


class StoredScreen(InstrumentScreen):
    """One run, read in a thread."""

    PLACE: ClassVar[Place] = Place.STORED
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.STORED)
    DEFAULT_CSS = """
    StoredScreen > #plan { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    @dataclass
    class Read(Message):
        """The run was read."""

        run: StoredRun

    @dataclass
    class Failed(Message):
        """The run could not be read, or written to."""

        text: str

    def __init__(self, row: RunRow, history: History, export: Export, catalog: Catalog) -> None:
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
            self.post_message(self.Read(await to_thread(stored_run, self._history, self._row)))
        except LinkgaugeError as error:
            self.post_message(self.Failed(str(error)))

    async def _write(self, written: RunDetail.Written) -> None:
        try:
            await to_thread(written.keep, self._history)
            rows = await to_thread(self._history.runs)
        except LinkgaugeError as error:
            self.post_message(self.Failed(str(error)))
            return
        self._row = next((row for row in rows if row.run_id == self._row.run_id), self._row)
        self.query_one(RunDetail).show(run_line(self._row))

    @on(Read)
    def _was_read(self, message: Read) -> None:
        view = replace(message.run.view(self._catalog), units=preferences_of(self).units)
        self.query_one(TitleBar).show(view)
        self.query_one(Instruments).show(view)
        line = run_line(self._row)
        preset = Content.assemble((line.preset or "no preset", "bold"))
        how_long = words.duration(view.plan.duration_ns)
        said = f"   {line.when} UTC   {words.workload(view.plan)}, {words.settings(view.plan.settings)}, {how_long}"
        self.query_one("#plan", Static).update(Content.assemble(preset, (said, MUTED)))

    @on(Failed)
    def _failed(self, message: Failed) -> None:
        self.query_one("#plan", Static).update(Content.styled("✗ this run cannot be shown", "bold $text-error"))
        self.notify(words.plain(message.text), title="the run log", severity="error", markup=False)

    @on(RunDetail.Written)
    def _written(self, message: RunDetail.Written) -> None:
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
        export_from(self, [self._row.run_id], self._export)

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
