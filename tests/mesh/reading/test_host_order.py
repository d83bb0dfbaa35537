"""The order of hosts."""

from hypothesis import given
from hypothesis import strategies as st
from linkgauge.mesh.figures import MeshFindingCode
from linkgauge.mesh.reading import order_hosts

from .mesh_examples import Fault, MeshExample

CODE = MeshFindingCode


def test_slow_hosts_come_first_and_the_others_keep_their_order() -> None:
    """One of them only receives slowly."""
    faults = (Fault(CODE.HOST_RECEIVES, "db-04", None, 0.7), Fault(CODE.HOST, "db-06", None, 0.4))
    order = order_hosts(MeshExample(8, faults).make())
    assert order == ("db-06", "db-04", "db-00", "db-01", "db-02", "db-03", "db-05", "db-07")


def test_half_of_the_hosts_are_stripes_too() -> None:
    """Although their medians are not lower than those of the others."""
    slow = ("db-01", "db-02", "db-05", "db-07")
    order = order_hosts(MeshExample(8, tuple(Fault(CODE.HOST, name) for name in slow), noise=0.01).make())
    assert set(order[:4]) == set(slow)


def test_hosts_of_a_group_stay_together() -> None:
    """The group with the slowest host is first."""
    order = order_hosts(MeshExample(6, (Fault(CODE.HOST, "db-05"),), groups=3).make())
    assert order == ("db-05", "db-04", "db-00", "db-01", "db-02", "db-03")


@given(size=st.integers(2, 12), groups=st.integers(0, 4), missing=st.sampled_from((0.0, 0.5, 1.0)))
def test_every_host_is_in_the_order_once(size: int, groups: int, missing: float) -> None:
    """Hosts without a result as well."""
    matrix = MeshExample(size, groups=groups, missing=missing).make()
    assert sorted(order_hosts(matrix)) == [host.name for host in matrix.hosts]
