"""A mesh from first to last cell: `async with open_mesh(plan, cluster) as mesh: async for event in mesh`.

`MeshBegan` comes first, `MeshEnded` last. Each host runs an endpoint for this mesh alone while the block lasts.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from .cluster import Cluster
from .events import MeshEvent
from .plan import Cell, MeshPlan


class Mesh:
    """A mesh that is measured: an iterator of its events, once, up to `MeshEnded`."""

    def __aiter__(self) -> AsyncIterator[MeshEvent]:
        """Return the events."""
        raise NotImplementedError

    def stop(self) -> None:
        """End the mesh: running cells fail as stopped, no others begin, `MeshEnded` follows."""

    async def measure_again(self, cells: Sequence[Cell]) -> AsyncIterator[MeshEvent]:
        """Measure cells once more, one after the other, after `MeshEnded` and before the block is left.

        Yields `CellBegan` and `CellEnded` of each, both isolated, and `HostLost`; after `stop`, no more.
        """
        del cells
        raise NotImplementedError
        yield


@asynccontextmanager
async def open_mesh(plan: MeshPlan, cluster: Cluster, *, done: Collection[Cell] = ()) -> AsyncGenerator[Mesh]:
    """Open the endpoints of all hosts and yield the mesh; on leaving the block, everything on the hosts is ended.

    The plan's hosts are found in the cluster by their names. Cells that are `done` are left out. Raises
    ClusterError where fewer than two hosts can be used.
    """
    del plan, cluster, done
    yield Mesh()
