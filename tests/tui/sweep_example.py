"""A sweep of twelve points with its results, for tests."""

from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.results.confidence import Estimate
from linkgauge.engine.results.summary import CpuSummary, Measurement, Summary, TcpSummary
from linkgauge.engine.results.sweep import Sweep, SweepPoint, SweepResult

K = 1024
SWEEP = Sweep(
    "sweep-a",
    "db-02",
    Plan(duration_ns=SECOND_NS),
    (Direction.OUT, Direction.IN),
    (1, 2),
    (16 * K, 32 * K, 64 * K),
    (K,),
)
AT = SweepPoint(Direction.OUT, 2, 32 * K, K)


def cells() -> list[SweepResult]:
    """Return a cell for each point of the sweep, the wider window the faster."""
    found: list[SweepResult] = []
    for point in SWEEP.points:
        steady = Estimate((point.window_bytes or 0) * 1e3, 1e4, 15.0, 24)
        measured = Measurement(round(steady.mean / 8), SECOND_NS, estimate=steady)
        cpu, tcp = CpuSummary(None, None, None, None), TcpSummary(None, None, None, None, None, None)
        end = RunEnd(Reason.COMPLETED, "")
        expected = Expectation(out=ExpectedRate(94_000_000, "computed", "the wire model"))
        plan = point.to_plan(SWEEP.base)
        summary = Summary(plan, PerDirection(measured, None, measured), expected, (), cpu, cpu, tcp, (), end)
        found.append(SweepResult(point, f"run-{len(found)}", summary))
    return found
