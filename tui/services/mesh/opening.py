"""The opening of a mesh: its cluster, its hosts, its definition on disk, and its session.

Dask is imported here, when a mesh begins, and by no other command.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager

from ....engine.results.run_log import RunLog
from ....mesh.events import HostLost
from ....mesh.plan import Cell
from ....presets.auto_select import AUTO
from ....presets.catalog import Catalog
from .cell_recorder import CellRecorder, Judging
from .session import MeshSession, RunningMesh
from .stored_mesh import MeshDefinition, MeshRequest, load_matrix, measured_figures, save_mesh


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
    from ....mesh.reading import cells_to_recheck, find_faults

    done = [] if earlier is None else measured_figures(load_matrix(log, earlier).figures.values())
    async with _open_mesh(request, [figure.cell for figure in done]) as (mesh, definition, lost):
        if log is not None:
            save_mesh(definition)
        preset = request.preset and (catalog if request.preset == AUTO else catalog.find(request.preset))
        session = MeshSession(
            mesh,
            definition,
            CellRecorder(definition.plan, Judging(preset or None, request.variant, request.pass_percent), log),
            find_faults=find_faults,
            cells_to_recheck=cells_to_recheck,
            earlier=done,
            lost=lost,
        )
        try:
            yield session
        finally:
            if log is not None:
                save_mesh(definition.with_failures(session.matrix.figures))


@asynccontextmanager
async def _open_mesh(
    request: MeshRequest, done: Collection[Cell]
) -> AsyncGenerator[tuple[RunningMesh, MeshDefinition, Sequence[HostLost]]]:
    """Open the mesh of a request; yield it, its definition, and the hosts that cannot be used from the start."""
    if request.scheduler is None:
        from ....mesh.ssh_mesh import open_ssh_mesh

        definition = request.define(request.hosts)
        async with open_ssh_mesh(definition.plan, remote_python=request.remote_python, done=done) as ssh_mesh:
            yield ssh_mesh, definition, ssh_mesh.lost
        return
    from ....mesh.cluster import connect_cluster
    from ....mesh.coordinator import open_mesh

    async with connect_cluster(request.scheduler, request.hosts) as cluster:
        definition = request.define(request.hosts or cluster.hosts)
        async with open_mesh(definition.plan, cluster, done=done) as mesh:
            yield mesh, definition, cluster.lost
