"""What the cockpit shows when things do not go as they should, and what it never does."""

import os
from typing import Any

import pytest
from linkgauge.engine.model.errors import (
    PeerKeyRequired,
    PeerNotLinkgauge,
    PeerRefused,
    PeerUnreachable,
    PeerVersionMismatch,
    WorkerError,
)
from linkgauge.engine.model.events import Reason, Started, Warned
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.tui.state.instrument_values import Phase
from linkgauge.tui.widgets.run.session_table import SessionTable
from linkgauge.tui.widgets.run.verdict_panel import VerdictPanel
from textual.widgets import Input

FAR = Peer("db-02")


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
        assert "NO FAR END" in cockpit.line(0)
        assert str(refusal)[:40] in text
        assert "try again" in text
        assert "connect to another peer" in text
        world.refusal = None
        await cockpit.press("r")
        await cockpit.end()
        assert "READY" in cockpit.line(0)


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


async def test_a_run_that_is_refused_leaves_the_app_ready_for_the_next_one(world: Any) -> None:
    """The far end may go away between its answer and the start."""
    async with world.cockpit(peer=FAR) as cockpit:
        world.refusal = PeerUnreachable("db-02:5820 refused the connection")
        await cockpit.press("space")
        await cockpit.end()
        assert "refused the connection" in cockpit.text()
        world.refusal = None
        await cockpit.press("space")
        assert cockpit.app.cockpit.phase is Phase.RUNNING


@pytest.mark.parametrize("error", [WorkerError("a worker ended by itself"), ZeroDivisionError("by zero")], ids=repr)
async def test_an_unforeseen_error_is_a_message_and_no_traceback(world: Any, error: Exception) -> None:
    """Whatever a run raises is shown on the screen."""
    async with world.cockpit() as cockpit:
        world.refusal = error
        await cockpit.press("space")
        await cockpit.end()
        assert "NO RUN" in cockpit.line(0)
        assert str(error) in cockpit.text()
        assert cockpit.app.is_running


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_a_run_that_breaks_says_why_and_what_it_measured(world: Any, size: tuple[int, int]) -> None:
    """The summary of what was measured until then stays on the screen."""
    async with world.cockpit(size, peer=FAR) as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 7.1e9)
        world.script.end(Reason.PEER_LOST, "db-02 has not been heard of for 5 s")
        await cockpit.end()
        assert "BROKE OFF" in cockpit.line(0)
        panel = cockpit.app.cockpit.query_one(VerdictPanel)
        said = " ".join(str(panel.query_one(part).render()) for part in (".head", ".rest"))
        assert "FAR END LOST" in said
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


async def test_the_peer_cannot_be_changed_during_a_run(world: Any) -> None:
    """Peer and retry wait until the run has ended; the preset is for the next run."""
    async with world.cockpit(peer=FAR) as cockpit:
        await cockpit.press("space", "c")
        assert cockpit.app.screen is cockpit.app.cockpit
        await cockpit.press("r")
        assert len(world.probed) == 1
        assert cockpit.app.screen is cockpit.app.cockpit


async def test_a_stop_before_the_run_is_open_still_stops_it(world: Any) -> None:
    """A person who changes their mind need not wait for the far end."""
    async with world.cockpit() as cockpit:
        cockpit.app.cockpit.action_toggle_run()
        cockpit.app.cockpit.action_toggle_run()
        await cockpit.settle()
        await cockpit.end()
        assert world.script.stops == [Reason.STOPPED]
        assert cockpit.app.cockpit.phase is Phase.DONE


async def test_leaving_the_app_by_force_releases_the_run(world: Any) -> None:
    """However the app ends, the run's context is left."""
    async with world.cockpit() as cockpit:
        await cockpit.press("space")
        world.script.run_for(4, 7.1e9)
        await cockpit.settle()
    assert world.script.closed


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


async def test_the_screen_survives_any_size(world: Any) -> None:
    """Down to 20 x 5 and back, while a run goes on."""
    async with world.cockpit((80, 24)) as cockpit:
        await cockpit.press("space")
        world.script.run_for(12, 7.1e9)
        for size in ((20, 5), (300, 90), (40, 12), (80, 24)):
            await cockpit.pilot.resize_terminal(*size)
            await cockpit.settle()
        assert "RUNNING" in cockpit.line(0)
        assert "Mb/s" in cockpit.text()


async def test_everything_is_readable_without_colour(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks and words say what colours say."""
    monkeypatch.setitem(os.environ, "NO_COLOR", "1")
    async with world.cockpit((80, 24)) as cockpit:
        await cockpit.press("space")
        world.script.run_for(40, 6e9)
        world.script.end()
        await cockpit.end()
        text = cockpit.text()
        assert "▼ SHORT" in text
        assert "▼ short" in text
        assert "┃" in text


async def test_frames_are_bounded_and_events_are_not(world: Any) -> None:
    """With a clock that stands still one frame is drawn, and the board still has every event."""
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


async def test_a_far_end_with_a_key_makes_the_app_prompt_for_it(world: Any) -> None:
    """The prompt hides the key and explains an invalid one; the app then queries the far end with it."""
    world.refusal = PeerKeyRequired("db-02:5820 asks for a key: set LINKGAUGE_KEY")
    async with world.cockpit((120, 40), peer=FAR) as cockpit:
        await cockpit.end()
        assert f"key of {FAR}" in cockpit.text()
        await cockpit.press(*"tiny", "enter")
        assert "16 to 1024 letters" in cockpit.text()
        assert "tiny" not in cockpit.text()
        world.refusal = None
        await cockpit.press(*"-and-then-some", "enter")
        await cockpit.end()
        access = world.probed[-1].access
        assert access is not None
        assert access.key.reveal() == "tiny-and-then-some"
        assert "key of" not in cockpit.text()
        assert "READY" in cockpit.line(0)


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


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_settings_of_only_the_next_run_are_marked_so(world: Any, size: tuple[int, int]) -> None:
    """The probe starts before the payload, so a run in progress cannot get one; nor another duration."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("t", "l")
        assert "next run" not in cockpit.line(2)
        await cockpit.press("space")
        world.script.run_for(8, 9e9)
        await cockpit.settle()
        assert "next run" not in cockpit.line(2)
        await cockpit.press("l")
        assert "[no latency] ▸next run" in cockpit.line(2)
        await cockpit.press("l", "t")
        assert "▸next run" in cockpit.line(2)
        assert "no latency" not in cockpit.line(2)


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
