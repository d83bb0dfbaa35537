"""A mesh of hosts that ssh reaches. If the scheduler's host is lost, it goes on with the others.

Dask's scheduler runs on the first host. Without it, no worker can be reached: the workers end, others start with a
scheduler on another host, and the remaining cells follow.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from ...engine.model.errors import LinkgaugeError
from ..coordinator import FindRate, Mesh, open_mesh
from ..events import CellBegan, CellEnded, CellFailure, FailureCode, HostLost, MeshBegan, MeshEnded, MeshEvent
from ..plan import Cell, Host, MeshPlan
from .ssh_cluster import start_ssh_cluster

_MOST_SCHEDULERS: Final = 4  # after this many the mesh is over
_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_ssh_mesh(
    plan: MeshPlan,
    *,
    remote_python: str | None = None,
    done: Collection[Cell] = (),
    find_rate: FindRate | None = None,
) -> AsyncGenerator["SshMesh"]:
    """Start a cluster over ssh and yield a mesh of its hosts; the block ends both.

    Args:
        plan: the mesh; ssh knows its hosts by their names.
        remote_python: the interpreter there, by default at the path of this one.
        done: cells to leave out.
        find_rate: gives each pair's datagrams the rate of its interfaces.

    Raises:
        ClusterError: fewer than two hosts can be used.
        LinkgaugeError: no pair has a rate.
    """
    mesh = SshMesh(plan, remote_python, done, find_rate)
    try:
        await mesh.open()
        yield mesh
    finally:
        await mesh.close()


@dataclass(frozen=True, slots=True)
class _Running:
    """A cluster with its mesh; the stack ends both. `scheduler` is the name of the scheduler's host."""

    stack: AsyncExitStack
    mesh: Mesh
    scheduler: str


class SshMesh:
    """A mesh like `coordinator.Mesh`, on one cluster after another."""

    def __init__(
        self, plan: MeshPlan, remote_python: str | None, done: Collection[Cell], find_rate: FindRate | None = None
    ) -> None:
        self._plan, self._python, self._find_rate = plan, remote_python, find_rate
        self._over = set(done)
        self._broken_off: dict[
            Cell, CellEnded
        ] = {}  # in progress when the scheduler was lost; may be measured again
        self._lost: set[str] = set()
        self._stopping = asyncio.Event()
        self._running: _Running | None = None

    async def open(self) -> None:
        """Start the first cluster; raise ClusterError."""
        self._running = await self._start(self._plan.hosts)

    async def _start(self, hosts: Sequence[Host]) -> _Running:
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(start_ssh_cluster(hosts, remote_python=self._python))
            opening = open_mesh(self._plan, cluster, done=self._over, find_rate=self._find_rate)
            mesh = await stack.enter_async_context(opening)
            return _Running(stack.pop_all(), mesh, cluster.hosts[0].name)

    async def close(self) -> None:
        """End everything on the hosts."""
        running, self._running = self._running, None
        if running is not None:
            await running.stack.aclose()

    def stop(self) -> None:
        """End the mesh: running cells fail as stopped, no others begin, `MeshEnded` follows."""
        self._stopping.set()
        if self._running is not None:
            self._running.mesh.stop()

    async def __aiter__(self) -> AsyncIterator[MeshEvent]:
        """Yield the events of all clusters as those of one mesh."""
        for number in range(1, _MOST_SCHEDULERS + 1):
            ended = MeshEnded(is_complete=False)
            async for event in self._events(is_first=number == 1):
                if isinstance(event, MeshEnded):
                    ended = event
                else:
                    yield event
            is_over = ended.is_complete or self._stopping.is_set() or number == _MOST_SCHEDULERS
            problem = ended.detail if is_over else await self._start_again(ended.detail)
            if problem is not None:
                for event in self._broken_off.values():
                    yield event
                yield replace(ended, detail=problem)
                return

    async def _events(self, *, is_first: bool) -> AsyncIterator[MeshEvent]:
        """Yield the events of the present cluster, except repetitions of earlier ones."""
        if self._running is None:
            return
        async for event in self._running.mesh:
            match event:
                case MeshBegan() if not is_first:
                    pass
                case HostLost(host) if host in self._lost:
                    pass
                case CellEnded(cell, failure=CellFailure(FailureCode.STOPPED)):
                    self._broken_off[cell] = event
                case _:
                    for each in self._note(event):
                        yield each

    def _note(self, event: MeshEvent) -> Iterator[MeshEvent]:
        """Yield an event, and the ends of the cells that it ends."""
        yield event
        match event:
            case HostLost(host, failure):
                self._lost.add(host)
                for cell in [cell for cell in self._broken_off if host in cell]:
                    yield replace(self._broken_off.pop(cell), failure=failure)
            case CellBegan(cell):
                self._broken_off.pop(cell, None)
            case CellEnded(cell):
                self._over.add(cell)
                self._broken_off.pop(cell, None)
            case _:
                pass

    async def measure_again(self, cells: Sequence[Cell]) -> AsyncIterator[MeshEvent]:
        """Measure cells once more, as `coordinator.Mesh` does. Raises ClusterError if the scheduler is lost."""
        if self._running is not None:
            async for event in self._running.mesh.measure_again(cells):
                yield event

    async def _start_again(self, reason: str) -> str | None:
        """Start a cluster of the remaining hosts, its scheduler on another one; return the error if that fails."""
        before = self._running
        if before is None:
            return reason
        _log.debug("the scheduler on %s is lost: %s", before.scheduler, reason)
        work, stop = asyncio.create_task(self._replace(before)), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return "the mesh was stopped"
            work.result()
        except (LinkgaugeError, OSError) as error:
            return f"{reason}; {error}"
        finally:
            for task in (work, stop):
                task.cancel()
            await asyncio.gather(work, stop, return_exceptions=True)
        return None

    async def _replace(self, before: _Running) -> None:
        """End a cluster and start another one."""
        await self.close()
        left = [host for host in self._plan.hosts if host.name not in self._lost]
        # If only the scheduler was lost, its host still takes part, but is the last choice for the next scheduler.
        left.sort(key=lambda host: host.name == before.scheduler)
        running = self._running = await self._start(left)
        if self._stopping.is_set():
            running.mesh.stop()
