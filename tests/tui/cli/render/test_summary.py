"""The summary of a run as text."""

import io
import re
from dataclasses import replace

import pytest
from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.model.events import Started
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.responsiveness.plan import responsiveness_plan, with_responsiveness
from linkgauge.engine.results.run_result import RunResult
from linkgauge.engine.results.summary import CpuSummary, Measurement, Period, Summary, TcpSummary
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.verdict import judge
from linkgauge.tui.cli.render.summary import summary_parts
from linkgauge.tui.session.run_recorder import Outcome
from rich.console import Console

from ....engine.results.iperf3_runs import iperf3_run, reported, total
from ...responsiveness_results import IN_THE_PATH, RESULT

UNKNOWN_CPU = CpuSummary(None, None, None, None)
UNKNOWN_TCP = TcpSummary(None, None, None, None, None, None)
EXPECTED = ExpectedRate(941_000_000, "documented", "a table")
RATE = Measurement(1_176_250_000, 10 * SECOND_NS)  # 941 Mb/s


def summary(
    *,
    out: Measurement | None = RATE,
    expectation: Expectation | None = None,
    periods: tuple[Period, ...] = (),
    tcp: TcpSummary = UNKNOWN_TCP,
    warnings: tuple[str, ...] = (),
    end: RunEnd | None = None,
) -> Summary:
    """Return a summary of a run out."""
    return Summary(
        plan=Plan(),
        measured=PerDirection(out, None, out),
        expectation=expectation or Expectation(out=EXPECTED),
        periods=periods,
        near_cpu=CpuSummary(12.5, 97.04, 31.0, 0.314),
        far_cpu=UNKNOWN_CPU,
        tcp=tcp,
        warnings=warnings,
        end=end or RunEnd(Reason.COMPLETED, "its duration is up"),
    )


def outcome_of(
    found: Summary,
    started: Started | None = None,
    *,
    preset: str | None = None,
    findings: tuple[Finding, ...] = (),
) -> Outcome:
    """Return the outcome of a run with this summary."""
    return Outcome(started, found, judge(found), findings, RunResult(preset=preset), {})


def text_of(found: Summary, started: Started | None = None, width: int = 100) -> str:
    """Return the text of a summary."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False)
    for part in summary_parts(outcome_of(found, started, preset="gbe-fd-1500")):
        console.print(part)
    return stream.getvalue().replace("\N{NO-BREAK SPACE}", " ")


def test_the_verdict_is_the_last_line_and_the_evidence_comes_before_it() -> None:
    """Rate, expected rate and its source, CPU of both ends, why it ended."""
    text = text_of(summary())
    assert text.splitlines()[-1].startswith("✓ PASS")
    for words in ("941.0", "112.2", "100.0 %", "documented: a table", "97.0 %", "0.31 ms/MiB", "completed"):
        assert words in text


@pytest.mark.parametrize(("workload", "unit"), [(Workload.STREAM, "MiB"), (Workload.CRR, "trans")])
def test_the_heading_of_the_cpu_cost_has_the_unit_of_its_column(workload: Workload, unit: str) -> None:
    """A workload of transactions has no cost of a MiB."""
    lines = text_of(replace(summary(), plan=Plan(workload=workload))).splitlines()
    start = next(number for number, line in enumerate(lines) if "busiest core" in line)
    assert lines[start].rstrip().endswith(f"per {unit}")
    assert f"/{unit}" in lines[start + 1]


@pytest.mark.parametrize("width", [36, 40, 60, 72, 80])
def test_a_narrow_terminal_has_fewer_columns_and_no_number_without_its_digits(width: int) -> None:
    """Rate and share are the last to go; the names of periods wrap, and their rates stay whole."""
    both = Settings(Direction.DUPLEX, 128)
    periods = (
        Period(Settings(), Expectation(out=EXPECTED), PerDirection(RATE, None, RATE)),
        Period(both, Expectation(), PerDirection(RATE, RATE, RATE)),
    )
    text = text_of(summary(periods=periods), width=width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    rates = next(line for line in text.splitlines() if line.split()[:1] == ["out"])
    assert "941.0" in rates
    assert "100.0 %" in rates
    assert "0.31 ms/MiB" in text


def test_an_unknown_value_is_a_dash_and_never_zero() -> None:
    """The far end told nothing of its CPU."""
    far = next(line for line in text_of(summary()).splitlines() if line.split()[:1] == ["remote"])
    assert "0" not in far
    assert far.count("–") == 4


def test_a_rate_just_under_the_mark_does_not_look_like_the_mark() -> None:
    """94.96 % is short of 95 %, and is not written as 95.0 %."""
    text = text_of(summary(out=Measurement(1_176_250_000 * 9_496 // 10_000, 10 * SECOND_NS)))
    assert text.splitlines()[-1].startswith("▼ SHORT")
    assert "95.0 %" not in text


def test_a_run_whose_settings_changed_lists_each_stretch() -> None:
    """Each with its settings, its rate, and its share of what was expected under them."""
    parts = (
        Period(Settings(), Expectation(out=EXPECTED), PerDirection(RATE, None, RATE)),
        Period(Settings(Direction.DUPLEX, 5, 57_344), Expectation(), PerDirection(RATE, None, RATE)),
    )
    text = text_of(summary(periods=parts))
    assert "1. out, 1 session, window auto" in text
    assert "2. duplex, 5 sessions, window 56K" in text


def test_a_run_that_measured_nothing_is_explained_in_words() -> None:
    """Without tables of dashes."""
    text = text_of(summary(out=None, end=RunEnd(Reason.PEER_LOST, "the far end is gone")))
    assert "nothing was measured" in text
    assert "remote lost: the far end is gone" in text


def test_warnings_and_names_of_a_peer_cannot_drive_the_terminal() -> None:
    """Text of the far end is text."""
    evil = HostInfo("db\x1b[2J[red]02", "Linux", 2, "x", "uvloop")
    started = Started("2026-01-01T00:00:00+00:00", "db-02:5820", evil, evil, Plan(), Expectation())
    text = text_of(summary(warnings=("window\x1b]0;owned\x07 of 4K",)), started)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[red]02" in text


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_summary_fits_the_terminal(width: int) -> None:
    """It wraps, and loses no number."""
    tcp = TcpSummary(12, 210, 1_448, "cubic", 57_344, 28_672, None, 320.0, 250, 98.04)
    text = text_of(summary(tcp=tcp, warnings=("the window is less than was asked for " * 5,)), width=width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    assert "12 retransmits" in text
    assert "941.0" in text
    assert re.search(r"RFC 6349\s+TCP efficiency\s98.04\s%", text)


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.UDP])
def test_a_summary_against_an_iperf3_says_whose_figures_it_has_and_what_is_not_seen(workload: Workload) -> None:
    """With its results, and without them; its host is not one of 0 cores."""
    parts = total(Direction.OUT, 1, 11_000_000, received=11_000, lost=100)
    for totals, words in ((reported(parts), "received, by the count"), (None, "reported no results")):
        meter = replay(iperf3_run(Direction.OUT, workload=workload, totals=totals))
        text = " ".join(text_of(meter.summary(), meter.started).split())
        assert words in text
        assert "remote iperf3://db-02:5201 plan" in text
        assert "the remote host is not seen through iperf3" in text
        assert "0 cores" not in text


def responsiveness_text(found: Summary, width: int = 100) -> str:
    """Return the text of a responsiveness test, with a finding about its queue."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False)
    for part in summary_parts(outcome_of(found, findings=(IN_THE_PATH,))):
        console.print(part)
    return stream.getvalue().replace("\N{NO-BREAK SPACE}", " ")


def test_latency_under_load_comes_in_milliseconds_then_as_a_grade_then_with_its_place() -> None:
    """The rates of each load are beside it, so that no table of periods repeats them."""
    found = replace(summary(), plan=responsiveness_plan(), responsiveness=RESULT)
    text = responsiveness_text(found)
    places = [text.index(words) for words in ("mean rise", "idle ", "load out", "  both ", "grade ")]
    places += [
        text.index(words)
        for words in ("round trips ", "queue ", "98 % of the rise", "try tc qdisc", "busiest core")
    ]
    assert places == sorted(places)
    assert "94.10" in text
    assert "MiB/s" not in text
    assert "preset" not in text
    assert "warm-up" not in text
    assert "gap" not in text


def test_a_check_with_a_limit_of_latency_has_rates_and_latency() -> None:
    """The probe's own table would say the same twice."""
    found = replace(
        summary(), plan=with_responsiveness(Plan()), responsiveness=replace(RESULT, loads=RESULT.loads[:1])
    )
    text = responsiveness_text(found)
    assert "grade" in text
    assert "941.0" in text
    assert "p99.9" not in text


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_keeps_the_rise_of_latency_and_the_rates(width: int) -> None:
    """One-way rises and the peak are the first to go."""
    found = replace(summary(), plan=responsiveness_plan(), responsiveness=RESULT)
    lines = responsiveness_text(found, width).splitlines()
    assert max(map(len, lines)) <= width
    (row,) = [line for line in lines if line.startswith("  load out") and "+45.2 ms" in line]
    assert ("45.6 ms" in row) is (width > 40)
    assert "94.10" in row
