"""A mesh on a real Dask cluster of loopback: rounds, faults, an early end, two meshes at once."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from distributed import Client
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import ClusterError, PlanError
from linkgauge.engine.model.events import Ended, Started
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.workload import workload_named
from linkgauge.mesh import host_supervisor
from linkgauge.mesh.cluster import Cluster, connect_cluster
from linkgauge.mesh.coordinator import Mesh, open_mesh
from linkgauge.mesh.events import (
    CellBegan,
    CellEnded,
    FailureCode,
    HostLost,
    MeshBegan,
    MeshEnded,
    MeshEvent,
    RoundBegan,
)
from linkgauge.mesh.plan import Cell, Host, MeshMode, MeshPlan

from .dask_processes import DEADLINE_S, DaskProcesses
from .host_processes import command_of, descendants, until

SHORT = Plan(duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10, rate_bit_s=10**7)
LONG = replace(SHORT, duration_ns=60 * SECOND_NS)
pytestmark = [pytest.mark.loop("uvloop"), pytest.mark.every]  # Dask and three workers start first


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    """Give a scheduler with three workers."""
    processes = DaskProcesses(tmp_path_factory.mktemp("dask"))
    for number in (1, 2, 3):
        processes.add_worker(f"db-{number}", f"127.0.0.1{number}")
    yield processes
    processes.close()


@asynccontextmanager
async def cluster_of(dask: DaskProcesses, *names: str) -> AsyncGenerator[Cluster]:
    """Connect to the scheduler once it has these workers."""
    async with asyncio.timeout(DEADLINE_S), Client(dask.address, asynchronous=True, set_as_default=False) as client:
        while not set(names) <= {each["name"] for each in (await workers_of(client)).values()}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    async with connect_cluster(dask.address, [Host(name) for name in names]) as cluster:
        yield cluster


def processes_of(dask: DaskProcesses, name: str) -> list[int]:
    """Return the processes of linkgauge that a worker has."""
    return [pid for pid in descendants(dask.pid(name)) if "linkgauge.mesh" in command_of(pid)]


async def workers_of(client: Any) -> dict[str, Any]:
    """Return the scheduler's description of its workers."""
    return (await client.scheduler.identity(n_workers=-1))["workers"]


def plan_of(cluster: Cluster, base: Plan = SHORT, mode: MeshMode = MeshMode.ROUNDS) -> MeshPlan:
    """Return a mesh of all hosts of a cluster."""
    return MeshPlan("mesh-test", cluster.hosts, base, mode)


async def read(mesh: Mesh) -> list[MeshEvent]:
    """Return all events of a mesh."""
    async with asyncio.timeout(50):
        return [event async for event in mesh]


def of(kind: type, events: list[MeshEvent]) -> list[Any]:
    """Return the events of a kind."""
    return [event for event in events if isinstance(event, kind)]


async def test_every_pair_is_measured_in_both_directions(dask: DaskProcesses) -> None:
    """One direction after the other, both begun by the near host; then one cell again, alone."""
    async with cluster_of(dask, "db-1", "db-2", "db-3") as cluster:
        plan = plan_of(cluster)
        async with open_mesh(plan, cluster) as mesh:
            events = await read(mesh)
            again = [event async for event in mesh.measure_again([Cell("db-3", "db-1")])]
    assert replace(of(MeshBegan, events)[0], overhead_ns=0) == MeshBegan(plan, 6, 0)
    assert events[0] == of(MeshBegan, events)[0]
    assert [host.address for host in plan.hosts] == ["127.0.0.11", "127.0.0.12", "127.0.0.13"]
    assert events[-1] == MeshEnded(is_complete=True)
    assert [(each.number, each.rounds) for each in of(RoundBegan, events)] == [(1, 3), (2, 3), (3, 3)]
    ended = of(CellEnded, events)
    assert sorted(each.cell for each in ended) == sorted(plan.cells)
    assert [each.cell for each in of(CellBegan, events)] == [each.cell for each in ended]
    for each in ended:
        assert each.failure is None, each.failure
        started, end = each.events[0], each.events[-1]
        assert len(each.texts) == len(each.events)
        assert isinstance(started, Started)
        assert isinstance(end, Ended)
        assert (started.plan.settings.direction is Direction.OUT) is (each.near == each.cell.sender)
    assert again[0] == CellBegan(Cell("db-3", "db-1"), is_isolated=True)
    assert len(again) == 2
    assert again[1].is_isolated
    assert again[1].events


async def test_datagrams_of_each_pair_have_the_rate_of_its_interfaces(dask: DaskProcesses) -> None:
    """A pair without a rate fails with the reason; if no pair has one, there is no mesh."""
    udp = replace(SHORT, workload=workload_named("udp"), rate_bit_s=None)
    seen: list[NicInfo | None] = []

    def find_rate(first: NicInfo | None, second: NicInfo | None) -> int:
        seen.extend((first, second))
        if len(seen) == 2:
            raise PlanError("--rate", "none", "give one")
        return len(seen) * 10**6

    def refuse(*_: NicInfo | None) -> int:
        raise PlanError("--rate", "none", "give one")

    async with cluster_of(dask, "db-1", "db-2", "db-3") as cluster:
        async with open_mesh(plan_of(cluster, udp), cluster, find_rate=find_rate) as mesh:
            events = await read(mesh)
        with pytest.raises(PlanError, match="give one"):
            async with open_mesh(plan_of(cluster, udp), cluster, find_rate=refuse):
                pytest.fail("a mesh without a rate")
    assert {nic.sort for nic in seen if nic is not None} == {"loopback"}
    assert len(seen) == 6
    failed = [each for each in of(CellEnded, events) if each.failure is not None]
    assert {each.failure.detail for each in failed} == {"--rate none is invalid; give one"}
    assert len({frozenset(each.cell) for each in failed}) == 1
    rates = {each.events[0].plan.settings.rate_bit_s for each in of(CellEnded, events) if each.failure is None}
    assert rates == {4 * 10**6, 6 * 10**6}


async def test_done_cells_are_left_out_and_pairs_begin_at_once(dask: DaskProcesses) -> None:
    """In the mode `all`. A host without a worker is lost and costs nothing."""
    async with cluster_of(dask, "db-1", "db-2", "db-3") as cluster:
        plan = plan_of(cluster, mode=MeshMode.ALL)
        plan = replace(plan, hosts=(*plan.hosts, Host("db-9")))
        done = [cell for cell in plan.cells if cell != Cell("db-2", "db-1")]
        async with open_mesh(plan, cluster, done=done) as mesh:
            events = await read(mesh)
    assert replace(of(MeshBegan, events)[0], overhead_ns=0) == MeshBegan(replace(plan, hosts=plan.hosts[:3]), 1, 0)
    (lost,) = of(HostLost, events)
    assert (lost.host, lost.failure.code) == ("db-9", FailureCode.HOST_LOST)
    (ended,) = of(CellEnded, events)
    assert (ended.cell, ended.failure) == (Cell("db-2", "db-1"), None)
    assert of(MeshEnded, events) == [MeshEnded(is_complete=True)]


async def test_a_killed_worker_costs_its_own_cells_only(dask: DaskProcesses) -> None:
    """It is killed in the middle of a run: it is lost at once, and the others go on."""
    dask.add_worker("db-killed", "127.0.0.21")
    async with cluster_of(dask, "db-1", "db-2", "db-killed") as cluster:
        events: list[MeshEvent] = []
        async with open_mesh(plan_of(cluster, mode=MeshMode.ISOLATED), cluster) as mesh:
            async for event in mesh:
                events.append(event)
                if isinstance(event, CellBegan) and "db-killed" in event.cell and not of(HostLost, events):
                    dask.signal("db-killed", signal.SIGKILL)
    (lost,) = of(HostLost, events)
    assert (lost.host, lost.failure.code) == ("db-killed", FailureCode.HOST_LOST)
    for each in of(CellEnded, events):
        if "db-killed" in each.cell:
            assert each.failure is not None
            assert (each.failure.code, each.failure.host) == (FailureCode.HOST_LOST, "db-killed")
        else:
            assert each.failure is None
    assert len(of(CellEnded, events)) == 6
    assert events[-1] == MeshEnded(is_complete=True)


async def test_a_stopped_worker_is_lost_after_its_deadlines(
    dask: DaskProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hangs and answers nothing, while its connections stay: the others go on."""
    monkeypatch.setattr(host_supervisor, "PROBE_DEADLINE_S", 0.5)
    monkeypatch.setattr(host_supervisor, "_HOLD_WAIT_S", 0.5)
    dask.add_worker("db-hangs", "127.0.0.22")
    async with cluster_of(dask, "db-1", "db-2", "db-hangs") as cluster:
        plan = plan_of(cluster, mode=MeshMode.ISOLATED)
        async with open_mesh(plan, cluster) as mesh:
            dask.signal("db-hangs", signal.SIGSTOP)
            events = await read(mesh)
    (lost,) = of(HostLost, events)
    assert (lost.host, lost.failure.code) == ("db-hangs", FailureCode.NO_ANSWER)
    failed = {each.cell: each.failure for each in of(CellEnded, events) if each.failure}
    assert set(failed) == {cell for cell in plan_of(cluster).cells if "db-hangs" in cell}
    assert {failure.host for failure in failed.values()} == {"db-hangs"}
    assert len(of(CellEnded, events)) == 6


async def test_hosts_that_do_not_meet_fail_without_being_lost(
    dask: DaskProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their workers answer, so the path between them is at fault; the second run is not tried."""
    async with cluster_of(dask, "db-1", "db-2") as cluster, open_mesh(plan_of(cluster), cluster) as mesh:
        for name in ("db-1", "db-2"):  # where nobody listens
            mesh._supervisor._ports[name] = 1
        events = await read(mesh)
    assert of(HostLost, events) == []
    assert [each.failure.code for each in of(CellEnded, events)] == [FailureCode.UNREACHABLE] * 2
    assert len(of(CellBegan, events)) == 1
    assert events[-1] == MeshEnded(is_complete=True)


async def test_a_stopped_mesh_ends_in_order_and_leaves_nothing_on_its_hosts(dask: DaskProcesses) -> None:
    """The running cell ends as stopped, the others stay unmeasured. A second stop changes nothing."""
    async with cluster_of(dask, "db-1", "db-2", "db-3") as cluster:
        events: list[MeshEvent] = []
        async with open_mesh(plan_of(cluster, LONG), cluster) as mesh:
            async for event in mesh:
                events.append(event)
                if isinstance(event, CellBegan):
                    mesh.stop()
                    mesh.stop()
            assert [event async for event in mesh.measure_again([Cell("db-1", "db-2")])] == []
            for name in ("db-1", "db-2", "db-3"):
                await until(lambda name=name: not processes_of(dask, name))
    (ended,) = of(CellEnded, events)
    assert ended.failure is not None
    assert ended.failure.code is FailureCode.STOPPED
    assert events[-1] == MeshEnded(is_complete=False, detail="the mesh was stopped")


async def test_two_meshes_on_one_cluster_never_share_an_interface(dask: DaskProcesses) -> None:
    """They never wait for each other for ever, in any order of pairs."""
    async with (
        cluster_of(dask, "db-1", "db-2", "db-3") as cluster,
        cluster_of(dask, "db-1", "db-2", "db-3") as other,
    ):
        plan = plan_of(cluster)
        done = [cell for cell in plan.cells if cell.sender > cell.receiver]
        events: list[tuple[int, MeshEvent]] = []

        async def measure(number: int, plan: MeshPlan, cluster: Cluster) -> None:
            async with open_mesh(plan, cluster, done=done) as mesh:
                async for event in mesh:  # as they come, beside those of the other one
                    events.append((number, event))  # noqa: PERF401

        async with asyncio.timeout(50):
            await asyncio.gather(
                measure(1, plan, cluster), measure(2, replace(plan, seed=2, mode=MeshMode.ALL), other)
            )
    busy: dict[str, int] = {}
    for number, event in events:
        if isinstance(event, CellBegan):
            for name in event.cell:
                assert name not in busy, f"{name} is measured by meshes {busy[name]} and {number}"
                busy[name] = number
        elif isinstance(event, CellEnded):
            assert event.failure is None
            for name in event.cell:
                del busy[name]
    assert [event for _, event in events if isinstance(event, MeshEnded)] == [MeshEnded(is_complete=True)] * 2


async def test_a_lost_scheduler_ends_the_mesh_with_its_reason(tmp_path: Any) -> None:
    """Nobody can be asked any more: the remaining cells stay unmeasured."""
    dask = DaskProcesses(tmp_path)
    try:
        for number in (1, 2):
            dask.add_worker(f"db-{number}", f"127.0.0.3{number}")
        async with cluster_of(dask, "db-1", "db-2") as cluster:
            events: list[MeshEvent] = []
            async with open_mesh(plan_of(cluster, LONG), cluster) as mesh:
                async for event in mesh:
                    events.append(event)
                    if isinstance(event, CellBegan):
                        dask.signal("scheduler", signal.SIGKILL)
        assert isinstance(events[-1], MeshEnded)
        assert not events[-1].is_complete
        assert "scheduler was lost" in events[-1].detail
    finally:
        dask.close()


async def test_a_mesh_of_fewer_than_two_hosts_is_refused_with_their_reasons(dask: DaskProcesses) -> None:
    """Without any event."""
    async with cluster_of(dask, "db-1", "db-2") as cluster:
        plan = replace(plan_of(cluster), hosts=(Host("db-1"), Host("db-8")))
        with pytest.raises(ClusterError, match="db-8: no Dask worker has this name"):
            async with open_mesh(plan, cluster):
                pass
