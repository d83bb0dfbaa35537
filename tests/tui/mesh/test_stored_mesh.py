"""Stored meshes: found by their names, and their results from the log and the definition."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import PlanError, RunLogError
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.run_log import RunLog
from linkgauge.mesh.figures import CellFigure
from linkgauge.mesh.plan import Cell, MeshMode
from linkgauge.presets.wire import Variant
from linkgauge.tui.mesh.cell_recorder import CellRecorder
from linkgauge.tui.mesh.mesh_spec import EmulatedHosts, MeshSpec
from linkgauge.tui.mesh.stored_mesh import find_mesh, find_previous, load_matrix, measured_figures, save_mesh
from linkgauge.tui.session.run_spec import Judging

from ..scripted_mesh import CATALOG, PLAN, SLOW_BIT_S, UNREACHABLE, cell_ended

CELL = Cell("db-01", "db-02")


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store in this test's directory."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    return tmp_path


def test_a_mesh_is_found_by_the_beginning_of_its_name_as_it_was_saved() -> None:
    """With everything that a resumed mesh needs."""
    spec = MeshSpec(PLAN, "tcp://10.0.0.1:8786", None, Variant(ip=6), 90.0, has_rechecks_left=True)
    failed = spec.with_failures({CELL: CellFigure(CELL, failure=UNREACHABLE)})
    save_mesh(failed)
    assert find_mesh(PLAN.group) == find_mesh("mesh-2026") == failed


def test_a_name_that_fits_no_mesh_or_several_is_refused_with_some_that_exist() -> None:
    """A damaged file is named as well."""
    with pytest.raises(PlanError, match="no mesh is saved"):
        find_mesh("mesh-1")
    for name in ("mesh-a", "mesh-b"):
        save_mesh(MeshSpec(replace(PLAN, group=name)))
    with pytest.raises(PlanError, match="mesh-a, mesh-b"):
        find_mesh("mesh")
    with pytest.raises(PlanError, match="mesh-a, mesh-b"):
        find_mesh("../mesh-a")


def test_the_last_mesh_of_the_same_hosts_and_tests_is_found_to_compare_with(data_dir: Path) -> None:
    """It skips later meshes, other hosts, workloads, rates and modes, and damaged files."""
    now = MeshSpec(replace(PLAN, group="mesh-20270101-000000-aaaa"))
    assert list(find_previous(now)) == []
    others = {
        "mesh-20260101-000000-aaaa": PLAN,
        "mesh-20260102-000000-aaaa": replace(PLAN, hosts=PLAN.hosts[::-1]),  # their order does not matter
        "mesh-20260103-000000-aaaa": replace(PLAN, hosts=PLAN.hosts[:2]),
        "mesh-20260104-000000-aaaa": replace(PLAN, base=replace(PLAN.base, workload=Workload.RR)),
        "mesh-20260106-000000-aaaa": replace(PLAN, base=replace(PLAN.base, rate_bit_s=20_000_000)),
        "mesh-20260107-000000-aaaa": replace(PLAN, mode=MeshMode.ALL),
        "mesh-20270202-000000-aaaa": PLAN,
    }
    for group, plan in others.items():
        save_mesh(MeshSpec(replace(plan, group=group)))
    (data_dir / "meshes" / "mesh-20260105-000000-aaaa.json").write_text("{", encoding="utf-8")
    found = [each.plan.group for each in find_previous(now)]
    assert found == ["mesh-20260102-000000-aaaa", "mesh-20260101-000000-aaaa"]
    emulated = EmulatedHosts("10mb-fd", hosts=3)
    assert not list(find_previous(replace(now, emulated=emulated)))
    save_mesh(replace(now, plan=replace(PLAN, group="mesh-20260108-000000-aaaa"), emulated=emulated))
    assert list(find_previous(replace(now, emulated=emulated)))
    assert not list(find_previous(replace(now, emulated=replace(emulated, slow=("host-1",)))))


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"plan": {"group": 1}})])
def test_a_damaged_definition_names_its_file(data_dir: Path, text: str) -> None:
    """A new mesh is the remedy."""
    save_mesh(MeshSpec(PLAN))
    path = data_dir / "meshes" / f"{PLAN.group}.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RunLogError, match="begin a new mesh") as caught:
        find_mesh(PLAN.group)
    assert str(path) in str(caught.value)


def test_the_results_are_those_of_the_runs_with_the_newest_of_each_cell(data_dir: Path) -> None:
    """Also alone. Failures are only those of cells without a run."""
    spec = MeshSpec(PLAN).with_failures(
        {cell: CellFigure(cell, failure=UNREACHABLE) for cell in (CELL, Cell("db-03", "db-01"))}
    )
    with RunLog.open(data_dir) as log:
        recorder = CellRecorder(PLAN, Judging(CATALOG), log)
        recorder.record(cell_ended(*CELL, SLOW_BIT_S))
        newest = recorder.record(cell_ended(*CELL, 17e9))
        alone = recorder.record(cell_ended(*CELL, is_isolated=True))
        log.flush()
        figures = load_matrix(log, spec).figures
    assert figures[CELL] == replace(
        newest, isolated_bit_s=alone.bit_s, isolated_run_id=alone.run_id, isolated_loss=alone.loss
    )
    assert figures[Cell("db-03", "db-01")].failure == UNREACHABLE
    assert measured_figures(figures.values()) == [figures[CELL]]


def test_a_mesh_without_a_log_has_its_failures() -> None:
    """They are all that is known."""
    spec = MeshSpec(PLAN).with_failures({CELL: CellFigure(CELL, failure=UNREACHABLE)})
    assert load_matrix(None, spec).figures == {CELL: CellFigure(CELL, failure=UNREACHABLE)}
