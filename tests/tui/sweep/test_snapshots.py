"""Pictures of the screen of a sweep."""

from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.tui.kit.screens.feature_app import StoredServices
from linkgauge.tui.sweep.sweep_screen import SweepScreen

from ..sweep_example import SWEEP, cells


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
def test_a_sweep_on_the_screen(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Half of it is measured, and it can be resumed."""
    sweep = replace(SWEEP, directions=(Direction.OUT,))
    measured = [cell for cell in cells() if cell.point.direction is Direction.OUT][:5]

    async def shown(pilot: Any) -> None:
        services = StoredServices(catalog=world.catalog, export=world.export)
        screen = SweepScreen(sweep, services, None, LOOPBACK, measured)
        await pilot.app.push_screen(screen)
        await pilot.pause()

    assert snap_compare(world.app(), terminal_size=size, run_before=shown)
