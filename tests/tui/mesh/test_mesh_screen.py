"""The screen of a mesh: it fills in while the mesh runs, stops it in order, and opens the run of a cell."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.results.run_log import RunLog
from linkgauge.mesh.events import CellBegan, CellEnded
from linkgauge.mesh.figures import MeshMatrix
from linkgauge.mesh.plan import Cell
from linkgauge.mesh.reading import MeshComparison, compare_meshes, order_hosts
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.verdict import DEFAULT_PASS_PERCENT
from linkgauge.tui.app.app import MeshApp
from linkgauge.tui.history.history_screen import HistoryScreen
from linkgauge.tui.history.stored_run_screen import StoredRunScreen
from linkgauge.tui.kit.screens.export import ExportScreen
from linkgauge.tui.kit.screens.feature_app import StoredServices
from linkgauge.tui.mesh.heat_map import HeatMap
from linkgauge.tui.mesh.mesh_screen import MeshScreen
from linkgauge.tui.mesh.stored_mesh import StoredMesh, StoredMeshes
from textual.pilot import Pilot
from textual.widgets import Input

from ..app_driver import screen_text, until
from ..example_mesh import GROUP, ScriptedMeshSession, findings, hosts, matrix
from ..scripted_run import store_run
from ..stored_runs import notifications

pytestmark = pytest.mark.usefixtures("world")


class MeshesOfTest(StoredMeshes):
    """The stored meshes of a test: one, or none."""

    def __init__(self, stored: StoredMesh | None, before: MeshMatrix | None = None) -> None:
        self._stored, self._before = stored, before
        self.reports: list[tuple[str, Path]] = []

    def find(self, group: str) -> StoredMesh:
        """Return the mesh."""
        if self._stored is None or group != GROUP:
            raise PlanError("mesh", repr(group), "no mesh is saved")
        return self._stored

    def compare(self, matrix: MeshMatrix) -> MeshComparison | None:
        """Compare it with the one before."""
        assert matrix.group == GROUP
        return None if self._before is None else compare_meshes(self._before, matrix)

    def write_report(self, group: str, path: Path) -> Path:
        """Note the request."""
        self.reports.append((group, path))
        return path


def export(run_ids: Any, form: Any, path: Path) -> Path:
    """Write nothing."""
    del run_ids, form
    return path


@asynccontextmanager
async def mesh_app(
    mesh: ScriptedMeshSession, size: tuple[int, int] = (80, 24), log: RunLog | None = None
) -> AsyncGenerator[tuple[MeshApp, Pilot[None]]]:
    """Run the app of a mesh without a terminal."""
    app = MeshApp(mesh, StoredServices(catalog=load_catalog(), export=export, open_log=lambda: log))
    async with app.run_test(size=size) as pilot:
        yield app, pilot


async def test_the_map_fills_in_while_the_mesh_runs() -> None:
    """With the progress and the cells that run; at the end with the findings, the slow host first."""
    mesh = ScriptedMeshSession(4)
    async with mesh_app(mesh) as (app, pilot):
        assert "connecting to the hosts" in screen_text(pilot.app)
        mesh.begin()
        mesh.run_cells(5)
        mesh.emit(CellBegan(Cell("db-03", "db-01")))
        await until(pilot, lambda: "5 of 12 cells" in screen_text(pilot.app))
        text = screen_text(pilot.app)
        for words in ("round 1 of 3", "db-03 → db-01", "31 %", "291.9", "● running", "None so far."):
            assert words in text
        mesh.emit(CellEnded(Cell("db-03", "db-01"), "db-03"))
        for cell in mesh.plan.cells[5:]:
            mesh.emit(CellBegan(cell), CellEnded(cell, cell.sender))
        mesh.findings = findings(4)
        mesh.end()
        await until(pilot, lambda: "Mesh complete: 4 cells slow, 1 without a result" in screen_text(pilot.app))
        assert "▲ db-03 receives 42 % less" in screen_text(pilot.app)
        names = next(line for line in screen_text(pilot.app).splitlines() if "from\\to" in line).split()
        assert tuple(names[1:5]) == order_hosts(mesh.matrix)
        await pilot.press("o")
        names = next(line for line in screen_text(pilot.app).splitlines() if "from\\to" in line).split()
        assert names[1:5] == [host.name for host in hosts(4)]
        assert app.is_running


async def test_the_panel_shows_the_cell_at_the_cursor() -> None:
    """Its rate and the reason why it is slow or failed; on the diagonal the host."""
    mesh = ScriptedMeshSession(4)
    async with mesh_app(mesh) as (app, pilot):
        mesh.begin()
        mesh.run_cells(12)
        mesh.lose("db-04")
        await until(pilot, lambda: "12 of 12 cells" in screen_text(pilot.app))
        await until(pilot, lambda: app.screen.query_one(HeatMap).cell == ("db-01", "db-02"))
        await pilot.press("n")
        await until(pilot, lambda: "why    interface at a lower speed" in screen_text(pilot.app))
        await pilot.press("down", "left", "left")
        await until(pilot, lambda: "✗ FAIL   31.0 %" in screen_text(pilot.app))
        await pilot.press("down", "down")
        await until(pilot, lambda: "no answer in time" in screen_text(pilot.app))
        await pilot.press("N")
        assert app.screen.query_one(HeatMap).cell == ("db-02", "db-03")
        await pilot.press("ctrl+end")
        await until(pilot, lambda: "lost: its worker has gone" in screen_text(pilot.app))


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_leaving_stops_the_mesh_in_order(key: str) -> None:
    """The app ends when the mesh has ended, or at the second request."""
    mesh = ScriptedMeshSession(4)
    async with mesh_app(mesh) as (app, pilot):
        mesh.begin()
        await until(pilot, lambda: "round 1" in screen_text(pilot.app))
        await pilot.press(key)
        await until(pilot, lambda: "stopping" in screen_text(pilot.app))
        assert mesh.stops == 1
        assert app.is_running
        if key == "q":
            mesh.end()
        else:
            await pilot.press(key)
        await until(pilot, lambda: not app.is_running)


@pytest.mark.parametrize("is_saved", [True, False])
async def test_a_stopped_mesh_stays_on_the_screen(tmp_path: Path, *, is_saved: bool) -> None:
    """It says how to resume it, or that nothing is saved. Escape does nothing: there is no screen below."""
    mesh, words = ScriptedMeshSession(4), f"go on: --resume {GROUP}" if is_saved else "results are not saved"
    async with mesh_app(mesh, log=RunLog.open(tmp_path) if is_saved else None) as (app, pilot):
        mesh.begin()
        mesh.run_cells(3)
        await pilot.press("space", "space")
        await until(pilot, lambda: "stopping" in screen_text(pilot.app))
        mesh.end()
        await until(pilot, lambda: words in screen_text(pilot.app))
        assert mesh.stops == 1
        await pilot.press("escape", "space")
        assert app.is_running


async def test_the_results_of_an_earlier_part_are_on_the_map_of_a_resumed_mesh() -> None:
    """They count as done."""
    mesh = ScriptedMeshSession(4, done=7)
    async with mesh_app(mesh) as (_, pilot):
        mesh.begin()
        await until(pilot, lambda: "7 of 12 cells" in screen_text(pilot.app))
        mesh.end()


@pytest.mark.every
async def test_many_hosts_can_be_shown_at_any_size() -> None:
    """The map scrolls, each zoom draws, and the panels move if there is room."""
    mesh = ScriptedMeshSession(40)
    async with mesh_app(mesh, (80, 24)) as (app, pilot):
        mesh.begin()
        mesh.run_cells(500)
        await until(pilot, lambda: "500 of 1 560" in screen_text(pilot.app))
        for size in ((40, 10), (80, 24), (120, 40)):
            await pilot.resize_terminal(*size)
            for key in ("ctrl+home", "z", "z", "z", "z", "ctrl+end"):
                await pilot.press(key)
                await pilot.pause()
            assert app.screen.query_one(HeatMap).cell == ("db-40", "db-40")
        mesh.end()


def stored_world(world: Any, tmp_path: Path) -> tuple[RunLog, StoredMesh]:
    """Return a log with the run of one cell of a mesh, and the mesh."""
    log = RunLog.open(tmp_path)
    script = world.script_of(world.catalog.find("gbe-fd-1500"), Plan())
    script.run_for(8, 9.3e8)
    script.end()
    stored = StoredMesh(matrix(4), findings(4), DEFAULT_PASS_PERCENT)
    run_id = stored.matrix.figures[Cell("db-01", "db-02")].run_id
    store_run(log, run_id, script, group=GROUP)
    assert log.flush()
    return log, stored


@pytest.mark.every
async def test_the_history_opens_the_mesh_of_a_run_and_the_mesh_the_run_of_a_cell(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And back; a cell without a run says so."""
    log, stored = stored_world(world, tmp_path)
    with log:
        async with world.cockpit((120, 40)) as cockpit:
            services = StoredServices(catalog=world.catalog, export=export, open_log=lambda: log)
            monkeypatch.setattr(cockpit.app, "stored_meshes", lambda _services: MeshesOfTest(stored))
            history = HistoryScreen(log, services)
            await cockpit.app.push_screen(history)
            await until(cockpit.pilot, lambda: "1 saved run" in cockpit.text())
            await cockpit.press("g")
            await until(cockpit.pilot, lambda: isinstance(cockpit.app.screen, MeshScreen))
            await until(cockpit.pilot, lambda: "Mesh complete: 4 cells slow" in cockpit.text())
            heat_map = cockpit.app.screen.query_one(HeatMap)
            heat_map.move_to(Cell("db-04", "db-01"))
            await cockpit.press("enter")
            assert isinstance(cockpit.app.screen, MeshScreen)
            heat_map.move_to(Cell("db-01", "db-02"))
            await cockpit.press("enter")
            await until(cockpit.pilot, lambda: isinstance(cockpit.app.screen, StoredRunScreen))
            await cockpit.press("escape")
            assert isinstance(cockpit.app.screen, MeshScreen)
            await cockpit.press("e")
            assert isinstance(cockpit.app.screen, ExportScreen)
            await cockpit.press("escape", "escape")
            assert isinstance(cockpit.app.screen, HistoryScreen)


async def test_a_mesh_whose_definition_is_gone_is_named(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history stays."""
    log, _ = stored_world(world, tmp_path)
    with log:
        async with world.cockpit() as cockpit:
            services = StoredServices(catalog=world.catalog, export=export, open_log=lambda: log)
            monkeypatch.setattr(cockpit.app, "stored_meshes", lambda _services: MeshesOfTest(None))
            await cockpit.app.push_screen(HistoryScreen(log, services))
            await until(cockpit.pilot, lambda: "1 saved run" in cockpit.text())
            await cockpit.press("g")
            await until(cockpit.pilot, lambda: any("no mesh is saved" in text for text in notifications(cockpit)))
            assert isinstance(cockpit.app.screen, HistoryScreen)


async def test_a_mesh_is_compared_with_the_last_one_of_its_hosts(tmp_path: Path) -> None:
    """Below its findings: the median and each new cause. Without an earlier mesh there is nothing."""
    now = matrix(4)
    halved = {cell: replace(each, bit_s=each.bit_s / 2) for cell, each in now.figures.items() if each.bit_s}
    stored = StoredMesh(replace(now, figures=halved), findings(4), DEFAULT_PASS_PERCENT)
    with RunLog.open(tmp_path) as log:
        for before, words in ((now, "compared with mesh-"), (None, "db-03 receives")):
            services = StoredServices(catalog=load_catalog(), export=export, open_log=lambda: log)
            meshes = MeshesOfTest(stored, before)
            async with mesh_app(ScriptedMeshSession(4), (120, 40)) as (app, pilot):
                await app.push_screen(MeshScreen(services, stored=stored, meshes=meshes))
                await until(pilot, lambda words=words: words in screen_text(pilot.app))
                assert ("slower now" in screen_text(pilot.app)) is (before is not None)


@pytest.mark.every
@pytest.mark.parametrize("key", ["h", "c"])
async def test_the_html_report_is_the_mesh_and_other_exports_are_its_runs(tmp_path: Path, key: str) -> None:
    """A page of each run would not show the mesh."""
    stored = StoredMesh(matrix(4), findings(4), DEFAULT_PASS_PERCENT)
    meshes, exported = MeshesOfTest(stored), list[tuple[int, str]]()

    def export_runs(run_ids: Sequence[str], form: str, path: Path) -> Path:
        exported.append((len(run_ids), form))
        return path

    services = StoredServices(catalog=load_catalog(), export=export_runs)
    async with mesh_app(ScriptedMeshSession(4), (120, 40)) as (app, pilot):
        await app.push_screen(MeshScreen(services, stored=stored, meshes=meshes))
        await pilot.press("e", key)
        app.screen.query_one(Input).value = str(tmp_path / "mesh")
        await pilot.press("enter")
        await until(pilot, lambda: bool(meshes.reports or exported))
    assert meshes.reports == ([(GROUP, tmp_path / "mesh")] if key == "h" else [])
    assert exported == ([] if key == "h" else [(11, "csv")])
