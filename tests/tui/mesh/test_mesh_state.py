"""The state of a mesh: its cells as events come, its progress, the medians of a host."""

from linkgauge.engine.model.plan import SECOND_NS
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
from linkgauge.mesh.figures import CellFigure, MeshMatrix
from linkgauge.mesh.plan import Cell, MeshMode
from linkgauge.tui.mesh.mesh_state import MeshState
from linkgauge.tui.mesh.mesh_verdict import CellState

from ..example_mesh import GROUP, figure, findings, hosts, matrix, plan

A_TO_B = Cell("db-01", "db-02")


class Clock:
    """A clock that a test sets."""

    now_ns = 0

    def __call__(self) -> int:
        """Return the time."""
        return self.now_ns


def began(count: int = 4, clock: Clock | None = None) -> MeshState:
    """Return the state of a mesh that has begun its first round."""
    state = MeshState(clock or Clock())
    state.start()
    state.handle_event(MeshBegan(plan(count), count * (count - 1)))
    state.handle_event(RoundBegan(1, count - 1))
    return state


def states(state: MeshState) -> dict[Cell, CellState]:
    """Return the state of each cell on the map."""
    shown = state.map()
    return {
        Cell(sender.name, receiver.name): cell.state
        for sender, row in zip(shown.hosts, shown.rows, strict=True)
        for receiver, cell in zip(shown.hosts, row, strict=True)
    }


def test_a_cell_waits_then_runs_then_has_its_verdict() -> None:
    """A host and itself is not a cell to measure."""
    state = began()
    assert states(state)[A_TO_B] is CellState.WAITING
    assert states(state)[Cell("db-01", "db-01")] is CellState.SELF
    state.handle_event(CellBegan(A_TO_B))
    assert states(state)[A_TO_B] is CellState.RUNNING
    state.handle_event(CellEnded(A_TO_B, "db-01"), figure(A_TO_B))
    assert states(state)[A_TO_B] is CellState.PASS
    for cell, expected in (
        (Cell("db-01", "db-03"), CellState.SHORT),
        (Cell("db-02", "db-01"), CellState.FAIL),
        (Cell("db-04", "db-01"), CellState.NO_RESULT),
    ):
        state.handle_event(CellEnded(cell, cell.sender), figure(cell))
        assert states(state)[cell] is expected
    assert state.slow_cells() == {Cell("db-01", "db-03"), Cell("db-02", "db-01"), Cell("db-04", "db-01")}
    progress = state.progress()
    assert (len(progress.matrix.figures), progress.slow, progress.failed) == (4, 2, 1)
    assert not progress.is_complete


def test_a_failure_without_a_figure_is_kept_with_its_reason() -> None:
    """As the coordinator reports it."""
    state = began()
    failure = CellFailure(FailureCode.BUSY, "another mesh", "db-02")
    state.handle_event(CellEnded(A_TO_B, "db-01", failure=failure))
    assert state.figures[A_TO_B].failure == failure
    assert states(state)[A_TO_B] is CellState.NO_RESULT


def test_the_cells_of_a_lost_host_have_no_result_but_those_measured_before_stay() -> None:
    """The progress names the host."""
    state = began()
    state.handle_event(CellEnded(A_TO_B, "db-01"), figure(A_TO_B))
    state.handle_event(HostLost("db-02", CellFailure(FailureCode.HOST_LOST, "its worker has gone", "db-02")))
    assert states(state)[A_TO_B] is CellState.PASS
    assert states(state)[Cell("db-02", "db-03")] is CellState.NO_RESULT
    assert states(state)[Cell("db-01", "db-03")] is CellState.WAITING
    assert state.progress().lost == ("db-02",)
    assert state.host_figures(hosts(4)[1]).lost == "its worker has gone"


def test_the_time_left_follows_from_the_plan_then_from_the_cells_so_far() -> None:
    """Cells that a lost host ended at once do not count. At the end no time is left."""
    clock = Clock()
    state = began(clock=clock)
    assert (
        state.progress().left_ns == 32 * SECOND_NS
    )  # 6 times two cells at once, of 3 s and a second more; a quarter for second tests; the end
    state.handle_event(CellBegan(A_TO_B))
    clock.now_ns = 5 * SECOND_NS
    state.handle_event(CellEnded(A_TO_B, "db-01"), figure(A_TO_B))
    gone: MeshEvent = CellEnded(
        Cell("db-02", "db-01"), "db-01", failure=CellFailure(FailureCode.HOST_LOST, "gone", "db-02")
    )
    state.handle_event(gone)
    assert state.progress().left_ns == (5 * 5 + 2 * 2) * SECOND_NS  # 5 turns of 5 s; the end
    state.handle_event(MeshEnded(is_complete=True))
    assert state.progress().left_ns is None


def test_the_reason_for_a_break_is_kept_unless_the_user_stopped_the_mesh() -> None:
    """At the end no cell runs any more."""
    for is_stopping, problem in ((False, "the scheduler has gone"), (True, None)):
        state = began()
        state.handle_event(CellBegan(A_TO_B))
        state.is_stopping = is_stopping
        state.handle_event(MeshEnded(is_complete=False, detail="the scheduler has gone"))
        assert state.progress().problem == problem
        assert state.progress().running == ()
        assert not state.progress().is_running


def test_cells_that_run_again_are_a_recheck() -> None:
    """A second measurement, alone."""
    state = began(3)
    for cell in plan(3).cells:
        state.handle_event(CellEnded(cell, cell.sender), figure(cell))
    assert not state.progress().is_recheck
    state.handle_event(CellBegan(A_TO_B, is_isolated=True))
    assert state.progress().is_recheck
    assert state.progress().is_complete


def test_without_expected_rates_cells_are_compared_with_the_median() -> None:
    """As for transactions without a documented rate."""
    cells = plan(4).cells
    figures = {cell: CellFigure(cell, "run", 1e6, 1_000.0 if cell != A_TO_B else 600.0) for cell in cells}
    state = MeshState(Clock())
    state.load(MeshMatrix(GROUP, MeshMode.ROUNDS, hosts(4), figures), ())
    assert not state.is_of_expected
    assert state.state_of(A_TO_B).state is CellState.SHORT
    assert state.state_of(A_TO_B).percent == 60


def test_the_medians_of_a_host_are_those_of_its_row_and_its_column() -> None:
    """db-03 sends as expected and receives less."""
    state = MeshState(Clock())
    state.load(matrix(12), findings(12))
    slow = state.host_figures(hosts(12)[2])
    assert slow.sends == slow.receives == 11
    assert slow.sends_percent is not None
    assert slow.sends_percent > 97
    assert slow.receives_percent is not None
    assert slow.receives_percent < 59


def test_an_order_of_other_hosts_is_not_used() -> None:
    """Every host is on the map, even if the order does not name it."""
    state = MeshState(Clock())
    state.load(matrix(3), ())
    state.order = ("db-03", "db-01", "db-02")
    assert [host.name for host in state.map().hosts] == ["db-03", "db-01", "db-02"]
    state.order = ("db-03", "db-01")
    assert [host.name for host in state.map().hosts] == ["db-01", "db-02", "db-03"]
