"""The cost of drawing: the rate of the app in a terminal against that of the headless command.

Usage: .venv/bin/python tests/stress/drawing.py [--rounds 5] [--seconds 8] [--turns 40]

Runs are interleaved against one endpoint on loopback, with cubic congestion control. Prints the median rates and
their ratio with a bootstrap interval, the share of a core that the drawing process takes, and the bytes a second
written to its terminal, for two sizes. A rate on loopback varies between runs by much more than drawing can cost.
So the process of one run is also stopped and continued (SIGSTOP) in turn: the ratio of the loopback rates in these
turns, for the app and for the headless command, compares the same connection with and without the process.
Measurements during which the host of a virtual machine took much of its time are repeated.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from linkgauge.engine.host.nic import read_nic_counts
from namespace import enter_namespace
from processes import process_cpu_s, running
from ratios import ratio_interval
from stolen_time import MAX_STOLEN_SHARE, StealGuard, StealMeter
from terminal import Terminal, open_app
from tools import LINKGAUGE

_PORT = 5896
_SIZES = ((120, 40), (80, 24))
_TURN_S = 1.0
_TURNS_OF_A_RUN = 10  # the app's is over in 30 s
_MOST_RUNS = 4  # as many times as would do if none was disturbed
_UNDRAWN_S = 1.5  # the first part of a run, left out of the app's own cost
_SETTLE_S = 0.6  # what piled up while it was stopped is drawn

_RUN_OPTIONS = (f"127.0.0.1:{_PORT}", "--congestion", "cubic")

_Turns = tuple[list[float], list[float]]


def _command(seconds: int) -> list[str]:
    return [sys.executable, "-m", "linkgauge", "run", *_RUN_OPTIONS, "--json", "--seconds", str(seconds)]


@contextmanager
def _running_app(size: tuple[int, int]) -> Generator[Terminal]:
    """Yield the app during a run, which is stopped at the end of the `with` block."""
    with open_app(*_RUN_OPTIONS, size=size) as terminal:
        terminal.until(lambda text: "READY" in text)
        terminal.press(" ")
        terminal.until(lambda text: "RUNNING" in text)
        yield terminal
        terminal.press(" ")
        terminal.follow(2.0)


def _headless(seconds: int) -> float:
    result = json.loads(subprocess.run(_command(seconds), check=True, capture_output=True, text=True).stdout)
    return result["measured"]["total"]["mbit_s"]


def _last_run() -> float:
    command = [sys.executable, "-m", "linkgauge", "runs", "list", "--json"]
    newest = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[0]
    if newest["preset"] is None:
        raise SystemExit("the app kept no run: nothing to compare")  # the headless ones are made without a preset
    return newest["document"]["measured"]["total"]["mbit_s"]


def _drawn(seconds: int, size: tuple[int, int]) -> tuple[float, float, float]:
    """Run the app; return its measured rate, the bytes a second that it wrote and its share of a core."""
    with _running_app(size) as terminal:
        terminal.follow(_UNDRAWN_S)
        before, cpu_s = terminal.written, process_cpu_s(terminal.pid)
        terminal.follow(seconds - _UNDRAWN_S)
        written = (terminal.written - before) / (seconds - _UNDRAWN_S)
        share = (process_cpu_s(terminal.pid) - cpu_s) / (seconds - _UNDRAWN_S)
    return _last_run(), written, share


def _loopback_bytes() -> int:
    counts = read_nic_counts("lo")
    if counts is None:
        raise SystemExit("this system does not tell what comes over loopback: nothing to compare in turn")
    return counts.received_bytes


def _in_turn(pid: int, rest: Callable[[float], None], going: list[float], stopped: list[float]) -> None:
    """Add the rates, bit/s, of a process's run while the process works and while it is stopped."""

    def measure() -> float:
        began, before = time.monotonic(), _loopback_bytes()
        rest(_TURN_S)
        return (_loopback_bytes() - before) * 8 / (time.monotonic() - began)

    for _ in range(_TURNS_OF_A_RUN):
        rest(_SETTLE_S)
        meter = StealMeter()
        at_work = measure()
        os.kill(pid, signal.SIGSTOP)
        try:
            without = measure()
        finally:
            os.kill(pid, signal.SIGCONT)
        if meter.share() <= MAX_STOLEN_SHARE:
            going.append(at_work)
            stopped.append(without)


def _app_in_turn(going: list[float], stopped: list[float]) -> None:
    with _running_app(_SIZES[0]) as terminal:
        _in_turn(terminal.pid, terminal.follow, going, stopped)


def _headless_in_turn(going: list[float], stopped: list[float]) -> None:
    with subprocess.Popen(_command(60), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(2.0)
        _in_turn(process.pid, time.sleep, going, stopped)
        process.send_signal(signal.SIGINT)


def _turns(take_turns: Callable[[list[float], list[float]], None], wanted: int) -> _Turns:
    """Return the rates with a process at work and stopped: as many as wanted, if not too many are disturbed."""
    going: list[float] = []
    stopped: list[float] = []
    for _ in range(_MOST_RUNS * max(1, wanted // _TURNS_OF_A_RUN)):
        if len(going) >= wanted:
            break
        take_turns(going, stopped)
    return going, stopped


def _print_turns(in_turn: dict[str, _Turns]) -> None:
    if not all(going for going, _ in in_turn.values()):
        print("in turn: time was stolen all along, nothing to compare")
        return
    ratios = {name: ratio_interval(*rates) for name, rates in in_turn.items()}
    for name, (ratio, low, high) in ratios.items():
        text = f"{ratio:.3f} of its process stopped ({low:.3f}–{high:.3f}), {len(in_turn[name][0])} turns"
        print(f"in turn, in one run: {name} {text}")
    print(f"the app's of the headless command's: {ratios['app'][0] / ratios['headless'][0]:.3f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Whether drawing disturbs measuring.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--turns", type=int, default=40)
    options = parser.parse_args()
    if options.seconds <= _UNDRAWN_S:
        parser.error(f"--seconds has to be more than {_UNDRAWN_S}: the first part of a run is left out")
    enter_namespace()
    with tempfile.TemporaryDirectory() as folder, running(LINKGAUGE.server(_PORT), settle_s=2.0):
        os.environ["LINKGAUGE_DATA_DIR"] = folder
        drawn: list[float] = []
        headless: list[float] = []
        shares: list[float] = []
        written: dict[tuple[int, int], list[float]] = {size: [] for size in _SIZES}
        guard = StealGuard()
        for number in range(options.rounds):
            headless.append(guard.measure(partial(_headless, options.seconds)))
            size = _SIZES[number % len(_SIZES)]
            rate, speed, share = guard.measure(partial(_drawn, options.seconds, size))
            drawn.append(rate)
            shares.append(share)
            written[size].append(speed)
        in_turn = {"app": _turns(_app_in_turn, options.turns), "headless": _turns(_headless_in_turn, options.turns)}
    ratio, low, high = ratio_interval(drawn, headless)
    print(f"headless {median(headless):.0f} Mb/s, app open and drawing {median(drawn):.0f} Mb/s")
    print(f"ratio {ratio:.3f} ({low:.3f}–{high:.3f}), to be at least 0.98")
    print(f"the app itself took {median(shares):.1%} of a core, of {os.cpu_count()}")
    print(guard)
    _print_turns(in_turn)
    for (columns, lines), speeds in written.items():
        if speeds:
            print(f"the app wrote {median(speeds) / 1e3:.1f} kB/s to a terminal of {columns}x{lines}")


if __name__ == "__main__":
    main()
