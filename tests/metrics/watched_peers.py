"""A watch for its metrics: a plan and the status of its peers."""

from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.workload import Workload
from linkgauge.watch.data_budget import MonthUse
from linkgauge.watch.events import (
    ChangeFound,
    CheckEnded,
    CheckResult,
    CheckSkipped,
    CheckVerdict,
    Level,
    Metric,
    ProbeEnded,
    SkipReason,
)
from linkgauge.watch.watch_plan import WatchedPeer, WatchPlan
from linkgauge.watch.watch_state import PeerStatus

NOW_S = 1_795_000_000.0  # 2026-11-18, 11:06:40 UTC


def peer(name: str, workload: Workload = Workload.STREAM, budget_bytes: int | None = None) -> WatchedPeer:
    """Return a watched peer."""
    plan = Plan(duration_ns=SECOND_NS, workload=workload)
    return WatchedPeer(name, Peer("192.0.2.7"), plan, budget_bytes=budget_bytes)


def change(at_s: float, metric: Metric = Metric.GOODPUT_BIT_S, *, is_worse: bool = True) -> ChangeFound:
    """Return a change that was found."""
    return ChangeFound(
        at_s, "fra", metric, at_s - 60, Level(94e6, 93e6, 95e6, 9), Level(56e6, 55e6, 57e6, 5), is_worse
    )


def ended(result: CheckResult, at_s: float = NOW_S - 120) -> CheckEnded:
    """Return the end of a test that decided its cycle."""
    return CheckEnded(at_s, "fra", at_s - 10, 0, result, decides=True)


MEASURED = CheckResult(
    CheckVerdict.BELOW,
    bytes=12_000_000,
    figures=((Metric.GOODPUT_BIT_S, 56.3e6), (Metric.LOSS, 0.0), (Metric.RETRANSMITS, 2_000.0)),
    percent=59.8,
    why="path_slower",
    run_id="r1",
)
BUSY = PeerStatus(
    "fra",
    last_check=ended(MEASURED),
    last_probe=ProbeEnded(NOW_S - 5, "fra", CheckResult(CheckVerdict.GOOD, 400, ((Metric.LATENCY_S, 0.0123),))),
    last_skip=CheckSkipped(NOW_S - 60, "fra", NOW_S - 60, SkipReason.BUDGET),
    running_since_s=NOW_S - 1,
    next_check_s=NOW_S + 600,
    next_probe_s=NOW_S + 55,
    checks=(40, 2, 1),
    retests=2,
    flaps=1,
    changes=(change(NOW_S - 900), change(NOW_S - 300, is_worse=False)),
    change_counts={(Metric.GOODPUT_BIT_S, True): 120, (Metric.GOODPUT_BIT_S, False): 1},
)
PLAN = WatchPlan("office", (peer("fra", budget_bytes=10**10), peer("lon")), budget_bytes=10**11)
STATUSES = {"fra": BUSY, "lon": PeerStatus("lon")}
"""A peer with all values, and a new one."""
USE = MonthUse("2026-11", {"fra": 3_000_000_000})
