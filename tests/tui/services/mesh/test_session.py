"""A mesh in progress: its results, its lost hosts, and the cells that are measured once more."""

from collections.abc import Sequence
from itertools import count

from linkgauge.mesh.events import CellEnded, MeshBegan, MeshEnded
from linkgauge.mesh.figures import MeshFinding, MeshMatrix
from linkgauge.mesh.plan import Cell
from linkgauge.tui.services.mesh import MeshSession, MeshUpdate
from linkgauge.tui.services.mesh.cell_recorder import CellRecorder
from linkgauge.tui.services.mesh.stored_mesh import MeshDefinition
from linkgauge.tui.services.run_spec import Judging

from ...scripted_mesh import (
    CATALOG,
    FINDING,
    HOST_DOWN,
    LOST,
    PLAN,
    SLOW,
    UNREACHABLE,
    ScriptedMesh,
    all_events,
    cell_ended,
    full_figures,
)


def open_session(mesh: ScriptedMesh, again: Sequence[Cell] = (), **options: object) -> MeshSession:
    """Return the session of a scripted mesh in which a path is slow once anything is."""

    def find_faults(matrix: MeshMatrix) -> tuple[MeshFinding, ...]:
        rates = [(figure.bit_s, figure.expected_bit_s) for figure in matrix.figures.values()]
        is_slow = any(rate is not None and expected and rate < 0.9 * expected for rate, expected in rates)
        return (FINDING,) if is_slow else ()

    return MeshSession(
        mesh,
        MeshDefinition(PLAN, has_rechecks_left=True),
        CellRecorder(PLAN, Judging(CATALOG), None),
        find_faults=find_faults,
        cells_to_recheck=lambda _: again,
        **options,  # pyright: ignore[reportArgumentType]
    )


async def updates_of(session: MeshSession) -> list[MeshUpdate]:
    """Return all updates of a session."""
    return [update async for update in session]


async def test_every_cell_that_ends_brings_its_result_and_the_slow_ones_are_measured_again() -> None:
    """The end of the mesh comes after that."""
    mesh = ScriptedMesh(all_events(SLOW), {SLOW: 23.4e9})
    session = open_session(mesh, [SLOW])
    updates = await updates_of(session)
    assert isinstance(updates[0].event, MeshBegan)
    assert updates[-1].event == MeshEnded(is_complete=True)
    assert all((update.figure is not None) is isinstance(update.event, CellEnded) for update in updates)
    figures = session.matrix.figures
    assert set(figures) == set(PLAN.cells)
    slow = figures[SLOW]
    assert slow.bit_s is not None
    assert slow.isolated_bit_s is not None
    assert slow.bit_s < 16e9
    assert slow.isolated_bit_s > 23e9
    assert slow.isolated_run_id not in {None, slow.run_id}
    assert figures[Cell("db-03", "db-02")].failure == UNREACHABLE
    assert session.findings == (FINDING,)
    assert not session.definition.has_rechecks_left


async def test_findings_are_those_of_the_rounds_that_are_over() -> None:
    """A round that is still running is not judged."""
    session = open_session(ScriptedMesh(all_events(Cell("db-01", "db-02"))))
    seen = [(type(update.event).__name__, session.findings) async for update in session]
    rounds = [findings for name, findings in seen if name == "RoundBegan"]
    assert rounds == [(), (FINDING,), (FINDING,)]


async def test_findings_that_take_long_are_not_looked_for_after_each_round() -> None:
    """Each look at the clock is ten seconds after the one before; at the end they are those of all rounds."""
    session = open_session(ScriptedMesh(all_events(Cell("db-01", "db-02"))), clock=count(0.0, 10.0).__next__)
    seen = [(type(update.event).__name__, session.findings) async for update in session]
    assert [findings for name, findings in seen if name == "RoundBegan"] == [(), (), ()]
    assert seen[-1] == ("MeshEnded", (FINDING,))


async def test_a_lost_host_leaves_its_remaining_cells_with_the_reason() -> None:
    """What it had measured before stays."""
    events = [MeshBegan(PLAN, 6), cell_ended("db-01", "db-03"), HOST_DOWN]
    session = open_session(ScriptedMesh(events))
    await updates_of(session)
    figures = session.matrix.figures
    assert figures[Cell("db-01", "db-03")].value is not None
    assert [figures[cell].failure for cell in PLAN.cells if "db-03" in cell].count(LOST) == 3
    assert Cell("db-01", "db-02") not in figures


async def test_hosts_that_cannot_be_used_are_in_the_matrix_from_the_start() -> None:
    """With the reason, and among the hosts."""
    session = open_session(ScriptedMesh([MeshBegan(PLAN, 2)]), lost=[HOST_DOWN])
    await updates_of(session)
    assert [host.name for host in session.matrix.hosts] == ["db-01", "db-02", "db-03"]
    assert sum(figure.failure == LOST for figure in session.matrix.figures.values()) == 4


async def test_a_stopped_mesh_measures_nothing_again() -> None:
    """Its end still comes."""
    mesh = ScriptedMesh(all_events(SLOW), {SLOW: 23.4e9})
    session = open_session(mesh, [SLOW])
    updates: list[MeshUpdate] = []
    async for update in session:
        updates.append(update)
        if update.figure is not None:
            session.stop()
    assert updates[-1].event == MeshEnded(is_complete=False)
    assert mesh.asked == []
    assert len(session.matrix.figures) == 1
    assert session.definition.has_rechecks_left


async def test_slow_cells_are_left_to_measure_where_a_stop_comes_between_them() -> None:
    """Those of the rounds have their results, and the definition says what is left."""
    cells = [SLOW, Cell("db-02", "db-01")]
    session = open_session(ScriptedMesh(all_events(SLOW), dict.fromkeys(cells, 23.4e9)), cells)
    async for update in session:
        if isinstance(update.event, CellEnded) and update.event.is_isolated:
            session.stop()
    assert session.definition.has_rechecks_left


async def test_slow_cells_without_a_second_result_are_left_to_measure() -> None:
    """Their host died meanwhile: a later session may find it again."""
    mesh = ScriptedMesh(all_events(SLOW), {SLOW: 23.4e9}, dead=SLOW)
    session = open_session(mesh, [SLOW])
    updates = await updates_of(session)
    assert updates[-1].event == MeshEnded(is_complete=True)
    assert session.definition.has_rechecks_left


async def test_a_resumed_mesh_has_the_results_of_its_earlier_sessions() -> None:
    """From the first event on."""
    earlier = full_figures()[:2]
    session = open_session(ScriptedMesh([MeshBegan(PLAN, 4)]), earlier=earlier)
    await updates_of(session)
    assert list(session.matrix.figures.values()) == earlier
