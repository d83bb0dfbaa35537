"""All instruments together: units and expectations are the same on each; a problem takes the place of the plot."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PeerVersionMismatch
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
        assert "no expected rate" in text
        assert "of expected" not in text
        assert "━ expected" not in text
        assert "DONE" in cockpit.line(0)


async def test_transactions_a_second_replace_rates_everywhere(world: Any) -> None:
    """In the gauge, the plot, the sessions and the periods. A difference of zero has no sign."""
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
async def test_an_unusable_far_end_is_shown_with_the_remedy(world: Any, size: tuple[int, int]) -> None:
    """The reason, the keys to try again and to choose another host. It can be used when it is back."""
    refusal = PeerVersionMismatch("db-02:5820 speaks protocol 2, this is 1: use the same linkgauge on both hosts")
    world.refusal = refusal
    async with world.cockpit(size, peer=FAR) as cockpit:
        await cockpit.end()
        text = " ".join(cockpit.text().split())
        assert "NOT CONNECTED" in cockpit.line(0)
        assert str(refusal) in text
        assert "try again" in text
        assert "connect to another host" in text
        world.refusal = None
        await cockpit.press("r")
        await cockpit.end()
        assert "READY" in cockpit.line(0)


PANELS = ("FlowGauge", "PlotArea", "SessionTable", "CpuPanel", "VerdictPanel", "EventLog")


def visible(cockpit: Any) -> set[str]:
    """Return the kinds of panels that have room on the screen."""
    shown = {
        type(widget).__name__
        for widget, (region, clip) in cockpit.app.screen._compositor.visible_widgets.items()
        if region.intersection(clip)
    }
    return shown & set(PANELS)


@pytest.mark.every
@pytest.mark.parametrize("size", [(40, 10), (80, 24), (120, 40)], ids=str)
async def test_a_key_shows_each_panel_alone_with_all_the_room(world: Any, size: tuple[int, int]) -> None:
    """One after the other. Escape shows all of them again."""
    async with world.cockpit(size, peer=FAR) as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 7e9)
        await cockpit.settle()
        before = visible(cockpit)
        seen: list[set[str]] = []
        for _ in PANELS:
            await cockpit.press("m")
            seen.append(visible(cockpit))
            alone = [w for w in cockpit.app.screen._compositor.visible_widgets if type(w).__name__ in seen[-1]]
            assert max(widget.outer_size.width for widget in alone) == size[0]
            assert max(widget.outer_size.height for widget in alone) >= size[1] - 4
        assert seen == [{name} for name in PANELS]
        await cockpit.press("m")
        assert visible(cockpit) == before
        await cockpit.press("m", "m", "escape")
        assert visible(cockpit) == before


@pytest.mark.every
async def test_keys_show_fewer_and_more_panels(world: Any) -> None:
    """Down to the gauges, which then have the largest digits, and up to the event log."""
    async with world.cockpit((120, 40), peer=FAR) as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 7e9)
        await cockpit.settle()
        everything = visible(cockpit)
        await cockpit.press("comma")
        assert visible(cockpit) == {"FlowGauge", "CpuPanel", "PlotArea"}
        await cockpit.press("comma", "comma")
        assert visible(cockpit) == {"FlowGauge", "CpuPanel"}
        assert cockpit.app.cockpit.query_one("#gauge-out").size.height > 30
        await cockpit.press("full_stop", "full_stop")
        assert visible(cockpit) == everything
        await cockpit.press("full_stop")
        assert visible(cockpit) == {*everything, "EventLog"}
        await cockpit.press("m")
        assert visible(cockpit) == {"FlowGauge"}
        await cockpit.press("escape", "o")
        assert visible(cockpit) == everything


async def test_both_directions_have_digits_of_one_size(world: Any) -> None:
    """At each width and with rates of different lengths, because users compare them."""
    plan = Plan(Settings(Direction.DUPLEX, 2), duration_ns=30 * SECOND_NS)
    async with world.cockpit((60, 40), peer=FAR, plan=plan) as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 7.2e9)
        for width in (60, 80, 119, 121, 160, 200):
            await cockpit.pilot.resize_terminal(width, 40)
            await cockpit.settle()
            out, in_ = (cockpit.app.cockpit.query_one(f"#gauge-{flow}")._lines for flow in Direction.DUPLEX.flows)
            digits = [line.plain.rstrip() for line in out[:5]]
            assert digits == [line.plain.rstrip() for line in in_[:5]]
            assert any("█" in line or "7" in line for line in digits)


async def test_the_cores_of_a_run_that_is_over_have_their_means(world: Any) -> None:
    """They are beside the mean of the host. The last second was busier."""
    async with world.cockpit((120, 40), preset="loopback") as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 50e9, near_busy=0.2, far_busy=0.2)
        world.script.run_for(20, 50e9, near_busy=0.6, far_busy=0.6)
        world.script.end()
        await cockpit.end()
        text = cockpit.text()
        assert "core  3  42 %" in text
        assert "▁▁▂▄▁▂▁▁" in text  # core 3 at 42 %; the last second's 60 % would be higher


@pytest.mark.parametrize(("size", "is_shown"), [((120, 40), False), ((200, 60), True)])
async def test_a_large_screen_has_the_delays_of_datagrams_beside_their_losses(
    world: Any, size: tuple[int, int], *, is_shown: bool
) -> None:
    """A smaller one leaves the room to the losses."""
    async with world.cockpit(size, plan=Plan(workload=Workload.UDP)) as cockpit:
        await cockpit.press("space")
        world.script.run_for(16, 9e8)
        await cockpit.settle()
        assert "delay var." in cockpit.text()
        assert ("delay variation, out" in cockpit.text()) is is_shown
        assert ("p99.9" in cockpit.text()) is is_shown
