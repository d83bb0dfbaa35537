"""A mesh in progress: its results, its lost hosts, and the cells that are measured once more."""

from dataclasses import replace
from itertools import count

import pytest
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.model.workload import Workload
from linkgauge.mesh.events import CellEnded, MeshBegan, MeshEnded
from linkgauge.mesh.plan import Cell
from linkgauge.presets.auto_select import AUTO
from linkgauge.presets.wire import DEFAULT_VARIANT, Variant
from linkgauge.tui.mesh.cell_recorder import CellRecorder
from linkgauge.tui.mesh.mesh_session import MeshSession, MeshUpdate, rate_finder
from linkgauge.tui.mesh.mesh_spec import MeshSpec
from linkgauge.tui.session.run_spec import Judging

from ..scripted_mesh import (
    CATALOG,
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

FIRST = Cell("db-01", "db-02")


def open_session(mesh: ScriptedMesh, **options: object) -> MeshSession:
    """Return the session of a scripted mesh."""
    return MeshSession(
        mesh,
        MeshSpec(PLAN, has_rechecks_left=True),
        CellRecorder(PLAN, Judging(CATALOG), None),
        **options,  # pyright: ignore[reportArgumentType]
    )


def slow_cells(session: MeshSession) -> list[Cell]:
    """Return the cells of a session's findings."""
    return [cell for finding in session.findings for cell in finding.cells]


async def updates_of(session: MeshSession) -> list[MeshUpdate]:
    """Return all updates of a session."""
    return [update async for update in session]


async def test_every_cell_that_ends_brings_its_result_and_the_slow_ones_are_measured_again() -> None:
    """The end of the mesh comes after that."""
    mesh = ScriptedMesh(all_events(SLOW), {SLOW: 23.4e9})
    session = open_session(mesh)
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
    assert session.findings == ()
    assert not session.spec.has_rechecks_left


async def test_findings_are_those_of_the_rounds_that_are_over() -> None:
    """A round that is still running is not judged."""
    session = open_session(ScriptedMesh(all_events(FIRST)))
    seen = [(type(update.event).__name__, slow_cells(session)) async for update in session]
    assert [cells for name, cells in seen if name == "RoundBegan"] == [[], [FIRST], [FIRST]]


async def test_findings_that_take_long_are_not_looked_for_after_each_round() -> None:
    """Each look at the clock is ten seconds later. At the end the findings are those of all rounds."""
    session = open_session(ScriptedMesh(all_events(FIRST)), clock=count(0.0, 10.0).__next__)
    seen = [(type(update.event).__name__, slow_cells(session)) async for update in session]
    assert [cells for name, cells in seen if name == "RoundBegan"] == [[], [], []]
    assert seen[-1] == ("MeshEnded", [FIRST])


async def test_a_lost_host_leaves_its_remaining_cells_with_the_reason() -> None:
    """Its earlier results stay."""
    events = [MeshBegan(PLAN, 6), cell_ended("db-01", "db-03"), HOST_DOWN]
    session = open_session(ScriptedMesh(events))
    await updates_of(session)
    figures = session.matrix.figures
    assert figures[Cell("db-01", "db-03")].value is not None
    assert [figures[cell].failure for cell in PLAN.cells if "db-03" in cell].count(LOST) == 3
    assert Cell("db-01", "db-02") not in figures


async def test_a_stopped_mesh_measures_nothing_again() -> None:
    """Its end still comes."""
    mesh = ScriptedMesh(all_events(SLOW), {SLOW: 23.4e9})
    session = open_session(mesh)
    updates: list[MeshUpdate] = []
    async for update in session:
        updates.append(update)
        if update.figure is not None:
            session.stop()
    assert updates[-1].event == MeshEnded(is_complete=False)
    assert mesh.asked == []
    assert len(session.matrix.figures) == 1
    assert session.spec.has_rechecks_left


async def test_slow_cells_are_left_to_measure_where_a_stop_comes_between_them() -> None:
    """The cells of the rounds have their results. The definition notes the cells that are left."""
    cells = [SLOW, Cell("db-02", "db-01")]
    session = open_session(ScriptedMesh(all_events(*cells)))
    async for update in session:
        if isinstance(update.event, CellEnded) and update.event.is_isolated:
            session.stop()
    assert session.spec.has_rechecks_left


async def test_slow_cells_without_a_second_result_are_left_to_measure() -> None:
    """Their host died meanwhile: a later session may find it again."""
    mesh = ScriptedMesh(all_events(SLOW), {SLOW: 23.4e9}, dead=SLOW)
    session = open_session(mesh)
    updates = await updates_of(session)
    assert updates[-1].event == MeshEnded(is_complete=True)
    assert session.spec.has_rechecks_left


async def test_a_resumed_mesh_has_the_results_of_its_earlier_sessions() -> None:
    """From the first event on."""
    earlier = full_figures()[:2]
    session = open_session(ScriptedMesh([MeshBegan(PLAN, 4)]), earlier=earlier)
    await updates_of(session)
    assert list(session.matrix.figures.values()) == earlier


@pytest.mark.parametrize(
    ("preset", "variant", "rate_bit_s", "notice"),
    [
        (AUTO, DEFAULT_VARIANT, 10_000_000, "sending 10 Mb/s, since no UDP rate is expected; --rate gives another"),
        (None, DEFAULT_VARIANT, 10_000_000, "sending 10 Mb/s, since no UDP rate is expected; --rate gives another"),
        (AUTO, Variant(line_rate_bit_s=10**9), 957_087_126, "the expected UDP payload of 1gbe-1500"),
        ("100mb-fd", DEFAULT_VARIANT, 95_708_713, "the expected UDP payload of 100mb-fd"),
    ],
)
def test_datagrams_without_a_rate_have_the_rate_of_a_test_of_one_link_and_it_is_said_once(
    preset: str | None, variant: Variant, rate_bit_s: int, notice: str
) -> None:
    """Virtual interfaces report no speed: the mesh measures at a low rate, as `check` does."""
    plan = replace(PLAN, base=Plan(workload=Workload.UDP), preset=preset)
    spec = MeshSpec(plan, variant=variant)
    notices: dict[str, None] = {}
    find_rate = rate_finder(spec, spec.judging(CATALOG), notices)
    veth = NicInfo("left", "virtual", "veth", None, "full", 1500)
    assert find_rate is not None
    assert [find_rate(veth, replace(veth, name=name)) for name in ("a", "b")] == [rate_bit_s] * 2
    (text,) = notices
    assert notice in text.replace("\u00a0", " ")
    assert rate_finder(replace(spec, plan=replace(plan, base=Plan())), spec.judging(CATALOG), {}) is None
