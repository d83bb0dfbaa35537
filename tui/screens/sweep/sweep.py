"""A sweep: carried out run by run, or as it was kept; its map, its lines, the best settings and the knees.

A worker carries the runs out and only posts messages; the handlers own all state. A run is in the log as soon as it
has ended, so that a sweep that is left can be gone on with.
"""

import time
from asyncio import to_thread
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import ScrollableContainer
from textual.content import Content
from textual.message import Message
from textual.widgets import Footer, Static
from textual.worker import Worker, WorkerState

from ....engine.model.errors import LinkgaugeError
from ....engine.model.events import Reason
from ....engine.model.peer import Peer
from ....engine.results.sweep import Sweep, SweepPoint, SweepResult
from ....presets.preset import Preset
from ...actions import ScreenKind, bindings
from ...interfaces import ExportFormat, ExportRuns, RunHandle, Sweeps
from ...rendering.diff_compositor import DiffScreen
from ...rendering.styles import KEY, MUTED
from ...services.run_comparison import LETTERS
from ...services.sweeps import result_from_run
from ...text import numbers
from ...text.sweep import estimated_duration_ns, point_words, result_words
from ...widgets.history.overlay_plot import OverlayPlot
from ...widgets.history.sweep_map import best_lines, knee_lines, map_lines, overlay_lines
from ..dialogs.export import ask_export
from ..dialogs.help import HelpScreen
from ..layout import app_of


class SweepScreen(DiffScreen):
    """One sweep against one peer; `starts` says whether what is left of it is run at once."""

    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.SWEEP
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.SWEEP)
    DEFAULT_CSS = """
    SweepScreen {
        background: $background;
        & #head { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & #now, & #legend { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & OverlayPlot { height: 1fr; min-height: 6; }
        & #result {
            height: 1fr;
            padding: 0 1;
            border-top: solid $foreground 22%;
            scrollbar-size: 1 1;
        }
        & Static { height: auto; }
        & #map { width: auto; }
        &.-tiny OverlayPlot, &.-tiny #legend { display: none; }
    }
    """

    @dataclass
    class CellsLoaded(Message):
        """What was measured already is known, and the rest is begun."""

        cells: Sequence[SweepResult]

    @dataclass
    class PointStarted(Message):
        """A point's run goes on."""

        point: SweepPoint
        run: RunHandle

    @dataclass
    class PointEnded(Message):
        """A point's run has ended; without a cell it came to nothing."""

        cell: SweepResult | None
        detail: str

    @dataclass
    class SweepStopped(Message):
        """Nothing goes on any more: all is done, it was stopped, or there was trouble."""

        problem: str | None = None

    def __init__(
        self,
        sweep: Sweep,
        sweeps: Sweeps,
        export: ExportRuns,
        *,
        preset: Preset | None,
        peer: Peer,
        cells: Sequence[SweepResult] = (),
        autostart: bool = True,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        super().__init__()
        self._sweep = sweep
        self._sweeps = sweeps
        self._export = export
        self._preset = preset
        self._peer = peer
        self._cells = list(cells)
        self._time_ns = clock
        self._is_wanted = autostart
        self._is_busy = False
        self._is_left = False
        self._going: RunHandle | None = None
        self._point: SweepPoint | None = None
        self._problem: str | None = None
        self._began_ns, self._made = 0, 0

    def compose(self) -> ComposeResult:
        """Lay out how far it is, the lines, and the map with what it says."""
        yield Static(id="head", markup=False)
        yield Static(id="now", markup=False)
        yield Static(id="legend", markup=False)
        yield OverlayPlot()
        with ScrollableContainer(id="result"):
            for name in ("best", "map", "knees"):
                yield Static(markup=False, id=name)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Show what there is, and begin."""
        self.query_one("#result").focus()
        if self._is_wanted:
            self._begin()
        self._show()

    # What the worker does: it posts, and changes nothing here.

    async def _carry_out(self) -> None:
        try:
            cells = await to_thread(self._sweeps.begin, self._sweep)
            self.post_message(self.CellsLoaded(cells))
            done = {cell.point for cell in cells}
            for point in self._sweep.points:
                if point not in done and self._is_wanted:
                    await self._carry_out_point(point)
        except LinkgaugeError as error:
            self.post_message(self.SweepStopped(str(error)))
        else:
            self.post_message(self.SweepStopped())

    async def _carry_out_point(self, point: SweepPoint) -> None:
        async with self._sweeps.run_point(self._sweep, point, self._preset, self._peer) as run:
            self.post_message(self.PointStarted(point, run))
            async for _event in run:
                pass
            summary = run.meter.summary()
        self.post_message(self.PointEnded(result_from_run(point, run.run_id, summary), summary.end.detail))

    # What the messages do.

    def _begin(self) -> None:
        self._is_wanted = self._is_busy = True
        self._problem = None
        self.run_worker(self._carry_out(), group="sweep", exclusive=True, exit_on_error=False)

    @on(CellsLoaded)
    def _known(self, message: CellsLoaded) -> None:
        self._cells = list(message.cells)
        self._began_ns, self._made = self._time_ns(), 0
        self._show()

    @on(PointStarted)
    def _begun(self, message: PointStarted) -> None:
        self._point, self._going = message.point, message.run
        if not self._is_wanted:  # it was stopped while this one was being opened
            self._stop_run()
        self._show_head()

    @on(PointEnded)
    def _over(self, message: PointEnded) -> None:
        self._point = self._going = None
        self._made += 1
        if message.cell is not None:
            self._cells.append(message.cell)
        elif self._is_wanted:
            self.notify(
                numbers.sanitize(message.detail), title="a run came to nothing", severity="warning", markup=False
            )
        self._show()

    @on(SweepStopped)
    def _rested(self, message: SweepStopped) -> None:
        self._is_busy = self._is_wanted = False
        self._point = self._going = None
        self._problem = message.problem
        if self._is_left:
            app_of(self).pop_screen()
        else:
            self._show_head()

    @on(Worker.StateChanged)
    def _worker_changed(self, message: Worker.StateChanged) -> None:
        """Tell a fault that no handler foresaw, instead of ending with a traceback."""
        if message.state is WorkerState.ERROR and message.worker.group == "sweep":  # pyright: ignore[reportUnknownMemberType] (Worker of what)
            self.post_message(self.SweepStopped(f"{message.worker.error}"))  # pyright: ignore[reportUnknownMemberType]

    def _show(self) -> None:
        """Draw all of it from what was measured so far."""
        self._show_head()
        lines, names, legend = overlay_lines(self._sweep, self._cells, LETTERS)
        self.query_one(OverlayPlot).show(lines, names)
        self.query_one("#legend", Static).update(self._legend(legend))
        for name, parts in (("best", best_lines), ("map", map_lines), ("knees", knee_lines)):
            found = parts(self._sweep, self._cells)
            shown = self.query_one(f"#{name}", Static)
            shown.display = bool(found)
            shown.update(Content("\n").join(found))

    def _legend(self, names: Sequence[str]) -> Content:
        plot = self.query_one(OverlayPlot)
        parts: list[tuple[str, str]] = []
        for name in names:
            red, green, blue = plot.colour(name[0])
            parts += [(f"{name[0]} ", f"bold rgb({red},{green},{blue})"), (f"{name[2:]}   ", MUTED)]
        return Content.assemble(*parts) if parts else Content("")

    def _show_head(self) -> None:
        whole = len(self._sweep.points)
        held = f", preset {self._sweep.preset}" if self._sweep.preset else ""
        self.query_one("#head", Static).update(
            Content.assemble(
                ("linkgauge ", KEY),
                (" sweep  ", "bold"),
                f"{len(self._cells)} of {numbers.quantity(whole, 'run')}{self._time_left(whole)}   ",
                (f"{numbers.sanitize(self._sweep.peer)}{held}   {self._sweep.group}", MUTED),
            )
        )
        self.query_one("#now", Static).update(self._now(whole))

    def _now(self, whole: int) -> Content:
        axes = self._sweep.varied_axes or ("sessions", "window_bytes")
        if self._problem is not None:
            return Content.assemble(("✗ ", "bold $text-error"), numbers.sanitize(self._problem))
        if self._is_busy:
            now = "starting" if self._point is None else point_words(self._point, axes)
            last = ""
            if self._cells:
                last = f"   last: {point_words(self._cells[-1].point, axes)}: {result_words(self._cells[-1])}"
            return Content.assemble(
                ("● ", "$text-success"), (now if self._is_wanted else "stopping", "bold"), (last, MUTED)
            )
        if len(self._cells) >= whole:
            return Content.assemble(("✓ ", "bold $text-success"), "every run is made")
        return Content.assemble(("◌ ", MUTED), "space goes on with what is left; what was measured is kept")

    def _time_left(self, whole: int) -> str:
        """Return about how long the rest takes: as the runs so far, their opening and closing included."""
        left = whole - len(self._cells)
        if not self._is_busy or not left:
            return ""
        so_far_ns = self._time_ns() - self._began_ns
        rest_ns = left * so_far_ns // self._made if self._made else estimated_duration_ns(self._sweep, left)
        return f", about {numbers.clock(rest_ns)} left"

    def _stop_run(self) -> None:
        if self._going is not None:
            self._going.stop(Reason.INTERRUPTED, "the sweep was stopped")

    # What the keys do: one method for each action of the registry.

    def action_go_on(self) -> None:
        """Stop, or go on with what is left."""
        if self._is_busy:
            self._is_wanted = False
            self._stop_run()
        elif len(self._cells) < len(self._sweep.points):
            self._begin()
        self._show_head()

    def action_export(self) -> None:
        """Export the runs; the page is that of the sweep."""

        def export(run_ids: Sequence[str], form: ExportFormat, path: Path) -> Path:
            return (
                self._sweeps.write_report(self._sweep, path)
                if form == "html"
                else self._export(run_ids, form, path)
            )

        ask_export(self, [cell.run_id for cell in self._cells], export)

    def action_help(self) -> None:
        """Explain every key."""
        app_of(self).push_screen(HelpScreen())

    def action_back(self) -> None:
        """Go back; a run that goes on is stopped first."""
        if not self._is_busy:
            app_of(self).pop_screen()
            return
        self._is_left = True
        if self._is_wanted:
            self.action_go_on()
