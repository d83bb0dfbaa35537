"""Cells of a sweep whose rates are known with a chosen error."""

from collections.abc import Callable

from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.results.confidence import Estimate
from linkgauge.engine.results.summary import CpuSummary, Measurement, Summary, TcpSummary
from linkgauge.engine.results.sweep import SweepPoint, SweepResult

K = 1024
WINDOWS = (16 * K, 32 * K, 64 * K, 128 * K, 256 * K)


def cell(point: SweepPoint, mbit_s: float, error: float = 0.5) -> SweepResult:
    """Return a cell whose rate is known with this error."""
    steady = Estimate(mbit_s * 1e6, error * 1e6, 15.0, 24)
    measured = Measurement(round(mbit_s * 1e6 / 8), SECOND_NS, estimate=steady)
    cpu, tcp = CpuSummary(None, None, None, None), TcpSummary(None, None, None, None, None, None)
    end = RunEnd(Reason.COMPLETED, "")
    summary = Summary(
        point.to_plan(Plan()), PerDirection(measured, None, measured), Expectation(), (), cpu, cpu, tcp, (), end
    )
    return SweepResult(point, f"run-{point.sessions}-{point.window_bytes}", summary)


def line(rate: Callable[[int], float], error: float = 0.5) -> list[SweepResult]:
    """Return a cell for each window, with a rate that follows from it."""
    return [cell(SweepPoint(Direction.OUT, 1, window, K), rate(window), error) for window in WINDOWS]
