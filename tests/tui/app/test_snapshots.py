"""Pictures of the dialogs over the cockpit, one for each layout."""

from typing import Any

import pytest
from linkgauge.engine.model.peer import Peer

from ..app_driver import before_snapshot
from ..scripted_run import five_sessions_half_way

SMALL, WIDE = (80, 24), (120, 40)


@pytest.mark.parametrize(
    ("size", "keys"),
    [
        # Every key of the registry.
        pytest.param(SMALL, ["question_mark"], id="help-80x24"),
        # The list by family, and with enough room the sheet of the highlighted preset; else a key shows it.
        *(
            pytest.param(
                size, ["n", *"ethernet 1500", "down"], id=f"presets-{size[0]}x{size[1]}", marks=pytest.mark.every
            )
            for size in (SMALL, WIDE)
        ),
        pytest.param(SMALL, ["n", "tab"], id="sheet-80x24"),
        # An input line, and below it only this machine: no other peer is known yet.
        pytest.param(SMALL, ["c"], id="peers-80x24"),
    ],
)
def test_dialog(snap_compare: Any, world: Any, size: tuple[int, int], keys: list[str]) -> None:
    """It covers the cockpit before its first run."""
    before = before_snapshot(world, None, *keys)
    assert snap_compare(world.app(peer=Peer("db-02")), terminal_size=size, run_before=before)


def test_settings(snap_compare: Any, world: Any) -> None:
    """Changes show at once on the instruments below; an invalid field has a message."""
    keys = ("s", "tab", "enter", "down", "enter", "tab", "tab", "1", "2", "0")
    before = before_snapshot(world, five_sessions_half_way, *keys, ends=False)
    assert snap_compare(world.app(peer=Peer("db-02")), terminal_size=WIDE, run_before=before)
