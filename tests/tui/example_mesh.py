"""A mesh with its figures, and one in progress whose events a test emits."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast

from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.mesh.events import (
    CellBegan,
    CellEnded,
    CellFailure,
    FailureCode,
    HostLost,
    MeshBegan,
    MeshEnded,
    MeshEvent,
    RoundBegan,
)
from linkgauge.mesh.figures import CellFigure, MeshFinding, MeshFindingCode, MeshMatrix
from linkgauge.mesh.plan import Cell, Host, MeshMode, MeshPlan
from linkgauge.tui.mesh.cell_recorder import CellRecorder
from linkgauge.tui.mesh.mesh_session import MeshSession
from linkgauge.tui.mesh.mesh_spec import MeshSpec
from linkgauge.tui.session.run_spec import Judging

if TYPE_CHECKING:
    from linkgauge.mesh.coordinator import Mesh

GROUP = "mesh-20261123-090000-a2b3"
EXPECTED_BIT_S = 941_482_000.0
GONE = CellFailure(FailureCode.NO_ANSWER, "no answer for 18 s", "db-04")


def hosts(count: int) -> tuple[Host, ...]:
    """Return `count` hosts in two racks."""
    return tuple(Host(f"db-{n:02}", f"rack {1 + (n > count // 2)}", f"10.0.0.{n}") for n in range(1, count + 1))


def plan(count: int) -> MeshPlan:
    """Return the plan of a mesh of `count` hosts."""
    return MeshPlan(GROUP, hosts(count), Plan(duration_ns=3 * SECOND_NS), preset="gbe-fd-1500")


def figure(cell: Cell) -> CellFigure:
    """Return the result of a cell: db-03 receives less, db-02 to db-01 is slow, one test broke off."""
    random_ = random.Random("".join(cell))  # noqa: S311 (the same each time)
    share = random_.uniform(0.975, 1.0)
    why = None
    if cell.receiver == "db-03":
        share, why = share * 0.58, "nic-speed"
    if cell == Cell("db-02", "db-01"):
        share, why = 0.31, "loss"
    if cell == Cell("db-04", "db-01"):
        return CellFigure(cell, failure=GONE)
    run_id = f"20261123-0901{random_.randrange(60):02}-{cell.sender[-2:]}{cell.receiver[-2:]}"
    return CellFigure(cell, run_id, EXPECTED_BIT_S * share, None, EXPECTED_BIT_S, why=why)


def matrix(count: int, cells: int | None = None) -> MeshMatrix:
    """Return the figures of the first `cells` cells of a mesh, or of all."""
    figures = {cell: figure(cell) for cell in plan(count).cells[:cells]}
    return MeshMatrix(GROUP, MeshMode.ROUNDS, hosts(count), figures)


def findings(count: int) -> tuple[MeshFinding, ...]:
    """Return the findings of the figures."""
    names = [host.name for host in hosts(count)]
    receives = tuple(Cell(name, "db-03") for name in names if name != "db-03")
    return (
        MeshFinding(MeshFindingCode.HOST_RECEIVES, "db-03", None, 41.7, receives, "nic-speed"),
        MeshFinding(MeshFindingCode.PATH, "db-02", "db-01", 68.8, (Cell("db-02", "db-01"),), "loss"),
    )


class _Figures(CellRecorder):
    """Gives each cell the figure of the example, and stores nothing."""

    def record(self, ended: CellEnded) -> CellFigure:
        """Return the figure."""
        return figure(ended.cell) if ended.failure is None else CellFigure(ended.cell, failure=ended.failure)


class ScriptedMeshSession(MeshSession):
    """A mesh in progress whose events a test emits, with the findings that it sets.

    The first `done` cells have results of an earlier session.
    """

    def __init__(self, count: int, done: int = 0) -> None:
        self.plan = plan(count)
        self.stops = 0
        self._events: asyncio.Queue[MeshEvent] = asyncio.Queue()
        self._found: tuple[MeshFinding, ...] = ()
        recorder, earlier = _Figures(self.plan, Judging(), None), matrix(count, done).figures.values()
        super().__init__(cast("Mesh", self._emitted()), MeshSpec(self.plan), recorder, earlier=earlier)

    @property
    def findings(self) -> tuple[MeshFinding, ...]:
        """The findings that the test has set."""
        return self._found

    @findings.setter
    def findings(self, found: tuple[MeshFinding, ...]) -> None:
        self._found = found

    async def _emitted(self) -> AsyncIterator[MeshEvent]:
        """Yield the events of the test until the end of the mesh."""
        while True:
            event = await self._events.get()
            yield event
            if isinstance(event, MeshEnded):
                return

    def emit(self, *events: MeshEvent) -> None:
        """Let events happen. A cell that ends has the figure of the example."""
        for event in events:
            self._events.put_nowait(event)

    def begin(self) -> None:
        """Let the mesh begin its first round."""
        self.emit(MeshBegan(self.plan, len(self.plan.cells)), RoundBegan(1, len(self.plan.hosts) - 1))

    def run_cells(self, number: int) -> None:
        """Let the first cells begin and end."""
        for cell in self.plan.cells[:number]:
            self.emit(CellBegan(cell), CellEnded(cell, cell.sender))

    def lose(self, host: str) -> None:
        """Lose a host."""
        self.emit(HostLost(host, CellFailure(FailureCode.HOST_LOST, "its worker has gone", host)))

    def end(self) -> None:
        """End the mesh."""
        self.emit(MeshEnded(is_complete=not self.stops))

    def stop(self) -> None:
        """Count the requests."""
        self.stops += 1
