"""The screen of a stored run."""

from typing import Any

from linkgauge.tui.history.history_screen import HistoryScreen
from linkgauge.tui.history.stored_run_screen import StoredRunScreen

from ..stored_runs import open_history, until


async def test_enter_opens_the_run(world: Any, history_log: Any) -> None:
    """Its plot, its summary and its verdict's words, as they were then; its note can be written there, too."""
    async with world.cockpit((120, 40)) as cockpit:
        await open_history(cockpit, "down", "down", "down", "enter")
        await until(cockpit, lambda: "loading" not in cockpit.line(1))
        assert isinstance(cockpit.app.screen, StoredRunScreen)
        text = " ".join(cockpit.text().split())
        for word in (
            "db-02",
            "10gbe-fd-1500 2026-11-18 09:12 UTC",
            "9 379",
            "5 sessions",
            "PASS",
            "AIX table 1",
        ):
            assert word in text
        await cockpit.press("n", *"new", "enter")
        await until(cockpit, lambda: "note new" in cockpit.text())
        await cockpit.press("escape")
        assert isinstance(cockpit.app.screen, HistoryScreen)
