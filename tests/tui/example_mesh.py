"""A mesh with its figures, and one in progress whose events a test emits."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

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
from linkgauge.tui.mesh.mesh_session import MeshUpdate

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


class ScriptedMesh:
    """A mesh in progress whose events a test emits."""

    def __init__(self, count: int) -> None:
        self.plan = plan(count)
        self.matrix = MeshMatrix(GROUP, MeshMode.ROUNDS, self.plan.hosts, {})
        self.findings: Sequence[MeshFinding] = ()
        self.stops = 0
        self._queue: asyncio.Queue[MeshUpdate] = asyncio.Queue()

    def emit(self, *events: MeshEvent) -> None:
        """Let events happen. A cell that ends has the figure of the example."""
        for event in events:
            ended = isinstance(event, CellEnded) and event.failure is None
            made = figure(event.cell) if ended and isinstance(event, CellEnded) else None
            if made is not None:
                self.matrix = MeshMatrix(
                    GROUP, self.matrix.mode, self.plan.hosts, {**self.matrix.figures, made.cell: made}
                )
            self._queue.put_nowait(MeshUpdate(event, made))

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

    async def __aiter__(self) -> AsyncIterator[MeshUpdate]:
        while True:
            update = await self._queue.get()
            yield update
            if isinstance(update.event, MeshEnded):
                return
