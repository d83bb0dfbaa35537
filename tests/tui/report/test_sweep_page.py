"""The report of a sweep: its plots, its rows, and text of a peer that stays text."""

from pathlib import Path

import pytest
from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.results.confidence import Estimate
from linkgauge.engine.results.summary import CpuSummary, Measurement, Summary, TcpSummary
from linkgauge.engine.results.sweep import Sweep, SweepPoint, SweepResult
from linkgauge.tui.report.sweep_page import write_sweep_report

KIB = 1024
SWEEP = Sweep(
    "sweep-a",
    "<script>alert(1)</script>",
    Plan(duration_ns=SECOND_NS),
    (Direction.OUT, Direction.IN),
    (1, 2),
    (16 * KIB, 32 * KIB, 64 * KIB),
    (KIB,),
)


def result(point: SweepPoint, number: int) -> SweepResult:
    """Return the result of a point: the wider the window, the faster."""
    estimate = Estimate((point.window_bytes or 0) * 1e3, 1e4, 15.0, 24)
    measured = Measurement(round(estimate.mean / 8), SECOND_NS, estimate=estimate)
    cpu, tcp = CpuSummary(None, None, None, None), TcpSummary(None, None, None, None, None, None)
    expected = Expectation(out=ExpectedRate(94_000_000, "computed", "the wire model"))
    end, plan = RunEnd(Reason.COMPLETED, ""), point.to_plan(SWEEP.base)
    summary = Summary(plan, PerDirection(measured, None, measured), expected, (), cpu, cpu, tcp, (), end)
    return SweepResult(point, f"run-{number}", summary)


def write(path: Path) -> str:
    """Write the page, and return it."""
    write_sweep_report(path, SWEEP, [result(point, number) for number, point in enumerate(SWEEP.points)], {})
    return path.read_text(encoding="utf-8")


def test_a_report_is_a_page_that_needs_nothing_else(tmp_path: Path) -> None:
    """Plots as SVG inside it, every run in a table, and a peer's name as text."""
    page = write(tmp_path / "sweep.html")
    assert page.count("<svg") == 4  # lines and a heat map for each direction
    assert page.count("<tr>") == 13
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "the rate still rises: test larger values" in page


@pytest.mark.every
def test_the_page_of_a_sweep_is_the_same_each_time(tmp_path: Path) -> None:
    """Its plots have no dates and no random ids."""
    assert write(tmp_path / "a.html") == write(tmp_path / "b.html")
