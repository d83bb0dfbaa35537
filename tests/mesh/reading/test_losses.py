"""Lossy hosts, groups and paths are named if rates do not show them, and nothing else is."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.mesh.figures import CellFigure, MeshFinding, MeshFindingCode, MeshMatrix
from linkgauge.mesh.plan import Cell, MeshMode
from linkgauge.mesh.reading import cells_to_recheck, find_faults

from .mesh_examples import Fault, MeshExample, names

CODE = MeshFindingCode
SIZES = (3, 5, 8, 12)
Lossy = Callable[[Cell], bool]


def lose(matrix: MeshMatrix, lossy: Lossy, loss: float, usual: float = 0.0, seed: int = 1) -> MeshMatrix:
    """Return a matrix in which cells lose the usual share of their payload, and lossy ones another share."""
    chance = random.Random(seed)  # noqa: S311 - no secret

    def figure(cell: Cell, before: CellFigure) -> CellFigure:
        return replace(before, loss=(loss if lossy(cell) else usual) * chance.uniform(0.7, 1.4))

    return replace(matrix, figures={cell: figure(cell, before) for cell, before in matrix.figures.items()})


def measure_again(matrix: MeshMatrix, share: float = 1.0) -> MeshMatrix:
    """Return a matrix with the second measurements that it asks for, with a share of the first loss."""
    figures = dict(matrix.figures)
    for cell in cells_to_recheck(matrix):
        before = figures[cell]
        figures[cell] = replace(
            before, isolated_bit_s=before.bit_s, isolated_run_id="again", isolated_loss=share * (before.loss or 0)
        )
    return replace(matrix, figures=figures)


def found_in(matrix: MeshMatrix, share: float = 1.0) -> tuple[MeshFinding, ...]:
    """Return the findings of a matrix that was measured to its end."""
    return find_faults(measure_again(matrix, share))


def healthy(hosts: int, groups: int = 0, mode: MeshMode = MeshMode.ROUNDS) -> MeshMatrix:
    """Return a mesh whose rates are all as expected."""
    return MeshExample(hosts, noise=0.01, groups=groups, mode=mode).make()


@given(
    hosts=st.sampled_from(SIZES),
    loss=st.sampled_from([0.005, 0.01, 0.02, 0.05]),
    usual=st.sampled_from([0.0, 1e-5, 3e-4]),
)
def test_one_lossy_direction_of_a_pair_is_named_and_nothing_else(hosts: int, loss: float, usual: float) -> None:
    """Although its rate is like the others."""
    matrix = lose(healthy(hosts), lambda cell: cell == ("db-01", "db-02"), loss, usual)
    (finding,) = found_in(matrix)
    assert names([finding]) == [(CODE.PATH, "db-01", "db-02")]
    assert finding.lost_percent == pytest.approx(100 * loss, rel=0.41)
    assert (finding.less_percent, finding.cells) == (None, (("db-01", "db-02"),))


@pytest.mark.parametrize("hosts", SIZES)
@pytest.mark.parametrize(
    ("code", "lossy"),
    [
        (CODE.HOST_RECEIVES, lambda cell: cell.receiver == "db-01"),
        (CODE.HOST_SENDS, lambda cell: cell.sender == "db-01"),
        (CODE.HOST, lambda cell: "db-01" in cell),
    ],
)
def test_a_lossy_host_is_named_once(hosts: int, code: MeshFindingCode, lossy: Lossy) -> None:
    """Its paths are not named."""
    found = found_in(lose(healthy(hosts), lossy, 0.01, 1e-4))
    assert [(each.code, each.sender or each.receiver) for each in found] == [(code, "db-01")]


@pytest.mark.parametrize("groups", [2, 3])
def test_a_lossy_way_between_groups_is_named_once(groups: int) -> None:
    """In its direction."""
    matrix = healthy(12, groups)
    group = {host.name: host.group for host in matrix.hosts}
    between = ("rack-0", "rack-1")
    found = found_in(lose(matrix, lambda cell: (group[cell.sender], group[cell.receiver]) == between, 0.01))
    assert names(found) == [(CODE.GROUPS, *between)]


def test_a_single_burst_is_not_a_lossy_path() -> None:
    """It loses nothing in the second measurement. Before that, nothing is said about it."""
    matrix = lose(healthy(8), lambda cell: cell == ("db-01", "db-02"), 0.01)
    assert cells_to_recheck(matrix) == (("db-01", "db-02"),)
    assert find_faults(matrix) == ()
    assert found_in(matrix, share=0.0) == ()


def test_many_cells_that_lose_only_beside_others_are_a_network_without_capacity() -> None:
    """One finding, without a host."""
    (finding,) = found_in(lose(healthy(8), lambda cell: "db-01" in cell, 0.01), share=0.0)
    assert (finding.code, finding.sender, len(finding.cells)) == (CODE.FABRIC, None, 14)
    assert finding.lost_percent is not None


@pytest.mark.parametrize("loss", [0.0, 1e-4, 2e-3, 0.02])
def test_a_loss_that_every_cell_has_is_not_a_finding(loss: float) -> None:
    """Nothing stands out."""
    assert found_in(lose(healthy(8), lambda _cell: False, 0.0, loss)) == ()


def test_a_slow_cause_that_loses_is_named_for_its_rate_alone() -> None:
    """A lossy path elsewhere is named beside it."""
    matrix = MeshExample(8, (Fault(CODE.HOST, "db-03", None, 0.5),), noise=0.01).make()
    (slow,) = found_in(lose(matrix, lambda cell: "db-03" in cell, 0.02))
    assert (slow.code, slow.sender, slow.lost_percent) == (CODE.HOST, "db-03", None)
    found = found_in(lose(matrix, lambda cell: "db-03" in cell or cell == ("db-01", "db-02"), 0.02))
    assert names(found) == [(CODE.HOST, "db-03", None), (CODE.PATH, "db-01", "db-02")]


def test_in_a_mesh_of_single_pairs_the_first_measurement_counts() -> None:
    """No other test ran beside it."""
    matrix = lose(healthy(5, mode=MeshMode.ISOLATED), lambda cell: cell == ("db-01", "db-02"), 0.01)
    assert cells_to_recheck(matrix) == ()
    assert names(find_faults(matrix)) == [(CODE.PATH, "db-01", "db-02")]


def test_cells_whose_losses_are_unknown_are_left_out() -> None:
    """Transactions have none."""
    matrix = healthy(5)
    assert found_in(matrix) == ()
    some = lose(matrix, lambda cell: cell == ("db-01", "db-02"), 0.01)
    figures = {
        cell: replace(figure, loss=None) if "db-03" in cell else figure for cell, figure in some.figures.items()
    }
    assert names(found_in(replace(some, figures=figures))) == [(CODE.PATH, "db-01", "db-02")]
