"""Programs that send at a set rate, against the result of `linkgauge observe`: app-limited, or paced.

Usage: .venv/bin/python stress/observed_rates.py [--rates 1,6,50] [--programs iperf3-b,rsync] [--links veth,tbf]

Each try has a program send at a part of what a link of two namespaces carries, and observes that from the sending
host, with a line rate and without. No path, window or loss limits it, so nothing but its pace may be the finding.
Needs root; curl, iperf3 and rsync each serve their own tries. The namespaces are removed at the end.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from grid_cases import Case
from link_makers import open_link
from linkgauge.engine.lab.link_spec import FAR_ADDRESS
from linkgauge.presets.lab_link import Faults

_PORT: Final = 5_297
_NEAR, _FAR = "198.18.7.1", "198.18.7.2"
_LINES: Final = {"veth": "1G", "tbf": "1G", "tight": "100M", "delayed": "100M"}
"""The line rate of each link. `tight` has room for rates of up to 50 Mb/s, and so has `delayed`, 10 ms away."""
_OBSERVED_S: Final = 4
_READY_S: Final = 1.0
_DEADLINE_S: Final = 60.0
_RIGHT: Final = ("app-limited", "pacing", "idle")  # a mebibyte at 1 Mb/s is followed by 8 s of nothing
_SINK: Final = """
import socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((sys.argv[1], int(sys.argv[2])))
server.listen()
while True:
    connection, _ = server.accept()
    if len(sys.argv) > 3:  # an answer to an upload by HTTP
        connection.sendall(b"HTTP/1.1 100 Continue\\r\\n\\r\\n")
    while connection.recv(1 << 18):
        pass
"""
# Like pv -L and trickle: a write of some bytes, then a pause up to the time at which the next one is due.
_WRITER: Final = """
import socket, sys, time
host, port, bit_s, size = sys.argv[1], *map(int, sys.argv[2:5])
client = socket.create_connection((host, port))
payload, due = bytes(size), time.monotonic()
while True:
    client.sendall(payload)
    due = max(due + size * 8 / bit_s, time.monotonic() - 1)
    time.sleep(max(0.0, due - time.monotonic()))
"""


@dataclass(frozen=True)
class Ends:
    """The words that command lines begin with to run at each end, those that observe the near one, the far host."""

    near: list[str]
    far: list[str]
    options: list[str]
    host: str


Program = Callable[[int, Ends, contextlib.ExitStack], None]
"""Starts a transfer of so many bits a second from the near end to the far one."""


def _start(stack: contextlib.ExitStack, command: list[str]) -> None:
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    stack.callback(process.wait)
    stack.callback(process.kill)


def _own(bit_s: int, ends: Ends, stack: contextlib.ExitStack) -> None:
    module = [sys.executable, "-m", "linkgauge"]
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    clean = ["env", f"LINKGAUGE_DATA_DIR={folder}", f"LINKGAUGE_CONFIG_DIR={folder}"]
    _start(stack, [*ends.far, *clean, *module, "endpoint", "--open", "--port", str(_PORT)])
    time.sleep(3 * _READY_S)
    run = ["run", f"{ends.host}:{_PORT}", "--rate", f"{bit_s // 1_000_000}M", "--seconds", "40"]
    _start(stack, [*ends.near, *clean, *module, *run])
    time.sleep(2 * _READY_S)


def _iperf3(*options: str) -> Program:
    def start(bit_s: int, ends: Ends, stack: contextlib.ExitStack) -> None:
        _start(stack, [*ends.far, "iperf3", "-s", "-p", str(_PORT)])
        time.sleep(_READY_S)
        words = [each.replace("RATE", str(bit_s)) for each in options]
        _start(stack, [*ends.near, "iperf3", "-c", ends.host, "-p", str(_PORT), "-t", "60", *words])

    return start


def _curl(bit_s: int, ends: Ends, stack: contextlib.ExitStack) -> None:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    with (folder / "file").open("wb") as stream:
        stream.truncate(8 << 30)
    _start(stack, [*ends.far, sys.executable, "-c", _SINK, ends.host, str(_PORT), "http"])
    time.sleep(_READY_S)
    limit = ["--limit-rate", str(bit_s // 8)]
    _start(
        stack, [*ends.near, "curl", "-s", *limit, "-T", str(folder / "file"), f"http://{ends.host}:{_PORT}/file"]
    )


def _rsync(bit_s: int, ends: Ends, stack: contextlib.ExitStack) -> None:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    with (folder / "file").open("wb") as stream:
        stream.truncate(8 << 30)
    (folder / "copies").mkdir()
    (folder / "conf").write_text(
        f"use chroot = no\nuid = root\ngid = root\n[copies]\npath = {folder}/copies\nread only = no\n",
        encoding="ascii",
    )
    daemon = [
        "rsync",
        "--daemon",
        "--no-detach",
        f"--config={folder}/conf",
        f"--port={_PORT}",
        f"--address={ends.host}",
    ]
    _start(stack, [*ends.far, *daemon])
    time.sleep(_READY_S)
    limit = f"--bwlimit={max(1, bit_s // 8_192)}"
    target = f"rsync://{ends.host}:{_PORT}/copies/"
    _start(stack, [*ends.near, "rsync", "--whole-file", "--inplace", limit, str(folder / "file"), target])


def _writer(size: int) -> Program:
    def start(bit_s: int, ends: Ends, stack: contextlib.ExitStack) -> None:
        _start(stack, [*ends.far, sys.executable, "-c", _SINK, ends.host, str(_PORT)])
        time.sleep(_READY_S)
        _start(stack, [*ends.near, sys.executable, "-c", _WRITER, ends.host, str(_PORT), str(bit_s), str(size)])

    return start


PROGRAMS: Final[dict[str, Program]] = {
    "own": _own,
    "iperf3-b": _iperf3("-b", "RATE"),
    "iperf3-fq": _iperf3("--fq-rate", "RATE"),
    "iperf3-both": _iperf3("-b", "RATE", "--fq-rate", "RATE"),
    "curl": _curl,
    "rsync": _rsync,
    "writer-4K": _writer(1 << 12),
    "writer-64K": _writer(1 << 16),
    "writer-1M": _writer(1 << 20),
}


@contextlib.contextmanager
def _delayed_ends() -> Generator[Ends]:
    """Have a lab delay a link of 100 Mb/s."""
    with open_link(Case(0, "rate", (), "100mb-fd", Faults(delay_ms=10))) as link:
        near, far = (["nsenter", "-t", str(pid), "-n"] for pid in (link.near_pid, link.far_pid))
        yield Ends(near, far, ["--pid", str(link.near_pid)], FAR_ADDRESS)


@contextlib.contextmanager
def _paired_ends(link: str) -> Generator[Ends]:
    """Make two namespaces with a pair of devices: as they are, or shaped to the line rate at both."""
    names = [f"lgrate{os.getpid()}{end}" for end in "nf"]
    with contextlib.ExitStack() as stack:
        for name in names:
            _run("ip", "netns", "add", name)
            stack.callback(_run, "ip", "netns", "del", name)
        pair = ("lgr0", "netns", names[0], "type", "veth", "peer", "name", "lgr1", "netns", names[1])
        _run("ip", "link", "add", *pair)
        for name, device, address in ((names[0], "lgr0", _NEAR), (names[1], "lgr1", _FAR)):
            _run("ip", "-n", name, "addr", "add", f"{address}/30", "dev", device)
            for each in ("lo", device):
                _run("ip", "-n", name, "link", "set", each, "up")
            if link != "veth":
                shaper = ["tbf", "rate", f"{_LINES[link]}bit", "burst", "256k", "latency", "20ms"]
                _run("tc", "-n", name, "qdisc", "add", "dev", device, "root", *shaper)
        near, far = (["ip", "netns", "exec", name] for name in names)
        yield Ends(near, far, ["--netns", names[0]], _FAR)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=_DEADLINE_S)


def _observe(ends: Ends, *rate: str) -> tuple[str, dict[str, Any]]:
    """Return the first finding of the fastest connection that the near end sends on, or its status; and its row."""
    command = [sys.executable, "-m", "linkgauge", "observe", f"{ends.host}:{_PORT}", "--json", *ends.options]
    done = subprocess.run(
        [*command, "--seconds", str(_OBSERVED_S), "--interval", str(_OBSERVED_S), *rate],
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    if done.returncode:
        return done.stderr.strip().rpartition("\n")[2] or "failed", {}
    rows = [row for row in json.loads(done.stdout)["connections"] if row["direction"] == "out"]
    if not rows:
        return "no connection", {}
    row = rows[0]
    return (row["findings"][0]["code"] if row["findings"] else row["status"]), row


def main() -> None:
    """Try every program at every rate over every link."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="1,6,50,200,500", help="Mb/s, with commas between")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--links", default=",".join(_LINES))
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("namespaces are made as root")
    right = tried = 0
    print(f"{'link':<7} {'program':<12} {'asked':>5} {'Mb/s':>7} {'with a line rate':<20} {'without':<20}")
    for link in options.links.split(","):
        for program in options.programs.split(","):
            for rate in map(int, options.rates.split(",")):
                if _LINES[link] == "100M" and rate > 50:
                    continue
                with contextlib.ExitStack() as stack:
                    made = _delayed_ends() if link == "delayed" else _paired_ends(link)
                    ends = stack.enter_context(made)
                    PROGRAMS[program](rate * 1_000_000, ends, stack)
                    time.sleep(2 * _READY_S)
                    (judged, row), (plain, _) = _observe(ends, "--line-rate", _LINES[link]), _observe(ends)
                marks = ["" if each in _RIGHT else "!" for each in (judged, plain)]
                right, tried = right + marks.count(""), tried + 2
                mbit_s = row.get("mbit_s", "-")
                print(
                    f"{link:<7} {program:<12} {rate:>5} {mbit_s:>7} {judged + marks[0]:<20} {plain + marks[1]:<20}",
                    flush=True,
                )
                if any(marks):
                    print(f"    {row.get('reason')} {row.get('out')}", flush=True)
    print(f"{right} of {tried} right; load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
