"""`linkgauge flows` over parallel links between two routers, one of which loses packets or is slow."""

import csv
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from linkgauge.engine.model.directions import Direction

from .conftest import CommandLine
from .parallel_path import ParallelPath

OPTIONS = ("--open", "--flows", "64", "--datagrams", "100", "--json")


@pytest.fixture
def build() -> Iterator[Callable[..., ParallelPath]]:
    """Give a function that builds a path."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nft", "nsenter", "unshare"))):
        pytest.skip("parallel links need root, iproute2, nftables, nsenter and unshare")
    with ExitStack() as stack:

        def make(**options: object) -> ParallelPath:
            path = ParallelPath(2, **options)  # type: ignore[arg-type]
            stack.callback(path.close)
            return path

        yield make


def serve(linkgauge: CommandLine, path: ParallelPath) -> None:
    """Start an endpoint at the far host."""
    endpoint = linkgauge.start("endpoint", "--open", within=path.far)
    assert endpoint.stdout is not None
    assert "listening" in endpoint.stdout.readline()


@pytest.mark.alone
def test_a_lossy_link_is_named_by_its_ports_and_by_the_hop(
    linkgauge: CommandLine, build: Callable[..., ParallelPath], tmp_path: Path
) -> None:
    """The router notes the ports that the link carries."""
    path = build()
    path.watch(1, Direction.OUT)
    path.lose(1, 10, Direction.OUT)
    serve(linkgauge, path)
    rows = tmp_path / "flows.csv"
    answer = linkgauge.finish(
        linkgauge.start("flows", path.far_address, *OPTIONS, "--csv", str(rows), within=path.near)
    )
    assert answer.status == 1
    out, back = answer.document["out"], answer.document["in"]
    named = {flow["port"] for flow in out["flows"] if flow["class"] == "lossy"}
    truth = path.ports_on(1, Direction.OUT)
    assert len(named ^ truth) <= 2
    assert out["is_confirmed"]
    assert out["lossy_share_low"] <= len(truth) / 64 <= out["lossy_share_high"]
    assert out["parting"]["hop"] == 2
    assert out["parting"]["hops"][1]["bad"] == ["10.80.11.2"]
    assert back["lossy_share"] is None
    with rows.open(encoding="utf-8", newline="") as stream:
        listed = list(csv.DictReader(stream))
    assert {int(row["port"]) for row in listed if row["class"] == "lossy"} == named


@pytest.mark.alone
@pytest.mark.every
def test_a_link_that_carries_nothing_and_a_slow_one_are_told(
    linkgauge: CommandLine, build: Callable[..., ParallelPath]
) -> None:
    """The one by its silent ports, the other by its delay."""
    path = build(balance="hash")
    path.lose(1, 100, Direction.IN)
    serve(linkgauge, path)
    answer = linkgauge.finish(linkgauge.start("flows", path.far_address, *OPTIONS, within=path.near))
    assert answer.status == 1
    assert 16 <= len(answer.document["silent_ports"]) <= 48
    slow = build(slow=0, delay_ms=3)
    serve(linkgauge, slow)
    answer = linkgauge.finish(linkgauge.start("flows", slow.far_address, *OPTIONS, within=slow.near))
    assert answer.status == 1
    assert answer.document["out"]["slower_ms"] == pytest.approx(3.5, abs=1.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("iperf3://127.0.0.1",), "does not go with"),
        (("loopback", "--flows", "2"), "give 8 to 512"),
        (("loopback", "--tcp", "--datagrams", "50"), "only UDP has datagrams"),
        (("loopback", "--datagram", "20"), "give 64 to 9000 bytes"),
    ],
)
def test_a_wrong_command_line_is_explained(linkgauge: CommandLine, options: tuple[str, ...], words: str) -> None:
    """With what would be right, and status 2."""
    answer = linkgauge.finish(linkgauge.start("flows", *options))
    assert (answer.status, answer.out) == (2, "")
    assert words in answer.err
