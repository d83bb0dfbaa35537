"""Pictures of the screen of a watch."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.kit.screens.feature_app import StoredServices
from linkgauge.tui.watch.watch_screen import WatchScreen

from ..example_watch import NOW_S, ScriptedWatch, all_failed

SIZES = {3: (120, 40), 40: (200, 60)}


def opened(world: Any, watch: ScriptedWatch, *keys: str) -> Callable[[Any], Awaitable[None]]:
    """Return what a snapshot runs first: open the screen, let a day have happened, press keys, let it settle."""

    async def run(pilot: Any) -> None:
        services = StoredServices(catalog=load_catalog(), export=world.export)
        screen = WatchScreen(watch, services, clock=lambda: NOW_S)
        await pilot.app.push_screen(screen)
        known = list(watch.statuses.values())
        watch.begin()
        watch.emit(*(each.last_check for each in known[:4] if each.last_check is not None))
        watch.emit(*(change for each in known for change in each.changes))
        await world.still(pilot)
        await pilot.press(*keys)
        await world.still(pilot)

    return run


@pytest.mark.parametrize("count", SIZES)
def test_a_watch_after_a_day(snap_compare: Any, world: Any, count: int) -> None:
    """The cursor at the peer whose rate fell; one peer is tested now."""
    watch = ScriptedWatch(count)
    watch.start_test("db-01")
    assert snap_compare(world.app(), terminal_size=SIZES[count], run_before=opened(world, watch, "down"))


@pytest.mark.every
@pytest.mark.parametrize("size", [(40, 10), (80, 24)], ids=["40x10", "80x24"])
def test_three_peers_in_other_sizes(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The least important columns give way."""
    assert snap_compare(world.app(), terminal_size=size, run_before=opened(world, ScriptedWatch(3), "down"))


def test_before_the_first_result(snap_compare: Any, world: Any) -> None:
    """An unknown figure is not shown as 0."""
    watch = ScriptedWatch(3, is_new=True)
    assert snap_compare(world.app(), terminal_size=(80, 24), run_before=opened(world, watch))


def test_every_test_failed_and_the_data_is_used_up(snap_compare: Any, world: Any) -> None:
    """Each row has its reason."""
    watch = ScriptedWatch(3)
    watch.statuses = {name: all_failed(known) for name, known in watch.statuses.items()}
    for name in watch.statuses:
        watch.use_up(name)
    assert snap_compare(world.app(), terminal_size=(120, 40), run_before=opened(world, watch))
