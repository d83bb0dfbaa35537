"""The title bar: both ends, and the state of the run."""

from typing import Any

from linkgauge.engine.model.events import Started
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.peer import Peer

FAR = Peer("db-02")


async def test_a_hostname_of_a_peer_cannot_break_the_title(world: Any) -> None:
    """Neither by markup nor by its length."""
    async with world.cockpit((80, 24), peer=FAR) as cockpit:
        await cockpit.press("space")
        facts = HostInfo("[bold]x[/]" * 25, "Linux", 4, "linkgauge", "uvloop")
        plan = cockpit.app.cockpit.plan
        expected = world.script.meter.summary().expectation
        world.script.emit(Started("2026-11-21T01:46:29Z", "db-02:5820", facts, facts, plan, expected))
        await cockpit.settle()
        assert "[bold]x[/]" in cockpit.line(0)
        assert "RUNNING" in cockpit.line(0)
        assert len(cockpit.line(0)) == 80
