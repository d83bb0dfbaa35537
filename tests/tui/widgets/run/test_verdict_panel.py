"""The panel of the verdict: the reason for an end, and warnings."""

from typing import Any

import pytest
from linkgauge.engine.model.events import Reason, Warned
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.tui.widgets.run.verdict_panel import VerdictPanel

FAR = Peer("db-02")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_a_run_that_breaks_says_why_and_what_it_measured(world: Any, size: tuple[int, int]) -> None:
    """The summary of what was measured until then stays on the screen."""
    async with world.cockpit(size, peer=FAR) as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 7.1e9)
        world.script.end(Reason.PEER_LOST, "db-02 has not been heard of for 5 s")
        await cockpit.end()
        assert "INTERRUPTED" in cockpit.line(0)
        panel = cockpit.app.cockpit.query_one(VerdictPanel)
        said = " ".join(str(panel.query_one(part).render()) for part in (".head", ".rest"))
        assert "REMOTE LOST" in said
        assert "db-02 has not been heard of for 5 s" in said
        assert "GiB" in said


async def test_warnings_and_notices_are_shown_as_they_are_written(world: Any) -> None:
    """Brackets of a peer's text are no markup, escape sequences are no commands."""
    async with world.cockpit((120, 40)) as cockpit:
        world.on_start = lambda script: script.notices.append("this run is not kept: disk [full]")
        await cockpit.press("space")
        world.script.emit(Warned("far granted [red]212K[/red]\x1b[2J, less than the 4M asked for"))
        world.script.run_for(4, 7.1e9)
        await cockpit.settle()
        text = " ".join(cockpit.text().split())
        assert "[red]212K[/red] [2J, less than" in text
        assert "disk [full]" in text
        assert "\x1b" not in text


async def test_a_lost_probe_is_reported_while_the_stream_continues(world: Any) -> None:
    """As the engine warns of it, in the panel where everything to know about the figures stands."""
    plan = Plan(probe=True, duration_ns=30 * SECOND_NS)
    async with world.cockpit((120, 40), plan=plan) as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 9e9)
        world.script.emit(
            Warned("the probe was lost: connection reset; latency under load is that of the time before")
        )
        world.script.run_for(8, 9e9)
        await cockpit.settle()
        assert "▲ the probe was lost: connection reset" in " ".join(cockpit.text().split())
        assert "RUNNING 00:04" in cockpit.text()
