"""A mesh with a hostile worker of Dask beside two honest ones: it costs its own cells, and is named."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.mesh.coordinator import open_mesh
from linkgauge.mesh.events import CellEnded, MeshEnded, MeshEvent
from linkgauge.mesh.plan import Cell, Host, MeshPlan

from .dask_processes import DaskProcesses
from .test_coordinator import cluster_of

NAMES = ("db-1", "db-2", "evil")
SHORT = Plan(duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10, rate_bit_s=10**7)
# With this seed the liar begins both of its tests.
PLAN = MeshPlan("mesh-test", tuple(map(Host, NAMES)), SHORT, seed=9)
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


@pytest.fixture
def dask(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DaskProcesses]:
    """Give a scheduler with two honest workers and one that lies."""
    lie = tmp_path / "lie.py"
    code = LIES[request.param]
    name = "open_host" if "open_host" in code else "run_cell"
    lie.write_text(f"from linkgauge.mesh import host_tasks\n{code}\nhost_tasks.{name} = {name}\n")
    processes = DaskProcesses(tmp_path)
    for number, host in enumerate(NAMES, 1):
        processes.add_worker(host, f"127.0.0.1{number}", *(("--preload", str(lie)) if host == "evil" else ()))
    yield processes
    processes.close()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("dask", list(LIES), indirect=True)
async def test_a_worker_that_lies_costs_its_own_cells_and_is_named(dask: DaskProcesses) -> None:
    """Whatever it sends is bounded and printable, and the others are measured."""
    events: list[MeshEvent] = []
    async with cluster_of(dask, *NAMES) as cluster, open_mesh(PLAN, cluster) as mesh:
        events = [event async for event in mesh]
    ended = {event.cell: event.failure for event in events if isinstance(event, CellEnded)}
    assert len(ended) == 6
    assert [ended[Cell(*pair)] for pair in (NAMES[:2], NAMES[1::-1])] == [None, None]
    failures = [failure for cell, failure in ended.items() if "evil" in cell and failure is not None]
    assert failures
    assert all(failure.detail.isprintable() and len(failure.detail) <= 400 for failure in failures)
    assert "evil" in {failure.host for failure in failures} or all("127.0.0.13" in f.detail for f in failures)
    assert isinstance(events[-1], MeshEnded)
    assert events[-1].is_complete
