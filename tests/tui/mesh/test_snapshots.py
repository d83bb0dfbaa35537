"""Pictures of the screen of a mesh."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from linkgauge.mesh.events import CellBegan
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.verdict import DEFAULT_PASS_PERCENT
from linkgauge.tui.kit.screens.feature_app import StoredServices
from linkgauge.tui.mesh.mesh_screen import MeshScreen
from linkgauge.tui.mesh.stored_mesh import StoredMesh

from ..example_mesh import ScriptedMeshSession, findings, matrix

SIZES = {4: (80, 24), 64: (200, 60)}


def opened(
    world: Any, make: Callable[[StoredServices], MeshScreen], script: Callable[[], object], *keys: str
) -> Callable[[Any], Awaitable[None]]:
    """Return what a snapshot runs first: open the screen, let the script happen, press keys, let it settle."""

    async def run(pilot: Any) -> None:
        services = StoredServices(catalog=load_catalog(), export=world.export, clock=lambda: 0)
        await pilot.app.push_screen(make(services))
        script()
        await world.still(pilot)
        await pilot.press(*keys)
        await world.still(pilot)

    return run


@pytest.mark.parametrize("count", SIZES)
def test_a_mesh_in_progress(snap_compare: Any, world: Any, count: int) -> None:
    """Two thirds are measured, some cells run."""
    mesh = ScriptedMeshSession(count)

    def script() -> None:
        mesh.begin()
        done = len(mesh.plan.cells) * 2 // 3
        mesh.run_cells(done)
        mesh.emit(*(CellBegan(cell) for cell in mesh.plan.cells[done : done + count // 2]))

    before = opened(world, lambda services: MeshScreen(services, mesh), script)
    assert snap_compare(world.app(), terminal_size=SIZES[count], run_before=before)


@pytest.mark.parametrize(
    ("size", "count"),
    [((80, 24), 12), pytest.param((80, 24), 64, marks=pytest.mark.every), ((120, 40), 64)],
    ids=["80x24-12", "80x24-64", "120x40-64"],
)
def test_a_stored_mesh(snap_compare: Any, world: Any, count: int, size: tuple[int, int]) -> None:
    """The cursor on a slow cell, the findings as sentences."""
    stored = StoredMesh(matrix(count), findings(count), DEFAULT_PASS_PERCENT)
    before = opened(world, lambda services: MeshScreen(services, stored=stored), lambda: None, "n")
    assert snap_compare(world.app(), terminal_size=size, run_before=before)
