"""`linkgauge mtu` through chains of namespaces: the hop behind which packets become too long, at each place."""

import os
import shutil
from ipaddress import ip_address
from typing import Any

import pytest

from .chained_path import ChainedPath, address
from .conftest import CommandLine
from .namespaces import run_within

pytestmark = pytest.mark.timeout(120)
NODES = 5
VERSIONS = pytest.mark.parametrize("version", [4, pytest.param(6, marks=pytest.mark.every)])
_EVERY_PLACE = [2, *(pytest.param(node, marks=pytest.mark.every) for node in (1, 3))]
PLACES = pytest.mark.parametrize("node", _EVERY_PLACE)


def measure(
    linkgauge: CommandLine, narrow: tuple[int, str], version: int, quiet: tuple[int, str] | None = None
) -> dict[str, Any]:
    """Return the document of a chain with a narrow interface at a node; `quiet` reports no MTU, or no ICMP."""
    if os.geteuid() != 0 or not all(
        map(shutil.which, ("ip", "tc", "nft", "ethtool", "nsenter", "unshare", "sysctl"))
    ):
        pytest.skip("a chain needs root, iproute2, nftables, ethtool, nsenter and unshare")
    path = ChainedPath(NODES, icmp_limit_ms=1_000)
    try:
        node, device = narrow
        run_within(path.entries[node], "ip", "link", "set", device, "mtu", "1400")
        if quiet is not None:
            path.report_no_mtu(quiet[0])
            if quiet[1] == "all":
                path.silence(quiet[0])
        endpoint = linkgauge.start("endpoint", "--open", within=path.far)
        assert endpoint.stdout is not None
        assert "listening" in endpoint.stdout.readline()
        host = path.far_address(version)
        command = ("mtu", f"[{host}]" if version == 6 else host, "--open", "--json")
        answer = linkgauge.finish(linkgauge.start(*command, within=path.near))
        assert answer.err == ""
        document: dict[str, Any] = answer.document
        return document
    finally:
        path.close()


@VERSIONS
@PLACES
def test_the_hop_that_refuses_is_numbered_on_the_way_out(linkgauge: CommandLine, node: int, version: int) -> None:
    """It is the router before the narrow link.

    A veth also drops what is too long for its MTU as it arrives: on the way in the same link is a black hole.
    """
    document = measure(linkgauge, (node, "far"), version)
    out, router = document["out"], str(ip_address(address(node - 1, 2, version)))
    assert (out["mtu_bytes"], out["bound"], out["router"]) == (1_400, "router", router)
    assert out["between_hops"] == [node, node + 1]
    assert out["between_routers"][0] == router
    in_, hop = document["in"], NODES - 2 - node
    assert (in_["bound"], in_["between_hops"]) == ("black_hole", [hop, hop + 1])


@pytest.mark.every
@VERSIONS
@PLACES
def test_the_hop_that_refuses_is_numbered_from_the_remote_end_on_the_way_in(
    linkgauge: CommandLine, node: int, version: int
) -> None:
    """The remote end sends the probes, and tells who answers them."""
    document = measure(linkgauge, (node, "near"), version)
    in_, hop = document["in"], NODES - 1 - node
    router = str(ip_address(address(node, 1, version)))
    assert (in_["mtu_bytes"], in_["bound"], in_["router"]) == (1_400, "router", router)
    assert in_["between_hops"] == [hop, hop + 1]


@VERSIONS
@PLACES
def test_a_black_hole_is_between_its_hops(linkgauge: CommandLine, node: int, version: int) -> None:
    """Its router answers a used up TTL, and does not report the MTU."""
    document = measure(linkgauge, (node, "far"), version, (node, "mtu"))
    out = document["out"]
    assert (out["mtu_bytes"], out["bound"], out["router"]) == (1_400, "black_hole", None)
    assert out["between_hops"] == [node, node + 1]


@pytest.mark.every
@VERSIONS
def test_a_silent_router_leaves_the_black_hole_between_its_neighbours(linkgauge: CommandLine, version: int) -> None:
    """It may be before it or behind it."""
    out = measure(linkgauge, (2, "far"), version, (2, "all"))["out"]
    assert (out["bound"], out["between_hops"]) == ("black_hole", [1, 3])


@pytest.mark.every
def test_a_black_hole_on_the_way_in_is_counted_from_the_remote_end(linkgauge: CommandLine) -> None:
    """The narrow interface is that of the second router from there."""
    in_ = measure(linkgauge, (2, "near"), 4, (2, "mtu"))["in"]
    assert (in_["bound"], in_["between_hops"]) == ("black_hole", [2, 3])
