"""Which cells are measured again."""

from dataclasses import replace

import pytest
from linkgauge.mesh.figures import MeshFindingCode
from linkgauge.mesh.plan import Cell, MeshMode
from linkgauge.mesh.reading import MAX_RECHECKS, cells_to_recheck, find_faults

from .mesh_examples import LINE_RATE, Fault, MeshExample, names

CODE = MeshFindingCode


def test_a_healthy_mesh_is_not_measured_again() -> None:
    """A mesh whose pairs were measured alone is not, either."""
    assert cells_to_recheck(MeshExample(12).make()) == ()
    slow = MeshExample(12, (Fault(CODE.HOST, "db-01"),), mode=MeshMode.ISOLATED)
    assert cells_to_recheck(slow.make()) == ()


def test_three_cells_of_each_cause_are_measured_again_with_different_hosts() -> None:
    """A host and a path."""
    faults = (Fault(CODE.HOST_RECEIVES, "db-03"), Fault(CODE.PATH, "db-01", "db-02", 0.3))
    cells = cells_to_recheck(MeshExample(12, faults).make())
    assert Cell("db-01", "db-02") in cells
    of_host = [cell for cell in cells if cell.receiver == "db-03"]
    assert len({cell.sender for cell in of_host}) == 3
    assert len(cells) == 4


def test_the_number_of_second_measurements_is_bounded() -> None:
    """With any number of slow paths. Cells with a second measurement do not count again."""
    paths = tuple(Fault(CODE.PATH, f"db-{place:02}", f"db-{(place * 7 + 3) % 32:02}", 0.4) for place in range(32))
    matrix = MeshExample(32, tuple(path for path in paths if path.sender != path.receiver)).make()
    first = cells_to_recheck(matrix)
    assert len(first) == len(set(first)) == MAX_RECHECKS
    figures = dict(matrix.figures)
    for cell in first:
        figures[cell] = replace(figures[cell], isolated_bit_s=0.4 * LINE_RATE)
    assert not set(first).intersection(cells_to_recheck(replace(matrix, figures=figures)))


@pytest.mark.parametrize(("share", "is_found"), [(0.83, True), (1.0, False)])
def test_a_path_that_may_be_slow_by_chance_is_one_if_it_is_slow_again(share: float, *, is_found: bool) -> None:
    """13 % less is a finding only after two measurements."""
    cell = Cell("db-04", "db-09")
    matrix = MeshExample(12, (Fault(CODE.PATH, *cell, 0.86),), noise=0.01).make()
    assert not find_faults(matrix)
    assert cells_to_recheck(matrix) == (cell,)
    again = {**matrix.figures, cell: replace(matrix.figures[cell], isolated_bit_s=share * LINE_RATE)}
    assert names(find_faults(replace(matrix, figures=again))) == ([(CODE.PATH, *cell)] if is_found else [])
