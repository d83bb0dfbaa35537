"""Two hundred clients at once: how long until each is served or refused.

Usage: .venv/bin/python stress/crowd.py [--clients 200] [--silent 0]

With --silent, that many connections stay silent meanwhile. Exits with 1 if a client gets no answer in 30 s, or if
the endpoint keeps any resource.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import socket
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from linkgauge.engine.host.event_loop import loop_factory
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import open_run
from resources import loopback_endpoint, resources_of, wait_for_release

_DEADLINE_S = 30.0
_PLAN = Plan(Settings(window_bytes=65_536), Workload.RR, duration_ns=SECOND_NS, interval_ns=SECOND_NS // 2)


async def _ask(peer: Peer) -> tuple[float, str]:
    began = time.monotonic()
    try:
        async with asyncio.timeout(_DEADLINE_S), open_run(_PLAN, peer) as run:
            took_s = time.monotonic() - began
            ends = [event async for event in run]
            return took_s, f"served, {ends[-1].end.reason}"
    except LinkgaugeError as error:
        return time.monotonic() - began, f"{type(error).__name__}: {str(error).replace(str(peer), 'it')}"
    except TimeoutError:
        return time.monotonic() - began, "told nothing"


async def _crowd(clients: int, silent: int) -> bool:
    with loopback_endpoint() as (pid, peer):
        await _ask(peer)
        before = resources_of(pid)
        quiet = [socket.create_connection((peer.host, peer.port)) for _ in range(silent)]
        answers = await asyncio.gather(*(_ask(peer) for _ in range(clients)))
        for sock in quiet:
            sock.close()
        print(f"{clients} clients at once, {silent} silent connections beside them")
        for answer, count in Counter(text for _, text in answers).most_common():
            times = sorted(took_s for took_s, text in answers if text == answer)
            print(f"{count:5}  {times[0]:5.2f} to {times[-1]:5.2f} s  {answer}")
        given_back_s, left = await asyncio.to_thread(wait_for_release, pid, before, _DEADLINE_S, 256 * 1024)
        now = vars(resources_of(pid))
        print(f"all given back after {given_back_s:.1f} s; left: {left or 'nothing'}; now {now}")
        return not left and all(text != "told nothing" for _, text in answers)


def main() -> int:
    """Start the clients; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--silent", type=int, default=0)
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return 0 if runner.run(_crowd(options.clients, options.silent)) else 1


if __name__ == "__main__":
    sys.exit(main())
