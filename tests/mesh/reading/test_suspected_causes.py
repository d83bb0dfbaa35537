"""The cells that a possible cause would make slow."""

from linkgauge.mesh.figures import MeshFindingCode
from linkgauge.mesh.reading.relative_rates import relative_rates
from linkgauge.mesh.reading.suspected_causes import find_suspects

from .mesh_examples import Fault, MeshExample

CODE = MeshFindingCode


def test_every_suspect_has_the_cells_that_such_a_fault_makes_slow() -> None:
    """Rows, columns, and blocks of nine hosts in three groups."""
    rates = relative_rates(MeshExample(9, groups=3).make())
    suspects = find_suspects(rates, [True] * len(rates.cells))
    assert len(suspects) == 9 * 3 + 3 * 2 + 6 + 3 * 2 + 1
    for suspect in suspects:
        fault = Fault(suspect.code, suspect.sender, suspect.receiver)
        slow = [
            place
            for place, (sender, receiver) in enumerate(rates.pairs)
            if fault.slows(rates.hosts[sender], rates.hosts[receiver])
        ]
        assert sorted(suspect.cells) == slow


def test_only_a_host_with_mostly_low_cells_is_suspected() -> None:
    """One host receives little; another has two low cells."""
    rates = relative_rates(MeshExample(9).make())
    is_low = [cell.receiver == "db-03" or cell == ("db-01", "db-02") for cell in rates.cells]
    assert [(each.code, each.sender) for each in find_suspects(rates, is_low)] == [(CODE.HOST_RECEIVES, "db-03")]


def test_groups_of_two_hosts_have_no_inside() -> None:
    """Two paths are just two paths. A single group is not a group."""
    rates = relative_rates(MeshExample(4, groups=2).make())
    suspects = find_suspects(rates, [True] * len(rates.cells))
    assert {each.code for each in suspects if not each.is_host} == {CODE.GROUPS}
    rates = relative_rates(MeshExample(4, groups=1).make())
    assert all(each.is_host for each in find_suspects(rates, [True] * len(rates.cells)))
