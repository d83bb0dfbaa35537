"""Accuracy of `linkgauge observe`: causes of slow transfers by other programs, against its first finding.

Usage: .venv/bin/python stress/observed_causes.py [--tries 1] [--only receiver-slow] [--programs sockets,iperf3]

Each try builds a link between two namespaces (engine/lab), has a program that knows nothing of linkgauge send over
it, impaired in one way, and observes that from the sending host for some seconds: with the line rate of the link,
and without. Healthy transfers and senders without data must have no finding. Needs root; curl, iperf3, rsync and
sshd each serve their own tries.
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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from grid_cases import Case
from link_makers import open_link
from linkgauge.engine.lab.link_spec import FAR_ADDRESS, NEAR_ADDRESS
from linkgauge.presets.lab_link import NO_FAULTS, Faults

_PRESET: Final = "100mb-fd"
_LINE_RATE: Final = "100M"
_PORT: Final = 5_299
_BUCKET: Final = 30_000
_OBSERVED_S: Final = 5
_DEADLINE_S: Final = 60.0
_READY_S: Final = 1.0
_NONE: Final = "-"
_RETRY: Final = ("--retry", "10", "--retry-connrefused", "--retry-delay", "1")

# Programs as others write them: sockets of Python, as nc uses them.

_RECEIVER: Final = """
import socket, sys, time
port, buffer, pause = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if buffer:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
server.bind(("0.0.0.0", port))
server.listen()
connection, _ = server.accept()
while connection.recv(65536):
    if pause:
        time.sleep(pause)
"""
_SENDER: Final = """
import socket, sys, time
host, port, buffer, mss, size, pause = sys.argv[1], *map(int, sys.argv[2:6]), float(sys.argv[6])
client = socket.socket()
if buffer:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
if mss:
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, mss)
client.connect((host, port))
payload = bytes(size)
end = time.monotonic() + 60
while time.monotonic() < end:
    client.sendall(payload)
    if pause:
        time.sleep(pause)
"""


@dataclass(frozen=True)
class Cause:
    """One way to make a transfer slow; `wanted` is the first finding, or the status without one.

    The other fields say how: of the link, of the sockets, of the far end's kernel, of the programs.
    """

    name: str
    wanted: tuple[str, ...]
    faults: Faults = NO_FAULTS
    receive_buffer: int = 0
    send_buffer: int = 0
    mss: int = 0
    read_pause_s: float = 0.0
    send_bytes: int = 1 << 20
    send_pause_s: float = 0.0
    far_sysctls: dict[str, str] = field(default_factory=dict[str, str])
    policed_mbit_s: int = 0
    without_rate: tuple[str, ...] | None = None  # wanted without a line rate, if it differs


_HEALTHY: Final = ("healthy", "app-limited", "unknown")  # no finding; on a busy machine a program may lack data
_DELAYED: Final = Faults(delay_ms=10)
CAUSES: Final = (
    Cause("healthy", _HEALTHY),
    Cause("healthy-delay", _HEALTHY, Faults(delay_ms=2)),
    Cause("window-small", ("window-below-bdp",), _DELAYED, receive_buffer=32_768),
    Cause("buffer-small", ("window-below-bdp",), _DELAYED, send_buffer=32_768),
    Cause("receiver-slow", ("receive-window",), read_pause_s=0.02),
    Cause("sender-slow", ("app-limited",), send_bytes=100_000, send_pause_s=0.05),
    Cause("loss", ("loss",), Faults(delay_ms=5, loss_percent=1)),
    Cause("policer", ("policer",), policed_mbit_s=20),
    Cause("mss-small", ("mss-small",), mss=500, without_rate=_HEALTHY),
    Cause("path-slow", ("path-slow",), Faults(slow_percent=20), without_rate=_HEALTHY),
    Cause(
        "window-clamped",
        ("window-below-bdp", "window-clamped"),
        _DELAYED,
        far_sysctls={"net.ipv4.tcp_rmem": "4096 65536 65536"},
    ),
    Cause("scaling-off", ("window-scaling-off",), _DELAYED, far_sysctls={"net.ipv4.tcp_window_scaling": "0"}),
)


@dataclass(frozen=True)
class Ends:
    """The words that command lines begin with to run at each end, and a process of the sending one."""

    near: list[str]
    far: list[str]
    near_pid: int


Program = Callable[[Cause, Ends, contextlib.ExitStack], bool]
"""Starts a transfer from the near end to the far one; returns whether it can show the cause."""


def _start(stack: contextlib.ExitStack, command: list[str]) -> None:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.kill)


def _sockets(cause: Cause, ends: Ends, stack: contextlib.ExitStack) -> bool:
    receiver = [str(_PORT), str(cause.receive_buffer), str(cause.read_pause_s)]
    _start(stack, [*ends.far, sys.executable, "-c", _RECEIVER, *receiver])
    time.sleep(_READY_S)
    numbers = (_PORT, cause.send_buffer, cause.mss, cause.send_bytes)
    sender = [FAR_ADDRESS, *map(str, numbers), str(cause.send_pause_s)]
    _start(stack, [*ends.near, sys.executable, "-c", _SENDER, *sender])
    return True


def _iperf3(cause: Cause, ends: Ends, stack: contextlib.ExitStack) -> bool:
    if cause.read_pause_s:
        return False  # it reads as fast as it can
    options = []
    if cause.receive_buffer or cause.send_buffer:
        options += ["-w", str(cause.receive_buffer or cause.send_buffer)]
    if cause.mss:
        options += ["-M", str(cause.mss)]
    if cause.send_pause_s:
        options += ["-b", "16M"]
    _start(stack, [*ends.far, "iperf3", "-s", "-p", str(_PORT)])
    time.sleep(_READY_S)
    _start(stack, [*ends.near, "iperf3", "-c", FAR_ADDRESS, "-p", str(_PORT), "-t", "60", *options])
    return True


def _http(cause: Cause, ends: Ends, stack: contextlib.ExitStack) -> bool:
    if cause.receive_buffer or cause.send_buffer or cause.mss or cause.send_pause_s:
        return False
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    with Path(folder, "file").open("wb") as stream:
        stream.truncate(1 << 30)
    _start(
        stack,
        [*ends.near, sys.executable, "-m", "http.server", str(_PORT), "-b", NEAR_ADDRESS, "-d", folder],
    )
    time.sleep(_READY_S)
    slow = ["--limit-rate", "2M"] if cause.read_pause_s else []
    url = f"http://{NEAR_ADDRESS}:{_PORT}/file"
    _start(stack, [*ends.far, "curl", "-s", *_RETRY, "-o", "/dev/null", *slow, url])
    return True


def _rsync(cause: Cause, ends: Ends, stack: contextlib.ExitStack) -> bool:
    if cause.receive_buffer or cause.send_buffer or cause.mss or cause.read_pause_s:
        return False
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    for name in ("host", "user"):
        subprocess.run(["/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "keys").write_bytes((folder / "user.pub").read_bytes())
    with (folder / "file").open("wb") as stream:
        stream.truncate(1 << 30)
    Path("/run/sshd").mkdir(exist_ok=True)
    settings = (f"HostKey={folder}/host", f"AuthorizedKeysFile={folder}/keys", "StrictModes=no", "PidFile=none")
    options = [word for setting in settings for word in ("-o", setting)]
    _start(stack, [*ends.far, "/usr/sbin/sshd", "-D", "-f", "/dev/null", "-p", str(_PORT), *options])
    time.sleep(_READY_S)
    ssh = (
        f"ssh -p {_PORT} -i {folder}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
        "-o LogLevel=ERROR"
    )
    slow = ["--bwlimit=2000"] if cause.send_pause_s else []
    target = f"root@{FAR_ADDRESS}:{folder}/copy"
    _start(stack, [*ends.near, "rsync", "--whole-file", "-e", ssh, *slow, f"{folder}/file", target])
    return True


PROGRAMS: Final[dict[str, Program]] = {"sockets": _sockets, "iperf3": _iperf3, "http": _http, "rsync": _rsync}


@contextlib.contextmanager
def _ends(cause: Cause) -> Generator[Ends]:
    """Build the link of a cause."""
    case = Case(0, cause.name, cause.wanted, _PRESET, cause.faults)
    if cause.policed_mbit_s:
        case = replace(case, maker="wire-on", policed_bit_s=cause.policed_mbit_s * 1_000_000, bucket_bytes=_BUCKET)
    with open_link(case) as link:
        near, far = (["nsenter", "-t", str(pid), "-n"] for pid in (link.near_pid, link.far_pid))
        for name, value in cause.far_sysctls.items():
            subprocess.run([*far, "sysctl", "-qw", f"{name}={value}"], check=True)
        yield Ends(near, far, link.near_pid)


def _observe(ends: Ends, *rate: str) -> tuple[str, dict[str, Any]]:
    """Return the first finding of the fastest connection that the near end sends on, or its status; and its row."""
    command = [sys.executable, "-m", "linkgauge", "observe", FAR_ADDRESS, "--json", "--seconds", str(_OBSERVED_S)]
    done = subprocess.run(
        [*command, "--pid", str(ends.near_pid), "--interval", str(_OBSERVED_S), *rate],
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


def _try(cause: Cause, program: str) -> tuple[str, str, dict[str, Any]] | None:
    with contextlib.ExitStack() as stack:
        ends = stack.enter_context(_ends(cause))
        if not PROGRAMS[program](cause, ends, stack):
            return None
        time.sleep(2 * _READY_S)
        judged, row = _observe(ends, "--line-rate", _LINE_RATE)
        plain, _ = _observe(ends)
        return judged, plain, row


def main() -> None:
    """Try every cause with every program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=1)
    parser.add_argument("--only", help="causes by name, with commas between")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("the namespaces of a lab are entered as root")
    only = None if options.only is None else options.only.split(",")
    right = tried = 0
    print(f"{'cause':<16} {'program':<8} {'with a line rate':<20} {'without':<20} {'Mb/s':>7}")
    for cause in CAUSES:
        if only is not None and cause.name not in only:
            continue
        for program in options.programs.split(","):
            for _ in range(options.tries):
                result = _try(cause, program)
                if result is None:
                    continue
                judged, plain, row = result
                wanted = cause.without_rate or cause.wanted
                marks = ["" if judged in cause.wanted else "!", "" if plain in wanted else "!"]
                right, tried = right + marks.count(""), tried + 2
                print(
                    f"{cause.name:<16} {program:<8} {judged + marks[0]:<20} {plain + marks[1]:<20} "
                    f"{row.get('mbit_s', _NONE):>7}",
                    flush=True,
                )
                if any(marks):
                    print(f"    {row.get('reason')} {row.get('out')}")
    print(f"{right} of {tried} right; load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
