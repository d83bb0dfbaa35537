"""The question before runs are deleted."""

from typing import Any

from linkgauge.tui.screens.dialogs.confirm import ConfirmScreen

from ...stored_runs import FIRST, LOST, SHORT, open_history, run_ids, until


async def test_deleting_asks_first(world: Any, kept: Any) -> None:
    """Anything but yes keeps the runs; yes deletes all that are marked."""
    async with world.cockpit() as cockpit:
        await open_history(cockpit, "x")
        assert isinstance(cockpit.app.screen, ConfirmScreen)
        assert LOST in cockpit.text()
        await cockpit.press("enter")
        assert len(run_ids(cockpit)) == 4
        await cockpit.press("space", "space", "delete", "y")
        await until(cockpit, lambda: len(run_ids(cockpit)) == 2)
        assert [row.run_id for row in kept.list_runs()] == [SHORT, FIRST]
