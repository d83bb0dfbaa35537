"""The path MTU in words and as JSON: what bounds each direction, and the remedy of a black hole."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.protocol.path_probe import DirectionMtu, MtuBound, NarrowLink, PathMtu
from linkgauge.tui.cli.render.path_mtu import path_mtu_json, path_mtu_lines

ROUTER = "192.0.2.1"
OUT = DirectionMtu(Direction.OUT, 1_500, 1_500, MtuBound.INTERFACE, None, "eth0")


def path(in_: DirectionMtu, ip_version: int = 4) -> PathMtu:
    """Return a path with a usual direction out."""
    return PathMtu("db-02:5820", ip_version, OUT, in_)


@pytest.mark.parametrize(
    ("in_", "words"),
    [
        (
            DirectionMtu(Direction.IN, 1_400, 9_000, MtuBound.ROUTER, "192.0.2.1", "ens5"),
            (
                "← in  1\u00a0400\u00a0bytes (1\u00a0372\u00a0bytes of UDP payload): "
                "router 192.0.2.1 refuses longer packets"
            ),
        ),
        (
            DirectionMtu(Direction.IN, None, None, MtuBound.BLACK_HOLE),
            "← in  unknown: not even packets of 576 bytes arrive",
        ),
    ],
)
def test_each_direction_has_its_line(in_: DirectionMtu, words: str) -> None:
    """With the interface of its sender, or the router's address."""
    assert path_mtu_lines(path(in_)) == [
        "path MTU to db-02:5820, IPv4",
        "→ out 1\u00a0500\u00a0bytes (1\u00a0472\u00a0bytes of UDP payload): the MTU of the local interface eth0",
        words,
    ]


def test_a_black_hole_has_a_remedy_with_the_command_of_its_sender() -> None:
    """Which host to give it on is said; a hostile name of an interface is one word of it."""
    in_ = DirectionMtu(Direction.IN, 1_400, 1_500, MtuBound.BLACK_HOLE, None, "a;b", 48)
    *_, line, remedy = path_mtu_lines(path(in_, 6))
    assert "longer packets disappear, and no router says so (a black hole)" in line
    assert "ICMPv6 type 2" in remedy
    assert "ip link set 'a;b' mtu 1400 (on the remote host)" in remedy


def test_the_document_has_each_direction() -> None:
    """Base units; unknown is null."""
    document = path_mtu_json(path(DirectionMtu(Direction.IN, None, None, MtuBound.BLACK_HOLE)))
    assert document["out"] == {
        "mtu_bytes": 1_500,
        "datagram_bytes": 1_472,
        "bound": "interface",
        "interface": "eth0",
        "interface_mtu_bytes": 1_500,
        "router": None,
        "between_hops": None,
        "between_routers": None,
    }
    assert document["in"]["mtu_bytes"] is None
    assert (document["peer"], document["ip_version"], document["schema"]) == ("db-02:5820", 4, 1)


@pytest.mark.parametrize(
    ("each", "words"),
    [
        (
            replace(OUT, mtu_bytes=1_400, bound=MtuBound.ROUTER, router=ROUTER, link=NarrowLink(2, 3, ROUTER)),
            "router 192.0.2.1 refuses longer packets (hop 2)",
        ),
        (
            DirectionMtu(
                Direction.IN, 1_400, 1_500, MtuBound.BLACK_HOLE, link=NarrowLink(1, 3, "192.0.2.1", "192.0.2.3")
            ),
            (
                "longer packets disappear between hop 1 (192.0.2.1) and hop 3 (192.0.2.3) from the remote end "
                "(hop 2 did not answer), and no router says so (a black hole)"
            ),
        ),
        (
            DirectionMtu(Direction.OUT, 1_400, 1_500, MtuBound.BLACK_HOLE, link=NarrowLink(0, 1)),
            (
                "longer packets disappear between the local host and the remote end, "
                "and no router says so (a black hole)"
            ),
        ),
    ],
)
def test_the_hops_between_which_packets_become_too_long_are_named(each: DirectionMtu, words: str) -> None:
    """Counted from the sender of the direction; the document has their numbers and routers."""
    assert any(line.endswith(words) for line in path_mtu_lines(PathMtu("db-02", 4, each, each)))
    document = path_mtu_json(PathMtu("db-02", 4, each, each))[each.direction.value]
    assert each.link is not None
    assert document["between_hops"] == [each.link.after_ttl, each.link.before_ttl]
    assert document["between_routers"] == [each.link.after_router, each.link.before_router]
