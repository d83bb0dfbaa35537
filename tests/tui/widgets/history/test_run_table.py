"""The table of stored runs."""

from typing import Any

from linkgauge.tui.widgets.history.run_table import RunTable

from ...stored_runs import CHANGED, FIRST, LOST, SHORT, open_history, run_ids


async def test_the_list_is_sorted_by_each_column(world: Any, kept: Any) -> None:
    """The next one with `s`, the other way around with `S`, and by a click on the column's head."""
    async with world.cockpit((120, 40)) as cockpit:
        await open_history(cockpit, *["s"] * 4)
        assert "Mb/s▼" in cockpit.text()
        assert run_ids(cockpit)[0] == FIRST
        await cockpit.press("S")
        assert run_ids(cockpit)[0] == CHANGED
        await cockpit.pilot.click(RunTable, offset=(4, 0))
        await cockpit.settle()
        assert run_ids(cockpit) == [LOST, CHANGED, SHORT, FIRST]
