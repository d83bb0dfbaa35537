"""A stored run in the instruments of the cockpit: plot, gauges, sessions and verdict."""

from asyncio import to_thread
from dataclasses import dataclass, replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from ...engine.model.errors import LinkgaugeError
from ...engine.results.run_log import RunEntry, RunLog
from ..gauges.instruments import Instruments, InstrumentScreen
from ..gauges.run_header import TitleBar
from ..kit.actions import ScreenKind, bindings
from ..kit.drawing.styled_lines import first_fit
from ..kit.drawing.styles import MUTED
from ..kit.screens.export import prompt_export
from ..kit.screens.feature_app import StoredServices, app_of, preferences_of
from ..session.stored_run import StoredRun, read_stored_run
from ..words import numbers
from ..words.responsiveness import phases_text
from ..words.run_line import run_line
from .run_detail import RunDetail


class StoredRunScreen(InstrumentScreen):
    """One run of the log, read in a thread."""

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
        """The run could not be read or changed."""

        text: str

    def __init__(self, row: RunEntry, log: RunLog, services: StoredServices) -> None:
        super().__init__()
        self._row: RunEntry = row
        self._log = log
        self._services = services

    def compose(self) -> ComposeResult:
        """Compose the instruments of the cockpit, and the run's label and note."""
        yield TitleBar()
        yield Static(id="plan", markup=False)
        yield Instruments()
        yield RunDetail(brief=True)
        yield self.footer()

    def on_mount(self) -> None:
        """Read the run."""
        self.query_one("#plan", Static).update(Content.styled(f"loading {self._row.run_id} …", MUTED))
        self.query_one(RunDetail).show_detail(run_line(self._row))
        self.run_worker(self._load(), exit_on_error=False)

    async def _load(self) -> None:
        try:
            self.post_message(self.Loaded(await to_thread(read_stored_run, self._log, self._row.run_id)))
        except LinkgaugeError as error:
            self.post_message(self.RunLogFailed(str(error)))

    async def _save(self, edit: RunDetail.Edited) -> None:
        try:
            await to_thread(edit.save, self._log)
            self._row = await to_thread(self._log.find, self._row.run_id)
        except LinkgaugeError as error:
            self.post_message(self.RunLogFailed(str(error)))
            return
        self.query_one(RunDetail).show_detail(run_line(self._row))

    @on(Loaded)
    def _show_run(self, message: Loaded) -> None:
        snapshot = replace(message.run.snapshot(self._services.catalog), units=preferences_of(self).units)
        self.query_one(TitleBar).show(snapshot)
        self.query_one(Instruments).show_snapshot(snapshot)
        line = run_line(self._row)
        preset = Content.assemble((line.subject, "bold"))
        plan = snapshot.plan
        if plan.has_phases:
            plan_words = phases_text(plan)
        elif line.program:
            plan_words = f"{line.test} to {line.peer}"
        else:
            settings = numbers.settings(plan.settings, plan.workload)
            plan_words = f"{numbers.workload(plan)}, {settings}, {numbers.duration(plan.duration_ns)}"
        texts = (
            Content.assemble(preset, (f"   {when}{plan_words}", MUTED)) for when in (f"{line.when} UTC   ", "")
        )
        plan_line = self.query_one("#plan", Static)
        short = Content.assemble(preset, (f"   {line.test}", MUTED))
        # The run's id has the time as well.
        plan_line.update(first_fit(plan_line.content_size.width, *texts, short, preset))

    @on(RunLogFailed)
    def _show_failure(self, message: RunLogFailed) -> None:
        self.query_one("#plan", Static).update(Content.styled("✗ cannot show this run", "bold $text-error"))
        self.report(message.text, "run log")

    @on(RunDetail.Edited)
    def _save_edit(self, message: RunDetail.Edited) -> None:
        self.run_worker(self._save(message), exit_on_error=False)

    # Actions of the registry.

    def action_replay(self) -> None:
        """Play the run again."""
        from .replay_screen import ReplayScreen

        app_of(self).push_screen(ReplayScreen(self._row.run_id, self._log, self._services))

    def action_label(self) -> None:
        """Edit the label."""
        self.query_one(RunDetail).edit("label")

    def action_note(self) -> None:
        """Edit the note."""
        self.query_one(RunDetail).edit("note")

    def action_export(self) -> None:
        """Export the run."""
        prompt_export(self, [self._row.run_id], self._services.export)

    def action_back(self) -> None:
        """Leave the editor or a panel that is alone, else return to the history."""
        detail = self.query_one(RunDetail)
        if detail.is_editing:
            detail.close()
        elif not self.instruments.restore():
            app_of(self).pop_screen()
