"""A mesh in progress: its cells recorded as runs, its findings after each round, its slow cells measured once more.

What the hosts report comes as events of the coordinator. This adds what each cell's figure is.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ...engine.model.errors import ClusterError
from ...mesh.events import CellEnded, HostLost, MeshBegan, MeshEnded, MeshEvent, RoundBegan
from ...mesh.figures import CellFigure, MeshFinding, MeshMatrix
from ...mesh.plan import Cell, Host, cells_of_host
from ...mesh.reading import cells_to_recheck, find_faults
from .cell_recorder import CellRecorder
from .mesh_spec import MeshSpec
from .stored_mesh import with_isolated

if TYPE_CHECKING:
    from ...mesh.coordinator import Mesh
    from ...mesh.over_ssh.ssh_mesh import SshMesh

_SHORT_READING_S: Final = 0.05
_READING_SHARE: Final = 0.05  # of the time: a thousand hosts take seconds, and have a thousand rounds


@dataclass(frozen=True, slots=True)
class MeshUpdate:
    """What has happened in a mesh, and the result of the cell whose run ended; None for any other event.

    A host that is lost leaves several cells without a result: the matrix has them.
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
            spec: what it measures.
            recorder: what makes a cell's result of its run.
            earlier: the results of earlier sessions of this mesh.
            clock: counts seconds.
        """
        self.spec = spec
        self._mesh, self._recorder = mesh, recorder
        self._figures = {figure.cell: figure for figure in earlier}
        self._hosts = spec.plan.hosts
        self._clock, self._next_reading = clock, 0.0
        self._is_stopping = False
        self._findings: tuple[MeshFinding, ...] | None = None
        self._updates = self._run()

    @property
    def matrix(self) -> MeshMatrix:
        """The results so far. It does not change: each call returns the newest."""
        return MeshMatrix(self.spec.plan.group, self.spec.plan.mode, self._hosts, dict(self._figures))

    @property
    def findings(self) -> tuple[MeshFinding, ...]:
        """The slow hosts and paths, as of the last round that is over.

        Of so many hosts that it takes long to find them, as of one not long before, and at the end of all.
        """
        if self._findings is None:
            began = self._clock()
            self._findings = find_faults(self.matrix)
            took_s = self._clock() - began
            if took_s > _SHORT_READING_S:
                self._next_reading = self._clock() + took_s / _READING_SHARE
        return self._findings

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
            except ClusterError as error:  # every cell has its result already
                ended = replace(ended, detail=f"slow cells were not measured again: {error}")
        self._findings = None
        yield MeshUpdate(ended)

    def _lacks_any(self, cells: Sequence[Cell]) -> bool:
        """Return whether a cell that was to be measured again has no result of that."""
        return any(self._figures[cell].isolated_run_id is None for cell in cells)

    def _take(self, event: MeshEvent) -> MeshUpdate:
        """Take an event in; return it with the result that it brought."""
        match event:
            case MeshBegan(plan):
                self._hosts = _joined(self.spec.plan.hosts, plan.hosts)
                self._findings = None
            case RoundBegan():
                if self._clock() >= self._next_reading:
                    self._findings = None
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
        """Return the result of a cell; where it was measured before, with what it is alone."""
        figure, before = self._recorder.record(event), self._figures.get(event.cell)
        if not self._recorder.is_again(event) or before is None or before.value is None:
            return figure
        return before if figure.value is None else with_isolated(before, figure)


def _joined(given: tuple[Host, ...], known: tuple[Host, ...]) -> tuple[Host, ...]:
    """Return the given hosts with what is known of them now, and those that were not given."""
    by_name = {host.name: host for host in known}
    names = {host.name for host in given}
    return (*(by_name.get(host.name, host) for host in given), *(host for host in known if host.name not in names))


async def _nothing() -> AsyncIterator[MeshEvent]:
    for event in ():
        yield event
