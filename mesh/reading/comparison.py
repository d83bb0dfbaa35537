"""The comparison of a mesh with an earlier one of the same hosts: slower and faster hosts, groups, paths.

Pure. Each cell's rate is divided by its earlier rate, and these shares are read like shares of expected rates,
together with the cells measured again alone: a path that this clears in its own mesh is cleared here. A cell that
something else slowed down before, and still does, shows nothing of a new cause: it is left out.
"""

from dataclasses import dataclass, replace
from math import log
from statistics import median

from ...engine.results.rate_and_loss import change_percent
from ...presets.verdict import NO_LIMITS
from ..figures import CellFigure, MeshFinding, MeshFindingCode, MeshMatrix
from ..plan import Cell
from .explanation import LEAST_SLOWNESS
from .findings import find_faults, read_matrix


@dataclass(frozen=True, slots=True)
class CellChange:
    """A cell that both meshes measured: its values in the same unit, and the change in percent of the first value.

    `percent` is None if nothing arrived in the first.
    """

    cell: Cell
    before: float
    after: float

    @property
    def percent(self) -> float | None:
        """The change in percent of the first value."""
        return change_percent(self.before, self.after) if self.before else None


@dataclass(frozen=True, slots=True)
class MeshComparison:
    """A second mesh against a first one.

    Args:
        before: the group of the first mesh.
        after: the group of the second mesh.
        cells: the cells that both measured, in the order of the second's hosts.
        percent: the median change of these, in percent; None without any.
        slower: the parts that are slower than before, each cause once; ALL for everything. `less_percent` is
            relative to the first mesh, or to the change of the other cells.
        faster: the parts that are faster than before. `less_percent` says how much slower they were.
        hosts_missing: hosts that only the first mesh has.
        hosts_added: hosts that only the second has.
    """

    before: str
    after: str
    cells: tuple[CellChange, ...]
    percent: float | None
    slower: tuple[MeshFinding, ...]
    faster: tuple[MeshFinding, ...]
    hosts_missing: tuple[str, ...] = ()
    hosts_added: tuple[str, ...] = ()


def compare_meshes(before: MeshMatrix, after: MeshMatrix) -> MeshComparison:
    """Compare the second mesh with the first: rates with rates, and transactions with transactions."""
    changes = tuple(_changes(before, after))
    percents = [change.percent for change in changes if change.percent is not None]
    names = [{host.name: None for host in matrix.hosts} for matrix in (before, after)]
    return MeshComparison(
        before.group,
        after.group,
        changes,
        median(percents) if percents else None,
        find_faults(_shares(before, after)),
        find_faults(_shares(after, before)),
        tuple(name for name in names[0] if name not in names[1]),
        tuple(name for name in names[1] if name not in names[0]),
    )


def _changes(before: MeshMatrix, after: MeshMatrix) -> list[CellChange]:
    places = {host.name: place for place, host in enumerate(after.hosts)}
    changes = [
        CellChange(cell, first, second)
        for cell, figure in after.figures.items()
        if (earlier := before.figures.get(cell)) is not None
        and _have_same_unit(earlier, figure)
        and (first := earlier.value) is not None
        and (second := figure.value) is not None
    ]
    last = len(places)
    return sorted(changes, key=lambda each: tuple(places.get(name, last) for name in each.cell))


def _have_same_unit(earlier: CellFigure, figure: CellFigure) -> bool:
    return (earlier.transactions_s is None) == (figure.transactions_s is None)


def _comparable(earlier: CellFigure, figure: CellFigure) -> float | None:
    """Return the earlier value of a cell's first test; None if the units differ."""
    return earlier.first_value if _have_same_unit(earlier, figure) else None


def _shares(base: MeshMatrix, other: MeshMatrix) -> MeshMatrix:
    """Return the second of two matrices with the first one's values as expected rates."""
    figures: dict[Cell, CellFigure] = {}
    held_back = _held_back(base, other)
    for cell, figure in other.figures.items():
        if cell in held_back:
            continue
        earlier = base.figures.get(cell)
        expected = None if earlier is None else _comparable(earlier, figure)
        if figure.failure is not None and earlier is not None and earlier.value is not None:
            figures[cell] = replace(figure, bit_s=None, transactions_s=None)
        elif figure.first_value is not None and expected:
            figures[cell] = CellFigure(
                cell,
                figure.run_id,
                bit_s=figure.first_value,
                expected_bit_s=expected,
                isolated_bit_s=figure.isolated_value,
                why=figure.why,
            )
    return replace(other, figures=figures, limits=NO_LIMITS)


def _held_back(base: MeshMatrix, other: MeshMatrix) -> set[Cell]:
    """Return the cells that a host or a group slows down in the first matrix, and no more in the second."""
    reading = read_matrix(base)
    cells: set[Cell] = set()
    if reading is None:
        return cells
    for part in reading.parts:
        if part.code in {MeshFindingCode.ALL, MeshFindingCode.PATH}:
            continue
        own = [reading.rates.cells[place] for place in part.cells]
        changes = [
            log(second / first)
            for cell in own
            if (later := other.figures.get(cell)) is not None
            and (first := _comparable(base.figures[cell], later))
            and (second := later.first_value)
        ]
        if changes and median(changes) > -LEAST_SLOWNESS:
            cells.update(own)
    return cells
