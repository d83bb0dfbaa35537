"""The verdict and the numbers of cells: by the expected rate, or by the other cells."""

from linkgauge.mesh.figures import CellFigure
from linkgauge.mesh.plan import Cell
from linkgauge.tui.mesh.mesh_verdict import CellScale, CellState, legend

from ..scripted_mesh import UNREACHABLE, matrix

A, B, C, D = (Cell("db-01", f"db-0{number}") for number in range(2, 6))


def test_a_cell_is_judged_by_its_expected_rate_as_a_run_is() -> None:
    """By the pass mark and half of the rate. A failed cell differs from one that was not measured yet."""
    figures = [
        CellFigure(A, "a", 23.5e9, expected_bit_s=23.5e9),
        CellFigure(B, "b", 20e9, expected_bit_s=23.5e9),
        CellFigure(C, "c", 10e9, expected_bit_s=23.5e9),
        CellFigure(D, failure=UNREACHABLE),
    ]
    scale = CellScale(matrix(figures))
    assert [scale.state(cell) for cell in (A, B, C, D, Cell("x", "y"))] == list(CellState)[:5]
    assert CellScale(matrix(figures), 80.0).state(B) is CellState.PASS
    assert "of the expected rate" in legend(scale)


def test_without_an_expected_rate_a_cell_is_judged_by_the_median() -> None:
    """Of transactions as well."""
    scale = CellScale(matrix([CellFigure(cell, "r", bit_s) for cell, bit_s in ((A, 9.4e9), (B, 9.3e9), (C, 4e9))]))
    assert [scale.state(cell) for cell in (A, B, C)] == [CellState.PASS, CellState.PASS, CellState.FAIL]
    assert "of the median" in legend(scale)
    requests = CellScale(matrix([CellFigure(cell, "r", 1e6, n) for cell, n in ((A, 41_000.0), (B, 30_000.0))]))
    assert requests.unit == "trans/s"
    assert requests.state(B) is CellState.SHORT
    assert requests.number(A) == "41\u00a0000"


def test_numbers_have_one_unit_and_fit_their_column() -> None:
    """The unit of the fastest cell."""
    scale = CellScale(matrix([CellFigure(A, "a", 23.512e9), CellFigure(B, "b", 0.4e9), CellFigure(C, "c", 391e9)]))
    assert scale.unit == "Gb/s"
    assert [scale.number(cell) for cell in (A, B, C, D)] == ["23.5", "0.4", "391.0", ""]
    slow = CellScale(matrix([CellFigure(A, "a", 9_412e6)]))
    assert (slow.number(A), slow.unit) == ("9\u00a0412", "Mb/s")


def test_a_cell_without_an_expected_rate_has_that_of_its_hosts_other_cells() -> None:
    """As in the reading. If most cells have none, the median remains."""
    known = [CellFigure(cell, "r", 23.5e9, expected_bit_s=23.5e9) for cell in (A, B)]
    scale = CellScale(matrix([*known, CellFigure(C, "r", 9.4e9)]))
    assert (scale.state(C), scale.is_of_expected(C)) == (CellState.FAIL, True)
    alone = CellScale(matrix([known[0], CellFigure(B, "r", 9.4e9), CellFigure(C, "r", 9.4e9)]))
    assert (alone.state(C), alone.is_of_expected(C)) == (CellState.PASS, False)
