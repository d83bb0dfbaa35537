"""The cells of a mesh as comparable numbers: the share of its expected rate that each one reaches.

Pure. Hosts may have links of different speeds, so a rate is divided by the expected one. A cell without an expected
rate gets the expected rate of its hosts' other cells. If most cells have none, and for transactions, values are
compared as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import median
from typing import Final

from ..figures import CellFigure, MeshMatrix
from ..plan import Cell, Host

_LEAST_SHARE: Final = 1e-3  # of the median: a cell without payload has no logarithm of its own


@dataclass(frozen=True, slots=True)
class RelativeRates:
    """The measured cells of a matrix, in the order of hosts.

    Args:
        hosts: the hosts of the matrix.
        cells: the cells with a value.
        pairs: the places of each cell's sender and receiver in `hosts`.
        logs: the natural logarithm of each cell's share of its expected rate; of its value, if `is_absolute` is
            False.
        isolated_logs: the same for the second measurement, alone; None for a cell without one.
        is_absolute: whether expected rates are known, so that a logarithm of 0 is as expected.
        adds_up: whether causes add up, as the delays of transactions do; for rates the slowest part decides.
    """

    hosts: tuple[Host, ...]
    cells: tuple[Cell, ...]
    pairs: tuple[tuple[int, int], ...]
    logs: tuple[float, ...]
    isolated_logs: tuple[float | None, ...]
    is_absolute: bool
    adds_up: bool


def relative_rates(matrix: MeshMatrix) -> RelativeRates:
    """Return the measured cells of a matrix. Figures of hosts that the matrix does not name are left out."""
    places = {host.name: place for place, host in enumerate(matrix.hosts)}
    figures = [
        figure
        for cell, figure in matrix.figures.items()
        if figure.value is not None and cell.sender in places and cell.receiver in places
    ]
    has_transactions = any(figure.transactions_s is not None for figure in figures)
    if has_transactions:
        figures = [figure for figure in figures if figure.transactions_s is not None]
    figures.sort(key=lambda figure: (places[figure.cell.sender], places[figure.cell.receiver]))
    expected = _expected_rates(figures)
    values = [figure.first_value or 0.0 for figure in figures]
    shares = (
        [value / expected[figure.cell] for figure, value in zip(figures, values, strict=True)]
        if expected
        else values
    )
    logs = _logs(shares)
    return RelativeRates(
        hosts=matrix.hosts,
        cells=tuple(figure.cell for figure in figures),
        pairs=tuple((places[figure.cell.sender], places[figure.cell.receiver]) for figure in figures),
        logs=tuple(logs),
        isolated_logs=tuple(_isolated_log(figure, own) for figure, own in zip(figures, logs, strict=True)),
        is_absolute=bool(expected),
        adds_up=has_transactions,
    )


def expected_rates(matrix: MeshMatrix) -> Mapping[Cell, float]:
    """Return the expected rate of each measured cell, in bits a second; empty if most cells have none."""
    return _expected_rates([figure for figure in matrix.figures.values() if figure.value is not None])


def _expected_rates(figures: Sequence[CellFigure]) -> dict[Cell, float]:
    """Return an expected rate for each cell; empty if most cells have none."""
    known: dict[Cell, float] = {
        figure.cell: figure.expected_bit_s
        for figure in figures
        if figure.expected_bit_s and figure.transactions_s is None
    }
    if not known or 2 * len(known) < len(figures):
        return {}
    if len(known) == len(figures):
        return known
    of_hosts = _medians_of_hosts(known)
    usual = median(known.values())
    return {figure.cell: known.get(figure.cell) or _guess(figure.cell, of_hosts, usual) for figure in figures}


def _medians_of_hosts(known: Mapping[Cell, float]) -> dict[str, float]:
    """Return the median of the expected rates of each host's cells."""
    of_hosts: dict[str, list[float]] = {}
    for cell, rate in known.items():
        for name in cell:
            of_hosts.setdefault(name, []).append(rate)
    return {name: median(rates) for name, rates in of_hosts.items()}


def _guess(cell: Cell, of_hosts: Mapping[str, float], usual: float) -> float:
    """Return the expected rate of a cell by its hosts' other cells: the slower of its two links."""
    return min(of_hosts.get(cell.sender, usual), of_hosts.get(cell.receiver, usual))


def _logs(shares: Sequence[float]) -> list[float]:
    if not shares:
        return []
    least = (median(shares) or max(shares) or 1.0) * _LEAST_SHARE
    return [log(max(share, least)) for share in shares]


def _isolated_log(figure: CellFigure, own: float) -> float | None:
    if not figure.isolated_bit_s or not figure.bit_s:
        return None
    return own + log(figure.isolated_bit_s / figure.bit_s)
