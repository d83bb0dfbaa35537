"""The opening of a mesh: its cluster, its hosts, its definition on disk, and its session.

Dask is imported here, when a mesh begins, and by no other command.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from ....engine.results.run_log import RunLog
from ....presets.auto_select import AUTO
from ....presets.catalog import Catalog
from .cell_recorder import CellRecorder, Judging
from .session import MeshSession
from .stored_mesh import MeshDefinition, MeshRequest, load_matrix, measured_figures, save_mesh

if TYPE_CHECKING:
    from ....mesh.cluster import Cluster


@asynccontextmanager
async def open_mesh_session(
    request: MeshRequest, catalog: Catalog, log: RunLog | None, earlier: MeshDefinition | None = None
) -> AsyncGenerator[MeshSession]:
    """Connect to the hosts of a mesh, store its definition, and yield its session; the block ends all of it.

    Args:
        request: what to measure, and where.
        catalog: the presets to choose from.
        log: the run log; None for a mesh that is not stored.
        earlier: the definition of a mesh that is continued: what it has measured is not measured again.

    Raises:
        ClusterError: fewer than two hosts can be used, or the scheduler does not answer.
        RunLogError: the definition cannot be written.
        PlanError: the hosts cannot be a mesh.
    """
    from ....mesh.coordinator import open_mesh
    from ....mesh.reading import cells_to_recheck, find_faults

    async with AsyncExitStack() as stack:
        cluster = await _open_cluster(stack, request)
        definition = request.define(request.hosts or cluster.hosts)
        plan = definition.plan
        done = [] if earlier is None else measured_figures(load_matrix(log, earlier).figures.values())
        if log is not None:
            save_mesh(definition)
        mesh = await stack.enter_async_context(open_mesh(plan, cluster, done=[figure.cell for figure in done]))
        preset = request.preset and (catalog if request.preset == AUTO else catalog.find(request.preset))
        session = MeshSession(
            mesh,
            definition,
            CellRecorder(plan, Judging(preset or None, request.variant, request.pass_percent), log),
            find_faults=find_faults,
            cells_to_recheck=cells_to_recheck,
            earlier=done,
            lost=cluster.lost,
        )
        try:
            yield session
        finally:
            if log is not None:
                save_mesh(definition.with_failures(session.matrix.figures))


async def _open_cluster(stack: AsyncExitStack, request: MeshRequest) -> "Cluster":
    from ....mesh.cluster import connect_cluster, start_ssh_cluster

    if request.scheduler is not None:
        return await stack.enter_async_context(connect_cluster(request.scheduler, request.hosts))
    return await stack.enter_async_context(start_ssh_cluster(request.hosts, remote_python=request.remote_python))
