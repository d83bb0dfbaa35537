"""`linkgauge mtu` through a router between two network namespaces: what it prints is what was built."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from .conftest import CommandLine, assert_not_run
from .namespaces import run_within
from .routed_path import (
    FAR_HOST,
    FAR_HOST_6,
    FAR_ROUTER,
    FAR_ROUTER_6,
    NEAR_ROUTER,
    NEAR_ROUTER_6,
    Mtus,
    RoutedPath,
)

FAMILIES = [FAR_HOST, pytest.param(f"[{FAR_HOST_6}]", marks=pytest.mark.every)]


@pytest.fixture
def build() -> Iterator[Callable[..., RoutedPath]]:
    """Give a function that builds a path, which is taken down at the end."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare", "sysctl"))):
        pytest.skip("a routed path needs root, iproute2, nsenter and unshare")
    with ExitStack() as stack:

        def build(mtus: Mtus, **options: bool) -> RoutedPath:
            path = RoutedPath(mtus, **options)
            stack.callback(path.close)
            return path

        yield build


def serve(linkgauge: CommandLine, path: RoutedPath) -> None:
    """Start an endpoint at the far end of a path."""
    endpoint = linkgauge.start("endpoint", "--open", within=path.far)
    assert endpoint.stdout is not None
    assert "listening" in endpoint.stdout.readline()


def measure(linkgauge: CommandLine, path: RoutedPath, host: str) -> tuple[int, list[tuple[object, ...]]]:
    """Return the exit status of `linkgauge mtu`, and MTU, bound, interface's MTU and router of both directions."""
    serve(linkgauge, path)
    answer = linkgauge.finish(linkgauge.start("mtu", host, "--open", "--json", within=path.near))
    assert answer.err == ""
    keys = ("mtu_bytes", "bound", "interface_mtu_bytes", "router")
    return answer.status, [tuple(answer.document[way][key] for key in keys) for way in ("out", "in")]


@pytest.mark.every
@pytest.mark.parametrize("host", FAMILIES)
def test_a_router_that_refuses_is_named_with_its_mtu(
    linkgauge: CommandLine, build: Callable[..., RoutedPath], host: str
) -> None:
    """The way out is narrower behind the router; the way in begins there, at the remote interface."""
    status, (out, in_) = measure(linkgauge, build(Mtus(towards_far=1_400, far=1_400)), host)
    router = NEAR_ROUTER if host == FAR_HOST else NEAR_ROUTER_6
    assert (status, out, in_) == (0, (1_400, "router", 1_500, router), (1_400, "interface", 1_400, None))


@pytest.mark.every
@pytest.mark.parametrize("host", FAMILIES)
def test_a_router_that_says_nothing_is_a_black_hole(
    linkgauge: CommandLine, build: Callable[..., RoutedPath], host: str
) -> None:
    """The same path without ICMP: the MTU is found all the same, and the exit status is 1."""
    path = build(Mtus(9_000, 9_000, 4_321, 4_321), says_nothing=True)
    status, (out, in_) = measure(linkgauge, path, host)
    assert (status, out, in_) == (1, (4_321, "black_hole", 9_000, None), (4_321, "interface", 4_321, None))


@pytest.mark.every
@pytest.mark.parametrize("host", FAMILIES)
def test_a_router_on_the_way_in_is_told_by_the_remote_end(
    linkgauge: CommandLine, build: Callable[..., RoutedPath], host: str
) -> None:
    """The far end's kernel hears of it, and the far end passes it on."""
    status, (out, in_) = measure(linkgauge, build(Mtus(near=1_300, towards_near=1_300)), host)
    router = FAR_ROUTER if host == FAR_HOST else FAR_ROUTER_6
    assert (status, out, in_) == (0, (1_300, "interface", 1_300, None), (1_300, "router", 1_500, router))


@pytest.mark.every
@pytest.mark.parametrize("host", FAMILIES)
def test_a_link_whose_ends_differ_drops_longer_packets_one_way(
    linkgauge: CommandLine, build: Callable[..., RoutedPath], host: str
) -> None:
    """The remote interface sends more than the router's takes: a black hole in that direction alone.

    A veth takes four bytes more than its MTU, for a VLAN tag.
    """
    status, (out, in_) = measure(linkgauge, build(Mtus(9_198, 9_198, 9_000, 9_198)), host)
    assert (status, out[:3]) == (1, (9_000, "router", 9_198))
    assert in_ == (9_004, "black_hole", 9_198, None)


@pytest.mark.every
def test_a_check_in_which_nothing_arrives_names_the_path_mtu(
    linkgauge: CommandLine, build: Callable[..., RoutedPath]
) -> None:
    """The sessions open and stand still: the path is measured after the run, and the finding has the remedy."""
    path = build(Mtus(towards_far=1_400), says_nothing=True)
    serve(linkgauge, path)
    command = ("check", "gbe-fd-1500", FAR_HOST, "--open", "--seconds", "1", "--json")
    answer = linkgauge.finish(linkgauge.start(*command, within=path.near))
    assert answer.status == 1, answer
    finding = answer.document["why"][0]
    assert finding["code"] == "path-mtu"
    assert "packets of 1400 bytes instead of 1500" in finding["evidence"]
    assert "ip link set near0 mtu 1400" in finding["remedy"]


@pytest.mark.parametrize("host", FAMILIES)
def test_a_datagram_beyond_an_mtu_that_the_route_cache_keeps_is_explained_with_the_remedy(
    linkgauge: CommandLine, build: Callable[..., RoutedPath], host: str
) -> None:
    """The router reports its MTU once, and the kernel refuses what is longer until that expires."""
    path = build(Mtus(towards_far=1_400, far=1_400))
    serve(linkgauge, path)
    headers, family = (28, "") if host == FAR_HOST else (48, " -6")
    command = ("run", host, "--open", "--seconds", "1", "--workload", "udp", "--rate", "10M", "--datagram", "1450")
    answer = linkgauge.finish(linkgauge.start(*command, "--json", within=path.near))
    assert answer.status == 3
    assert (
        "a datagram of 1450 bytes does not fit the path's MTU of 1400 bytes, which a router has told the sending "
        f"host and its cache keeps for minutes; if the path carries more by now, `ip{family} route flush cache` "
        f"there forgets it; give --datagram auto, or at most {1_400 - headers} bytes"
    ) in answer.document["ended"]["detail"]


@pytest.mark.parametrize(
    ("mtu", "further", "words"),
    [
        pytest.param(
            1_300, ("--datagram", "1400"), "; give --datagram auto, or at most 1272 bytes", marks=pytest.mark.every
        ),
        (70, (), ""),
    ],
)
def test_a_datagram_beyond_the_mtu_of_a_route_is_explained_with_the_remedy(
    linkgauge: CommandLine, build: Callable[..., RoutedPath], mtu: int, further: tuple[str, ...], words: str
) -> None:
    """The interface would carry more; the shortest one does not even let the session begin."""
    path = build(Mtus())
    serve(linkgauge, path)
    run_within(path.near, "ip", "route", "add", FAR_HOST, "via", NEAR_ROUTER, "mtu", "lock", str(mtu))
    command = ("run", FAR_HOST, "--open", "--seconds", "1", "--workload", "udp", "--rate", "10M", *further)
    answer = linkgauge.finish(linkgauge.start(*command, within=path.near))
    assert answer.status == 3
    assert (
        f"bytes does not fit the path's MTU of {mtu} bytes, which the route of the sending host sets: see `ip "
        f"route get {FAR_HOST}` there{words}"
    ) in " ".join((answer.out + answer.err).split())


def test_a_peer_that_does_not_answer_is_status_3(linkgauge: CommandLine) -> None:
    """And a path over ssh alone has no datagrams: a wrong command line is status 2."""
    assert_not_run(linkgauge("mtu", "127.0.0.1:1"), "nothing listens")
    assert linkgauge("mtu").status == 2
