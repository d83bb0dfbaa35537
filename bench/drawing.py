"""Whether drawing disturbs measuring: the app, open and drawing in a real terminal, against the headless command.

Usage: .venv/bin/python bench/drawing.py [--rounds 5] [--seconds 8]

Interleaved runs against one endpoint on loopback. Prints the median rate of each and their ratio with a bootstrap
interval, and how many bytes a second the app wrote to its terminal.
"""

import argparse
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))

from processes import running
from ratios import ratio_interval
from tools import LINKGAUGE

_PORT = 5896
_SIZE = struct.pack("HHHH", 40, 120, 0, 0)


def _headless(seconds: int) -> float:
    command = [sys.executable, "-m", "linkgauge", "run", f"127.0.0.1:{_PORT}", "--json", "--seconds", str(seconds)]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result["measured"]["total"]["mbit_s"]


def _last_run() -> float:
    command = [sys.executable, "-m", "linkgauge", "runs", "list", "--json"]
    newest = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[0]
    if newest["preset"] is None:
        raise SystemExit("the app kept no run: nothing to compare")  # the headless ones are made without a preset
    return newest["document"]["measured"]["total"]["mbit_s"]


def _drain(master: int, seconds: float) -> int:
    """Read what the app draws, as a terminal would; return how many bytes that were."""
    written, until = 0, time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if select.select([master], [], [], left)[0]:
            try:
                written += len(os.read(master, 65_536))
            except OSError:
                break
    return written


def _drawn(seconds: int) -> tuple[float, float]:
    """Run the app; return the rate it measured and the bytes a second it wrote while it ran."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ.setdefault("TERM", "xterm-256color")
        os.execvp(sys.executable, [sys.executable, "-m", "linkgauge", f"127.0.0.1:{_PORT}"])
    try:
        fcntl.ioctl(master, termios.TIOCSWINSZ, _SIZE)
        _drain(master, 3.0)
        os.write(master, b" ")
        _drain(master, 1.5)
        written = _drain(master, seconds - 1.5) / (seconds - 1.5)
        os.write(master, b" ")
        _drain(master, 2.0)
        os.write(master, b"q")
        _drain(master, 1.0)
    finally:
        os.waitpid(pid, 0)
        os.close(master)
    return _last_run(), written


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Whether drawing disturbs measuring.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(LINKGAUGE.server(_PORT), settle_s=2.0):
        os.environ["LINKGAUGE_DATA_DIR"] = folder
        drawn: list[float] = []
        headless: list[float] = []
        written: list[float] = []
        for _ in range(options.rounds):
            headless.append(_headless(options.seconds))
            rate, speed = _drawn(options.seconds)
            drawn.append(rate)
            written.append(speed)
    ratio, low, high = ratio_interval(drawn, headless)
    print(f"headless {median(headless):.0f} Mb/s, app open and drawing {median(drawn):.0f} Mb/s")
    print(f"ratio {ratio:.3f} ({low:.3f}–{high:.3f}), to be at least 0.98")
    print(f"the app wrote {median(written) / 1e3:.1f} kB/s to a terminal of 120x40")


if __name__ == "__main__":
    main()
