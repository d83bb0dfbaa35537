"""The opening of a mesh: its cluster, its hosts, its definition on disk, and its session.

Dask is imported here, when a mesh begins, and by no other command.
"""

from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from ...engine.model.errors import PlanError, RunLogError, UnknownLineRate, UsageError
from ...engine.model.host_info import NicInfo
from ...engine.results.run_log import RunLog
from ...engine.results.run_log.process_locks import FOLDER, claimed
from ...mesh.plan import Cell
from ...presets.auto_select import select_preset
from ...presets.catalog import Catalog
from ...presets.expectation import find_expectation
from ...presets.sending_rate import expected_rate_bit_s
from ..session.storage import open_data_dir
from .cell_recorder import CellRecorder
from .mesh_session import MeshSession
from .mesh_spec import MeshSpec
from .stored_mesh import load_matrix, measured_figures, save_mesh

if TYPE_CHECKING:
    from ...mesh.coordinator import FindRate, Mesh
    from ...mesh.over_ssh.ssh_mesh import SshMesh


@asynccontextmanager
async def open_mesh_session(spec: MeshSpec, catalog: Catalog, log: RunLog | None) -> AsyncGenerator[MeshSession]:
    """Connect to the hosts of a mesh, store what it is, and yield its session; the block ends all of it.

    Args:
        spec: what to measure, and where. What it has measured in an earlier session is not measured again.
        catalog: the presets to choose from.
        log: the run log; None for a mesh that is not stored.

    Raises:
        ClusterError: fewer than two hosts can be used, or the scheduler does not answer.
        RunLogError: the definition cannot be written.
        PlanError: the hosts cannot be a mesh.
        UsageError: another process measures this mesh.
    """
    group = spec.plan.group
    with claimed(open_data_dir() / FOLDER, group) if log is not None else nullcontext(True) as is_ours:
        if not is_ours:
            raise UsageError(f"{group} is being measured by another process; wait until it has ended")
        done = measured_figures(load_matrix(log, spec).figures.values())
        async with _open_mesh(spec, [figure.cell for figure in done], _rate_finder(spec, catalog)) as (mesh, begun):
            if log is not None:
                save_mesh(begun)
            recorder = CellRecorder(begun.plan, begun.judging(catalog), log)
            session = MeshSession(mesh, begun, recorder, earlier=done)
            try:
                yield session
            finally:
                if log is not None:
                    try:
                        save_mesh(session.spec.with_failures(session.matrix.figures))
                    except RunLogError as error:  # the results are there all the same, and are to be shown
                        session.report(str(error))


def _rate_finder(spec: MeshSpec, catalog: Catalog) -> "FindRate | None":
    """Return what finds the rate of datagrams for two interfaces; None for a mesh that has one, or needs none."""
    base = spec.plan.base
    if not base.workload.is_datagram or base.settings.rate_bit_s is not None:
        return None

    def find_rate(first: NicInfo | None, second: NicInfo | None) -> int:
        try:
            selection = select_preset(catalog, first, second, line_rate_bit_s=spec.variant.line_rate_bit_s)
        except UnknownLineRate as error:
            raise PlanError("--rate", "none", f"{error.reason}; give one for datagrams, such as 1G") from error
        variant = selection.adapt(spec.variant)
        find = partial(find_expectation, selection.preset, workload=base.workload, variant=variant)
        rate = expected_rate_bit_s(base.settings, find)
        if rate is None:
            raise PlanError("--rate", "none", f"{selection.preset.id} has none for datagrams; give one, such as 1G")
        return rate

    return find_rate


@asynccontextmanager
async def _open_mesh(
    spec: MeshSpec, done: Collection[Cell], find_rate: "FindRate | None"
) -> AsyncGenerator[tuple["Mesh | SshMesh", MeshSpec]]:
    """Open a mesh; yield it, and its spec with the hosts that are known now."""
    if spec.scheduler is None:
        from ...mesh.over_ssh.ssh_mesh import open_ssh_mesh

        begun = spec.begin(spec.hosts)
        async with open_ssh_mesh(
            begun.plan, remote_python=spec.remote_python, done=done, find_rate=find_rate
        ) as ssh_mesh:
            yield ssh_mesh, begun
        return
    from ...mesh.cluster import connect_cluster
    from ...mesh.coordinator import open_mesh

    async with connect_cluster(spec.scheduler, spec.hosts) as cluster:
        begun = spec.begin(spec.hosts or cluster.hosts)
        async with open_mesh(begun.plan, cluster, done=done, find_rate=find_rate) as mesh:
            yield mesh, begun
