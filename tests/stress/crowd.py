"""Two hundred clients that ask at once: how long until each is served, or told why it is not.

Usage: .venv/bin/python tests/stress/crowd.py [--clients 200] [--silent 0]

With --silent that many connections say nothing meanwhile. Exits with 1 where a client was told nothing in 30 s.
"""

# The package is the folder above this one, which pyright cannot know under the package's name.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import socket
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from held import endpoint, held_by, wait_until
from linkgauge.engine.host.event_loop import loop_factory
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import open_run

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
    with endpoint() as (pid, peer):
        await _ask(peer)
        before = held_by(pid)
        quiet = [socket.create_connection((peer.host, peer.port)) for _ in range(silent)]
        answers = await asyncio.gather(*(_ask(peer) for _ in range(clients)))
        for sock in quiet:
            sock.close()
        print(f"{clients} clients at once, {silent} silent connections beside them")
        for what, count in Counter(told for _, told in answers).most_common():
            times = sorted(took_s for took_s, told in answers if told == what)
            print(f"{count:5}  {times[0]:5.2f} to {times[-1]:5.2f} s  {what}")
        given_back_s, left = await asyncio.to_thread(wait_until, pid, before, _DEADLINE_S, 256 * 1024)
        print(f"all given back after {given_back_s:.1f} s; left: {left or 'nothing'}; now {vars(held_by(pid))}")
        return not left and all(told != "told nothing" for _, told in answers)


def main() -> int:
    """Let a crowd ask, and tell by the exit status whether anybody was left waiting."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--silent", type=int, default=0)
    asked = parser.parse_args()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return 0 if runner.run(_crowd(asked.clients, asked.silent)) else 1


if __name__ == "__main__":
    sys.exit(main())
