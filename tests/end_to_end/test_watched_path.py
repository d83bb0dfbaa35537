"""`linkgauge watch` of a peer whose path changes between two tests, in a chain of network namespaces."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction

from ..json_schemas import check
from .chained_path import ChainedPath, LinkQueue, address
from .conftest import CommandLine
from .namespaces import run_within
from .parallel_path import ParallelPath

pytestmark = [pytest.mark.timeout(120), pytest.mark.alone, pytest.mark.every]
FILE = """
[watch]
name = "paths"
[[peer]]
name = "far"
address = "{address}"
path = true
preset = "none"
probe_every = "none"
seconds = 2
warmup = 0
rate = "5M"
"""
_OTHER = "198.51.100.7"


def events_of(linkgauge: CommandLine, path: ChainedPath | ParallelPath, file: Path) -> list[dict[str, Any]]:
    """Test the peer once, and return the events."""
    answer = linkgauge.finish(linkgauge.start("watch", file, "--once", "--json-stream", within=path.near))
    assert answer.status == 0, answer
    events = [json.loads(line) for line in answer.out.splitlines()]
    for event in events:
        check("watch.schema.json", event)
    return events


def test_a_changed_path_is_told_once_across_restarts(linkgauge: CommandLine, tmp_path: Path) -> None:
    """A router answers with another address, as another one in its place would; then nothing changes any more."""
    if os.geteuid() != 0 or not all(
        map(shutil.which, ("ip", "tc", "nft", "ethtool", "nsenter", "unshare", "sysctl"))
    ):
        pytest.skip("a chain needs root, iproute2, nftables, ethtool, nsenter and unshare")
    path = ChainedPath(4, (LinkQueue(1, Direction.OUT, 5, 20),))
    try:
        endpoint = linkgauge.start("endpoint", "--open", within=path.far)
        assert endpoint.stdout is not None
        assert "listening" in endpoint.stdout.readline()
        file = tmp_path / "paths.toml"
        file.write_text(FILE.format(address=path.far_address()), encoding="utf-8")
        first = next(each for each in events_of(linkgauge, path, file) if each["type"] == "check_end")
        routes = {each["direction"]: each["hops"] for each in first["result"]["routes"]}
        assert routes["out"] == [[address(0, 2)], [address(1, 2)], [path.far_address()]]
        assert len(routes["in"]) == 3
        router = path.entries[1]
        run_within(router, "ip", "addr", "add", f"{_OTHER}/32", "dev", "lo")
        run_within(router, "ip", "route", "change", f"{address(0, 0)}/24", "dev", "near", "src", _OTHER)
        (change,) = (each for each in events_of(linkgauge, path, file) if each["type"] == "path_change")
        assert change["before"] == {"direction": "out", "hops": routes["out"]}
        assert change["after"]["hops"][0] == [_OTHER]
        again = events_of(linkgauge, path, file)
        assert "path_change" not in [each["type"] for each in again]
    finally:
        path.close()


def test_parallel_links_that_take_turns_are_no_change_and_one_that_fails_is_told_once(
    linkgauge: CommandLine, tmp_path: Path
) -> None:
    """All traces of a watch have the same ports, so that a hash of them chooses the same link."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nft", "nsenter", "unshare", "sysctl"))):
        pytest.skip("parallel links need root, iproute2, nftables, nsenter, unshare and sysctl")
    path = ParallelPath(4)
    try:
        endpoint = linkgauge.start("endpoint", "--open", within=path.far)
        assert endpoint.stdout is not None
        assert "listening" in endpoint.stdout.readline()
        file = tmp_path / "paths.toml"
        file.write_text(FILE.format(address=path.far_address), encoding="utf-8")
        routers: list[str] = []

        def test_once() -> list[str]:
            """Test the peer; note the second router's address, and return the directions of changes."""
            events = events_of(linkgauge, path, file)
            result = next(each["result"] for each in events if each["type"] == "check_end")
            (hops,) = (each["hops"] for each in result["routes"] if each["direction"] == "out")
            routers.append(hops[1][0])
            return [each["before"]["direction"] for each in events if each["type"] == "path_change"]

        assert [test_once() for _ in range(4)] == [[]] * 4
        assert len(set(routers)) == 1
        member = int(routers[0].split(".")[2]) - 10
        path.switch(member, "down")
        assert "out" in test_once()
        assert len(set(routers)) == 2
        for state in ("down", "up", "down", "up"):
            path.switch(member, state)
            assert test_once() == []
    finally:
        path.close()
