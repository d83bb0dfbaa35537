"""The table of sessions."""

from typing import Any

from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.tui.widgets.run.session_table import SessionTable


async def test_a_hundred_and_twenty_eight_sessions_scroll(world: Any) -> None:
    """All of them have a row, and the last can be scrolled to with the keyboard."""
    plan = Plan(Settings(sessions=128))
    async with world.cockpit((120, 40), plan=plan) as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 9e9)
        await cockpit.settle()
        assert "sessions 128" in cockpit.text()
        table = cockpit.app.cockpit.query_one(SessionTable)
        table.focus()
        await cockpit.press("end")
        table.scroll_end(animate=False)
        await cockpit.settle()
        assert "→128" in cockpit.text()
