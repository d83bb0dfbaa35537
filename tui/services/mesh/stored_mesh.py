"""Meshes on disk: the definition in a small file next to the run log, and the results so far from both.

Each run of a mesh is in the run log like any other run, with the mesh's name as its group. The file also has the
reasons why cells without a run have none.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final, Self

from ....engine.model.errors import DecodeError, PlanError, RunLogError
from ....engine.model.plan import Plan
from ....engine.model.serialization import decode, encode
from ....engine.results.run_log import RunLog, new_run_id
from ....mesh.events import CellFailure
from ....mesh.figures import CellFigure, MeshMatrix
from ....mesh.plan import GROUP_PREFIX, Cell, Host, MeshMode, MeshPlan
from ....presets.verdict import DEFAULT_PASS_PERCENT
from ....presets.wire import DEFAULT_VARIANT, Variant
from ..storage import DefinitionStore
from .cell_recorder import CELL_KEY, figure_of_run

if TYPE_CHECKING:
    from ....mesh.reading import MeshComparison

_log = logging.getLogger(__name__)
_STORE: Final = DefinitionStore("mesh", "meshes", GROUP_PREFIX)
_MOST_EARLIER: Final = 200
_MOST_COMPARED: Final = 5


@dataclass(frozen=True, slots=True)
class EmulatedHosts:
    """Hosts that this machine emulates for a mesh, so that a mesh that is resumed has the same ones.

    Args:
        preset: the preset of each host's link.
        hosts: how many hosts.
        racks: how many racks they are in.
        slow: the hosts and racks that have half of their rate.
    """

    preset: str
    hosts: int
    racks: int = 1
    slow: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what `to_json` made. Raises PlanError."""
        try:
            return decode(cls, json.loads(text))
        except (ValueError, DecodeError) as error:
            raise PlanError("--emulated", repr(text), "linkgauge gives it to itself") from error

    def to_json(self) -> str:
        """Return it as an argument of a command."""
        return json.dumps(encode(self))


@dataclass(frozen=True, slots=True)
class MeshRequest:
    """A mesh as a person asks for it, before its hosts are known.

    Args:
        group: its name.
        hosts: the hosts; empty for all workers of the scheduler.
        base: the plan of each run.
        mode: which pairs are measured at the same time.
        seed: makes the order of pairs.
        preset: the id of the preset that rates are judged by, `auto`, or None.
        scheduler: the address of the Dask scheduler whose workers are the hosts; None for hosts that ssh reaches.
        remote_python: the Python of those; None for the usual one.
        variant: the options of the preset's link.
        pass_percent: the pass mark in percent of the expected rate.
        emulated: the hosts, where this machine emulates them.
        port: the port of each host's endpoint; 0 for a free one.
    """

    group: str
    hosts: tuple[Host, ...]
    base: Plan
    mode: MeshMode = MeshMode.ROUNDS
    seed: int = 1
    preset: str | None = None
    scheduler: str | None = None
    remote_python: str | None = None
    variant: Variant = DEFAULT_VARIANT
    pass_percent: float = DEFAULT_PASS_PERCENT
    emulated: EmulatedHosts | None = None
    port: int = 0

    def define(self, hosts: tuple[Host, ...]) -> "MeshDefinition":
        """Return the definition with these hosts; raise PlanError where they are too few."""
        plan = MeshPlan(self.group, hosts, self.base, self.mode, self.seed, self.preset, self.port)
        return MeshDefinition(
            plan,
            self.scheduler,
            self.remote_python,
            self.variant,
            self.pass_percent,
            emulated=self.emulated,
            has_rechecks_left=self.mode is not MeshMode.ISOLATED,
        )


@dataclass(frozen=True, slots=True)
class FailedCell:
    """A cell without a result, and why."""

    sender: str
    receiver: str
    failure: CellFailure


@dataclass(frozen=True, slots=True)
class MeshDefinition:
    """A mesh as it is stored: enough to resume it, and to show it.

    Args:
        plan: what it measures.
        scheduler: the address of the Dask scheduler whose workers are the hosts; None for hosts that ssh reaches.
        remote_python: the Python of those; None for the usual one.
        variant: the options of the preset's link.
        pass_percent: the pass mark in percent of the expected rate.
        failures: the cells without a run.
        emulated: the hosts, where this machine emulates them.
        has_rechecks_left: whether the slow cells are still to be measured again, alone.
    """

    plan: MeshPlan
    scheduler: str | None = None
    remote_python: str | None = None
    variant: Variant = DEFAULT_VARIANT
    pass_percent: float = DEFAULT_PASS_PERCENT
    failures: tuple[FailedCell, ...] = ()
    emulated: EmulatedHosts | None = None
    has_rechecks_left: bool = False

    @property
    def request(self) -> MeshRequest:
        """The request that continues this mesh."""
        plan = self.plan
        hosts = tuple(replace(host, address=None) for host in plan.hosts)
        return MeshRequest(
            plan.group,
            hosts,
            plan.base,
            plan.mode,
            plan.seed,
            plan.preset,
            self.scheduler,
            self.remote_python,
            self.variant,
            self.pass_percent,
            self.emulated,
            plan.port,
        )

    def is_over(self, matrix: MeshMatrix) -> bool:
        """Return whether nothing is left to measure where these are the results so far."""
        return matrix.is_complete and not self.has_rechecks_left

    def with_failures(self, figures: Mapping[Cell, CellFigure]) -> "MeshDefinition":
        """Return this definition with the failures among these results."""
        failures = tuple(
            FailedCell(*cell, figure.failure) for cell, figure in figures.items() if figure.failure is not None
        )
        return replace(self, failures=failures)


def new_mesh_name() -> str:
    """Return the name of a new mesh: `mesh-20261121-011530-k3f9`."""
    return f"{GROUP_PREFIX}{new_run_id(datetime.now(UTC), SystemRandom())}"


def save_mesh(definition: MeshDefinition) -> None:
    """Write the definition of a mesh. Raises RunLogError."""
    _STORE.save(definition.plan.group, encode(definition))


def find_mesh(text: str) -> MeshDefinition:
    """Return the stored mesh of a name, or of the beginning of one.

    Raises PlanError unless exactly one mesh matches, and RunLogError for a definition that cannot be read.
    """
    return _STORE.find(text, partial(decode, MeshDefinition))


def find_previous(definition: MeshDefinition) -> Iterator[MeshDefinition]:
    """Yield the earlier meshes of the same hosts, tests and mode, the newest first.

    Emulated hosts are the same if their links are. Definitions that cannot be read are passed over. Of many the
    newest are looked at.
    """
    plan = definition.plan
    hosts = {host.name for host in plan.hosts}
    earlier = [name for name in mesh_names() if name < plan.group]
    for name in reversed(earlier[-_MOST_EARLIER:]):
        try:
            candidate = find_mesh(name)
        except (PlanError, RunLogError) as error:
            _log.debug("%s is passed over: %s", name, error)
            continue
        other = candidate.plan
        is_like = (other.base, other.mode, candidate.emulated) == (plan.base, plan.mode, definition.emulated)
        if is_like and {host.name for host in other.hosts} == hosts:
            yield candidate


def compare_with_previous(log: RunLog, definition: MeshDefinition, matrix: MeshMatrix) -> "MeshComparison | None":
    """Return a mesh against the last one of the same hosts; None where there is none, or no cell that both have.

    One that is not complete counts only where none of the last few is. Raises RunLogError.
    """
    from ....mesh.reading import compare_meshes  # here: the list of runs needs this module as well

    newest: MeshComparison | None = None
    for previous in islice(find_previous(definition), _MOST_COMPARED):
        before = load_matrix(log, previous)
        comparison = compare_meshes(before, matrix)
        if comparison.cells and before.is_complete:
            return comparison
        newest = newest or (comparison if comparison.cells else None)
    return newest


def mesh_names() -> list[str]:
    """Return the names of the stored meshes, the oldest first."""
    return _STORE.names()


def load_matrix(log: RunLog | None, definition: MeshDefinition) -> MeshMatrix:
    """Return the results of a mesh so far.

    A cell has its newest run that measured something, else its failure. Raises RunLogError.
    """
    plan = definition.plan
    figures = {
        cell: CellFigure(cell, failure=failed.failure)
        for failed in definition.failures
        for cell in [Cell(failed.sender, failed.receiver)]
    }
    figures |= {} if log is None else _stored_figures(log, plan)
    cells = set(plan.cells)
    figures = {cell: figure for cell, figure in figures.items() if cell in cells}
    return MeshMatrix(plan.group, plan.mode, plan.hosts, figures)


def measured_figures(figures: Iterable[CellFigure]) -> list[CellFigure]:
    """Return the results of the cells that need no further run."""
    return [figure for figure in figures if figure.value is not None]


def _stored_figures(log: RunLog, plan: MeshPlan) -> dict[Cell, CellFigure]:
    """Return the results that the runs of a group have, each with what its cell was alone."""
    together: dict[Cell, CellFigure] = {}
    alone: dict[Cell, CellFigure] = {}
    for row in log.runs_of_group(plan.group):  # the newest first
        document = row.document
        cell = None if document is None else _cell_of(document)
        if document is None or cell is None:
            continue
        figure = figure_of_run(cell, row.run_id, document)
        kind = alone if document[CELL_KEY].get("is_again") else together
        if cell not in kind or (kind[cell].value is None and figure.value is not None):
            kind[cell] = figure
    for cell, figure in alone.items():
        before = together.get(cell)
        if before is not None and before.value is not None and figure.value is not None:
            together[cell] = with_isolated(before, figure)
    return together


def with_isolated(figure: CellFigure, alone: CellFigure) -> CellFigure:
    """Return the result of a cell with what it was when it was measured again alone."""
    return replace(figure, isolated_bit_s=alone.bit_s, isolated_run_id=alone.run_id, isolated_loss=alone.loss)


def _cell_of(document: dict[str, Any]) -> Cell | None:
    names: dict[str, Any] = document.get(CELL_KEY) or {}
    sender, receiver = names.get("sender"), names.get("receiver")
    return Cell(sender, receiver) if isinstance(sender, str) and isinstance(receiver, str) else None
