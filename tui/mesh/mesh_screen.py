"""The screen of a mesh, in progress or stored: the map of its cells, the cell at the cursor, the findings.

In a mesh of many hosts cells begin and end all the time: `progress_screen` limits how often they are drawn.
"""

import logging
from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, ScrollableContainer
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.widgets import Static

from ...engine.model.errors import LinkgaugeError, RunLogError
from ...engine.results.run_log import RunLog, RunRecord
from ...mesh.events import MeshBegan
from ...mesh.plan import Cell
from ...mesh.reading import MeshComparison, order_hosts
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ..kit.actions import Marks, ScreenKind, bindings
from ..kit.screens.base_screen import ActionScreen
from ..kit.screens.export import prompt_export
from ..kit.screens.feature_app import StoredServices, app_of
from ..kit.screens.progress_screen import ProgressScreen
from ..kit.widgets.key_footer import KeyFooter
from ..session.run_exports import ExportFormat
from .heat_map import HeatMap
from .map_layout import arrange
from .mesh_lines import (
    cell_lines,
    comparison_contents,
    finding_lines,
    head_line,
    host_lines,
    legend_line,
    status_line,
)
from .mesh_state import MeshState
from .stored_mesh import StoredMesh, StoredMeshes

if TYPE_CHECKING:
    from .mesh_session import MeshSession, MeshUpdate

_log = logging.getLogger(__name__)

_FRAME_LINES: Final = 4  # head, status, legend, footer
_MARKS: Final[Marks] = (
    ("▼ ✗", "a cell below the pass mark; below half of the expected rate"),
    ("•", "a cell at or above the pass mark, if cells are too small for figures"),
    ("!", "a cell that was tried and has no result; the panel says why"),
    ("●", "a cell that runs now"),
    ("·", "a cell that was not measured yet"),
    ("╲", "a host and itself: the panel has the medians of what it sends and receives"),
    ("▲", "a finding: a host, a path or a group that is slow"),
)


class MeshScreen(ProgressScreen):
    """One mesh.

    Args:
        services: Open the run of a cell, and export.
        session: The mesh in progress; None for a stored one.
        stored: The stored mesh, if it is one.
        pass_percent: The pass mark of cells in percent; a stored mesh has its own.
    """

    AUTO_FOCUS = "HeatMap"
    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.MESH
    MARKS: ClassVar[Marks] = _MARKS
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.MESH)
    DEFAULT_CSS = """
    MeshScreen {
        & #body { height: 1fr; layout: vertical; }
        & HeatMap { height: 1fr; width: 1fr; margin: 0 1; }
        & #panels { layout: horizontal; }
        & .panel { width: 1fr; height: 100%; }
        & Static { height: auto; }
        & #body.-beside { layout: horizontal; }
        & #body.-beside #panels { layout: vertical; height: 100%; }
        & #body.-beside #cell { width: 100%; height: 10; }
        & #body.-beside #findings { width: 100%; height: 1fr; }
        &.-tiny #panels, &.-tiny #legend, &.-tiny KeyFooter { display: none; }
    }
    """

    @dataclass
    class RunFound(Message):
        """The run of a cell was found in the log."""

        run: RunRecord

    @dataclass
    class Compared(Message):
        """The mesh was compared with the last one of the same hosts; None if there is none."""

        comparison: MeshComparison | None

    @dataclass
    class RunMissing(Message):
        """The run of a cell could not be read."""

        text: str

    def __init__(
        self,
        services: StoredServices,
        session: "MeshSession | None" = None,
        stored: StoredMesh | None = None,
        *,
        meshes: StoredMeshes | None = None,
        pass_percent: float = DEFAULT_PASS_PERCENT,
    ) -> None:
        super().__init__()
        self._services = services
        self._meshes = meshes
        self._session = session
        self._mesh = MeshState(services.clock, pass_percent if stored is None else stored.pass_percent)
        self._is_saved = stored is not None or services.history is not None
        if stored is not None:
            self._mesh.load(stored.matrix, stored.findings)
        self._comparison: MeshComparison | None = None
        self._is_sorted: bool | None = None  # None: as soon as the mesh is complete

    def compose(self) -> ComposeResult:
        """Compose the progress, the map and the panels."""
        yield Static(id="head", markup=False)
        yield Static(id="now", markup=False)
        with Container(id="body"):
            yield HeatMap()
            with Container(id="panels"):
                with ScrollableContainer(id="cell", classes="panel") as cell:
                    cell.border_title = Content("cell")
                    yield Static(id="cell-text", markup=False)
                with ScrollableContainer(id="findings", classes="panel") as findings:
                    findings.border_title = Content("findings")
                    yield Static(id="findings-text", markup=False)
        yield Static(id="legend", markup=False)
        yield self.footer()

    def on_mount(self) -> None:
        """Show the stored figures, or follow the mesh in progress."""
        if self._session is not None:
            self._mesh.start()
            self.follow(self._session, self._show_progress)
        else:
            self._compare()
        self._sort()
        self.draw()

    def _compare(self) -> None:
        """Begin to look for an earlier mesh of the same hosts."""
        if self._meshes is not None:
            self.run_worker(self._find_comparison(self._meshes), group="compare", exclusive=True)

    async def _find_comparison(self, meshes: StoredMeshes) -> None:
        try:
            self.post_message(self.Compared(await to_thread(meshes.compare, self._mesh.matrix)))
        except LinkgaugeError as error:  # an earlier mesh that cannot be read is not a problem of this one
            _log.debug("mesh %s cannot be compared: %s", self._mesh.group, error)

    async def _find_run(self, history: RunLog, run_id: str) -> None:
        try:
            self.post_message(self.RunFound(await to_thread(history.find, run_id)))
        except LinkgaugeError as error:
            self.post_message(self.RunMissing(str(error)))

    # Message handlers.

    def take(self, event: "MeshUpdate") -> None:
        """Take in an event, and the result of its cell."""
        self._mesh.handle_event(event.event, event.figure)
        if isinstance(event.event, MeshBegan) and self._session is not None:
            self._mesh.load(self._session.matrix, self._session.findings)  # with the results of earlier sessions

    def finish(self, problem: str | None) -> None:
        """Note the end: every cell has ended, the mesh was stopped, or it failed."""
        if self._session is not None:
            self._mesh.findings = tuple(self._session.findings)
        self._mesh.end(problem or self._mesh.problem)
        if not self.is_closing:
            self._compare()
            self._sort()

    @on(Compared)
    def _show_comparison(self, message: Compared) -> None:
        self._comparison = message.comparison
        self._show_findings()

    @on(HeatMap.Moved)
    def _follow_cursor(self) -> None:
        self._show_cell()

    @on(HeatMap.Selected)
    def _open_selected(self) -> None:
        self.action_open_cell()

    @on(HeatMap.DensityChanged)
    def _name_marks(self) -> None:
        self._show_legend()

    @on(RunFound)
    def _open_run(self, message: RunFound) -> None:
        history = self._services.history
        if history is not None:
            app_of(self).open_run(message.run, history, self._services)

    @on(RunMissing)
    def _show_missing(self, message: RunMissing) -> None:
        self.report(message.text, "run log")

    def on_resize(self, event: Resize) -> None:
        """Put the panels beside the map or below it, where they leave the map more room."""
        self._arrange(event.size.width, event.size.height)

    # Drawing.

    def draw(self) -> None:
        """Draw everything from the events so far."""
        if self._session is not None and self._mesh.is_running:
            self._mesh.findings, self._mesh.rechecks = tuple(self._session.findings), self._session.rechecks
        self._arrange(self.size.width, self.size.height)
        self.query_one(HeatMap).show_mesh(self._mesh.map())
        self._show_progress()
        self._show_cell()
        self._show_legend()
        self._show_findings()

    def _show_findings(self) -> None:
        lines = finding_lines(self._mesh.findings, is_running=self._mesh.is_running)
        if self._comparison is not None:
            lines += comparison_contents(self._comparison)
        self.query_one("#findings-text", Static).update(Content("\n").join(lines))

    def _show_progress(self) -> None:
        progress = self._mesh.progress()
        self.query_one("#head", Static).update(head_line(progress), layout=False)
        self.query_one("#now", Static).update(status_line(progress, is_saved=self._is_saved), layout=False)
        unavailable = {"close_mesh"} if len(app_of(self).screen_stack) == 1 else set[str]()
        self.query_one(KeyFooter).show(
            frozenset(unavailable if progress.is_running else unavailable | {"stop_mesh"})
        )

    def _show_cell(self) -> None:
        cell = self.query_one(HeatMap).cell
        if cell is None:
            return
        hosts = {host.name: host for host in self._mesh.hosts}
        sender, receiver = hosts[cell.sender], hosts[cell.receiver]
        if sender is receiver:
            lines = host_lines(self._mesh.host_figures(sender), is_of_expected=self._mesh.is_of_expected)
        else:
            lines = cell_lines(cell, self._mesh.state_of(cell), (sender, receiver))
        self.query_one("#cell").border_title = Content("host" if sender is receiver else "cell")
        self.query_one("#cell-text", Static).update(Content("\n").join(lines))

    def _show_legend(self) -> None:
        legend = legend_line(self._mesh.map(), self.query_one(HeatMap).density)
        self.query_one("#legend", Static).update(legend, layout=False)

    def _arrange(self, width: int, height: int) -> None:
        names = [host.name for host in self._mesh.hosts]
        arrangement = arrange(names, width - 2, height - _FRAME_LINES)
        self.query_one("#body").set_class(arrangement.is_beside, "-beside")
        panels = self.query_one("#panels")
        panels.styles.width = arrangement.panels if arrangement.is_beside else "100%"
        panels.styles.height = "100%" if arrangement.is_beside else arrangement.panels

    def _sort(self) -> None:
        """Order the hosts by their results once the mesh is complete, or as the user chose; else as given."""
        is_by_results = self._mesh.progress().is_complete if self._is_sorted is None else self._is_sorted
        can_be = is_by_results and not self._mesh.is_running and bool(self._mesh.figures)
        self._mesh.order = order_hosts(self._mesh.matrix) if can_be else None

    # Actions of the registry.

    def action_open_cell(self) -> None:
        """Open the stored run of the cell at the cursor."""
        cell, history = self.query_one(HeatMap).cell, self._services.history
        figure = None if cell is None else self._mesh.figures.get(cell)
        if figure is None or figure.run_id is None:
            self.notify("This cell has no stored run.", title="open")
        elif history is None:
            self.notify("Runs are not saved: there is no run log.", severity="warning")
        else:
            self.run_worker(self._find_run(history, figure.run_id), group="open", exclusive=True)

    def action_next_slow(self) -> None:
        """Move to the next cell that is slow or has no result, row by row; after the last to the first."""
        self._move_to_slow(1)

    def action_previous_slow(self) -> None:
        """Move to the cell before that is slow or has no result."""
        self._move_to_slow(-1)

    def _move_to_slow(self, by: int) -> None:
        heat_map = self.query_one(HeatMap)
        names = [host.name for host in self._mesh.ordered_hosts]
        cells = [Cell(sender, receiver) for sender in names for receiver in names]
        here = heat_map.cell
        if here is None:
            return
        at = cells.index(here)
        ahead = [*cells[at + 1 :], *cells[:at]] if by > 0 else [*cells[:at][::-1], *cells[at + 1 :][::-1]]
        slow = self._mesh.slow_cells()
        found = next((cell for cell in ahead if cell in slow), None)
        if found is None:
            self.notify("No other cell is slow.", title="next slow")
        else:
            heat_map.move_to(found)

    def action_zoom(self) -> None:
        """Draw smaller cells; after the smallest, the largest."""
        self.query_one(HeatMap).show_next_density()

    def action_order(self) -> None:
        """Order the hosts by their results, or as they were given."""
        if self._mesh.is_running:
            self.notify("Hosts can be ordered when the mesh is over.", title="order")
            return
        self._is_sorted = self._mesh.order is None
        self._sort()
        self.draw()

    def action_stop_mesh(self) -> None:
        """Stop the mesh in order."""
        if self._session is None or not self._mesh.is_running:
            self.notify("This mesh does not run.", title="stop")
        elif not self._mesh.is_stopping:
            self._mesh.is_stopping = True
            self._session.stop()
            self._show_progress()

    def action_export(self) -> None:
        """Export the runs; the HTML report shows the mesh."""
        services, meshes, group = self._services, self._meshes, self._mesh.group

        def export(run_ids: Sequence[str], form: ExportFormat, path: Path) -> Path:
            if form != "html":
                return services.export(run_ids, form, path)
            if meshes is None:
                raise RunLogError("this mesh is not saved")
            return meshes.write_report(group, path)

        run_ids = [figure.run_id for figure in self._mesh.figures.values() if figure.run_id is not None]
        prompt_export(self, run_ids, export)

    def action_close_mesh(self) -> None:
        """Return to the screen below, if there is one."""
        if len(app_of(self).screen_stack) > 1:
            self.action_leave_mesh()

    def action_leave_mesh(self) -> None:
        """Leave the screen. A mesh in progress is stopped first; a second request leaves at once."""
        self.leave(is_running=self._mesh.is_running, stop=self.action_stop_mesh)


async def open_stored_mesh(
    screen: ActionScreen, services: StoredServices, meshes: StoredMeshes, group: str
) -> None:
    """Open a stored mesh with its figures, or show why that fails.

    Args:
        screen: The screen to return to.
        services: Open the run of a cell, and export.
        meshes: The stored meshes.
        group: The name of the mesh in the run log.
    """
    try:
        stored = await to_thread(meshes.find, group)
    except LinkgaugeError as error:
        screen.report(error, "mesh")
        return
    await app_of(screen).push_screen(MeshScreen(services, stored=stored, meshes=meshes))
