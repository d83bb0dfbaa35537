"""`linkgauge shape` between two network namespaces with a token bucket of known rate and size between them."""

import csv
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .conftest import CommandLine
from .namespaces import run_within
from .queued_path import QueuedPath
from .routed_path import FAR_HOST

MBIT_S, BURST_BYTES, QUEUE_BYTES = 20, 60_000, 125_000


@pytest.fixture
def path() -> Iterator[QueuedPath]:
    """Give two hosts behind a router, without queues."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "nft", "nsenter", "unshare", "ethtool"))):
        pytest.skip("a path with a token bucket needs root, iproute2, ethtool, nftables, nsenter and unshare")
    with ExitStack() as stack:
        built = QueuedPath()
        stack.callback(built.close)
        yield built


def shape_at(entry: list[str], device: str) -> None:
    """Put a shaper before what leaves an interface."""
    bucket = ("rate", f"{MBIT_S}mbit", "burst", str(BURST_BYTES), "limit", str(QUEUE_BYTES))
    run_within(entry, "tc", "qdisc", "replace", "dev", device, "root", "tbf", *bucket)


def police_at(entry: list[str], device: str) -> None:
    """Let an interface drop what exceeds a bucket, by a queue of a single packet."""
    bucket = ("rate", f"{MBIT_S}mbit", "burst", str(BURST_BYTES), "limit", "1600")
    run_within(entry, "tc", "qdisc", "replace", "dev", device, "root", "tbf", *bucket)


def serve(linkgauge: CommandLine, path: QueuedPath) -> None:
    """Start an endpoint at the far host."""
    endpoint = linkgauge.start("endpoint", "--open", within=path.far)
    assert endpoint.stdout is not None
    assert "listening" in endpoint.stdout.readline()


@pytest.mark.alone
@pytest.mark.parametrize(
    "build", [pytest.param(police_at, id="policer"), pytest.param(shape_at, id="shaper", marks=pytest.mark.every)]
)
def test_the_bucket_of_a_router_is_measured(
    linkgauge: CommandLine, path: QueuedPath, tmp_path: Path, build: Callable[[list[str], str], None]
) -> None:
    """Only on the way in: the other direction has none."""
    build(path.router, "router0")
    serve(linkgauge, path)
    rows = tmp_path / "shape.csv"
    options = ("--direction", "in", "--bursts", "4", "--json", "--csv", str(rows))
    answer = linkgauge.finish(linkgauge.start("shape", FAR_HOST, "--open", *options, within=path.near))
    assert answer.status == 0
    assert answer.document["out"] is None
    found = answer.document["in"]
    is_policer = build is police_at
    assert found["limit"] == ("policer" if is_policer else "shaper")
    assert found["cir_mbit_s"] == pytest.approx(MBIT_S, rel=0.02)
    assert found["cbs_bytes"] == pytest.approx(BURST_BYTES, rel=0.15)
    assert found["holds_round_trip"] is True
    if not is_policer:
        assert found["queue_bytes"] == pytest.approx(QUEUE_BYTES, rel=0.1)
        assert found["queue_is_full"]
    with rows.open(encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["direction"], row["limit"]) == ("in", found["limit"])


@pytest.mark.alone
@pytest.mark.every
def test_a_confirmation_has_the_numbers_of_a_policer(linkgauge: CommandLine, path: QueuedPath) -> None:
    """`check --confirm` sends bursts once its first finding is a policer, and adds what they show."""
    police_at(path.router, "router1")
    serve(linkgauge, path)
    command = ("check", "1gbe-1500", FAR_HOST, "--seconds", "4", "--open", "--confirm", "--json")
    answer = linkgauge.finish(linkgauge.start(*command, within=path.near))
    document = answer.document
    if document["why"][0]["code"] not in {"policer", "path-slow"}:
        pytest.skip(f"a busy machine: the first finding is {document['why'][0]['code']}")
    assert document["confirmation"]["shape"]["out"]["limit"] == "policer"
    assert document["confirmation"]["shape"]["out"]["cir_mbit_s"] == pytest.approx(MBIT_S, rel=0.02)
    assert "bursts out show a policer" in document["confirmation"]["text"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("iperf3://127.0.0.1",), "does not go with"),
        (("loopback", "--bursts", "2"), "give 3 to 50"),
        (("loopback", "--datagram", "20"), "give 64 to 9000 bytes"),
        (("loopback", "--direction", "both"), "direction"),
    ],
)
def test_a_wrong_command_line_is_explained(linkgauge: CommandLine, options: tuple[str, ...], words: str) -> None:
    """With what would be right, and status 2."""
    answer = linkgauge.finish(linkgauge.start("shape", *options))
    assert (answer.status, answer.out) == (2, "")
    assert words in answer.err


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("mtu",), id="mtu"),
        pytest.param(("shape", "--bursts", "3", "--direction", "out"), id="shape", marks=pytest.mark.every),
    ],
)
def test_the_endpoint_of_loopback_is_named_without_a_port(linkgauge: CommandLine, options: tuple[str, ...]) -> None:
    """It has one of its own choice."""
    answer = linkgauge.finish(linkgauge.start(*options, "loopback"))
    assert answer.status == 0
    assert answer.out.partition(", ")[0].endswith(" to loopback")
