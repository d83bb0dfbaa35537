"""A mesh with a hostile worker of Dask beside two honest ones: it costs its own cells, and is named."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from distributed import Client
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.mesh.cluster import connect_cluster
from linkgauge.mesh.coordinator import open_mesh
from linkgauge.mesh.events import CellEnded, MeshEnded
from linkgauge.mesh.plan import Cell, Host, MeshPlan

from .dask_processes import DaskProcesses
from .test_coordinator import workers_of

HONEST = ("db-1", "db-2")
SEED = 9  # the liar begins both of its tests
SHORT = Plan(duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10, rate_bit_s=10**7)
# What its process does in place of the functions of a host.
LIES = {
    "huge": "async def run_cell(_request): return ['x' * (64 << 20)]",
    "wrong type": "async def run_cell(_request): return {'events': 3}",
    "many lines": "async def run_cell(_request): return ['{}'] * 1_000_000",
    "control characters": (
        'async def run_cell(_request): return [\'{"error": "\\\\u001b[2J\\\\u0007", "code": "failed", '
        '"end": "near"}\']'
    ),
    "error with control characters": "async def run_cell(_request): raise ValueError('\\x1b[2J' * 100_000)",
    "no port": "async def open_host(*_): return '5201\\x1b[2J'",
    "a port of somebody else": "async def open_host(*_): return 1",
    "never returns": "import asyncio\nasync def run_cell(_request): await asyncio.sleep(10_000)",
    "dies": "import os\nasync def run_cell(_request): os._exit(1)",
}
pytestmark = [pytest.mark.loop("uvloop"), pytest.mark.every]
_START_S = 120.0  # Dask's processes on a busy machine


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    """Give a scheduler with two honest workers."""
    processes = DaskProcesses(tmp_path_factory.mktemp("dask"))
    for number, name in enumerate(HONEST, 1):
        processes.add_worker(name, f"127.0.0.1{number}")
    yield processes
    processes.close()


async def wait_for_worker(dask: DaskProcesses, name: str) -> None:
    """Wait until the scheduler knows a worker."""
    async with asyncio.timeout(_START_S):
        while True:
            with suppress(OSError):  # the scheduler starts as well
                async with Client(dask.address, asynchronous=True, set_as_default=False) as client:
                    while name not in {each["name"] for each in (await workers_of(client)).values()}:  # noqa: ASYNC110
                        await asyncio.sleep(0.1)
                    return


@pytest.mark.timeout(300)
@pytest.mark.parametrize("lie", list(LIES))
async def test_a_worker_that_lies_costs_its_own_cells_and_is_named(
    dask: DaskProcesses, lie: str, tmp_path: Path
) -> None:
    """Whatever it sends is bounded and printable, and the others are measured."""
    evil, file = f"evil-{list(LIES).index(lie)}", tmp_path / "lie.py"
    function = "open_host" if "open_host" in LIES[lie] else "run_cell"
    file.write_text(f"from linkgauge.mesh import host_tasks\n{LIES[lie]}\nhost_tasks.{function} = {function}\n")
    dask.add_worker(evil, f"127.0.0.{20 + list(LIES).index(lie)}", "--preload", str(file))
    for name in (*HONEST, evil):
        await wait_for_worker(dask, name)
    hosts = tuple(map(Host, (*HONEST, evil)))
    plan = MeshPlan("mesh-test", hosts, SHORT, seed=SEED)
    async with connect_cluster(dask.address, hosts) as cluster, open_mesh(plan, cluster) as mesh:
        events = [event async for event in mesh]
    ended = {event.cell: event.failure for event in events if isinstance(event, CellEnded)}
    assert len(ended) == 6
    assert [ended[Cell(*pair)] for pair in (HONEST, HONEST[::-1])] == [None, None]
    failures = [failure for cell, failure in ended.items() if evil in cell]
    assert {failure and failure.host for failure in failures} == {evil}
    assert all(failure and failure.detail.isprintable() and len(failure.detail) <= 400 for failure in failures)
    assert events[-1] == MeshEnded(is_complete=True)
    dask.signal(evil, signal.SIGKILL)
