"""Meshes on disk: the definition in a small file next to the run log, and the results so far from both.

Each run of a mesh is in the run log like any other run, with the mesh's name as its group. The file also has the
failures of the cells without a run.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...engine.model.errors import PlanError, RunLogError, UsageError
from ...engine.model.serialization import decode, encode
from ...engine.results.run_log import RunLog
from ...engine.results.run_result import RunResult
from ...mesh.figures import CellFigure, MeshFinding, MeshMatrix
from ...mesh.plan import GROUP_PREFIX, Cell, MeshPlan
from ..session.run_exports import check_report_path, generate_report
from ..session.storage import DefinitionStore
from .cell_recorder import RunCell, figure_of_run
from .mesh_spec import MeshSpec

if TYPE_CHECKING:
    from ...mesh.reading import MeshComparison

_log = logging.getLogger(__name__)
_STORE: Final = DefinitionStore("mesh", "meshes", GROUP_PREFIX)
_MOST_EARLIER: Final = 200
_MOST_COMPARED: Final = 5


def save_mesh(spec: MeshSpec) -> None:
    """Write the definition of a mesh. Raises RunLogError."""
    _STORE.save(spec.plan.group, encode(spec))


def find_mesh(text: str) -> MeshSpec:
    """Return the stored mesh of a name, or of the beginning of one.

    Raises PlanError unless exactly one mesh matches, and RunLogError for a definition that cannot be read.
    """
    return _STORE.find(text, partial(decode, MeshSpec))


def find_previous(spec: MeshSpec) -> Iterator[MeshSpec]:
    """Yield the earlier meshes of the same hosts, tests and mode, the newest first.

    Emulated hosts are the same if their links are. It skips definitions that cannot be read, and looks only at the
    newest of many.
    """
    plan = spec.plan
    hosts = {host.name for host in plan.hosts}
    earlier = [name for name in mesh_names() if name < plan.group]
    for name in reversed(earlier[-_MOST_EARLIER:]):
        try:
            candidate = find_mesh(name)
        except (PlanError, RunLogError, UsageError) as error:
            _log.debug("%s is passed over: %s", name, error)
            continue
        other = candidate.plan
        is_like = (other.base, other.mode, candidate.emulated) == (plan.base, plan.mode, spec.emulated)
        if is_like and {host.name for host in other.hosts} == hosts:
            yield candidate


def compare_with_previous(log: RunLog, spec: MeshSpec, matrix: MeshMatrix) -> "MeshComparison | None":
    """Return a mesh against the last one of the same hosts; None if there is none, or none has a cell of this one.

    An incomplete mesh counts only if the last few are all incomplete. Raises RunLogError.
    """
    from ...mesh.reading import compare_meshes  # here: the list of runs needs this module as well

    newest: MeshComparison | None = None
    for previous in islice(find_previous(spec), _MOST_COMPARED):
        before = load_matrix(log, previous)
        comparison = compare_meshes(before, matrix)
        if comparison.cells and before.is_complete:
            return comparison
        newest = newest or (comparison if comparison.cells else None)
    return newest


def mesh_names() -> list[str]:
    """Return the names of the stored meshes, the oldest first."""
    return _STORE.names()


def load_matrix(log: RunLog | None, spec: MeshSpec) -> MeshMatrix:
    """Return the results of a mesh so far.

    The result of a cell is its newest run that measured something, else its failure. Raises RunLogError.
    """
    plan = spec.plan
    figures = {
        cell: CellFigure(cell, failure=failed.failure)
        for failed in spec.failures
        for cell in [Cell(failed.sender, failed.receiver)]
    }
    figures |= {} if log is None else _stored_figures(log, plan)
    cells = set(plan.cells)
    figures = {cell: figure for cell, figure in figures.items() if cell in cells}
    return MeshMatrix(plan.group, plan.mode, plan.hosts, figures, plan.limits)


def measured_figures(figures: Iterable[CellFigure]) -> list[CellFigure]:
    """Return the results of the cells that need no further run."""
    return [figure for figure in figures if figure.value is not None]


def _stored_figures(log: RunLog, plan: MeshPlan) -> dict[Cell, CellFigure]:
    """Return the results of the runs of a group, each with the result of its cell alone, if there is one."""
    together: dict[Cell, CellFigure] = {}
    alone: dict[Cell, CellFigure] = {}
    for row in log.runs_of_group(plan.group):  # the newest first
        run = RunResult.of(row.document)
        run_cell = RunCell.of(run)
        if run_cell is None:
            continue
        cell = run_cell.cell
        figure = figure_of_run(cell, row.run_id, run)
        kind = alone if run_cell.is_again else together
        if cell not in kind or (kind[cell].value is None and figure.value is not None):
            kind[cell] = figure
    for cell, figure in alone.items():
        before = together.get(cell)
        if before is not None and before.value is not None and figure.value is not None:
            together[cell] = with_isolated(before, figure)
    return together


def with_isolated(figure: CellFigure, alone: CellFigure) -> CellFigure:
    """Return the result of a cell with its later result alone."""
    return replace(
        figure,
        isolated_bit_s=alone.bit_s,
        isolated_run_id=alone.run_id,
        isolated_loss=alone.loss,
        isolated_rise_ns=alone.rise_ns,
    )


@dataclass(frozen=True, slots=True)
class StoredMesh:
    """A mesh of the run log: its figures, its findings, and the pass mark of its cells in percent."""

    matrix: MeshMatrix
    findings: tuple[MeshFinding, ...]
    pass_percent: float


class StoredMeshes:
    """The stored meshes. Every method is called in a thread and may raise LinkgaugeError."""

    def __init__(self, log: RunLog) -> None:
        self._log = log

    def find(self, group: str) -> StoredMesh:
        """Return a stored mesh with its figures so far."""
        from ...mesh.reading import find_faults

        definition = find_mesh(group)
        matrix = load_matrix(self._log, definition)
        return StoredMesh(matrix, find_faults(matrix), definition.pass_percent)

    def compare(self, matrix: MeshMatrix) -> "MeshComparison | None":
        """Return the changes since the last mesh of the same hosts; None if there is none."""
        return compare_with_previous(self._log, find_mesh(matrix.group), matrix)

    def write_report(self, group: str, path: Path) -> Path:
        """Write the HTML page of a mesh in a separate process; return its path."""
        check_report_path(path)
        generate_report(self._log, ["linkgauge.tui.report.mesh_page", group, str(path)])
        return path
