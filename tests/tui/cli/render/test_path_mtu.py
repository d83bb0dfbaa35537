"""The path MTU in words and as JSON: what bounds each direction, and the remedy of a black hole."""

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.protocol.path_probe import DirectionMtu, MtuBound, PathMtu
from linkgauge.tui.cli.render.path_mtu import path_mtu_json, path_mtu_lines

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
    }
    assert document["in"]["mtu_bytes"] is None
    assert (document["peer"], document["ip_version"], document["schema"]) == ("db-02:5820", 4, 1)
