"""`linkgauge path` through chains of network namespaces: the hop that it names is the one with the queue."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from linkgauge.engine.model.directions import Direction

from .chained_path import ChainedPath, LinkQueue, address
from .conftest import CommandLine

pytestmark = pytest.mark.timeout(120)
OUT, IN = Direction.OUT, Direction.IN
SLOW = LinkQueue(1, OUT, 60, 20), LinkQueue(0, IN, 1, 20)


@pytest.fixture
def build() -> Iterator[Callable[..., ChainedPath]]:
    """Give a function that builds a chain, which is taken down at the end."""
    if os.geteuid() != 0 or not all(
        map(shutil.which, ("ip", "tc", "nft", "ethtool", "nsenter", "unshare", "sysctl"))
    ):
        pytest.skip("a chain needs root, iproute2, nftables, ethtool, nsenter and unshare")
    with ExitStack() as stack:

        def build(nodes: int, *queues: LinkQueue, **options: int) -> ChainedPath:
            path = ChainedPath(nodes, queues, **options)
            stack.callback(path.close)
            return path

        yield build


def serve(linkgauge: CommandLine, path: ChainedPath) -> None:
    """Start an endpoint at the far end of a chain."""
    endpoint = linkgauge.start("endpoint", "--open", within=path.far)
    assert endpoint.stdout is not None
    assert "listening" in endpoint.stdout.readline()


@pytest.mark.alone
def test_the_hop_behind_the_queue_is_named_and_a_saved_run_says_the_same(
    linkgauge: CommandLine, build: Callable[..., ChainedPath]
) -> None:
    """Through a silent router, and routers that answer once a second."""
    path = build(4, *SLOW, icmp_limit_ms=1_000)
    path.silence(1)
    serve(linkgauge, path)
    command = ("path", path.far_address(), "--open", "--direction", "out", "--sessions", "4", "--json")
    answer = linkgauge.finish(linkgauge.start(*command, within=path.near))
    assert answer.status == 0, answer
    way = answer.document["path"]["out"]
    assert way["is_reached"]
    hops = [hop["addresses"] for hop in way["hops"]]
    assert hops == [[], [address(1, 2)], [path.far_address()]]
    assert [hop["answers"] for hop in way["hops"]] == ["silent", "limited", "all"]
    assert [(queue["after_hop"], queue["before_hop"]) for queue in way["queues"]] == [(0, 2)]
    assert 20 < way["queues"][0]["rise_ms"] < 90
    shown = linkgauge("runs", "show", answer.document["run_id"]).out
    text = " ".join(shown.replace("\N{NO-BREAK SPACE}", " ").split())
    assert "local ▓ +" in text
    place = f"before hop 2 ({address(1, 2)}) and behind the local host (hop 1 does not tell)"
    assert f"The queue is {place}, on the way out: RTT rises there" in text


@pytest.mark.alone
@pytest.mark.every
def test_over_ipv6_the_remote_end_finds_the_queue_of_its_own_direction(
    linkgauge: CommandLine, build: Callable[..., ChainedPath]
) -> None:
    """As it counts the hops."""
    path = build(5, LinkQueue(1, IN, 60, 20), LinkQueue(3, OUT, 1, 20))
    serve(linkgauge, path)
    command = ("respond", f"[{path.far_address(6)}]", "--open", "--path", "--direction", "in", "--json")
    answer = linkgauge.finish(linkgauge.start(*command, within=path.near))
    assert answer.status == 0, answer
    way = answer.document["path"]["in"]
    assert [hop["addresses"] for hop in way["hops"]][:3] == [[address(link, 1, 6)] for link in (3, 2, 1)]
    assert [(queue["after_hop"], queue["before_hop"]) for queue in way["queues"]] == [(2, 3)]
    assert answer.document["path"]["out"]["queues"] == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("check", "100mb-fd", "--path", "--workload", "rr"), "--path is for TCP streams"),
        (("respond", "--names"), "give --path as well"),
        (("path", "iperf3://127.0.0.1"), "latency under load cannot be had"),
    ],
)
def test_what_cannot_be_traced_is_refused_before_anything_starts(
    linkgauge: CommandLine, words: tuple[str, ...], why: str
) -> None:
    """With the option that asks for it."""
    peer = () if "iperf3" in words[-1] else ("127.0.0.1",)
    answer = linkgauge(*words, *peer)
    assert answer.status == 2
    assert why in answer.err
