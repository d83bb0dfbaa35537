"""The order of hosts in a matrix, so that slow hosts show as stripes. Pure."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Final

from ..figures import MeshMatrix
from .relative_rates import relative_rates

_NOTICEABLE: Final = 0.08  # a difference of logarithms: hosts that differ by less keep their order
_REACHED_WITH: Final = 0.75


def order_hosts(matrix: MeshMatrix) -> tuple[str, ...]:
    """Return the names of the hosts, the slowest first; hosts of about the usual speed keep their order.

    With groups, the hosts of a group stay together, and the group with the slowest host comes first. A host's speed
    is its speed with the faster quarter of the others, in its slower direction: if half of the hosts are slow, the
    others would have slow medians too.
    """
    strengths = _strengths(matrix)
    usual = median(strengths.values()) if strengths else 0.0
    keys = {name: min(0.0, value - usual + _NOTICEABLE) for name, value in strengths.items()}
    groups: dict[str | None, float] = {}
    for host in matrix.hosts:
        groups[host.group] = min(groups.get(host.group, 0.0), keys.get(host.name, 0.0))
    place_of_group = {group: place for place, group in enumerate(groups)}
    places = {host.name: place for place, host in enumerate(matrix.hosts)}
    ordered = sorted(
        matrix.hosts,
        key=lambda host: (
            groups[host.group],
            place_of_group[host.group],
            keys.get(host.name, 0.0),
            places[host.name],
        ),
    )
    return tuple(host.name for host in ordered)


def _strengths(matrix: MeshMatrix) -> dict[str, float]:
    """Return the speed of each host with measured cells, as a logarithm."""
    rates = relative_rates(matrix)
    sides: dict[tuple[int, int], list[float]] = defaultdict(list)
    for pair, value in zip(rates.pairs, rates.logs, strict=True):
        for side, place in enumerate(pair):
            sides[place, side].append(value)
    strengths: dict[str, float] = {}
    for (place, _), values in sides.items():
        name = rates.hosts[place].name
        strengths[name] = min(strengths.get(name, values[0] + 100), _upper(values))
    return strengths


def _upper(values: Sequence[float]) -> float:
    return sorted(values)[int(_REACHED_WITH * (len(values) - 1))]
