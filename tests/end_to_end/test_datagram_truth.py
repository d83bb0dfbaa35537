"""What a UDP run reports is what a relay did to its datagrams: every count exactly, delays within 3 % or 0.1 ms."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from .conftest import CommandLine
from .datagram_relay import ADDRESSES, Faults, FlowTruth
from .relayed_link import RelayedLink, open_relayed_link

DEADLINE_S: Final = 40.0
SECONDS: Final = 2
PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}
PORT: Final = 5210


class DatagramBench:
    """A link with a relay, an endpoint at its far end, and runs from its near end."""

    def __init__(self, link: RelayedLink, folder: Path) -> None:
        self.link = link
        self._environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(folder)}
        self._endpoint = subprocess.Popen(
            [*link.far, *self._command("endpoint", "--port", PORT, "--open")],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self._environment,
        )  # fmt: skip
        assert self._endpoint.stdout is not None
        while not self._endpoint.stdout.readline().startswith("listening on"):
            assert self._endpoint.poll() is None

    @staticmethod
    def _command(*arguments: object) -> list[str]:
        return [sys.executable, "-P", "-m", "linkgauge", *map(str, arguments)]

    def run(self, faults: Faults, *options: object, version: int = 4, seconds: int = SECONDS) -> Any:
        """Return the result of a run without warm-up under these faults."""
        self.link.set_faults(faults)
        host = ADDRESSES[version][1]
        peer = f"[{host}]:{PORT}" if version == 6 else f"{host}:{PORT}"
        fixed = ("--workload", "udp", "--seconds", seconds, "--warmup", 0, "--interval", "250ms", "--json")
        done = subprocess.run(
            [*self.link.near, *self._command("run", peer, *fixed, *options)],
            capture_output=True, text=True, timeout=DEADLINE_S, env=self._environment, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def close(self) -> None:
        """End the endpoint."""
        self._endpoint.terminate()
        self._endpoint.communicate(timeout=DEADLINE_S)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatagramBench]:
    """Give a link and an endpoint for all tests of this module."""
    with open_relayed_link() as link:
        bench = DatagramBench(link, tmp_path_factory.mktemp("data"))
        yield bench
        bench.close()


def counts(udp: Any) -> dict[str, int]:
    """Return what a result says of one direction's datagrams."""
    names = ("sent", "lost", "duplicates", "reordered", "max_extent", "bursts", "burst_max")
    return {**{name: udp[name] for name in names}, "network": udp["lost_at"]["network"]}


def truth(flows: list[FlowTruth]) -> dict[str, int]:
    """Return what the relay did to one direction's datagrams."""
    assert [flow.missing for flow in flows] == [0] * len(flows), "the relay missed some: this machine is too busy"
    lost = sum(flow.lost for flow in flows)
    return {
        "sent": sum(flow.sent for flow in flows),
        "lost": lost,
        "duplicates": sum(flow.duplicates for flow in flows),
        "reordered": sum(flow.reordered for flow in flows),
        "max_extent": max(flow.extent for flow in flows),
        "bursts": sum(flow.gaps for flow in flows),
        "burst_max": max(flow.gap_longest for flow in flows),
        "network": lost,
    }


def case(seed: int) -> tuple[Faults, tuple[object, ...], int]:
    """Return the faults, the options and the version of IP of a seed."""
    chance = random.Random(seed)  # noqa: S311 - chance, not secrets
    faults = Faults(
        seed=seed,
        loss=chance.choice([0.0, 0.002, 0.02]),
        loss_burst=chance.choice([1, 1, 4]),
        loss_period=chance.choice([0, 0, 97]),
        duplicate=chance.choice([0.0, 0.01]),
        swap=chance.choice([0.0, 0.005, 0.02]),
        swap_distance=chance.choice([1, 3, 10]),
        jitter_ns=chance.choice([0, 2_000_000]),
    )
    direction, sessions = chance.choice(["out", "in", "duplex"]), chance.choice([1, 4])
    options = ("--direction", direction, "--sessions", sessions, "--rate", chance.choice(["4M", "10M"]))
    return faults, (*options, "--datagram", chance.choice([200, 1_000, "auto"])), chance.choice([4, 6])


@pytest.mark.parametrize(
    "seed", [seed if seed == 10 else pytest.param(seed, marks=pytest.mark.every) for seed in range(20)]
)
def test_every_count_of_datagrams_is_the_relays_own(bench: DatagramBench, seed: int) -> None:
    """Of both directions, for one session and for four, over IPv4 and IPv6."""
    faults, options, version = case(seed)
    measured = bench.run(faults, *options, version=version)["measured"]
    for direction in ("out", "in"):
        flows = bench.link.truth(direction)
        assert (measured[direction] is None) == (not flows)
        if flows:
            assert counts(measured[direction]["udp"]) == truth(flows), (faults, options)


@pytest.mark.every
@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("lost_from", [1, 300])
def test_datagrams_that_are_lost_at_the_end_are_lost(bench: DatagramBench, direction: str, lost_from: int) -> None:
    """No later one shows that they are missing: the sender's count does."""
    options = ("--direction", direction, "--rate", "8M", "--datagram", 500)
    udp = bench.run(Faults(lost_from=lost_from), *options, seconds=1)["measured"][direction]["udp"]
    (flow,) = bench.link.truth(direction)
    assert (udp["sent"], udp["lost"], udp["lost_at"]["network"]) == (flow.sent, flow.lost, flow.lost)
    assert flow.lost == flow.sent - lost_from > 0
    assert (udp["bursts"], udp["burst_max"]) == (1, flow.lost)


@pytest.mark.every
@pytest.mark.alone
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("delays_ms", [(0, 2), (5, 20), (50, 1)])
def test_the_delay_variation_is_that_of_the_relay(
    bench: DatagramBench, direction: str, version: int, delays_ms: tuple[int, int]
) -> None:
    """At the percentiles from the median to 99.9, above the shortest delay."""
    delay_ms, jitter_ms = delays_ms
    faults = Faults(seed=1, delay_ns=delay_ms * 10**6, jitter_ns=jitter_ms * 10**6)
    result = bench.run(faults, "--direction", direction, "--rate", "8M", "--datagram", 500, version=version)
    udp = result["measured"][direction]["udp"]
    (flow,) = bench.link.truth(direction)
    delays_ms_sorted = sorted((delay - min(flow.delays_ns)) / 1e6 for delay in flow.delays_ns)
    for name, share in PERCENTILES.items():
        expected_ms = delays_ms_sorted[min(len(delays_ms_sorted) - 1, int(share * len(delays_ms_sorted)))]
        assert udp["delay_variation_ms"][name] == pytest.approx(expected_ms, rel=0.03, abs=0.1), name


@pytest.mark.every
@pytest.mark.alone  # a sender that waits for its core loses the distance in time
@pytest.mark.parametrize(
    ("faults", "code"),
    [
        (Faults(seed=1, loss=0.01), "loss"),
        (Faults(seed=1, loss=0.002, loss_burst=12), "loss-bursts"),
        (Faults(loss_period=50), "loss-periodic"),
    ],
)
@pytest.mark.parametrize("direction", ["out", "in"])
def test_the_pattern_of_the_losses_is_named(
    bench: DatagramBench, faults: Faults, code: str, direction: str
) -> None:
    """In a run of four seconds."""
    options = ("--direction", direction, "--rate", "10M", "--datagram", 500, "--why")
    result = bench.run(faults, *options, seconds=4)
    finding = result["why"][0]
    assert (finding["code"], finding["end"]) == (code, None), result["why"]
    assert result["measured"][direction]["udp"]["lost_at"]["network"] == bench.link.truth(direction)[0].lost


# The stopped receiver needs no relay: what a socket cannot hold while nobody reads it takes a fast sender.


def connected_udp(pid: int) -> bool:
    """Return whether a process has a UDP socket with a peer."""
    inodes: set[str] = set()
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/net/udp").read_text(encoding="ascii").splitlines()[1:]:
            words = line.split()
            if not words[2].startswith("00000000:"):
                inodes.add(words[9])
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(descriptor.readlink()).removeprefix("socket:[").rstrip("]") in inodes:
                    return True
    return False


def descendants(root: int) -> list[int]:
    """Return the processes that descend from one."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{root}/task/{root}/children").read_text(encoding="ascii").split():
            found += [int(child), *descendants(int(child))]
    return found


def find_worker(root: int, process: "subprocess.Popen[str]") -> int:
    """Wait for the worker with a UDP session among the descendants of a process."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline and process.poll() is None:
        for pid in descendants(root):
            if connected_udp(pid):
                return pid
        time.sleep(0.02)
    raise AssertionError("no worker has a UDP session")


@pytest.mark.every
@pytest.mark.skipif(sys.platform != "linux", reason="the drops of a socket are Linux's to tell")
@pytest.mark.parametrize("direction", ["out", "in"])
def test_a_receiver_that_stands_still_has_its_losses_named_as_its_own(
    linkgauge: CommandLine, start_endpoint: Callable[..., tuple["subprocess.Popen[str]", str]], direction: str
) -> None:
    """Its socket holds what comes in 200 ms at no such rate."""
    endpoint, peer = start_endpoint()
    options = ("--workload", "udp", "--rate", "800M", "--direction", direction, "--seconds", "3", "--warmup", "0")
    run = linkgauge.start("run", peer, *options, "--json", "--why")
    worker = find_worker(endpoint.pid if direction == "out" else run.pid, run)
    time.sleep(1.0)  # the session is open before its payload flows
    os.kill(worker, signal.SIGSTOP)
    time.sleep(0.2)
    os.kill(worker, signal.SIGCONT)
    result = linkgauge.finish(run).document
    udp = result["measured"][direction]["udp"]
    receiver = {"out": "far", "in": "near"}[direction]
    assert udp["lost"] > 0
    assert udp["lost_at"][receiver] >= 0.9 * udp["lost"], udp
    assert (result["why"][0]["code"], result["why"][0]["end"]) == ("socket-buffer-full", receiver), result["why"]
