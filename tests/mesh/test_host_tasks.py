"""The tasks of a Dask worker for a mesh on its host."""

import asyncio
import json
import os
import pickle
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from distributed import Client, Scheduler, Worker
from linkgauge import __version__
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.model.errors import EndpointError
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.shared_key import Access, SharedKey
from linkgauge.engine.near.connect import query_host_info
from linkgauge.mesh import host_tasks
from linkgauge.mesh.host_tasks import (
    CellRequest,
    await_hold,
    close_host,
    hold_interface,
    open_host,
    release_interfaces,
    renew_host,
    run_cell,
)

from .host_processes import DEADLINE_S, children_named, command_of, descendants, is_alive, until

NEAR, FAR = "127.0.0.2", "127.0.0.3"
MESH = "mesh-1"
PLAN = Plan(duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10, rate_bit_s=10**8)
LONG = replace(PLAN, duration_ns=60 * SECOND_NS)
NIC = {"nic": 1}


@pytest.fixture(autouse=True)
async def no_host_stays_open() -> AsyncIterator[None]:
    """Close the hosts that a failed test leaves open, so that the next one does not fail as well."""
    yield
    for address in (NEAR, FAR):
        await close_host(MESH, address)


def ours() -> set[int]:
    """Return this process's children of a mesh, and their children."""
    roots = children_named(os.getpid(), "linkgauge.mesh.")
    return roots.union(*(descendants(pid) for pid in roots))


@asynccontextmanager
async def open_hosts(key: SharedKey, *addresses: str) -> AsyncGenerator[list[int]]:
    """Open hosts in this process and yield their ports; afterwards none of their processes may be left."""
    ports = [await open_host(MESH, key, address, __version__) for address in addresses]
    try:
        yield ports
    finally:
        for address in addresses:
            await close_host(MESH, address)
    await until(lambda: not ours())


async def begin(request: CellRequest) -> "asyncio.Task[list[str]]":
    """Begin a cell, and return once its process has a child."""
    running = asyncio.create_task(run_cell(request))
    await until(lambda: any(descendants(pid) for pid in children_named(os.getpid(), "cell_run")))
    return running


def failure_of(lines: list[str]) -> tuple[str, str, str | None]:
    """Return the text, the code and the end at fault of a cell without a run."""
    (line,) = lines
    failure: dict[str, Any] = json.loads(line)
    return failure["error"], failure["code"], failure["end"]


def check_completed(lines: list[str]) -> None:
    """Check that these are the events of a completed run."""
    assert json.loads(lines[0])["type"] == "Started"
    assert json.loads(lines[-1])["end"]["reason"] == "completed"


def test_a_request_and_a_key_travel_as_dask_sends_them() -> None:
    """A key is never printed: Dask logs the arguments of failed calls."""
    request = CellRequest("mesh-1", "127.0.0.2", "127.0.0.3", 5820, Plan(), 18.0)
    assert pickle.loads(pickle.dumps(request)) == request  # noqa: S301 - it is ours
    key = SharedKey.generate()
    again = pickle.loads(pickle.dumps(key))  # noqa: S301
    assert again.reveal() == key.reveal()
    assert key.reveal() not in repr(again)


async def test_a_host_with_another_version_is_refused_with_the_remedy(key: SharedKey) -> None:
    """It opens nothing."""
    with pytest.raises(EndpointError, match=f"linkgauge {__version__}, not 0.0.9; install the same version"):
        await open_host(MESH, key, NEAR, "0.0.9")
    assert not ours()


async def test_a_host_that_is_closed_while_it_opens_has_no_endpoint(key: SharedKey) -> None:
    """The user may stop a mesh before it has begun. A host that is opened again at that time is open."""
    first = asyncio.create_task(open_host(MESH, key, NEAR, __version__))
    await until(ours)
    await close_host(MESH, NEAR)
    second = asyncio.create_task(open_host(MESH, key, NEAR, __version__))
    with pytest.raises(EndpointError, match="closed while its endpoint started"):
        await first
    assert (await query_host_info(Peer(NEAR, await second, Access(key)))).hostname
    await close_host(MESH, NEAR)
    await until(lambda: not ours())
    assert not host_tasks._openings


async def test_a_cell_of_a_host_that_is_not_open_fails_at_its_near_end() -> None:
    """This is the state after a restart of the worker. The other functions do not raise either."""
    text, code, end = failure_of(await run_cell(CellRequest(MESH, NEAR, FAR, 5820, PLAN, 30.0)))
    assert "its worker was restarted" in text
    assert (code, end) == ("failed", "near")
    await release_interfaces(MESH, {NEAR: "hold"})
    assert not await hold_interface(MESH, NEAR, "hold", 1.0)
    assert not await await_hold(MESH, NEAR, "hold", 1.0)


@pytest.mark.every
async def test_a_cell_ends_when_it_is_overdue_its_process_is_killed_or_its_host_is_closed(key: SharedKey) -> None:
    """Each has its own code, and does not affect the next cell."""
    async with open_hosts(key, NEAR) as (port,):
        request = CellRequest(MESH, NEAR, NEAR, port, LONG, 60.0)

        overdue = failure_of(await run_cell(replace(request, seconds=0.5)))
        assert overdue == ("the test was not over after 0.5 s", "no-answer", None)

        running = await begin(request)
        (pid,) = children_named(os.getpid(), "cell_run")
        os.kill(pid, signal.SIGKILL)
        text, code, end = failure_of(await running)
        assert "ended with status -9" in text
        assert (code, end) == ("failed", "near")

        assert not children_named(os.getpid(), "cell_run")

        running = await begin(request)
        await close_host(MESH, NEAR)
        assert running.done()
        assert failure_of(running.result()) == ("the test was stopped", "stopped", None)
        assert not ours()
    await close_host(MESH, NEAR)
    assert not await renew_host(MESH, NEAR)


async def test_an_endpoint_that_was_killed_ends_the_cells_of_its_host(endpoint: Endpoint, key: SharedKey) -> None:
    """Opening the host again mends it."""
    async with open_hosts(key, NEAR):
        assert await renew_host(MESH, NEAR)
        running = await begin(CellRequest(MESH, NEAR, *endpoint.address, LONG, 60.0))
        (pid,) = children_named(os.getpid(), "host_endpoint")
        os.kill(pid, signal.SIGKILL)
        assert failure_of(await running) == ("this host's endpoint ended during the test", "failed", "near")
        assert not await renew_host(MESH, NEAR)
        port = await open_host(MESH, key, NEAR, __version__)
        assert (await query_host_info(Peer(NEAR, port, Access(key)))).hostname


@pytest.mark.every
async def test_without_its_coordinator_a_host_ends_what_it_has(endpoint: Endpoint, key: SharedKey) -> None:
    """The lease expires: the cell and the hold end. A host that was opened twice has one lease."""
    await open_host(MESH, key, NEAR, __version__)
    (first,) = children_named(os.getpid(), "host_endpoint")
    await open_host(MESH, key, NEAR, __version__, lease_s=3.0)
    assert not is_alive(first)
    holding = asyncio.create_task(hold_interface(MESH, NEAR, "hold", 60.0))
    assert await await_hold(MESH, NEAR, "hold", 10.0)
    async with asyncio.timeout(DEADLINE_S):
        lines = await run_cell(CellRequest(MESH, NEAR, *endpoint.address, LONG, 60.0))
        assert not await holding
    assert failure_of(lines) == ("this host's endpoint ended during the test", "failed", "near")
    await until(lambda: not ours())
    assert not await renew_host(MESH, NEAR)


@asynccontextmanager
async def open_cluster(*addresses: str) -> AsyncGenerator[tuple[Client, list[Worker]]]:
    """Run a scheduler and a worker on each address in this process, and yield a client of them."""
    async with (
        Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler,
        Client(scheduler.address, asynchronous=True) as client,
    ):
        workers = [
            await Worker(scheduler.address, host=address, name=address, nthreads=2, resources=NIC)
            for address in addresses
        ]
        try:
            yield client, workers
        finally:
            for worker in workers:
                await worker.close()


async def test_dask_runs_cells_while_the_far_interface_is_held(key: SharedKey) -> None:
    """A second hold of the same interface waits for the first one; no log has the key."""
    async with open_cluster(NEAR, FAR) as (client, (near, far)):
        opened = await client.run(open_host, MESH, key, FAR, __version__, workers=[far.address])
        await client.run(open_host, MESH, key, NEAR, __version__, workers=[near.address])
        at_far: dict[str, Any] = {"workers": [far.address], "resources": NIC, "pure": False}
        first = client.submit(hold_interface, MESH, FAR, "hold-1", 60.0, key="hold-1", **at_far)
        assert await client.run(await_hold, MESH, FAR, "hold-1", 10.0, workers=[far.address]) == {far.address: True}
        second = client.submit(hold_interface, MESH, FAR, "hold-2", 60.0, key="hold-2", **at_far)
        assert not await await_hold(MESH, FAR, "hold-2", 0.1)
        request = CellRequest(MESH, NEAR, FAR, opened[far.address], PLAN, 30.0)
        check_completed((await client.run(run_cell, request, workers=[near.address]))[near.address])
        await client.run(release_interfaces, MESH, {FAR: "hold-1"}, workers=[far.address])
        assert await first
        assert await await_hold(MESH, FAR, "hold-2", 10.0)
        await client.run(close_host, MESH, FAR, workers=[far.address])
        await client.run(close_host, MESH, NEAR, workers=[near.address])
        assert not await second
        logs = [str(worker.get_logs()) for worker in (near, far)]
    assert not any(key.reveal() in log for log in logs)
    await until(lambda: not ours())


async def test_a_hold_that_is_cancelled_frees_the_interface(key: SharedKey) -> None:
    """Dask itself would let it run on."""
    async with open_cluster(NEAR) as (client, (worker,)), open_hosts(key, NEAR):
        hold = client.submit(hold_interface, MESH, NEAR, "hold-1", 60.0, key="hold-1", resources=NIC, pure=False)
        assert await await_hold(MESH, NEAR, "hold-1", 10.0)
        await hold.cancel()
        await until(lambda: not worker.state.tasks)


@pytest.mark.every
async def test_a_worker_that_is_killed_leaves_nothing_behind(key: SharedKey) -> None:
    """Neither its endpoint nor its cell outlives it."""
    async with open_cluster() as (client, _):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "distributed.cli.dask_worker", client.scheduler.address, "--no-nanny"),
            *("--nthreads", "2", "--resources", "nic=1", "--host", NEAR, "--no-dashboard"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await client.wait_for_workers(1, timeout=DEADLINE_S)
            ((_, port),) = (await client.run(open_host, MESH, key, NEAR, __version__)).items()
            request = CellRequest(MESH, NEAR, NEAR, port, LONG, 60.0)
            cell = asyncio.ensure_future(client.run(run_cell, request, on_error="return"))
            await until(lambda: any(descendants(pid) for pid in children_named(process.pid, "cell_run")))
            left = descendants(process.pid)
            assert {"host_endpoint", "cell_run"} <= {
                name for pid in left for name in ("host_endpoint", "cell_run") if name in command_of(pid)
            }
        finally:
            process.kill()
            await process.wait()
        await until(lambda: not any(map(is_alive, left)))
        await asyncio.wait([cell])
