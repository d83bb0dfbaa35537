"""The cockpit: runs that start, stop, pause and fail, the far end's answers, and the selected preset."""

# pyright: reportPrivateUsage=false

from typing import Any

import pytest
from linkgauge.engine.model.errors import PeerUnreachable
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.model.run_end import Reason
from linkgauge.presets.auto_select import PresetSelection
from linkgauge.tui.readings.cockpit_snapshot import Phase
from textual.widgets import Input

FAR = Peer("db-02")
IPERF3 = Peer.parse("iperf3://db-02")


async def test_going_to_loopback_after_a_refusal_needs_no_far_end(world: Any) -> None:
    """No far end is queried on loopback: a run starts its own."""
    world.refusal = PeerUnreachable("db-02:5820 refused the connection")
    async with world.cockpit(peer=FAR) as cockpit:
        await cockpit.end()
        await cockpit.press("c")
        cockpit.app.screen.query_one(Input).value = "loopback"
        await cockpit.press("enter")
        await cockpit.end()
        assert "READY" in cockpit.line(0)
        assert world.probed == [FAR]


async def test_a_refused_run_leaves_the_app_ready_for_another(world: Any) -> None:
    """The far end may go away between its answer and the start."""
    async with world.cockpit(peer=FAR) as cockpit:
        world.refusal = PeerUnreachable("db-02:5820 refused the connection")
        await cockpit.press("space")
        await cockpit.end()
        assert "refused the connection" in cockpit.text()
        world.refusal = None
        await cockpit.press("space")
        assert cockpit.app.cockpit.phase is Phase.RUNNING


async def test_an_unforeseen_error_is_a_message_without_a_traceback(world: Any) -> None:
    """Its details are for the log."""
    async with world.cockpit() as cockpit:
        world.refusal = ZeroDivisionError("by zero")
        await cockpit.press("space")
        await cockpit.end()
        assert "NOT STARTED" in cockpit.line(0)
        assert "internal error (ZeroDivisionError)" in cockpit.text()
        assert cockpit.app.is_running


async def test_the_peer_cannot_be_changed_during_a_run(world: Any) -> None:
    """Peer and retry wait until the run has ended. The preset is for the next run."""
    async with world.cockpit(peer=FAR) as cockpit:
        await cockpit.press("space", "c")
        assert cockpit.app.screen is cockpit.app.cockpit
        await cockpit.press("r")
        assert len(world.probed) == 1
        assert cockpit.app.screen is cockpit.app.cockpit


async def test_a_stop_before_the_run_is_open_still_stops_it(world: Any) -> None:
    """The user does not need to wait for the far end."""
    async with world.cockpit() as cockpit:
        cockpit.app.cockpit.action_toggle_run()
        cockpit.app.cockpit.action_toggle_run()
        await cockpit.settle()
        await cockpit.end()
        assert world.script.stops == [Reason.STOPPED]
        assert cockpit.app.cockpit.phase is Phase.DONE


async def test_leaving_the_app_by_force_releases_the_run(world: Any) -> None:
    """Any end of the app leaves the run's context."""
    async with world.cockpit() as cockpit:
        await cockpit.press("space")
        world.script.run_for(4, 7.1e9)
        await cockpit.settle()
    assert world.script.closed


@pytest.mark.every
async def test_the_screen_survives_any_size(world: Any) -> None:
    """Down to 20 x 5 and back, during a run."""
    async with world.cockpit((80, 24)) as cockpit:
        await cockpit.press("space")
        world.script.run_for(12, 7.1e9)
        for size in ((20, 5), (300, 90), (40, 12), (80, 24)):
            await cockpit.pilot.resize_terminal(*size)
            await cockpit.settle()
        assert "RUNNING" in cockpit.line(0)
        assert "Mb/s" in cockpit.text()


async def test_frames_are_bounded_and_events_are_not(world: Any) -> None:
    """With a clock that stands still, one frame is drawn, but the readings have every event."""
    app = world.app()
    app.cockpit.pacer.clock = lambda: 1
    async with world.cockpit(app=app) as cockpit:
        await cockpit.press("space")
        drawn = []
        paint = app.cockpit.paint
        app.cockpit.paint = lambda: (drawn.append(1), paint())
        world.script.run_for(40, 7e9)
        await cockpit.settle()
        assert len(drawn) <= 1
        assert app.cockpit.readings.elapsed_ns == world.script.elapsed_ns


async def test_space_starts_a_run_and_stops_it(world: Any) -> None:
    """The run gets the current plan. It is stopped once, and the verdict follows."""
    async with world.cockpit() as cockpit:
        assert "READY" in cockpit.line(0)
        await cockpit.press("space")
        world.script.run_for(8, 7.1e9)
        await cockpit.settle()
        assert "RUNNING 00:02 / 00:30" in cockpit.line(0)
        await cockpit.press("space")
        await cockpit.end()
        assert world.script.stops == [Reason.STOPPED]
        assert world.script.closed
        assert "STOPPED 00:02 / 00:30" in cockpit.line(0)
        verdict = cockpit.app.cockpit.query_one("#verdict .head").render()
        assert "NO VERDICT  stopped after 2.0 of 30 s." in str(verdict)
        assert "PASS" not in cockpit.text()  # neither does the gauge
        await cockpit.press("space")
        assert len(world.scripts) == 2


async def test_p_freezes_the_instruments_and_releases_them(world: Any) -> None:
    """The clock, the settings and the run continue. After the pause everything is up to date."""
    async with world.cockpit() as cockpit:
        await cockpit.press("p")
        assert not cockpit.app.cockpit.state.is_paused
        await cockpit.press("space")
        world.script.run_for(8, 7.1e9)
        await cockpit.settle()
        assert "sessions 1" in cockpit.text()
        await cockpit.press("p", "plus")
        world.script.run_for(8, 2e9)
        await cockpit.settle()
        assert "FROZEN 00:04" in cockpit.line(0)
        assert "[2]" in cockpit.line(2)
        assert "sessions 1" in cockpit.text()
        assert cockpit.app.cockpit.readings.elapsed_ns == 4 * SECOND_NS
        await cockpit.press("p")
        assert "RUNNING" in cockpit.line(0)
        assert "sessions 2" in cockpit.text()
        await cockpit.press("p", "space")
        await cockpit.end()
        assert not cockpit.app.cockpit.state.is_paused


async def test_r_asks_the_far_end_again(world: Any) -> None:
    """Once more for each key press."""
    async with world.cockpit(peer=Peer("db-02")) as cockpit:
        await cockpit.press("r")
        await cockpit.end()
        assert len(world.probed) == 2


@pytest.mark.every
async def test_quitting_stops_the_run_first(world: Any) -> None:
    """The app handles the run's end before its own, so that the end is stored."""
    async with world.cockpit() as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 7.1e9)
        await cockpit.settle()
        await cockpit.press("q")
        await cockpit.end()
        assert world.script.stops == [Reason.STOPPED]
        assert world.script.closed
        assert cockpit.app.cockpit.phase is Phase.DONE
        assert cockpit.app._exit


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_quitting_without_a_run_quits_at_once(world: Any, key: str) -> None:
    """Nothing to wait for."""
    async with world.cockpit() as cockpit:
        await cockpit.press(key)
        assert cockpit.app._exit


async def test_without_a_preset_the_interfaces_of_both_ends_select_one(world: Any) -> None:
    """It is marked as automatic, and the user's choice replaces it."""
    world.selection = PresetSelection(world.catalog.find("10gbe-fd-1500"), "line rate 10 Gb/s")
    async with world.cockpit((120, 40), peer=FAR, preset=None) as cockpit:
        await cockpit.end()
        assert "10 Gb Ethernet" in cockpit.line(1)
        assert "(auto)" in cockpit.line(1)
        await cockpit.press("space")
        assert world.script.preset.id == "10gbe-fd-1500"
        await cockpit.press("space", "n", "up", "enter")
        chosen = cockpit.app.cockpit.preset.id
        assert chosen != "10gbe-fd-1500"
        assert f"next: {chosen}" in cockpit.line(1)
        await cockpit.press("space")
        assert "(auto)" not in cockpit.line(1)


@pytest.mark.every
async def test_a_link_of_an_unknown_kind_is_measured_without_a_target(world: Any) -> None:
    """A wrong guess would give a wrong verdict. The screen shows the reason and the key to press."""
    async with world.cockpit((120, 40), peer=FAR, preset=None) as cockpit:
        await cockpit.end()
        assert "none (auto)" in cockpit.line(1)
        assert "Press n to choose a preset" in cockpit.app.shown_message.message
        await cockpit.press("c")
        cockpit.app.screen.query_one(Input).value = "loopback"
        await cockpit.press("enter")
        assert cockpit.app.cockpit.preset.id == "loopback"


@pytest.mark.parametrize("answer", ["y", "n"])
async def test_a_pasted_key_is_saved_on_request_once_it_works(world: Any, answer: str) -> None:
    """The whole command of the endpoint goes into the peer's line. The question comes once."""
    async with world.cockpit((120, 40)) as cockpit:
        await cockpit.press("c")
        pasted = "LINKGAUGE_KEY=k-of-an-endpoint-1234 linkgauge check auto db-02"
        cockpit.app.screen.query_one(Input).value = pasted
        await cockpit.press("enter")
        await cockpit.end()
        assert world.probed == [FAR]
        assert "Save the key of db-02:5820" in cockpit.text()
        await cockpit.press(answer)
        await cockpit.end()
        assert world.remembered == ([FAR] if answer == "y" else [])
        await cockpit.press("r")
        await cockpit.end()
        assert "Save the key" not in cockpit.text()


async def test_a_gauge_of_what_an_iperf3_receives_says_acknowledged_until_its_results_are_there(world: Any) -> None:
    """Then it has the rate that the iperf3 counted, and the verdict says whose figures these are."""
    async with world.cockpit((200, 60), peer=IPERF3) as cockpit:
        await cockpit.press("space")
        world.script.run_for(40, 7.1e9)
        await cockpit.settle()
        assert "local sends, acknowledged" in cockpit.text()
        assert "unknown" not in cockpit.text()
        assert "0\N{NO-BREAK SPACE}cores" not in cockpit.text()
        world.script.report_totals(6e9)
        world.script.end()
        await cockpit.settle()
        assert "local sends, acknowledged" not in cockpit.text()
        assert "by the count and the clock of iperf3" in cockpit.text()
        assert "not seen through iperf3" in cockpit.text()
        reading = cockpit.app.cockpit.state.summary.measured.out
        assert round(reading.bit_s / 1e9, 2) == 6.0
