"""The cores of a run's workers: both ends of a transaction share one, and the kernel confirms where workers run."""

import asyncio
import os
from dataclasses import replace

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.host_info import HostInfo, NicInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import MAX_SESSIONS, MAX_WORKERS, SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import open_run
from linkgauge.engine.workers.core_assignment import assign_core_affinity, shares_cores, usable_cores

from ..child_processes import workers_of

pytestmark = pytest.mark.skipif(len(usable_cores()) < 2, reason="one core is shared by everything anyway")
LOOPBACK = HostInfo("here", "Linux", 2, "linkgauge", "uvloop", NicInfo("lo", "loopback"))
WIRED = replace(LOOPBACK, nic=NicInfo("eth0", "device"))
RR = Plan(workload=Workload.RR)


@pytest.mark.parametrize("workload", [Workload.RR, Workload.CRR])
def test_both_ends_of_a_transaction_on_one_host_get_one_core(workload: Workload) -> None:
    """And sessions go round all of them: at both ends the same number of workers, on the same cores in turn."""
    plan = assign_core_affinity(Plan(Settings(sessions=MAX_SESSIONS), workload), LOOPBACK, LOOPBACK)
    assert plan.near_cores == plan.far_cores
    assert sorted(plan.near_cores or ()) == usable_cores()
    assert plan.workers == min(MAX_WORKERS, len(usable_cores()))
    assert shares_cores(plan)
    assert assign_core_affinity(Plan(workload=workload), LOOPBACK, LOOPBACK).workers == 1


@pytest.mark.parametrize(
    ("plan", "near", "far"),
    [
        (RR, WIRED, WIRED),
        (RR, LOOPBACK, replace(LOOPBACK, hostname="there")),  # an ssh forward comes over loopback as well
        (RR, LOOPBACK, replace(LOOPBACK, nic=None)),
        (replace(RR, workers=1), LOOPBACK, LOOPBACK),
        (replace(RR, busy_poll=True), LOOPBACK, LOOPBACK),
        (replace(RR, near_cores=(0,)), LOOPBACK, LOOPBACK),
        (replace(RR, far_cores=(1,)), LOOPBACK, LOOPBACK),
        (Plan(workload=Workload.STREAM), LOOPBACK, LOOPBACK),
        (Plan(workload=Workload.FETCH), LOOPBACK, LOOPBACK),
    ],
)
def test_other_plans_are_left_unchanged(plan: Plan, near: HostInfo, far: HostInfo) -> None:
    """A stream has both ends at work at once, and the user's own choice stands."""
    assert assign_core_affinity(plan, near, far) == plan
    assert not shares_cores(plan)


def test_two_ends_that_poll_do_not_fight_for_one_core() -> None:
    """Each would keep it from the other, for a millisecond in each message."""
    plan = replace(RR, busy_poll=True, near_cores=(0,), far_cores=(0,))
    with pytest.raises(PlanError, match="each end keeps a core busy"):
        assign_core_affinity(plan, LOOPBACK, LOOPBACK)
    assert assign_core_affinity(plan, WIRED, WIRED) == plan


@pytest.mark.parametrize(
    ("sessions", "policy"), [(1, os.SCHED_OTHER), (2 * len(usable_cores()), os.SCHED_BATCH)], ids=["one", "several"]
)
async def test_workers_keep_to_the_cores_that_the_run_names(far_end: Peer, sessions: int, policy: int) -> None:
    """As the kernel reports; and workers of several sessions let each other finish."""
    plan = Plan(Settings(Direction.OUT, sessions), Workload.RR, SECOND_NS, interval_ns=SECOND_NS // 10)
    async with asyncio.timeout(20), open_run(plan, far_end) as run:
        assert sorted(run.plan.near_cores or ()) == usable_cores()
        async for event in run:
            if isinstance(event, Sampled) and event.sample.index >= 1:
                break
        workers = workers_of(os.getpid())
        affinities = sorted(tuple(os.sched_getaffinity(pid)) for pid in workers)
        first = run.plan.near_cores[0] if run.plan.near_cores else None
        wanted = {first} if sessions == 1 else set(usable_cores())
        assert affinities == sorted(
            2 * [(core,) for core in wanted]
        )  # each once at the near end, once at the far one
        assert {os.sched_getscheduler(pid) for pid in workers} == {policy}


@pytest.mark.every
async def test_sessions_that_are_added_have_all_cores(far_end: Peer) -> None:
    """One worker at each end was enough for one pair; with three all cores are free again."""
    plan = Plan(Settings(), Workload.RR, 5 * SECOND_NS, interval_ns=SECOND_NS // 10)
    async with asyncio.timeout(20), open_run(plan, far_end) as run:
        async for event in run:
            if isinstance(event, Sampled):
                if event.sample.index >= 1:
                    run.change_settings(Settings(sessions=3))
                if sum(bool(unit.transactions) for unit in event.sample.sessions) == 3:
                    break
        assert [os.sched_getaffinity(pid) for pid in workers_of(os.getpid())] == 2 * [set(usable_cores())]
        assert {os.sched_getscheduler(pid) for pid in workers_of(os.getpid())} == {os.SCHED_OTHER}
