"""The opening of a mesh: its cluster, its hosts, its definition on disk, and its session.

Dask is imported here, when a mesh begins, and by no other command.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from ....engine.model.errors import PlanError, RunLogError, UnknownLineRate, UsageError
from ....engine.model.host_info import NicInfo
from ....engine.results.run_log import RunLog
from ....engine.results.run_log.claims import FOLDER, claimed
from ....mesh.events import HostLost
from ....mesh.figures import CellFigure
from ....mesh.plan import Cell
from ....presets.auto_select import AUTO, select_preset
from ....presets.catalog import Catalog
from ....presets.expectation import find_expectation
from ....presets.sending_rate import expected_rate_bit_s
from ..run_spec import Judging
from ..storage import open_data_dir
from .cell_recorder import CellRecorder
from .session import MeshSession, RunningMesh
from .stored_mesh import MeshDefinition, MeshRequest, load_matrix, measured_figures, save_mesh

if TYPE_CHECKING:
    from ....mesh.coordinator import FindRate


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
        UsageError: another process measures this mesh.
    """
    done = [] if earlier is None else measured_figures(load_matrix(log, earlier).figures.values())
    find_rate = _rate_finder(request, catalog)
    with claimed(open_data_dir() / FOLDER, request.group) if log is not None else nullcontext(True) as is_ours:
        if not is_ours:
            raise UsageError(f"{request.group} is being measured by another process; wait until it has ended")
        async with _open_session(request, catalog, log, done, find_rate) as session:
            yield session


@asynccontextmanager
async def _open_session(
    request: MeshRequest,
    catalog: Catalog,
    log: RunLog | None,
    done: Sequence[CellFigure],
    find_rate: "FindRate | None",
) -> AsyncGenerator[MeshSession]:
    """Open the mesh of a request with the figures of before, and yield its session."""
    from ....mesh.reading import cells_to_recheck, find_faults

    async with _open_mesh(request, [figure.cell for figure in done], find_rate) as (mesh, definition, lost):
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
                try:
                    save_mesh(session.definition.with_failures(session.matrix.figures))
                except RunLogError as error:  # the results are there all the same, and are to be shown
                    session.report(str(error))


def _rate_finder(request: MeshRequest, catalog: Catalog) -> "FindRate | None":
    """Return what finds the rate of datagrams for two interfaces; None where the request has one, or needs none."""
    base = request.base
    if not base.workload.is_datagram or base.settings.rate_bit_s is not None:
        return None

    def find_rate(first: NicInfo | None, second: NicInfo | None) -> int:
        try:
            selection = select_preset(catalog, first, second, line_rate_bit_s=request.variant.line_rate_bit_s)
        except UnknownLineRate as error:
            raise PlanError("--rate", "none", f"{error.reason}; give one for datagrams, such as 1G") from error
        variant = selection.adapt(request.variant)
        find = partial(find_expectation, selection.preset, workload=base.workload, variant=variant)
        rate = expected_rate_bit_s(base.settings, find)
        if rate is None:
            raise PlanError("--rate", "none", f"{selection.preset.id} has none for datagrams; give one, such as 1G")
        return rate

    return find_rate


@asynccontextmanager
async def _open_mesh(
    request: MeshRequest, done: Collection[Cell], find_rate: "FindRate | None"
) -> AsyncGenerator[tuple[RunningMesh, MeshDefinition, Sequence[HostLost]]]:
    """Open the mesh of a request; yield it, its definition, and the hosts that cannot be used from the start."""
    if request.scheduler is None:
        from ....mesh.ssh_mesh import open_ssh_mesh

        definition = request.define(request.hosts)
        async with open_ssh_mesh(
            definition.plan, remote_python=request.remote_python, done=done, find_rate=find_rate
        ) as ssh_mesh:
            yield ssh_mesh, definition, ssh_mesh.lost
        return
    from ....mesh.cluster import connect_cluster
    from ....mesh.coordinator import open_mesh

    async with connect_cluster(request.scheduler, request.hosts) as cluster:
        definition = request.define(request.hosts or cluster.hosts)
        async with open_mesh(definition.plan, cluster, done=done, find_rate=find_rate) as mesh:
            yield mesh, definition, cluster.lost
