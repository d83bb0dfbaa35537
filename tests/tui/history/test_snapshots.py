"""Pictures of the screens of stored runs."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])


def pressed(world: Any, *keys: str) -> Callable[[Any], Awaitable[None]]:
    """Return what a snapshot runs first: open the list, press keys one by one, and let all of it settle."""

    async def run(pilot: Any) -> None:
        for key in ("h", *keys):
            await pilot.press(key)
            await world.still(pilot, ends=True)

    return run


@SIZES
def test_history(snap_compare: Any, world: Any, history_log: Any, size: tuple[int, int]) -> None:
    """Two runs marked, one of them under the cursor."""
    assert snap_compare(world.app(), terminal_size=size, run_before=pressed(world, "down", "space", "space", "up"))


@SIZES
def test_stored_run(snap_compare: Any, world: Any, history_log: Any, size: tuple[int, int]) -> None:
    """A run with a change half-way."""
    assert snap_compare(world.app(), terminal_size=size, run_before=pressed(world, "down", "enter"))


@SIZES
def test_compare(snap_compare: Any, world: Any, history_log: Any, size: tuple[int, int]) -> None:
    """Two runs, one slower."""
    before = pressed(world, "down", "down", "space", "space", "c")
    assert snap_compare(world.app(), terminal_size=size, run_before=before)


def test_editing_a_label(snap_compare: Any, world: Any, history_log: Any) -> None:
    """In its place."""
    assert snap_compare(world.app(), terminal_size=(80, 24), run_before=pressed(world, "down", "l"))


def test_export_choice(snap_compare: Any, world: Any, history_log: Any) -> None:
    """Four forms."""
    assert snap_compare(world.app(), terminal_size=(80, 24), run_before=pressed(world, "e"))


@pytest.mark.every
def test_monochrome(snap_compare: Any, world: Any, history_log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is told by colour alone."""
    monkeypatch.setenv("NO_COLOR", "1")
    before = pressed(world, "down", "down", "space", "space", "c")
    assert snap_compare(world.app(), terminal_size=(80, 24), run_before=before)


@pytest.mark.every
def test_history_with_responsiveness_tests(snap_compare: Any, world: Any, load_log: Any) -> None:
    """They say what they are and have their grade; the details have all figures."""
    assert snap_compare(world.app(), terminal_size=(80, 24), run_before=pressed(world, "down"))


@pytest.mark.every
def test_stored_responsiveness_test(snap_compare: Any, world: Any, load_log: Any) -> None:
    """The plot and the panel that it had at its end."""
    assert snap_compare(world.app(), terminal_size=(120, 40), run_before=pressed(world, "end", "enter"))


@pytest.mark.every
def test_compare_responsiveness_tests(snap_compare: Any, world: Any, load_log: Any) -> None:
    """What a shorter queue is worth: rises, grade and round trips a minute."""
    before = pressed(world, "down", "space", "space", "c")
    assert snap_compare(world.app(), terminal_size=(120, 40), run_before=before)
