"""The lossy hosts, groups and paths of a mesh: cells that lose far more than the others. Pure.

A path that loses one segment in a hundred may carry its whole rate if the RTT is short, so rates do not show the
loss. Cells that a slow part explains are left out: the findings of their runs report their losses. A single path
counts only if it loses again in a second measurement, alone: one burst is not a fault.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Final

from ..figures import MeshFindingCode, MeshMatrix
from ..plan import MeshMode
from .relative_rates import RelativeRates
from .suspected_causes import Suspect, find_suspects

_LEAST_LOSS: Final = 0.003  # of the segments or datagrams: TCP itself fills queues until it loses some
_TIMES_USUAL: Final = 5.0
_AGAIN: Final = 0.5  # of the minimum loss: the minimum in the second measurement
_LOSSY_SHARE: Final = 0.75  # of a cause's cells
_REFUTED_SHARE: Final = 0.5
_LEAST_FABRIC: Final = 3  # cells that lose nothing when measured alone


@dataclass(frozen=True, slots=True)
class LossyPart:
    """A lossy host, group or path: the places of its lossy cells in the rates, and their median loss."""

    code: MeshFindingCode
    sender: str | None
    receiver: str | None
    cells: tuple[int, ...]
    loss: float


class Losses:
    """The losses of a matrix's cells, 0 to 1, by their places in the rates."""

    def __init__(self, matrix: MeshMatrix, rates: RelativeRates) -> None:
        figures = [matrix.figures[cell] for cell in rates.cells]
        self._rates = rates
        self._is_alone = matrix.mode is MeshMode.ISOLATED
        self._first = {place: figure.loss for place, figure in enumerate(figures) if figure.loss is not None}
        self._again = {
            place: figure.isolated_loss for place, figure in enumerate(figures) if figure.isolated_loss is not None
        }
        # The lower quartile: among three hosts, one that loses in both directions has two thirds of all cells.
        losses = sorted(self._first.values())
        usual = losses[len(losses) // 4] if losses else 0.0
        self._least = max(_LEAST_LOSS, _TIMES_USUAL * usual)

    def find(self, explained: Collection[int]) -> list[LossyPart]:
        """Return the lossy parts without the explained cells: causes, then paths, the worst first."""
        lossy = {place for place, loss in self._first.items() if loss > self._least and place not in explained}
        if not lossy:
            return []  # as in most meshes: the search for suspects takes 3 of 17 ms at 64 hosts
        is_lossy = [place in lossy for place in range(len(self._rates.cells))]
        suspects = [
            each
            for each in find_suspects(self._rates, is_lossy)
            if _share(each.cells, lossy) >= _LOSSY_SHARE and _share(each.is_refuted_by, lossy) <= _REFUTED_SHARE
        ]
        causes: list[LossyPart] = []
        while best := _widest(suspects, lossy):
            cells = lossy.intersection(best.cells)
            causes.append(self._part(best.code, best.sender, best.receiver, cells))
            lossy -= cells
        paths = [self._part(MeshFindingCode.PATH, *self._rates.cells[place], {place}) for place in lossy]
        return [*causes, *sorted(paths, key=lambda path: -path.loss)]

    def confirm(self, parts: Collection[LossyPart]) -> Iterator[LossyPart]:
        """Yield the parts that a second measurement confirms; those that lose only beside others are one."""
        beside_others: list[LossyPart] = []
        for part in parts:
            again = [self._again[place] > _AGAIN * self._least for place in part.cells if place in self._again]
            if sum(again) < len(again) - sum(again):
                beside_others.append(part)
            elif again or self._is_alone or part.code is not MeshFindingCode.PATH:
                yield part
        cells = {place for part in beside_others for place in part.cells}
        if len(cells) >= _LEAST_FABRIC:
            yield self._part(MeshFindingCode.FABRIC, None, None, cells)

    def _part(
        self, code: MeshFindingCode, sender: str | None, receiver: str | None, cells: Collection[int]
    ) -> LossyPart:
        loss = median(self._first[place] for place in cells)
        return LossyPart(code, sender, receiver, tuple(sorted(cells)), loss)


def _share(cells: Collection[int], lossy: Collection[int]) -> float:
    return sum(place in lossy for place in cells) / len(cells) if cells else 0.0


def _widest(suspects: Collection[Suspect], lossy: set[int]) -> Suspect | None:
    """Return the suspect with most lossy cells, and of these the smallest; None if it has fewer than two."""
    best = max(suspects, key=lambda each: (_count(each, lossy), -len(each.cells)), default=None)
    return best if best is not None and _count(best, lossy) >= 2 else None


def _count(suspect: Suspect, lossy: set[int]) -> int:
    return len(lossy.intersection(suspect.cells))
