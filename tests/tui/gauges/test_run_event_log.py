"""The event log of a run: complete at any time, and imported when it is first opened."""

import subprocess
import sys
from typing import Any

import pytest
from linkgauge.engine.model.peer import Peer

FAR = Peer("db-02")


@pytest.mark.every
async def test_the_event_log_has_the_run_from_its_connection_on_however_late_it_is_opened(world: Any) -> None:
    """A later run has a log of its own."""
    async with world.cockpit((120, 40), peer=FAR) as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 7e9)
        await cockpit.press("+", "o")
        text = cockpit.text()
        assert "00:00 ○ connected to db-02" in text
        assert "00:05 ◆ changed to 2 sessions" in text
        await cockpit.press("space")
        await cockpit.end()
        assert "■ stopped" in cockpit.text()
        await cockpit.press("space")
        await cockpit.settle()
        assert "changed to 2 sessions" not in cockpit.text()
        assert "started: out, 2 sessions" in cockpit.text()


def test_the_cockpit_does_not_import_the_log_before_it_is_opened() -> None:
    """Its base class takes time at each start of the app."""
    code = (
        "import sys; import linkgauge.tui.run.cockpit_screen;"
        "assert 'linkgauge.tui.kit.widgets.log_view' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
