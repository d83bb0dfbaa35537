"""The fewest causes that explain which cells of a mesh are slow.

Pure. The slowest part decides a rate: the sender, the receiver, or the path between their groups. The cause that
explains most of the slowness is taken first; the cells that it explains are no evidence for another cause. The
delays of transactions add up: with two causes, such a cell is slower than with either. A joint between groups has
one rate for all pairs that cross it at the same time: its cells differ by the number of these pairs.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from statistics import NormalDist, median
from typing import Final

from ..figures import MeshFindingCode
from .relative_rates import RelativeRates
from .suspected_causes import Suspect, find_suspects

LEAST_SLOWNESS: Final = 0.08  # of a cause, as a difference of logarithms: 8 % less
_FAR: Final = 5.0  # standard deviations: a cell further away tells no more than this
_NEW: Final = 3.0  # standard deviations below the explained slowness: something else slows this cell down
_CONTRADICTION: Final = 3.0  # a cell that is not slow counts more against a cause than a slow one for it
_COST: Final = 10.0  # of a cause: how much more likely it must make the cells, as a logarithm
# A shared part has two parameters, and must explain more. Its own slowness is that of its fastest cells.
_SHARED_COST: Final = 2.0
_LEAST_SHARED: Final = 0.16  # 15 % less for a single pair: a joint of a line's rate is slow for several pairs only
_SHARED_LEVELS: Final = (0.7, 0.85, 0.95, 1.0)
_LEAST_FREE_SHARE: Final = 0.25
_SLOW_SHARE: Final = 0.8
_SLOW_SHARE_OF_SLICE: Final = 0.75
_CHANCE: Final = 2.0  # standard deviations of a count
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause that slows cells down, and by how much: `slowness` is a negative difference of logarithms.

    Pairs that share a joint at the same time are slower still, by up to `depth`; it is 0 if no pairs share it.
    """

    suspect: Suspect
    slowness: float
    depth: float = 0.0

    @property
    def lowest(self) -> float:
        """The lowest distance that this cause can give a cell."""
        return self.slowness - self.depth


@dataclass(frozen=True, slots=True)
class Explanation:
    """Causes of the slow cells, if `usual` is the usual rate.

    Args:
        usual: the rate of healthy cells.
        causes: the causes, the largest first.
        floors: for each cell the lowest distance from the usual rate that the causes explain.
        residuals: the unexplained part of each cell's distance: about 0 if the causes explain it.
        cost: the misfit of all this; lower is better.
    """

    usual: float
    causes: tuple[Cause, ...]
    floors: tuple[float, ...]
    residuals: tuple[float, ...]
    cost: float


def explain(rates: RelativeRates, usual: float, spread: float) -> Explanation:
    """Return the causes of rates below the usual one; `spread` is the standard deviation of cells.

    If most hosts of two groups are slow, the path between the groups seems slow. So the hosts are also tried first.
    """
    distances = [value - usual for value in rates.logs]
    suspects = find_suspects(rates, [distance < -LEAST_SLOWNESS / 2 for distance in distances])
    hosts = [suspect for suspect in suspects if suspect.is_host]
    orders = [[suspects], [hosts, suspects]] if 0 < len(hosts) < len(suspects) else [[suspects]]
    found: list[Explanation] = []
    for order in orders:
        search = _Search(rates, distances, spread)
        causes = _joined(search.without_needless(search.run(order)), rates)
        found.append(Explanation(usual, tuple(causes), *search.outcome(causes)))
    return min(found, key=lambda each: each.cost)


class _Search:
    """The search for causes: the cells, and how far the causes taken so far explain them."""

    def __init__(self, rates: RelativeRates, distances: list[float], spread: float) -> None:
        self._rates = rates
        self._distances = distances
        self._spread = spread
        # The causes taken so far explain a cell between these two distances from the usual rate.
        self._highest = [0.0] * len(distances)
        self._lowest = [0.0] * len(distances)
        self._cost = _COST + log(1 + 3 * len(rates.hosts))

    def run(self, order: Sequence[Sequence[Suspect]]) -> list[Cause]:
        """Take causes of one list of suspects after the other, until none explains more than it costs."""
        causes: list[Cause] = []
        for suspects in order:
            # A suspect may become a cause once another cause has explained its slowest cells.
            while more := self._take_from(
                [each for each in suspects if each not in {own.suspect for own in causes}]
            ):
                causes += more
        return self._fitted(causes)

    def _take_from(self, suspects: Sequence[Suspect]) -> list[Cause]:
        """Take the suspects that explain something, the one that explains most first.

        A suspect can only explain less when others are taken, so it is judged again only when it comes first.
        """
        queue = [
            (-gain, place, 0) for place, suspect in enumerate(suspects) if (gain := self._judge(suspect)[0]) > 0
        ]
        heapq.heapify(queue)
        causes: list[Cause] = []
        while queue:
            _, place, when = heapq.heappop(queue)
            gain, cause = self._judge(suspects[place])
            if cause is None:
                continue
            if when < len(causes):
                heapq.heappush(queue, (-gain, place, len(causes)))
                continue
            causes.append(cause)
            self._take(cause)
        return causes

    def _judge(self, suspect: Suspect) -> tuple[float, Cause | None]:
        """Return by how much a suspect explains more than it costs, and its cause; 0 and None if it is not one."""
        distances, spread = self._distances, self._spread
        free = [
            cell
            for cell in suspect.cells
            if not self._highest[cell] or distances[cell] < self._lowest[cell] - _NEW * spread
        ]
        if len(free) < max(2, _LEAST_FREE_SHARE * len(suspect.cells)):
            return 0.0, None
        ordered = sorted(distances[cell] for cell in free)
        causes = [Cause(suspect, median(ordered))]
        depth = 0.0 if self._rates.adds_up else log(_most_sharing(suspect, self._rates))
        if depth:
            levels = {ordered[int(share * (len(ordered) - 1))] for share in _SHARED_LEVELS}
            causes += [Cause(suspect, level, depth) for level in levels]
        gains = [(self._gain(cause, free), place) for place, cause in enumerate(causes)]
        gain, place = max(gains, key=lambda each: (each[0], -each[1]))
        return (gain, causes[place]) if gain > 0 else (0.0, None)

    def _gain(self, cause: Cause, free: Sequence[int]) -> float:
        """Return by how much a cause explains more than it costs, or 0. `free` are unexplained cells."""
        suspect, slowness, distances = cause.suspect, cause.slowness, self._distances
        least = _LEAST_SHARED if cause.depth else LEAST_SLOWNESS
        if slowness > -least or not self._is_slow_throughout(free, slowness):
            return 0.0
        if suspect.is_refuted_by and self._is_slow_throughout(suspect.is_refuted_by, slowness):
            return 0.0
        gain = -self._cost_of(cause)
        for cell in suspect.cells:
            before = self._misfit(distances[cell], self._highest[cell], self._lowest[cell])
            highest, lowest = min(self._highest[cell], slowness), self._low(self._lowest[cell], cause.lowest)
            better = before - self._misfit(distances[cell], highest, lowest)
            gain += better if better > 0 else _CONTRADICTION * better
        return gain

    def _cost_of(self, cause: Cause) -> float:
        return (_SHARED_COST if cause.depth else 1) * self._cost

    def _is_slow_throughout(self, cells: Sequence[int], slowness: float) -> bool:
        """Return whether all hosts of a suspect are slow. If only some are, these are the cause themselves."""
        # The share of slow cells that are nearer to this slowness than to the usual rate, in spite of scatter.
        share = _NORMAL.cdf(-slowness / 2 / self._spread)
        slices: dict[tuple[int, int], list[bool]] = defaultdict(list)
        slow = 0
        for cell in cells:
            is_slow = self._distances[cell] < slowness / 2
            slow += is_slow
            for side, place in enumerate(self._rates.pairs[cell]):
                slices[side, place].append(is_slow)
        if slow < _SLOW_SHARE * share * len(cells):
            return False
        return all(sum(part) >= _least_slow(len(part), share) for part in slices.values() if len(part) > 1)

    def _misfit(self, distance: float, highest: float, lowest: float) -> float:
        """Return how unlikely a cell's distance is if it should lie between two others, as a logarithm."""
        beyond = distance - highest if distance > highest else min(0.0, distance - lowest)
        return min(_FAR, abs(beyond) / self._spread) ** 2 / 2

    def _low(self, first: float, second: float) -> float:
        """Return the lowest distance that two causes can give a cell together."""
        return -log(exp(-first) + exp(-second) - 1) if self._rates.adds_up else min(first, second)

    def _take(self, cause: Cause) -> None:
        for cell in cause.suspect.cells:
            self._highest[cell] = min(self._highest[cell], cause.slowness)
            self._lowest[cell] = self._low(self._lowest[cell], cause.lowest)

    def _fitted(self, causes: Sequence[Cause]) -> list[Cause]:
        """Return causes whose slowness is fitted to the cells that no other cause slows down."""
        counts = [0] * len(self._distances)
        for cause in causes:
            for cell in cause.suspect.cells:
                counts[cell] += 1
        fitted: list[Cause] = []
        for cause in causes:
            own = [self._distances[cell] for cell in cause.suspect.cells if counts[cell] == 1]
            is_enough = len(own) >= max(2, _LEAST_FREE_SHARE * len(cause.suspect.cells))
            is_fitted = is_enough and not cause.depth
            fitted.append(replace(cause, slowness=min(median(own), 0.0)) if is_fitted else cause)
        return fitted

    def without_needless(self, causes: Sequence[Cause]) -> list[Cause]:
        """Return causes without those that the others explain, such as a group with mostly slow hosts."""
        of_cells: dict[int, list[Cause]] = defaultdict(list)
        for cause in causes:
            for cell in cause.suspect.cells:
                of_cells[cell].append(cause)
        needed = list(causes)
        for cause in causes:
            worth = -self._cost_of(cause)
            for cell in cause.suspect.cells:
                worth += self._misfit_of(cell, [each for each in of_cells[cell] if each is not cause])
                worth -= self._misfit_of(cell, of_cells[cell])
            if worth <= 0:
                needed.remove(cause)
                for cell in cause.suspect.cells:
                    of_cells[cell].remove(cause)
        return needed

    def _misfit_of(self, cell: int, causes: Iterable[Cause]) -> float:
        highest = lowest = 0.0
        for cause in causes:
            highest, lowest = min(highest, cause.slowness), self._low(lowest, cause.lowest)
        return self._misfit(self._distances[cell], highest, lowest)

    def outcome(self, causes: Sequence[Cause]) -> tuple[tuple[float, ...], tuple[float, ...], float]:
        """Return the floors, the residuals and the cost of an Explanation."""
        count = len(self._distances)
        self._highest, self._lowest = [0.0] * count, [0.0] * count
        for cause in causes:
            self._take(cause)
        cost = sum(map(self._cost_of, causes))
        residuals: list[float] = []
        for distance, highest, lowest in zip(self._distances, self._highest, self._lowest, strict=True):
            cost += self._misfit(distance, highest, lowest)
            residuals.append(distance - highest if distance > highest else min(0.0, distance - lowest))
        return tuple(self._lowest), tuple(residuals), cost


def _most_sharing(suspect: Suspect, rates: RelativeRates) -> int:
    """Return how many pairs can cross a path between groups at a time; 1 for a part that pairs never share."""
    if suspect.code is not MeshFindingCode.GROUPS:
        return 1
    senders, receivers = (len({rates.pairs[cell][side] for cell in suspect.cells}) for side in (0, 1))
    return min(senders, receivers)


def _least_slow(count: int, share: float) -> float:
    """Return how many of `count` cells must be slow, if a share of the slow cells seems slow."""
    return _SLOW_SHARE_OF_SLICE * share * count - _CHANCE * sqrt(count * share * (1 - share))


def _joined(causes: Iterable[Cause], rates: RelativeRates) -> list[Cause]:
    """Return causes, joined if they are one: a host that sends and receives, all paths out of a group."""
    left = {(cause.suspect.code, cause.suspect.sender, cause.suspect.receiver): cause for cause in causes}

    def join(code: MeshFindingCode, sender: str | None, receiver: str | None, keys: Sequence[_Key]) -> None:
        if len(keys) < 2 or not all(key in left for key in keys):
            return
        parts = [left.pop(key) for key in keys]
        cells = tuple(sorted({cell for part in parts for cell in part.suspect.cells}))
        total = sum(len(part.suspect.cells) for part in parts)
        slowness = sum(part.slowness * len(part.suspect.cells) for part in parts) / total
        depth = max(part.depth for part in parts)
        left[code, sender, receiver] = Cause(Suspect(code, sender, receiver, cells), slowness, depth)

    code = MeshFindingCode
    for host in rates.hosts:
        name = host.name
        join(code.HOST, name, None, [(code.HOST_SENDS, name, None), (code.HOST_RECEIVES, name, None)])
    groups = list(dict.fromkeys(host.group for host in rates.hosts if host.group is not None))
    for group in groups:
        others = [other for other in groups if other != group]
        join(code.GROUPS, group, None, [(code.GROUPS, group, other) for other in others])
        join(code.GROUPS, None, group, [(code.GROUPS, other, group) for other in others])
        whole = [(code.GROUPS, group, None), (code.GROUPS, None, group), (code.GROUP, group, group)]
        join(code.GROUP, group, None, whole)
        _split_into_hosts(left, group, others[0] if len(others) == 1 else None, rates)
    join(code.GROUPS, None, None, [(code.GROUPS, group, None) for group in groups])
    return sorted(left.values(), key=lambda cause: cause.slowness * len(cause.suspect.cells))


def _split_into_hosts(left: "dict[_Key, Cause]", group: str, only_other: str | None, rates: RelativeRates) -> None:
    """Name the hosts of a group if they all send, or all receive, as slowly within the group as outside."""
    code = MeshFindingCode
    within = (code.GROUP, group, group)
    for side, of_host, outside in (
        (0, code.HOST_SENDS, (code.GROUPS, group, only_other)),
        (1, code.HOST_RECEIVES, (code.GROUPS, only_other, group)),
    ):
        if within not in left or outside not in left:
            continue
        if abs(left[within].slowness - left[outside].slowness) > LEAST_SLOWNESS:
            continue
        slowness = left.pop(outside).slowness
        del left[within]
        for place, host in enumerate(rates.hosts):
            if host.group == group:
                cells = tuple(cell for cell, pair in enumerate(rates.pairs) if pair[side] == place)
                left[of_host, host.name, None] = Cause(Suspect(of_host, host.name, None, cells), slowness)


_Key = tuple[MeshFindingCode, str | None, str | None]
