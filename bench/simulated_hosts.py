"""Hosts of a mesh that measure nothing: a Dask scheduler and N workers in one process, whose cells take no time.

Usage: simulated_hosts.py COUNT [SECONDS]

Prints the scheduler's address, and ends with its standard input. Each worker has an address of loopback. A cell
returns the events of a real test, which one pair of hosts carries out before at 1 Gb/s, 3 s long or as told: what
the coordinator gets of a host is of true size.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any

from distributed import Scheduler, Worker, get_worker
from linkgauge import __version__
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.shared_key import SharedKey
from linkgauge.mesh import host_tasks
from linkgauge.mesh.plan import cell_interval_ns

_CELL_S = 0.02
_POLL_S = 0.5
_GBIT_S = 10**9


def cell_plan(seconds: float, direction: Direction = Direction.OUT) -> Plan:
    """Return the plan of the recorded test: that of every cell."""
    duration_ns = round(seconds * SECOND_NS)
    return Plan(
        settings=Settings(direction),
        duration_ns=duration_ns,
        interval_ns=cell_interval_ns(duration_ns),
        rate_bit_s=_GBIT_S,
    )


async def record_cells(seconds: float) -> dict[Direction, list[str]]:
    """Return the events of a real test in each direction between two addresses of loopback."""
    key, addresses = SharedKey.generate(), ("127.0.0.2", "127.0.0.3")
    ports = [await host_tasks.open_host("record", key, address, __version__) for address in addresses]
    lines: dict[Direction, list[str]] = {}
    for direction in (Direction.OUT, Direction.IN):
        plan = cell_plan(seconds, direction)
        request = host_tasks.CellRequest("record", *addresses, ports[1], plan, seconds + 30)
        lines[direction] = await host_tasks.run_cell(request)
    for address in addresses:
        await host_tasks.close_host("record", address)
    return lines


class SimulatedTasks:
    """What `host_tasks` has, without processes and tests. Dask finds its functions by the module's names."""

    def __init__(self, lines: dict[Direction, list[str]]) -> None:
        self._lines = lines
        self._released: dict[str, asyncio.Event] = {}
        self._begun: dict[str, asyncio.Event] = {}

    def install(self) -> None:
        """Put these functions in the place of the real ones, in this process."""
        for name in (
            *("open_host", "renew_host", "close_host", "run_cell"),
            *("hold_interface", "await_hold", "release_interfaces"),
        ):
            setattr(host_tasks, name, _as_of_module(getattr(self, name), name))

    async def open_host(self, *_: object) -> int:
        """Return a port."""
        return 1

    async def renew_host(self, *_: object) -> bool:
        """Return that the endpoint runs."""
        return True

    async def close_host(self, *_: object) -> None:
        """Close nothing."""

    async def run_cell(self, request: host_tasks.CellRequest) -> list[str]:
        """Return the events of the recorded test after a moment."""
        await asyncio.sleep(_CELL_S)
        return self._lines[request.plan.settings.direction]

    async def hold_interface(self, _mesh_id: str, _address: str, hold_id: str, seconds: float) -> bool:
        """Occupy the resources until released, or cancelled: a coroutine that runs is not told of that."""
        self._begun.setdefault(hold_id, asyncio.Event()).set()
        released = self._released.setdefault(hold_id, asyncio.Event())
        deadline, tasks = time.monotonic() + seconds, get_worker().state.tasks
        try:
            while not released.is_set() and time.monotonic() < deadline:
                if hold_id in tasks and tasks[hold_id].state == "cancelled":
                    return False
                with suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_S):
                        await released.wait()
        finally:
            del self._begun[hold_id], self._released[hold_id]
        return released.is_set()

    async def await_hold(self, _mesh_id: str, _address: str, hold_id: str, seconds: float) -> bool:
        """Return once the hold has begun."""
        begun = self._begun.setdefault(hold_id, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await begun.wait()
        except TimeoutError:
            return False
        return True

    async def release_interfaces(self, _mesh_id: str, hold_ids: Mapping[str, str]) -> None:
        """End holds."""
        for hold_id in hold_ids.values():
            if hold_id in self._released:
                self._released[hold_id].set()


def _as_of_module(method: Callable[..., Coroutine[Any, Any, object]], name: str) -> Callable[..., object]:
    """Return a function that Dask sends by the name that the real one has."""

    async def task(*arguments: object) -> object:
        return await method(*arguments)

    task.__module__, task.__name__, task.__qualname__ = host_tasks.__name__, name, name
    return task


async def serve(count: int, seconds: float) -> None:
    """Run the scheduler and its workers until standard input ends."""
    logging.disable(logging.CRITICAL)  # Dask says that workers and clients come and go
    SimulatedTasks(await record_cells(seconds)).install()
    async with AsyncExitStack() as stack:
        scheduler = await stack.enter_async_context(
            Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0")
        )
        for number in range(count):
            address = f"127.0.{1 + number // 200}.{1 + number % 200}"
            worker = Worker(
                scheduler.address,
                host=address,
                name=f"host-{number:04}",
                nthreads=2,
                resources={"nic": 1},
                dashboard_address=f"{address}:0",
            )
            await stack.enter_async_context(worker)
        print(scheduler.address, flush=True)
        await asyncio.to_thread(sys.stdin.read)
        os._exit(0)  # workers that leave one by one take a second each


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 3.0))
