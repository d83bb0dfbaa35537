"""All instruments together: units and expectations are the same on each; a problem takes the place of the plot."""

from typing import Any

import pytest
from linkgauge.engine.model.errors import (
    PeerNotLinkgauge,
    PeerRefused,
    PeerUnreachable,
    PeerVersionMismatch,
)
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload

FAR = Peer("db-02")


async def test_a_loopback_run_has_no_percentage_and_no_line(world: Any) -> None:
    """Nothing is expected of loopback."""
    async with world.cockpit((120, 40), preset="loopback") as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 50e9)
        world.script.end()
        await cockpit.end()
        text = cockpit.text()
        assert "no target rate" in text
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


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
@pytest.mark.parametrize(
    "refusal",
    [
        PeerUnreachable("db-02:5820 cannot be reached: the name does not resolve"),
        PeerRefused("db-02:5820 declined: it serves 8 clients already"),
        PeerVersionMismatch("db-02:5820 speaks protocol 2, this is 1: use the same linkgauge at both ends"),
        PeerNotLinkgauge("db-02:5820 is no linkgauge endpoint: it said nothing for 5 s"),
    ],
    ids=lambda refusal: type(refusal).__name__,
)
async def test_an_unusable_far_end_is_shown_with_the_remedy(
    world: Any, size: tuple[int, int], refusal: Exception
) -> None:
    """The reason, the key that tries again, the key that goes elsewhere; and it goes on once it is back."""
    world.refusal = refusal
    async with world.cockpit(size, peer=FAR) as cockpit:
        await cockpit.end()
        text = " ".join(cockpit.text().split())
        assert "NOT CONNECTED" in cockpit.line(0)
        assert str(refusal)[:40] in text
        assert "try again" in text
        assert "connect to another host" in text
        world.refusal = None
        await cockpit.press("r")
        await cockpit.end()
        assert "READY" in cockpit.line(0)
