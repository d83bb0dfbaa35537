"""The key that starts a responsiveness test, what it shows, and what it refuses."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import Plan, ResponsivenessTest, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.tui.gauges.responsiveness_panel import ResponsivenessPanel
from linkgauge.tui.readings.cockpit_snapshot import Phase

from ..scripted_loads import emit_loads
from ..stored_runs import notifications

FAR = Peer("db-02")
IPERF3 = Peer.parse("iperf3://db-02")


async def test_u_starts_a_test_and_space_stops_it(world: Any) -> None:
    """It has the plan of the command. The settings of ordinary tests stay."""
    async with world.cockpit(preset="100mb-fd", peer=FAR, plan=Plan(Settings(sessions=3))) as cockpit:
        await cockpit.press("u")
        plan = world.script.plan
        assert plan.responsiveness is ResponsivenessTest.PHASES
        assert (plan.settings.direction, plan.settings.sessions) == (Direction.OUT, 8)
        emit_loads(world.script, most=10)
        await cockpit.settle()
        assert "● out" in cockpit.line(2)
        assert "○ both" in cockpit.line(2)
        await cockpit.press("space")
        await cockpit.end()
        assert world.script.stops == [Reason.STOPPED]
        assert cockpit.app.cockpit.phase is Phase.DONE
        assert "next: 3 sessions, 10 s" in cockpit.line(2)
        await cockpit.press("space")
        assert world.script.plan.responsiveness is None


@pytest.mark.parametrize(
    ("size", "letter_rows", "has_rates"), [((80, 24), 3, False), ((120, 40), 6, False), ((200, 60), 9, True)]
)
async def test_the_end_shows_the_grade_and_all_loads(
    world: Any, size: tuple[int, int], letter_rows: int, *, has_rates: bool
) -> None:
    """And the round trips a minute. A larger panel has a larger letter, and from some width on the rates."""
    async with world.cockpit(size, preset="100mb-fd", peer=FAR) as cockpit:
        await cockpit.press("u")
        emit_loads(world.script, most=34)
        await cockpit.settle()
        assert "load 2 of 3" in cockpit.text()
        assert "● in" in cockpit.text()
        await cockpit.press("space")
        await cockpit.end()
    world.scripts.clear()
    async with world.cockpit(size, preset="100mb-fd", peer=FAR) as cockpit:
        await cockpit.press("u")
        emit_loads(world.script)
        await cockpit.end()
        text = cockpit.text()
        for words in ("grade A", "✓ idle", "✓ out", "✓ in", "✓ both", "1 415 round trips a minute", "latency, ms"):
            assert words in text
        lines = [line.plain for line in cockpit.app.cockpit.query_one(ResponsivenessPanel)._lines]
        assert sum(not {"█", "▀", "▄"}.isdisjoint(line) for line in lines) == letter_rows
        assert ("out Mb/s" in text) is has_rates


async def test_the_settings_of_the_test_are_fixed(world: Any) -> None:
    """Each key says so, and the run does not change."""
    async with world.cockpit((120, 40), preset="100mb-fd", peer=FAR) as cockpit:
        await cockpit.press("u")
        emit_loads(world.script, most=5)
        for key in ("plus", "minus", "right_square_bracket", "left_square_bracket", "d"):
            await cockpit.press(key)
            assert "a responsiveness test sets direction and sessions itself" in notifications(cockpit)[-1]
        assert world.script.changes == []
        assert "fixed until the test ends" in cockpit.line(2)
        await cockpit.press("t")
        assert notifications(cockpit)[-1] == "It applies to the next test."


@pytest.mark.every
async def test_a_running_test_is_not_replaced(world: Any) -> None:
    """Neither an ordinary test nor another of its kind replaces it."""
    for key in ("space", "u"):
        async with world.cockpit(peer=FAR) as cockpit:
            await cockpit.press(key, "u")
            assert "press space to stop it" in notifications(cockpit)[-1]
        world.scripts.clear()


async def test_an_iperf3_server_answers_no_probe(world: Any) -> None:
    """The first steps say it beside the key, and the key says it in full."""
    async with world.cockpit(preset="100mb-fd", peer=IPERF3) as cockpit:
        assert "latency under load: iperf3 answers no probe" in cockpit.text()
        await cockpit.press("u")
        assert "run linkgauge endpoint on that host" in notifications(cockpit)[-1]
        assert world.scripts == []


@pytest.mark.every
async def test_the_palette_has_it(world: Any) -> None:
    """By its name and by its subject."""
    async with world.cockpit((120, 40), preset="100mb-fd", peer=FAR) as cockpit:
        await cockpit.press("ctrl+p")
        await cockpit.press(*"latency under")
        await cockpit.press("down", "enter")
        await cockpit.settle()
        assert world.script.plan.responsiveness is ResponsivenessTest.PHASES


@pytest.mark.parametrize("workload", [Workload.UDP, Workload.RR])
async def test_it_loads_by_tcp_whatever_is_chosen_for_ordinary_tests(world: Any, workload: Workload) -> None:
    """Datagrams and transactions fill no queue."""
    async with world.cockpit(preset="100mb-fd", peer=FAR, plan=Plan(workload=workload)) as cockpit:
        await cockpit.press("u")
        assert world.script.plan.workload is Workload.STREAM
        emit_loads(world.script)
        await cockpit.end()
        assert cockpit.app.cockpit.plan.workload is workload


@pytest.mark.every
async def test_v_goes_through_the_plots_of_the_test(world: Any) -> None:
    """Rate and latency together first, then each alone, then those of TCP; after the last the first again."""
    async with world.cockpit((120, 40), preset="100mb-fd", peer=FAR) as cockpit:
        await cockpit.press("u")
        emit_loads(world.script)
        await cockpit.end()
        seen: list[str] = []
        for _ in range(8):
            title = str(cockpit.app.cockpit.query_one("#plot").border_title)
            seen.append(title.replace("\u00a0", " ").split(",")[-1 if "below" in title else 0])
            await cockpit.press("v")
        assert seen[0] == seen[7] == " and latency below it"
        assert seen[2] == "latency"
        assert len(set(seen)) == 7
