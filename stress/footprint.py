"""The footprint of linkgauge: memory, start-up time, many sessions, a long run.

Usage: .venv/bin/python stress/footprint.py [--minutes 10]

Prints the time from the start of the app to its first frame, the memory of an idle endpoint, the time from the
start of a run to its first byte, the rate of 128 sessions against one, and the memory of both ends after a minute
and at the end of a long run (skipped with --minutes 0).
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from processes import resident_mib, running
from terminal import open_app
from tools import LINKGAUGE

_PORT = 5897
_PEER = f"127.0.0.1:{_PORT}"
_TARGET_MEMORY_MIB = 40
_TARGET_START_MS = 300
_TARGET_FRAME_MS = 800
_ROUNDS = 7
# What Textual takes by itself: the frame of an app with one word.
_TEXTUAL_ALONE = """
from textual.app import App
from textual.widgets import Label
class Alone(App):
    BINDINGS = [("q", "quit", "quit")]
    def compose(self):
        yield Label("quit")
Alone().run()
"""

# Direction in: received bytes are counted as they are read, sent bytes once an interval.
_FIRST_BYTE = """
import asyncio, time
from linkgauge.engine.workers.fork_client import ForkServerLease
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.near.run import open_run

async def first_byte_ms(port):
    asked = time.monotonic()
    plan = Plan(Settings(Direction.IN), duration_ns=10**9)
    async with open_run(plan, Peer("127.0.0.1", port)) as one:
        while not one.pool.counters.total_bytes():
            await asyncio.sleep(0.001)
        return (time.monotonic() - asked) * 1e3

async def main(port):
    print(await first_byte_ms(port))
    async with ForkServerLease():  # as the app holds it while it waits for a key
        await asyncio.sleep(1.0)
        print(await first_byte_ms(port))

run(main({port}))
"""


@contextmanager
def _endpoint() -> Generator[int]:
    with running(LINKGAUGE.server(_PORT), settle_s=2.0) as process:
        yield process.pid


def _run(*options: str) -> dict[str, dict[str, dict[str, float]]]:
    command = [sys.executable, "-m", "linkgauge", "run", _PEER, "--json", "--congestion", "cubic", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _first_bytes_ms() -> tuple[float, float]:
    """Return the time to the first byte, without and with a fork server that is already running."""
    code = _FIRST_BYTE.replace("{port}", str(_PORT))
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    cold, warm = map(float, output.split())
    return cold, warm


def _first_frame_ms(*program: str) -> float:
    """Return the time from the start of an app to the frame that shows the word quit."""
    began = time.monotonic()
    with open_app(program=program) as terminal:
        return (terminal.until(lambda text: "quit" in text.lower()) - began) * 1e3


def _first_frames() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"LINKGAUGE_DATA_DIR": folder, "LINKGAUGE_CONFIG_DIR": folder}
        rounds = [
            (_first_frame_ms("-m", "linkgauge"), _first_frame_ms("-c", _TEXTUAL_ALONE)) for _ in range(_ROUNDS)
        ]
    whole, alone = zip(*rounds, strict=True)
    print(
        f"the app, from its start to its first frame: {median(whole):.0f} ms (target {_TARGET_FRAME_MS}; worst "
        f"{max(whole):.0f}; {median(alone):.0f} of Textual alone)"
    )


def _many_sessions() -> None:
    rates: dict[str, list[float]] = {"1": [], "128": []}
    costs: dict[str, list[float]] = {"1": [], "128": []}
    for _ in range(3):
        for sessions, values in rates.items():
            result = _run("--seconds", "4", "--sessions", sessions)
            values.append(result["measured"]["total"]["mbit_s"])
            cpu = result["cpu"]
            costs[sessions].append(cpu["near"]["msec_per_mib"] + cpu["far"]["msec_per_mib"])
    for sessions, values in rates.items():
        print(
            f"{sessions:>4} sessions: {median(values):9.0f} Mb/s, {median(costs[sessions]):.3f} ms/MiB at both ends"
        )
    print(f"     128 against 1: {median(rates['128']) / median(rates['1']):.2f} of the rate")


async def _long_run(minutes: float, endpoint_pid: int) -> None:
    command = [sys.executable, "-m", "linkgauge", "run", _PEER, "--seconds", str(minutes * 60), "--json"]
    near = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started = time.monotonic()
    for at in (60.0, minutes * 60 - 5):
        await asyncio.sleep(max(0.0, started + at - time.monotonic()))
        near_mib, far_mib = resident_mib(near.pid), resident_mib(endpoint_pid)
        print(f"after {at / 60:4.1f} min: near {near_mib:.1f} MiB, far {far_mib:.1f} MiB")
    await near.wait()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What linkgauge itself costs.")
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    _first_frames()
    with _endpoint() as pid:
        print(f"endpoint, idle: {resident_mib(pid):.1f} MiB (target {_TARGET_MEMORY_MIB})")
        times_ms = zip(*(_first_bytes_ms() for _ in range(_ROUNDS)), strict=True)
        for what, times in zip(("a command", "an app at rest"), times_ms, strict=True):
            text = f"{median(times):.0f} ms (target {_TARGET_START_MS}; worst {max(times):.0f})"
            print(f"{what}, from asking to the first byte: {text}")
        _many_sessions()
        if options.minutes > 1:
            asyncio.run(_long_run(options.minutes, pid))


if __name__ == "__main__":
    main()
