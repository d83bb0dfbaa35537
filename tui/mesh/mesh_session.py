"""A mesh in progress: its cells recorded as runs, its findings after each round, its slow cells measured once more.

The hosts' reports are events of the coordinator. The session adds the figure of each cell. Dask is imported here,
when a mesh begins, and by no other command.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from ...engine.model.errors import ClusterError, RunLogError, UsageError
from ...engine.model.host_info import NicInfo
from ...engine.results.run_log import RunLog
from ...engine.results.run_log.process_locks import FOLDER, claimed
from ...mesh.events import CellEnded, HostLost, MeshBegan, MeshEnded, MeshEvent, RoundBegan
from ...mesh.figures import CellFigure, MeshFinding, MeshMatrix
from ...mesh.plan import Cell, Host, cells_of_host
from ...mesh.reading import cells_to_recheck, find_faults
from ...presets.auto_select import select_preset
from ...presets.catalog import Catalog
from ...presets.sending_rate import DEFAULT_RATE_BIT_S, choose_rate
from ..session.run_spec import Judging
from ..session.storage import open_data_dir
from .cell_recorder import CellRecorder
from .mesh_spec import MeshSpec
from .stored_mesh import load_matrix, measured_figures, save_mesh, with_isolated

if TYPE_CHECKING:
    from ...mesh.coordinator import FindRate, Mesh
    from ...mesh.over_ssh.ssh_mesh import SshMesh

_SHORT_READING_S: Final = 0.05
_READING_SHARE: Final = 0.05  # of the time: for a thousand hosts it takes seconds, in each of a thousand rounds


@asynccontextmanager
async def open_mesh_session(spec: MeshSpec, catalog: Catalog, log: RunLog | None) -> AsyncGenerator["MeshSession"]:
    """Connect to the hosts of a mesh, store its definition, and yield its session; the block ends all of it.

    Args:
        spec: the tests and the hosts. Cells with a result from an earlier session are not measured again.
        catalog: the presets to choose from.
        log: the run log; None if the mesh is not stored.

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
        rate_notices: dict[str, None] = {}
        find_rate = rate_finder(spec, spec.judging(catalog), rate_notices)
        async with _open_mesh(spec, [figure.cell for figure in done], find_rate) as (mesh, begun):
            if log is not None:
                save_mesh(begun)
            recorder = CellRecorder(begun.plan, begun.judging(catalog), log)
            recorder.notices += rate_notices
            session = MeshSession(mesh, begun, recorder, earlier=done)
            try:
                yield session
            finally:
                if log is not None:
                    try:
                        save_mesh(session.spec.with_failures(session.matrix.figures))
                    except RunLogError as error:  # the results are there all the same, and the user sees them
                        session.report(str(error))


def rate_finder(spec: MeshSpec, judging: Judging, notices: dict[str, None]) -> "FindRate | None":
    """Return a function that finds the rate of datagrams for two interfaces; None if the mesh needs none.

    It is the rate that a test of one link sends at, and each different notice about it is added.
    """
    base = spec.plan.base
    if not base.workload.is_datagram or base.settings.rate_bit_s is not None:
        return None

    def find_rate(first: NicInfo | None, second: NicInfo | None) -> int:
        link = judging
        if isinstance(judging.preset, Catalog):
            selection = select_preset(judging.preset, first, second, requested=judging.variant)
            link = replace(judging, preset=selection.chosen, variant=selection.variant)
        settings, notice = choose_rate(
            base.settings, None, partial(link.expect, base, ip_version=None), link.preset_id
        )
        notices[notice] = None
        return settings.rate_bit_s or DEFAULT_RATE_BIT_S

    return find_rate


@asynccontextmanager
async def _open_mesh(
    spec: MeshSpec, done: Collection[Cell], find_rate: "FindRate | None"
) -> AsyncGenerator[tuple["Mesh | SshMesh", MeshSpec]]:
    """Open a mesh; yield it, and its spec with the known hosts."""
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


@dataclass(frozen=True, slots=True)
class MeshUpdate:
    """An event of a mesh, with the result of the cell if it is the end of a cell.

    A lost host leaves several cells without a result: the matrix has them.
    """

    event: MeshEvent
    figure: CellFigure | None = None


class MeshSession:
    """A mesh in progress. Iterate over it once: it yields every event, and the results of cells.

    `MeshBegan` comes first and `MeshEnded` last: after the slow cells were measured alone.
    """

    def __init__(
        self,
        mesh: "Mesh | SshMesh",
        spec: MeshSpec,
        recorder: CellRecorder,
        *,
        earlier: Iterable[CellFigure] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take over a mesh that has not begun.

        Args:
            mesh: the coordinator's mesh.
            spec: its tests and hosts.
            recorder: stores the runs, and makes the cells' results.
            earlier: the results of earlier sessions of this mesh.
            clock: counts seconds.
        """
        self.spec = spec
        self._mesh, self._recorder = mesh, recorder
        self._figures = {figure.cell: figure for figure in earlier}
        self._hosts = spec.plan.hosts
        self._clock, self._next_reading = clock, 0.0
        self._is_stopping = False
        self._reading: tuple[tuple[MeshFinding, ...], int] | None = None
        self._updates = self._run()

    @property
    def matrix(self) -> MeshMatrix:
        """The results so far. It does not change: each call returns the newest."""
        plan = self.spec.plan
        return MeshMatrix(plan.group, plan.mode, self._hosts, dict(self._figures), plan.limits)

    @property
    def findings(self) -> tuple[MeshFinding, ...]:
        """The slow hosts and paths, as of the last round that has ended.

        With so many hosts that the search takes long, they are as of an earlier round; at the end, of all.
        """
        return self._read()[0]

    @property
    def rechecks(self) -> int:
        """How many cells would be measured again, alone, by these findings."""
        return self._read()[1]

    def _read(self) -> tuple[tuple[MeshFinding, ...], int]:
        if self._reading is None:
            began, matrix = self._clock(), self.matrix
            rechecks = len(cells_to_recheck(matrix)) if self.spec.has_rechecks_left else 0
            self._reading = find_faults(matrix), rechecks
            took_s = self._clock() - began
            if took_s > _SHORT_READING_S:
                self._next_reading = self._clock() + took_s / _READING_SHARE
        return self._reading

    @property
    def notices(self) -> Sequence[str]:
        """Messages about the mesh, the oldest first."""
        return tuple(self._recorder.notices)

    def __aiter__(self) -> AsyncIterator[MeshUpdate]:
        return self._updates

    def report(self, text: str) -> None:
        """Add a message about the mesh."""
        self._recorder.notices.append(text)

    def stop(self) -> None:
        """Begin no further cell, and end the mesh in order. `MeshEnded` still comes."""
        self._is_stopping = True
        self._mesh.stop()

    async def _run(self) -> AsyncIterator[MeshUpdate]:
        ended = MeshEnded(is_complete=False)
        async for event in self._mesh:
            if isinstance(event, MeshEnded):
                ended = event
            else:
                yield self._take(event)
        if ended.is_complete and not self._is_stopping and self.spec.has_rechecks_left:
            cells = cells_to_recheck(self.matrix)
            try:
                async for event in self._mesh.measure_again(cells) if cells else _nothing():
                    if not isinstance(event, MeshEnded):
                        yield self._take(event)
                self.spec = replace(self.spec, has_rechecks_left=self._lacks_any(cells))
            except ClusterError as error:  # every cell already has a result
                ended = replace(ended, detail=f"slow cells were not measured again: {error}")
        self._reading = None
        yield MeshUpdate(ended)

    def _lacks_any(self, cells: Sequence[Cell]) -> bool:
        """Return whether a cell that was to be measured again lacks that result."""
        return any(self._figures[cell].isolated_run_id is None for cell in cells)

    def _take(self, event: MeshEvent) -> MeshUpdate:
        """Take an event in; return it with the result that it brings."""
        match event:
            case MeshBegan(plan):
                self._hosts = _joined(self.spec.plan.hosts, plan.hosts)
                self._reading = None
            case RoundBegan():
                if self._clock() >= self._next_reading:
                    self._reading = None
            case HostLost(host, failure):
                for cell in cells_of_host(host, self._hosts):
                    self._figures.setdefault(cell, CellFigure(cell, failure=failure))
            case CellEnded():
                figure = self._figure(event)
                self._figures[figure.cell] = figure
                return MeshUpdate(event, figure)
            case _:
                pass
        return MeshUpdate(event)

    def _figure(self, event: CellEnded) -> CellFigure:
        """Return the result of a cell; if it was measured before, that result with the rate alone."""
        figure, before = self._recorder.record(event), self._figures.get(event.cell)
        if not self._recorder.is_again(event) or before is None or before.value is None:
            return figure
        return before if figure.value is None else with_isolated(before, figure)


def _joined(given: tuple[Host, ...], known: tuple[Host, ...]) -> tuple[Host, ...]:
    """Return the given hosts as they are known now, and after them the hosts that were not given."""
    by_name = {host.name: host for host in known}
    names = {host.name for host in given}
    return (*(by_name.get(host.name, host) for host in given), *(host for host in known if host.name not in names))


async def _nothing() -> AsyncIterator[MeshEvent]:
    for event in ():
        yield event
