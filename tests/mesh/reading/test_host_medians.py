"""The order of hosts, and medians."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.mesh.figures import MeshFindingCode
from linkgauge.mesh.reading import medians_of_groups, medians_received, medians_sent, order_hosts

from .mesh_examples import LINE_RATE, Fault, MeshExample

CODE = MeshFindingCode


def test_slow_hosts_come_first_and_the_others_keep_their_order() -> None:
    """One of them is only slow in receiving."""
    faults = (Fault(CODE.HOST_RECEIVES, "db-04", None, 0.7), Fault(CODE.HOST, "db-06", None, 0.4))
    order = order_hosts(MeshExample(8, faults).make())
    assert order == ("db-06", "db-04", "db-00", "db-01", "db-02", "db-03", "db-05", "db-07")


def test_half_of_the_hosts_are_stripes_too() -> None:
    """Their medians are no lower than those of the others."""
    slow = ("db-01", "db-02", "db-05", "db-07")
    order = order_hosts(MeshExample(8, tuple(Fault(CODE.HOST, name) for name in slow), noise=0.01).make())
    assert set(order[:4]) == set(slow)


def test_hosts_of_a_group_stay_together() -> None:
    """The group with the slowest host is first."""
    order = order_hosts(MeshExample(6, (Fault(CODE.HOST, "db-05"),), groups=3).make())
    assert order == ("db-05", "db-04", "db-00", "db-01", "db-02", "db-03")


@given(size=st.integers(2, 12), groups=st.integers(0, 4), missing=st.sampled_from((0.0, 0.5, 1.0)))
def test_every_host_is_in_the_order_once(size: int, groups: int, missing: float) -> None:
    """Those without any result as well."""
    matrix = MeshExample(size, groups=groups, missing=missing).make()
    assert sorted(order_hosts(matrix)) == [host.name for host in matrix.hosts]


def test_medians_are_in_the_unit_of_the_cells() -> None:
    """Of rows, of columns, of groups."""
    faults = (Fault(CODE.HOST_SENDS, "db-04"), Fault(CODE.GROUPS, "rack-0", "rack-1", 0.3))
    matrix = MeshExample(6, faults, groups=2, noise=0.0).make()
    assert medians_sent(matrix)["db-04"] == pytest.approx(LINE_RATE / 2)
    assert medians_received(matrix)["db-04"] == pytest.approx(0.3 * LINE_RATE)
    assert medians_of_groups(matrix)["rack-0", "rack-1"] == pytest.approx(0.3 * LINE_RATE)
    assert medians_of_groups(matrix)["rack-0", "rack-0"] == pytest.approx(LINE_RATE)
    nothing = MeshExample(3, failed=1.0).make()
    assert not medians_sent(nothing)
