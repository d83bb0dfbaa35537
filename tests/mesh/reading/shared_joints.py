"""Meshes with joints slower than their hosts' links: pairs that cross at the same time share them."""

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import exp

from linkgauge.engine.model.directions import Direction
from linkgauge.mesh.figures import CellFigure, MeshMatrix
from linkgauge.mesh.plan import Cell, MeshMode
from linkgauge.mesh.reading import cells_to_recheck
from linkgauge.mesh.schedule import make_rounds

from .mesh_examples import LINE_RATE, make_hosts

Way = tuple[str, str]
"""A direction of a joint, by its groups."""


@dataclass(frozen=True)
class SharedJoint:
    """Hosts in groups; some ways between groups have a maximum, in line rates, for all pairs together.

    A way without an entry carries everything. A group's uplink, which all traffic out of or into it shares, has ""
    as the other group. `slip` is the share of a test during which the other tests of its round have not begun or
    are over. `skew` is the standard deviation of the logarithm of a pair's share of a way: 0 for equal shares.
    """

    hosts: int
    groups: int
    ways: Mapping[Way, float]
    noise: float = 0.02
    slip: float = 0.1
    skew: float = 0.0
    seed: int = 1

    def make_again(self) -> MeshMatrix:
        """Return its matrix, with second measurements of the cells that ask for one."""
        chance = random.Random(f"{self.seed} {self.hosts} {self.groups}")  # noqa: S311 - no secret
        hosts = make_hosts(self.hosts, self.groups)
        group = {host.name: host.group or "" for host in hosts}
        figures: dict[Cell, CellFigure] = {}
        for pairs in make_rounds([host.name for host in hosts], self.seed):
            for direction in (Direction.OUT, Direction.IN):
                cells = [cell for pair in pairs for cell, way in pair.cells if way is direction]
                weights = {cell: exp(chance.gauss(0, self.skew)) if self.skew else 1.0 for cell in cells}
                crossing: defaultdict[Way, float] = defaultdict(float)
                for cell in cells:
                    for way in self._ways(cell, group):
                        crossing[way] += weights[cell]
                for cell in cells:
                    slip = self.slip * chance.random()
                    rate = slip * self._alone(cell, group) + (1 - slip) * min(
                        [1.0, *(self.ways[way] * weights[cell] / crossing[way] for way in self._ways(cell, group))]
                    )
                    rate *= LINE_RATE * exp(chance.gauss(0, self.noise))
                    figures[cell] = CellFigure(cell, "run", bit_s=rate, expected_bit_s=LINE_RATE)
        matrix = MeshMatrix("mesh-1", MeshMode.ROUNDS, hosts, figures)
        for cell in cells_to_recheck(matrix):
            alone = self._alone(cell, group) * LINE_RATE * exp(chance.gauss(0, self.noise))
            figures[cell] = replace(figures[cell], isolated_bit_s=alone, isolated_run_id="again")
        return replace(matrix, figures=figures)

    def _ways(self, cell: Cell, group: Mapping[str, str]) -> list[Way]:
        sender, receiver = group[cell.sender], group[cell.receiver]
        if sender == receiver:
            return []
        return [way for way in ((sender, receiver), (sender, ""), ("", receiver)) if way in self.ways]

    def _alone(self, cell: Cell, group: Mapping[str, str]) -> float:
        return min([1.0, *(self.ways[way] for way in self._ways(cell, group))])


def both_ways(groups: int, share: float) -> dict[Way, float]:
    """Return every way between groups, with the same share of a line rate."""
    names = [f"rack-{number}" for number in range(groups)]
    return {(first, second): share for first, second in product(names, names) if first != second}
