"""The specification of emulated hosts, and the place of each."""

import pytest
from linkgauge.engine.lab.hosts_spec import MAX_LAB_HOSTS, LabHost, LabTrunk, MeshLabSpec
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.serialization import decode, encode

from .labs import LINK, RELAYED


def hosts(*racks: str) -> tuple[LabHost, ...]:
    """Return a host for each rack's name."""
    return tuple(LabHost(f"host-{number}", rack, LINK, LINK) for number, rack in enumerate(racks))


def trunks(*racks: str) -> tuple[LabTrunk, ...]:
    """Return a trunk for each rack."""
    return tuple(LabTrunk(rack, LINK, LINK) for rack in racks)


def test_an_address_tells_the_rack_and_the_place_in_it() -> None:
    """In the order in which the hosts are given."""
    spec = MeshLabSpec(hosts("a", "b", "a", "b"), trunks("a", "b"))
    assert spec.racks == ("a", "b")
    assert [spec.address(f"host-{number}") for number in range(4)] == [
        "198.18.1.1",
        "198.18.2.1",
        "198.18.1.2",
        "198.18.2.2",
    ]
    with pytest.raises(KeyError):
        spec.address("host-4")


def test_a_keeper_reads_what_was_asked_for() -> None:
    """Over its standard input."""
    spec = MeshLabSpec(hosts("a", "b"), trunks("a", "b"))
    assert decode(MeshLabSpec, encode(spec)) == spec


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ((hosts("a"),), "builds 2 to 64 hosts"),
        ((hosts(*["a"] * (MAX_LAB_HOSTS + 1)),), "builds 2 to 64 hosts"),
        ((hosts("a")[:1] * 2,), "its own name"),
        ((hosts(*map(str, range(20))), trunks(*map(str, range(20)))), "up to 16 racks"),
        ((hosts("a", "b"), trunks("a")), "one for each rack"),
        ((hosts("a", "a"), trunks("a")), "none for one rack"),
        (((*hosts("a"), LabHost("late", "a", LINK, RELAYED)),), "full duplex"),
    ],
)
def test_what_cannot_be_built_is_refused_with_what_can(
    spec: tuple[tuple[LabHost, ...], tuple[LabTrunk, ...]], problem: str
) -> None:
    """Before a process is started."""
    with pytest.raises(PlanError, match=problem):
        MeshLabSpec(*spec)
