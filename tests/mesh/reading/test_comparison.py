"""Two meshes of the same hosts."""

from dataclasses import replace

import pytest
from linkgauge.mesh.events import CellFailure, FailureCode
from linkgauge.mesh.figures import CellFigure, MeshFindingCode
from linkgauge.mesh.plan import Cell
from linkgauge.mesh.reading import compare_meshes

from .mesh_examples import Fault, MeshExample, names

CODE = MeshFindingCode
BEFORE = MeshExample(10, (Fault(CODE.HOST, "db-02"), Fault(CODE.HOST_SENDS, "db-05", None, 0.7)), noise=0.02)


def test_what_is_slow_in_both_is_no_change() -> None:
    """Nothing but scatter lies between them."""
    comparison = compare_meshes(BEFORE.make(), replace(BEFORE, seed=2).make())
    assert (comparison.slower, comparison.faster) == ((), ())
    assert comparison.percent == pytest.approx(0, abs=2)
    assert len(comparison.cells) == 90


def test_what_became_slow_and_what_was_mended_is_named() -> None:
    """One host each."""
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
    """None where nothing arrived."""
    before, cell = MeshExample(3, noise=0.0).make(), Cell("db-00", "db-01")
    after = replace(
        before, figures={cell: replace(before.figures[cell], bit_s=before.figures[cell].bit_s or 0 / 2)}
    )
    assert compare_meshes(before, after).cells[0].percent == pytest.approx(0)
    nothing = replace(before, figures={cell: replace(before.figures[cell], bit_s=0.0)})
    assert compare_meshes(nothing, before).cells[0].percent is None


def test_hosts_of_one_mesh_only_are_said() -> None:
    """Their cells are not compared."""
    comparison = compare_meshes(MeshExample(5).make(), MeshExample(6).make())
    assert (comparison.hosts_missing, comparison.hosts_added) == ((), ("db-05",))
    assert len(comparison.cells) == 20
    assert compare_meshes(MeshExample(6).make(), MeshExample(5).make()).hosts_missing == ("db-05",)


def test_a_host_that_went_down_is_worse_than_before() -> None:
    """It had results in the first."""
    before = MeshExample(5, noise=0.01).make()
    failure = CellFailure(FailureCode.HOST_LOST, "the worker has gone", "db-03")
    figures = {
        cell: CellFigure(cell, failure=failure) if "db-03" in cell else figure
        for cell, figure in before.figures.items()
    }
    comparison = compare_meshes(before, replace(before, figures=figures))
    assert names(comparison.slower) == [(CODE.HOST_DOWN, "db-03", None)]


def test_transactions_are_not_compared_with_rates() -> None:
    """They have no unit in common."""
    comparison = compare_meshes(MeshExample(4).make(), MeshExample(4, transactions=True).make())
    assert (comparison.cells, comparison.percent, comparison.slower) == ((), None, ())
