"""A mesh for tests: three hosts of two racks, the events of their runs, and a coordinator that plays them."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import Event, Started
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.mesh.cluster import Cluster
from linkgauge.mesh.coordinator import Mesh
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
from linkgauge.presets.catalog import load_catalog

from .scripted_run import FAR, NEAR, ScriptedRun

CATALOG = load_catalog()
PRESET = CATALOG.find("25gbe-1500")
HOSTS = (Host("db-01", "rack-1"), Host("db-02", "rack-1"), Host("db-03", "rack-2"))
PLAN = MeshPlan(
    "mesh-20261121-011530-k3f9", HOSTS, Plan(duration_ns=3 * SECOND_NS, interval_ns=SECOND_NS // 10), preset="auto"
)
GOOD_BIT_S = 23.5e9
SLOW_BIT_S = 15.2e9
UNREACHABLE = CellFailure(FailureCode.UNREACHABLE, "db-03 refuses the connection", "db-03")
LOST = CellFailure(FailureCode.HOST_LOST, "its worker has gone", "db-03")


def run_events(bit_s: float, direction: Direction = Direction.OUT) -> tuple[Event, ...]:
    """Return the events of a run as two hosts report them: they know no expected rate."""
    script = ScriptedRun(PRESET, Plan(duration_ns=3 * SECOND_NS))
    script.settings = script.settings.with_changes(direction=direction)
    script.plan = replace(script.plan, settings=script.settings)
    script.start(Peer("198.18.0.2", 40_001))
    script.run_for(12, bit_s)
    script.end()
    events: list[Event] = []
    while not script.queue.empty():
        events.append(script.queue.get_nowait())
    nic = NicInfo("eth0", "device", "ixgbe", line_rate_bit_s=25_000_000_000, mtu_bytes=1_500, duplex="full")
    assert isinstance(events[0], Started)
    started = replace(
        events[0], near=replace(NEAR, nic=nic), far=replace(FAR, nic=nic), expectation=type(events[0].expectation)()
    )
    return (started, *events[1:])


def cell_ended(sender: str, receiver: str, bit_s: float = GOOD_BIT_S, *, is_isolated: bool = False) -> CellEnded:
    """Return the end of a cell that its sender began."""
    return CellEnded(Cell(sender, receiver), sender, run_events(bit_s), is_isolated=is_isolated)


class _Scheduler:
    """The client of a scheduler that says nothing."""

    def subscribe_topic(self, *_: object) -> None:
        """Hear of nothing."""


class ScriptedMesh(Mesh):
    """A coordinator that plays events. `again` are the rates of cells that are measured once more, else slow ones.

    The host of the cell `dead` is lost then.
    """

    def __init__(
        self, events: Sequence[MeshEvent], again: dict[Cell, float] | None = None, dead: Cell | None = None
    ) -> None:
        super().__init__(PLAN, Cluster(_Scheduler(), {}), (), ())
        self.events, self.again, self.dead = events, again or {}, dead
        self.asked: list[Cell] = []
        self.is_stopped = False

    async def __aiter__(self) -> AsyncIterator[MeshEvent]:
        """Play the events; after a stop only the last one."""
        for event in self.events:
            if not self.is_stopped:
                yield event
        yield MeshEnded(not self.is_stopped)

    async def measure_again(self, cells: Sequence[Cell]) -> AsyncIterator[MeshEvent]:
        """Play the cells that are asked for."""
        self.asked += cells
        for cell in cells:
            if self.is_stopped:
                return
            yield CellBegan(cell, is_isolated=True)
            if cell == self.dead:
                yield CellEnded(cell, cell.sender, failure=LOST, is_isolated=True)
            else:
                yield cell_ended(*cell, self.again.get(cell, SLOW_BIT_S), is_isolated=True)

    def stop(self) -> None:
        """Play nothing more."""
        self.is_stopped = True


SLOW = Cell("db-01", "db-03")


def all_events(*slow: Cell) -> list[MeshEvent]:
    """Return the events of a mesh in which cells are slow, by default SLOW, and another has no result."""
    failed = Cell("db-03", "db-02")
    events: list[MeshEvent] = [MeshBegan(PLAN, 6)]
    for number, pair in enumerate((("db-01", "db-02"), ("db-03", "db-01"), ("db-02", "db-03")), 1):
        events.append(RoundBegan(number, 3))
        for cell in (Cell(*pair), Cell(*reversed(pair))):
            events.append(CellBegan(cell))
            if cell == failed:
                events.append(CellEnded(cell, pair[0], failure=UNREACHABLE))
            else:
                events.append(cell_ended(*cell, SLOW_BIT_S if cell in (slow or (SLOW,)) else GOOD_BIT_S))
    return events


def matrix(figures: Sequence[CellFigure], hosts: tuple[Host, ...] = HOSTS) -> MeshMatrix:
    """Return a matrix of these results."""
    return MeshMatrix(PLAN.group, MeshMode.ROUNDS, hosts, {figure.cell: figure for figure in figures})


def full_figures(value: Callable[[Cell], float] = lambda _: GOOD_BIT_S) -> list[CellFigure]:
    """Return a result for each cell."""
    return [CellFigure(cell, f"run-{n}", value(cell), expected_bit_s=23.53e9) for n, cell in enumerate(PLAN.cells)]


FINDING = MeshFinding(
    MeshFindingCode.PATH, "db-01", "db-03", less_percent=35.2, cells=(Cell("db-01", "db-03"),), why="loss"
)
HOST_DOWN = HostLost("db-03", LOST)
