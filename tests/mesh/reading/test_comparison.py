"""Two meshes of the same hosts."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from linkgauge.mesh.events import CellFailure, FailureCode
from linkgauge.mesh.figures import CellFigure, MeshFindingCode, MeshMatrix
from linkgauge.mesh.plan import Cell
from linkgauge.mesh.reading import compare_meshes, find_faults

from .mesh_examples import Fault, MeshExample, names

CODE = MeshFindingCode
BEFORE = MeshExample(10, (Fault(CODE.HOST, "db-02"), Fault(CODE.HOST_SENDS, "db-05", None, 0.7)), noise=0.02)


def test_a_part_that_is_slow_in_both_is_not_a_change() -> None:
    """The meshes differ only by scatter."""
    comparison = compare_meshes(BEFORE.make(), replace(BEFORE, seed=2).make())
    assert (comparison.slower, comparison.faster) == ((), ())
    assert comparison.percent == pytest.approx(0, abs=2)
    assert len(comparison.cells) == 90


def test_a_slower_and_a_repaired_host_are_named() -> None:
    """Each with its direction."""
    after = MeshExample(10, (Fault(CODE.HOST, "db-02"), Fault(CODE.HOST_RECEIVES, "db-07")), noise=0.02, seed=2)
    comparison = compare_meshes(BEFORE.make(), after.make())
    assert names(comparison.slower) == [(CODE.HOST_RECEIVES, "db-07", None)]
    assert comparison.slower[0].less_percent == pytest.approx(50, abs=3)
    assert names(comparison.faster) == [(CODE.HOST_SENDS, "db-05", None)]


@pytest.mark.parametrize("transactions", [False, True])
def test_if_everything_is_slower_that_is_the_change(*, transactions: bool) -> None:
    """Transactions are compared with transactions."""
    before = MeshExample(6, noise=0.01, transactions=transactions)
    comparison = compare_meshes(before.make(), replace(before, faults=(Fault(CODE.ALL, share=0.8),), seed=2).make())
    assert names(comparison.slower) == [(CODE.ALL, None, None)]
    assert comparison.percent == pytest.approx(-20, abs=2)


def test_a_change_is_in_percent_of_the_first_value() -> None:
    """None if nothing arrived."""
    before, cell = MeshExample(3, noise=0.0).make(), Cell("db-00", "db-01")
    after = replace(
        before, figures={cell: replace(before.figures[cell], bit_s=before.figures[cell].bit_s or 0 / 2)}
    )
    assert compare_meshes(before, after).cells[0].percent == pytest.approx(0)
    nothing = replace(before, figures={cell: replace(before.figures[cell], bit_s=0.0)})
    assert compare_meshes(nothing, before).cells[0].percent is None


def test_hosts_of_only_one_mesh_are_named() -> None:
    """Their cells are not compared."""
    comparison = compare_meshes(MeshExample(5).make(), MeshExample(6).make())
    assert (comparison.hosts_missing, comparison.hosts_added) == ((), ("db-05",))
    assert len(comparison.cells) == 20
    assert compare_meshes(MeshExample(6).make(), MeshExample(5).make()).hosts_missing == ("db-05",)


def test_a_host_that_went_down_is_worse_than_before() -> None:
    """It had results in the first mesh."""
    before = MeshExample(5, noise=0.01).make()
    failure = CellFailure(FailureCode.HOST_LOST, "the worker has gone", "db-03")
    figures = {
        cell: CellFigure(cell, failure=failure) if "db-03" in cell else figure
        for cell, figure in before.figures.items()
    }
    comparison = compare_meshes(before, replace(before, figures=figures))
    assert names(comparison.slower) == [(CODE.HOST_DOWN, "db-03", None)]


def test_transactions_are_not_compared_with_rates() -> None:
    """Their units differ."""
    comparison = compare_meshes(MeshExample(4).make(), MeshExample(4, transactions=True).make())
    assert (comparison.cells, comparison.percent, comparison.slower) == ((), None, ())


def _slow_beside_others(before: MeshMatrix, cells: Sequence[Cell], alone: float) -> MeshMatrix:
    """Return a matrix in which cells have a sixth of their rate beside others, and a share of it alone."""
    rates = {cell: before.figures[cell].bit_s or 0.0 for cell in cells}
    slow = {
        cell: replace(before.figures[cell], bit_s=rate / 6, isolated_bit_s=rate * alone)
        for cell, rate in rates.items()
    }
    return replace(before, figures={**before.figures, **slow})


@pytest.mark.parametrize("expected", [True, False])
def test_a_path_that_a_test_alone_clears_is_accused_neither_in_its_mesh_nor_by_the_comparison(
    *, expected: bool
) -> None:
    """It shared a trunk with others; the figure of the test alone counts."""
    before, cell = MeshExample(6, noise=0.01, expected=expected).make(), Cell("db-02", "db-05")
    after = _slow_beside_others(before, [cell], alone=0.99)
    comparison = compare_meshes(before, after)
    assert find_faults(after) == comparison.slower == comparison.faster == ()
    change = next(change for change in comparison.cells if change.cell == cell)
    assert change.percent == pytest.approx(-1)
    assert compare_meshes(after, before).faster == ()


def test_a_path_that_is_slow_alone_as_well_is_slower_than_before() -> None:
    """The second test confirms it."""
    before, cell = MeshExample(6, noise=0.01).make(), Cell("db-02", "db-05")
    comparison = compare_meshes(before, _slow_beside_others(before, [cell], alone=0.2))
    assert names(comparison.slower) == [(CODE.PATH, *cell)]


def test_a_network_that_lost_capacity_is_the_change() -> None:
    """As in its own mesh: no path is accused."""
    before = MeshExample(6, noise=0.01).make()
    cells = [Cell("db-00", "db-03"), Cell("db-01", "db-04"), Cell("db-02", "db-05"), Cell("db-03", "db-01")]
    comparison = compare_meshes(before, _slow_beside_others(before, cells, alone=1.0))
    assert [finding.code for finding in comparison.slower] == [CODE.FABRIC]
