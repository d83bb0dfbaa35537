"""The comparison of stored runs."""

from typing import Any

import pytest
from linkgauge.tui.history.compare_screen import CompareScreen
from linkgauge.tui.history.history_screen import HistoryScreen

from ..stored_runs import SHORT, open_history, until


@pytest.mark.every
async def test_marked_runs_are_compared(world: Any, history_log: Any) -> None:
    """The others are compared with the oldest; each difference has its significance."""
    async with world.cockpit((120, 40)) as cockpit:
        await open_history(cockpit, "c")
        assert isinstance(cockpit.app.screen, HistoryScreen)
        await cockpit.press("down", "down", "space", "c")
        await until(cockpit, lambda: "compared with" in cockpit.text())
        assert isinstance(cockpit.app.screen, CompareScreen)
        text = cockpit.text()
        assert text.index("before") < text.index(SHORT)
        line = next(line for line in text.splitlines() if "out Mb/s" in line)
        assert line.split()[0] == "≠"
        assert "41.4 % slower" in line
