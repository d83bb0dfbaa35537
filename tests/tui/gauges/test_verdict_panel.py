"""The panel of the verdict: the reason for an end, warnings, and findings with what to do."""

from typing import Any

import pytest
from linkgauge.engine.model.events import Warned
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.run_end import Reason
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.diagnosis.evidence import link_evidence
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.diagnosis.live import LiveDiagnosis
from linkgauge.presets.wire import DEFAULT_VARIANT
from linkgauge.tui.cli.render.summary import findings_part
from linkgauge.tui.gauges.verdict_panel import VerdictPanel, finding_lines
from linkgauge.tui.run.cockpit_state import CockpitState
from rich.console import Console

FAR = Peer("db-02")
SLOW = Finding("path-slow", 0.834, 0.85, "The path is slow.", "75 Mb/s got\x1b[2J through", "tc -s qdisc show")
CORE = Finding("core-saturated", 0.1, 0.9, "A core is full.", "core 0 is 99 % busy", "ps")
FINE = Finding("at-expected", None, 1.0, "Nothing limits.", "94 of 94 Mb/s", "nothing to do")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_a_run_that_breaks_says_why_and_what_it_measured(world: Any, size: tuple[int, int]) -> None:
    """The summary of the measurement until then stays on the screen."""
    async with world.cockpit(size, peer=FAR) as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 7.1e9)
        world.script.end(Reason.PEER_LOST, "db-02 has not been heard of for 5 s")
        await cockpit.end()
        assert "INTERRUPTED" in cockpit.line(0)
        panel = cockpit.app.cockpit.query_one(VerdictPanel)
        panel_text = " ".join(str(panel.query_one(part).render()) for part in (".head", ".rest"))
        assert "REMOTE LOST" in panel_text
        assert "db-02 has not been heard of for 5 s" in panel_text
        assert "GiB" in panel_text


async def test_warnings_and_notices_are_shown_as_they_are_written(world: Any) -> None:
    """Brackets in a peer's text are not markup, and escape sequences are not commands."""
    async with world.cockpit((120, 40)) as cockpit:
        world.on_start = lambda script: script._notices.append("this run is not kept: disk [full]")
        await cockpit.press("space")
        world.script.emit(Warned("far granted [red]212K[/red]\x1b[2J, less than the 4M asked for"))
        world.script.run_for(4, 7.1e9)
        await cockpit.settle()
        text = " ".join(cockpit.text().split())
        assert "[red]212K[/red] [2J, less than" in text
        assert "disk [full]" in text
        assert "\x1b" not in text


async def test_a_lost_probe_is_reported_while_the_stream_continues(world: Any) -> None:
    """The engine's warning is in the panel that explains the figures."""
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


def text_of(*findings: Finding, period: str = "") -> str:
    """Return what a terminal of 100 cells shows."""
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as capture:
        console.print(findings_part(findings, period))
    return capture.get()


def test_the_first_finding_is_shown_whole_and_the_others_by_name() -> None:
    """The remedy comes right after the cause. A peer's text cannot drive the terminal."""
    lines = [line.plain.replace("\N{NO-BREAK SPACE}", " ") for line in finding_lines((SLOW, CORE))]
    assert lines == [
        "◆ The path is slow. 83 % of the gap",
        "→ tc -s qdisc show",
        "75 Mb/s got [2J through",
        "◆ A core is full. 10 % of the gap",
    ]
    assert finding_lines(()) == []


def test_a_healthy_link_needs_no_remedy() -> None:
    """No share, no command."""
    assert [line.plain for line in finding_lines((FINE,))] == ["● Nothing limits.", "94 of 94 Mb/s"]
    assert "nothing to do" not in text_of(FINE)


def test_findings_of_a_run_whose_settings_changed_say_that_they_are_about_its_last_period() -> None:
    """Beside the verdicts of all periods, "ran at the expected rate" would be about all of them."""
    assert [line.split()[:2] for line in text_of(FINE, period="last period").splitlines()[:2]] == [
        ["why", "last"],
        ["Nothing", "limits."],
    ]
    assert "period" not in text_of(FINE)


async def test_the_panel_says_that_findings_are_about_the_last_period(world: Any) -> None:
    """During the run, they are about the last seconds."""
    async with world.cockpit((120, 40), peer=FAR, preset="100mb-fd") as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 94e6 / 8 * 0.999)
        await cockpit.press("+")
        world.script.run_for(20, 94e6 / 8 * 0.999)
        await cockpit.settle()
        assert "last period" not in cockpit.text()
        await cockpit.press("space")
        await cockpit.settle()
        assert "last period:" in cockpit.text()


def test_the_command_line_shows_all_of_each_finding() -> None:
    """In the order of their shares."""
    shown = text_of(SLOW, CORE)
    assert (
        shown.index("83") < shown.index("tc -s qdisc") < shown.index("core 0 is 99 % busy") < shown.index("try ps")
    )
    assert "\x1b[2J" not in shown


def test_the_app_shows_findings_during_the_run(world: Any) -> None:
    """They include this machine's ceiling: without a network it hardly exceeds these 940 Mb/s."""
    preset = load_catalog().find("10gbe-1500")
    plan = Plan()
    desk = CockpitState(Peer("db-02"), plan, preset, 95.0)
    script = world.script_of(preset, plan)
    script.diagnosis = LiveDiagnosis(
        script.meter,
        link_evidence(preset, DEFAULT_VARIANT),
        ceiling=lambda settings: 1_000_000_000 * settings.sessions,
    )
    desk.begin_run()
    assert desk.snapshot().findings == ()
    desk.run_opened(script)
    script.run_for(16, 940e6)
    while not script.queue.empty():
        event = script.queue.get_nowait()
        script.meter.feed(event)
        desk.handle_event(event)
    assert desk.snapshot().findings[0].code == "tester-limited"
