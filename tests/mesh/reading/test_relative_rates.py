"""The rate that each cell is compared with."""

from dataclasses import replace
from math import log

import pytest
from linkgauge.mesh.plan import Cell
from linkgauge.mesh.reading.relative_rates import relative_rates

from .mesh_examples import LINE_RATE, MeshExample


def test_rates_are_shares_of_the_expected_ones() -> None:
    """In the order of hosts, whatever the order of the figures."""
    matrix = MeshExample(3, noise=0.0).make()
    figures = dict(reversed(matrix.figures.items()))
    half = Cell("db-01", "db-00")
    figures[half] = replace(figures[half], expected_bit_s=2 * LINE_RATE)
    rates = relative_rates(replace(matrix, figures=figures))
    assert rates.is_absolute
    assert rates.pairs == ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))
    assert rates.logs[2] == pytest.approx(log(0.5))
    assert rates.logs[0] == pytest.approx(0)


def test_a_few_cells_without_an_expected_rate_get_the_one_of_their_hosts() -> None:
    """The slower of two links."""
    matrix = MeshExample(4, noise=0.0).make()
    figures = {
        cell: replace(figure, expected_bit_s=LINE_RATE / 10 if "db-03" in cell else LINE_RATE)
        for cell, figure in matrix.figures.items()
    }
    unknown = Cell("db-00", "db-03")
    figures[unknown] = replace(figures[unknown], expected_bit_s=None)
    rates = relative_rates(replace(matrix, figures=figures))
    assert rates.logs[rates.cells.index(unknown)] == pytest.approx(log(10))


def test_values_are_compared_as_they_are_if_most_cells_have_no_expected_rate() -> None:
    """Transactions never have one."""
    assert not relative_rates(MeshExample(4, expected=False).make()).is_absolute
    transactions = relative_rates(MeshExample(4, transactions=True, noise=0.0).make())
    assert not transactions.is_absolute
    assert transactions.adds_up
    assert transactions.logs[0] == pytest.approx(log(2e4))


def test_cells_without_a_result_and_of_strangers_are_left_out() -> None:
    """A failure has no rate."""
    matrix = MeshExample(6, failed=0.3).make()
    rates = relative_rates(replace(matrix, hosts=matrix.hosts[:5]))
    measured = [cell for cell, figure in matrix.figures.items() if figure.value is not None and "db-05" not in cell]
    assert sorted(rates.cells) == sorted(measured)


def test_a_second_measurement_is_compared_with_the_same_rate() -> None:
    """Cells without one have None."""
    matrix = MeshExample(3, noise=0.0).make()
    cell = Cell("db-00", "db-01")
    figures = {**matrix.figures, cell: replace(matrix.figures[cell], isolated_bit_s=LINE_RATE / 2)}
    rates = relative_rates(replace(matrix, figures=figures))
    assert rates.isolated_logs[0] == pytest.approx(log(0.5))
    assert rates.isolated_logs[1:] == (None,) * 5
