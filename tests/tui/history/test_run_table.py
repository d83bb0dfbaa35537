"""The table of stored runs."""

from dataclasses import replace
from typing import Any

import pytest
from linkgauge.tui.history.run_table import RunTable

from ..stored_runs import CHANGED, FIRST, LOST, SHORT, open_history, run_ids


async def test_the_list_is_sorted_by_each_column(world: Any, history_log: Any) -> None:
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


async def test_peers_can_be_told_apart_and_rates_are_whole_at_each_width(world: Any, history_log: Any) -> None:
    """A column without room is left out; names lose the middle, in which they are alike."""
    async with world.cockpit((200, 24)) as cockpit:
        await open_history(cockpit)
        for width in (200, 120, 80, 60, 40):
            await cockpit.pilot.resize_terminal(width, 24)
            await cockpit.settle()
            table = cockpit.app.screen.query_one(RunTable)
            room = table.scrollable_content_region.width
            assert width - 4 <= room <= width
            lines = [table.draw(number, room).plain for number in range(4)]
            assert all(len(line) <= room for line in lines)
            assert all(run.rate in line for run, line in zip(table._list.lines, lines, strict=True))
            assert len(set(lines)) == 4
            if width >= 80:
                for peer in ("db-02:6000", "db-03"):
                    assert any(peer in line for line in lines)


@pytest.mark.parametrize("width", [80, 120])
async def test_a_rate_of_transactions_is_never_cut(world: Any, history_log: Any, width: int) -> None:
    """106 280/s is wider than any rate in Mb/s, and 106 …/s would be another one."""
    async with world.cockpit((width, 24)) as cockpit:
        await open_history(cockpit)
        table = cockpit.app.screen.query_one(RunTable)
        lines = [replace(line, rate="106\u00a0280/s") for line in table._list.lines]
        table._list = replace(table._list, lines=lines)
        room = table.scrollable_content_region.width
        assert all("106\u00a0280/s" in table.draw(number, room).plain for number in range(4))
