"""Pictures of the table of connections and of one connection, at three sizes."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from linkgauge.tui.observe.observe_screen import ObserveScreen

from .example_observations import Source, connection, ended, examples, observation

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
NOTE = "The processes of other users are not visible; run this as root to see them."


def opened(world: Any, source: Source, *keys: str) -> Callable[[Any], Awaitable[None]]:
    """Return what a snapshot runs first: open the screen, let it settle, press keys, let it settle."""

    async def run(pilot: Any) -> None:
        await pilot.app.push_screen(ObserveScreen(source))
        await world.still(pilot)
        await pilot.press(*keys)
        await world.still(pilot)

    return run


def minute() -> Source:
    """Return the observations of half a minute: the last row has ended in the end."""
    source = Source()
    for second in range(1, 31):
        rows = [*examples()]
        rows[1] = connection(
            2, 412e6 + 20e6 * ((second * 7) % 5), rows[1].status, findings=rows[1].findings, reason=rows[1].reason
        )
        if second == 30:
            rows[5] = ended(rows[5])
        source.put(observation(rows, second, notes=(NOTE,), ended=int(second == 30)))
    return source


@SIZES
def test_connections_of_each_kind(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The cursor at the one that its receiver stops."""
    assert snap_compare(world.app(), terminal_size=size, run_before=opened(world, minute(), "down"))


@SIZES
def test_one_connection(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Gauge, plots, windows, and why."""
    assert snap_compare(world.app(), terminal_size=size, run_before=opened(world, minute(), "down", "enter"))


def test_one_connection_that_receives(snap_compare: Any, world: Any) -> None:
    """Without the sender's windows."""
    keys = ("down", "down", "enter")
    assert snap_compare(world.app(), terminal_size=(120, 40), run_before=opened(world, minute(), *keys))


def test_a_host_without_connections(snap_compare: Any, world: Any) -> None:
    """A sentence, not an empty table."""
    source = Source()
    source.put(observation([]))
    assert snap_compare(world.app(), terminal_size=(80, 24), run_before=opened(world, source))


def test_a_filter_in_a_small_terminal(snap_compare: Any, world: Any) -> None:
    """The least important columns give way."""
    run_before = opened(world, minute(), *"/nginx", "enter")
    assert snap_compare(world.app(), terminal_size=(40, 10), run_before=run_before)
