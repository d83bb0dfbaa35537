"""The suspects of a mesh: the cells that a slow host, group, or path between groups would slow down. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from ..figures import MeshFindingCode
from .relative_rates import RelativeRates

_LEAST_LOW_SHARE: Final = 0.55  # of a suspect's cells: with fewer it is ignored
_LEAST_ROW: Final = 2
_LEAST_HOST: Final = 3
# Two cells between groups are no more than two paths.
_LEAST_BLOCK: Final = 3
_LEAST_GROUP: Final = 3  # hosts
_OF_HOSTS: Final = {MeshFindingCode.HOST, MeshFindingCode.HOST_SENDS, MeshFindingCode.HOST_RECEIVES}


@dataclass(frozen=True, slots=True)
class Suspect:
    """A possible cause: its code and names as a MeshFinding has them, and the places of its cells.

    The way out of a group is not the cause if its hosts are as slow within the group: `is_refuted_by` has the cells
    within.
    """

    code: MeshFindingCode
    sender: str | None
    receiver: str | None
    cells: tuple[int, ...]
    is_refuted_by: tuple[int, ...] = ()

    @property
    def is_host(self) -> bool:
        """Whether this is a host, not a group."""
        return self.code in _OF_HOSTS


def find_suspects(rates: RelativeRates, is_low: Sequence[bool]) -> list[Suspect]:
    """Return the suspects with enough low cells to be a cause. `is_low` has each measured cell."""

    def is_suspect(cells: Sequence[int], least: int) -> bool:
        return len(cells) >= least and sum(is_low[cell] for cell in cells) >= _LEAST_LOW_SHARE * len(cells)

    return [
        Suspect(code, sender, receiver, tuple(cells), tuple(refuting))
        for code, sender, receiver, cells, least, refuting in chain(_of_hosts(rates), _of_groups(rates))
        if is_suspect(cells, least)
    ]


_Candidate = tuple[MeshFindingCode, str | None, str | None, list[int], int, list[int]]


def _of_hosts(rates: RelativeRates) -> Iterator[_Candidate]:
    rows: dict[int, list[int]] = defaultdict(list)
    columns: dict[int, list[int]] = defaultdict(list)
    for cell, (sender, receiver) in enumerate(rates.pairs):
        rows[sender].append(cell)
        columns[receiver].append(cell)
    for place, host in enumerate(rates.hosts):
        row, column = rows[place], columns[place]
        yield MeshFindingCode.HOST_SENDS, host.name, None, row, _LEAST_ROW, []
        yield MeshFindingCode.HOST_RECEIVES, host.name, None, column, _LEAST_ROW, []
        if row and column:
            yield MeshFindingCode.HOST, host.name, None, row + column, _LEAST_HOST, []


def _of_groups(rates: RelativeRates) -> Iterator[_Candidate]:
    blocks: dict[tuple[str, str], list[int]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    for host in rates.hosts:
        if host.group is not None:
            sizes[host.group] += 1
    for cell, (sender, receiver) in enumerate(rates.pairs):
        groups = rates.hosts[sender].group, rates.hosts[receiver].group
        if groups[0] is not None and groups[1] is not None:
            blocks[groups[0], groups[1]].append(cell)
    names = list(sizes)
    if len(names) < 2:
        return
    for first in names:
        yield from _of_group(first, names, blocks, is_large=sizes[first] >= _LEAST_GROUP)
    if len(names) > 2:
        between = [cell for (first, second), cells in blocks.items() if first != second for cell in cells]
        yield MeshFindingCode.GROUPS, None, None, between, _LEAST_BLOCK, []


def _of_group(
    first: str, names: Sequence[str], blocks: Mapping[tuple[str, str], list[int]], *, is_large: bool
) -> Iterator[_Candidate]:
    """Yield the suspects of one group; its inside only if it has more than two paths."""
    others = [second for second in names if second != first]
    within = blocks[first, first]
    outwards = [cell for second in others for cell in blocks[first, second]]
    inwards = [cell for second in others for cell in blocks[second, first]]
    if is_large:
        yield MeshFindingCode.GROUP, first, first, within, _LEAST_BLOCK, []
        yield MeshFindingCode.GROUP, first, None, within + outwards + inwards, _LEAST_BLOCK, []
    if len(others) == 1:
        # With two groups, all that leaves the one goes to the other.
        yield MeshFindingCode.GROUPS, first, others[0], outwards, _LEAST_BLOCK, within
        return
    yield MeshFindingCode.GROUPS, first, None, outwards, _LEAST_BLOCK, within
    yield MeshFindingCode.GROUPS, None, first, inwards, _LEAST_BLOCK, within
    for second in others:
        yield MeshFindingCode.GROUPS, first, second, blocks[first, second], _LEAST_BLOCK, []
