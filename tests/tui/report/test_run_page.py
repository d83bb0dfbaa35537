"""The HTML report: what stands in it, what it does without, and that no text of a run is more than text."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import Warned
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.responsiveness.plan import responsiveness_plan, with_path
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.cli.main import run_command_line
from linkgauge.tui.report.run_page import MAX_RUNS, render_report

from ...engine.results.path.traced_chain import Chain
from ...engine.results.responsiveness_runs import Link, steady
from ..html_page import VOID, Page
from ..scripted_loads import emit_loads
from ..scripted_run import store_run
from ..stored_runs import CHANGED, FIRST, LOST, SHORT


def page_of(history_log: RunLog, *run_ids: str) -> Page:
    """Return the page of runs."""
    return Page(render_report(history_log, [history_log.find(run_id) for run_id in run_ids]))


def test_a_report_has_verdict_numbers_sources_and_plots(world: Any, history_log: RunLog) -> None:
    """In words; with what was changed, and how it was measured."""
    history_log.set_note(CHANGED, "ticket 4711")
    page = page_of(history_log, CHANGED)
    for sentence in (
        "after the new cable",
        "✓ PASS 99.2",
        "each period has its own verdict",
        "documented: AIX table 1",
        "2. out, 5 sessions, window auto",
        "warm-up, not counted",
        "local busiest core",
        "congestion control cubic",
        "ticket 4711",
        "the receiver's clock",
    ):
        assert sentence in page.text
    first = page_of(history_log, FIRST).text
    assert "✓ PASS" in first
    assert "Out 9 379 Mb/s is 99.6 % of 9 415 Mb/s (documented: AIX table 1 (peak))." in first
    assert page.tags.count("svg") == 2
    assert not [tag for tag in page.open if tag not in VOID]


def test_a_report_of_datagrams_has_losses_places_and_delays(world: Any, history_log: RunLog) -> None:
    """And nothing of TCP; the losses have a plot of their own below the rate."""
    plan = Plan(Settings(Direction.DUPLEX, 2), Workload.UDP, duration_ns=30 * SECOND_NS)
    script = world.script_of(world.catalog.find("gbe-fd-1500"), plan)
    script.lost_share = 0.02
    script.run_for(40, 9e8)
    script.drain()
    script.end()
    store_run(history_log, "20261122-010203-udp1", script)
    page = page_of(history_log, "20261122-010203-udp1")
    text = page.text.replace("\u00a0", " ")
    for sentence in (
        "packets/s",
        "2.00 %",
        "remote host",
        "1 472-byte datagrams",
        "delay p50",
        "31.0 µs",
        "% lost",
        "those at its end included",
    ):
        assert sentence in text
    assert "retransmits" not in text
    assert "TCP:" not in text
    assert not [tag for tag in page.open if tag not in VOID]


def test_a_report_of_latency_under_load_has_its_grade_plot_and_queue(world: Any, history_log: RunLog) -> None:
    """The rate above the latency on one time axis, with each load marked."""
    history_log.begin("20261122-010203-load", "", "db-02:5820")
    for event in Link(steady(out_ms=45.0)).events():
        history_log.append_event("20261122-010203-load", event)
    page = page_of(history_log, "20261122-010203-load")
    text = page.text.replace("\u00a0", " ")
    for sentence in (
        "Latency under load: A",
        "mean rise of out and in",
        "UDP datagrams every 10 ms",
        "a minute",
        "load in",
        "one-way rise",
        "responsiveness test, out, in and both ways, 8 sessions each way",
        "The peak is that of the slowest 0.4 s".lower(),
    ):
        assert sentence in text, sentence
    assert not [tag for tag in page.open if tag not in VOID]


def test_a_report_has_the_path_as_strips_and_tables_with_the_names_that_were_looked_up(
    world: Any, history_log: RunLog
) -> None:
    """A silent hop is silent; the queue is at its link. A name is any text."""
    script = world.script_of(world.catalog.find("100mb-fd"), with_path(responsiveness_plan()))
    chain = Chain(routers=4, out_ms=((2, 45.0),), silent=(2,), limited=(3,), seed=7)
    emit_loads(script, traces=tuple(chain.traces().values()))
    store_run(history_log, "20261122-010203-path", script, router_names={"192.0.2.2": "gw<b>.example"})
    page = page_of(history_log, "20261122-010203-path")
    text = " ".join(page.text.replace("\u00a0", " ").split())
    for sentence in (
        "The path, hop by hop",
        "The queue is before hop 3 (192.0.2.4) and behind hop 1 (hop 2 does not tell), on the way out",
        "way out, hops from the local end, load out idle loaded local",
        "(2) – – +39.0 ms 3",
        "192.0.2.2, gw<b>.example",
        "▓ queue before it; limits its answers",
        "way in, hops from the remote end, load in",
    ):
        assert sentence in text, sentence
    assert not [tag for tag in page.open if tag not in VOID]
    assert "hop by hop" not in page_of(history_log, FIRST).text


def test_a_report_fetches_nothing_and_is_the_same_each_time(world: Any, history_log: RunLog) -> None:
    """References stay within the page; ids are unique in it, also with several plots."""
    rows = [history_log.find(run_id) for run_id in (FIRST, SHORT)]
    made = render_report(history_log, rows)
    page = Page(made)
    assert {"script", "img", "link", "iframe"}.isdisjoint(page.tags)
    assert all(url.startswith("#") for url in page.fetched)
    assert len(page.ids) == len(set(page.ids))
    assert "url(http" not in made
    assert "@import" not in made
    assert "default-src 'none'" in made
    assert render_report(history_log, rows) == made


def test_a_report_says_why_a_run_is_not_faster(world: Any, history_log: RunLog) -> None:
    """The cause, the evidence, and the command: the page is enough."""
    page = page_of(history_log, SHORT)
    why = page.text.partition("Why it is not faster")[2]
    assert "A local CPU core was saturated" in why
    assert "% of the gap, confidence" in why
    assert "What to do:" in why


def test_several_runs_are_compared_first(world: Any, history_log: RunLog) -> None:
    """With their letters, and whether what differs is real."""
    page = page_of(history_log, FIRST, SHORT)
    assert "B compared with A" in page.text
    assert "≠ out Mb/s" in page.text
    assert "41.4 % slower" in page.text
    assert page.tags.count("article") == 3


def test_no_text_of_a_run_is_more_than_text(world: Any, history_log: RunLog, tmp_path: Path) -> None:
    """Not the label, the note, the peer, nor a warning of the far end; nor is a formula read in them."""
    evil = '<script>alert("x")</script> $\\frac{1}{0}$ &amp;'
    with RunLog.open(tmp_path / "evil") as log:
        script = world.script_of(world.catalog.find("gbe-fd-1500"), Plan(duration_ns=2 * SECOND_NS))
        script.emit(Warned(evil))
        script.run_for(8, 9e8)
        script.change_settings(Settings(Direction.DUPLEX, 2, 65_536))
        script.run_for(8, 7e8)
        script.end(detail=evil)
        log.begin("r1", '"><img src=x>', evil, label=evil)
        while not script.queue.empty():
            log.append_event("r1", script.queue.get_nowait())
        log.set_note("r1", evil)
        page = page_of(log, "r1")
    assert page.text.count('<script>alert("x")</script>') >= 3
    assert {"script", "img"}.isdisjoint(page.tags)


def test_a_run_that_measured_nothing_has_a_report_too(world: Any, history_log: RunLog) -> None:
    """It says so, and draws nothing."""
    history_log.begin("r9", "", "db-09")
    page = page_of(history_log, "r9")
    assert "no preset to db-09" in page.text
    assert "svg" not in page.tags


def test_a_run_that_broke_off_says_so(world: Any, history_log: RunLog) -> None:
    """In the place of a verdict."""
    page = page_of(history_log, LOST)
    assert "✗ REMOTE LOST" in page.text
    assert "the far end said nothing for 5 s" in page.text


def test_the_command_writes_a_report(
    world: Any,
    history_log: RunLog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whole; with --force in place of what was there. A file that cannot be written is a wrong command line."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(history_log.path.parent))
    there = tmp_path / "report.html"
    there.write_text("before")
    assert run_command_line(["runs", "report", FIRST[:9], FIRST, "--html", str(there)]) == 2
    assert f"--html {there}: it exists already; give another file, or --force" in capsys.readouterr().err
    assert there.read_text() == "before"
    assert run_command_line(["runs", "report", FIRST[:9], FIRST, "--html", str(there), "--force"]) == 0
    assert "report of 1\u00a0run written to" in capsys.readouterr().err.replace("\n", " ")
    assert "99.6 %" in Page(there.read_text(encoding="utf-8")).text
    assert run_command_line(["runs", "report", FIRST, "--html", str(tmp_path / "no" / "x.html")]) == 2
    assert "--html" in capsys.readouterr().err
    assert run_command_line(["runs", "report", "nonsense", "-f", "--html", str(there)]) == 2
    assert [path.name for path in tmp_path.iterdir() if "report" in path.name] == ["report.html"]
    assert MAX_RUNS == 8


def test_report_libraries_are_imported_only_for_a_report() -> None:
    """The app and the command line start without Jinja2 and matplotlib; a report is made without the app."""
    start = (
        "import linkgauge.tui.app.app, linkgauge.tui.cli.main, linkgauge.tui.cli.terminal_app, "
        "linkgauge.tui.session.stored_run, linkgauge.tui.report.run_page, linkgauge.tui.report.sweep_page"
    )
    idle = f"import sys; {start}; assert not {{'matplotlib', 'jinja2'}} & set(sys.modules)"
    report = "import sys; import linkgauge.tui.report.run_page; assert 'textual' not in sys.modules"
    for code in (idle, report):
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(("run_id", "title"), [(SHORT, "Why it is not faster"), (FIRST, "What limits the rate")])
def test_only_a_run_below_its_target_explains_why_it_is_not_faster(
    run_id: str, title: str, history_log: RunLog
) -> None:
    """A remedy is prose, and is not set as code."""
    page = page_of(history_log, run_id)
    assert title in page.text
    assert "code" not in page.tags
