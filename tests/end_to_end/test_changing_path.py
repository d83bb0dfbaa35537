"""A path whose rate changes while the test runs: the result says when, and at which rates."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from .namespaces import DEADLINE_S, run_within
from .routed_path import FAR_HOST, Mtus, RoutedPath

pytestmark = [
    pytest.mark.alone,
    pytest.mark.every,
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "ethtool", "nsenter", "unshare"))),
        reason="needs root, iproute2 and ethtool",
    ),
]
COMMAND = (sys.executable, "-P", "-m", "linkgauge")


@pytest.fixture
def path() -> Iterator[RoutedPath]:
    """Give a path whose frames travel one by one, with an endpoint at its far end."""
    one = RoutedPath(Mtus())
    try:
        for within, names in ((one.near, ["near0"]), (one.router, ["router0", "router1"]), (one.far, ["far0"])):
            for name in names:
                run_within(within, "ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off")
        with subprocess.Popen(
            [*one.far, *COMMAND, "endpoint", "--open", "--bind", FAR_HOST],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as endpoint:
            assert endpoint.stdout is not None
            assert b"listening" in endpoint.stdout.readline()
            yield one
            endpoint.terminate()
    finally:
        one.close()


@pytest.mark.parametrize(
    ("direction", "sessions", "rates", "says"),
    [
        ("out", 1, (98, 35), "The path became slower during the test."),
        ("in", 4, (98, 35), "The path became slower during the test."),
        ("in", 1, (35, 98), "The path was slower at first."),
        ("out", 4, (35, 98), "The path was slower at first."),
    ],
)
def test_a_change_of_the_path_s_rate_is_the_reason(
    linkgauge: Any, path: RoutedPath, direction: str, sessions: int, rates: tuple[int, int], says: str
) -> None:
    """It carried the expected rate for a part of the time, so it is not slow as such."""
    device = "router1" if direction == "out" else "router0"
    shaper = ("dev", device, "root", "tbf", "burst", "20kb", "latency", "40ms", "rate")
    run_within(path.router, "tc", "qdisc", "add", *shaper, f"{rates[0]}mbit")
    options = ("--direction", direction, "--sessions", str(sessions), "--seconds", "8", "--json")
    running = subprocess.Popen(
        [*path.near, *COMMAND, "check", FAR_HOST, "100mb-fd", *options],
        stdout=subprocess.PIPE,
        env=linkgauge.environment,
    )
    time.sleep(5.5)
    run_within(path.router, "tc", "qdisc", "change", *shaper, f"{rates[1]}mbit")
    said, _ = running.communicate(timeout=DEADLINE_S)
    found = {finding["code"]: finding["text"] for finding in json.loads(said)["why"]}
    assert found.get("path-slow") == says, found
