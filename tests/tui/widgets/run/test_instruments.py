"""All instruments together: units and expectations are the same on each."""

from typing import Any

from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload


async def test_a_loopback_run_has_no_percentage_and_no_line(world: Any) -> None:
    """Nothing is expected of loopback."""
    async with world.cockpit((120, 40), preset="loopback") as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 50e9)
        world.script.end()
        await cockpit.end()
        text = cockpit.text()
        assert "nothing to expect" in text
        assert "of expected" not in text
        assert "━ expected" not in text
        assert "DONE" in cockpit.line(0)


async def test_transactions_a_second_replace_rates_everywhere(world: Any) -> None:
    """In the gauge, the plot, the sessions and the stretches; a difference of nothing has no sign."""
    plan = Plan(Settings(sessions=2), workload=Workload.RR, duration_ns=30 * SECOND_NS)
    async with world.cockpit((120, 40), preset="loopback", plan=plan) as cockpit:
        await cockpit.press("space")
        world.script.took_ns = (50_000, 60_000)
        world.script.run_for(12, 160e6, near_busy=0.2, far_busy=0.2)
        world.script.change_settings(world.script.settings.with_changes(sessions=5))
        world.script.run_for(20, 159.9e6, near_busy=0.2, far_busy=0.2)
        await cockpit.settle()
        text = cockpit.text()
        assert "Mb/s" not in text
        assert text.count("trans/s") >= 4
        assert "(0 %)" in text
        assert "(-0" not in text
