"""Snapshots of the dialogs over the cockpit."""

from typing import Any

import pytest
from linkgauge.engine.model.peer import Peer

from ...app_driver import BOTH_SIZES, before_snapshot
from ...scripted_run import five_sessions_half_way

FAR = Peer("db-02")


@BOTH_SIZES
def test_help(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Every key of the registry."""
    app = world.app(peer=FAR)
    assert snap_compare(app, terminal_size=size, run_before=before_snapshot(world, None, "question_mark"))


@pytest.mark.every
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
def test_presets(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The list by family, and with enough room the sheet of the highlighted preset."""
    app = world.app(peer=FAR)
    before = before_snapshot(world, None, "n", *"ethernet 1500", "down")
    assert snap_compare(app, terminal_size=size, run_before=before)


def test_a_presets_sheet(snap_compare: Any, world: Any) -> None:
    """On a small screen it replaces the list."""
    app = world.app(peer=FAR)
    assert snap_compare(app, terminal_size=(80, 24), run_before=before_snapshot(world, None, "n", "tab"))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
def test_settings(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Changes show at once on the instruments below; an invalid field has a message."""
    app = world.app(peer=FAR)
    keys = ("s", "tab", "enter", "down", "enter", "tab", "tab", "1", "2", "0")
    assert snap_compare(
        app, terminal_size=size, run_before=before_snapshot(world, five_sessions_half_way, *keys, ends=False)
    )


@BOTH_SIZES
def test_peers(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """An input line, and below it only this machine: no other peer is known yet."""
    app = world.app(peer=FAR)
    assert snap_compare(app, terminal_size=size, run_before=before_snapshot(world, None, "c"))
