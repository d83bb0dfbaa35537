"""The cost of `linkgauge observe` on a host with many connections: CPU time, memory, and the time to the first row.

Usage: .venv/bin/python bench/observe_cost.py [--idle 10000] [--busy 100] [--seconds 10]

Runs in a network namespace of its own, with both ends of each connection in one process: the kernel then has twice
as many sockets. Needs root, and file descriptors: two for each connection (ulimit -n).
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import contextlib
import resource
import socket
import subprocess
import sys
import threading
import time
from typing import Final

from linkgauge.engine.lab.namespaces import NetworkNamespace
from linkgauge.observe.observer import SAMPLE_NS, Observer
from linkgauge.observe.request import ObserveRequest
from linkgauge.presets.catalog import load_catalog

_PACE_S: Final = 0.05
_PAYLOAD: Final = bytes(20_000)
_SPARE: Final = 500

Pair = tuple[socket.socket, socket.socket]


def _connect(count: int) -> list[Pair]:
    """Return both ends of so many connections, over several addresses: one has too few ports."""
    pairs: list[Pair] = []
    for start in range(0, count, 5_000):
        address = f"127.0.1.{1 + start // 5_000}"
        with socket.create_server((address, 0), backlog=128) as server:
            for _ in range(min(5_000, count - start)):
                client = socket.create_connection(server.getsockname(), source_address=(address, 0))
                pairs.append((client, server.accept()[0]))
    return pairs


def _keep_busy(pairs: list[Pair]) -> None:
    """Send something on each connection twenty times a second, for ever; with few threads, as a server would."""
    while True:
        for client, server in pairs:
            with contextlib.suppress(OSError):
                client.sendall(_PAYLOAD)
                server.recv(len(_PAYLOAD))
        time.sleep(_PACE_S)


def _hold(idle: int, busy: int) -> None:
    """Be the other programs: open the connections, say so, and keep them until standard input ends."""
    pairs = _connect(idle + busy)
    threading.Thread(target=_keep_busy, args=(pairs[:busy],), daemon=True).start()
    print("open", flush=True)
    sys.stdin.read()


def _measure(seconds: float) -> None:
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    catalog = load_catalog()
    began_s = time.monotonic()
    observer = Observer(ObserveRequest(), catalog)
    costs: list[int] = []
    while time.monotonic() - began_s < seconds:
        due_s = time.monotonic() + SAMPLE_NS / 1e9
        observation = observer.step()
        if observation is not None:
            costs.append(observation.cost_ns)
            totals = observation.totals
            if len(costs) == 1:
                print(f"first row after {time.monotonic() - began_s:.2f} s")
            print(
                f"{totals.sockets} sockets, {totals.moving} moving, {len(observation.connections)} rows: "
                f"{observation.cost_ns / observation.interval_ns * 100:.1f} % of a core"
            )
        time.sleep(max(0.0, due_s - time.monotonic()))
    observer.close()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    median_ms = sorted(costs)[len(costs) // 2] / 1e6
    print(f"median {median_ms:.1f} ms of CPU an interval; {grown / 1024:.1f} MiB more memory")


def main() -> None:
    """Open the connections in a namespace of their own, and observe them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--busy", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--hold", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    needed = 2 * (options.idle + options.busy) + _SPARE
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(needed, hard)))
    except (OSError, ValueError):
        sys.exit(f"{needed} descriptors are needed, and the system allows {hard}: give fewer with --idle")
    if options.hold:
        _hold(options.idle, options.busy)
        return
    NetworkNamespace.create()
    subprocess.run(["/usr/sbin/ip", "link", "set", "lo", "up"], check=True)
    counts = ["--idle", str(options.idle), "--busy", str(options.busy)]
    with subprocess.Popen(
        [sys.executable, __file__, "--hold", *counts], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdin is not None  # noqa: S101 - it was started with pipes
        assert holder.stdout is not None  # noqa: S101
        if holder.stdout.readline():
            _measure(options.seconds)
        holder.stdin.close()


if __name__ == "__main__":
    main()
