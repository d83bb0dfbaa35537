"""Accuracy of `linkgauge observe`: causes of slow transfers by other programs, against its first finding.

Usage: .venv/bin/python stress/observed_causes.py [--tries 1] [--only receiver-slow] [--programs sockets,iperf3]
    [--maker lab|wire-on|wire-off|router|routed|bridged] [--queue tbf|htb] [--ipv6] [--at-receiver]

Each try builds a link between two namespaces (engine/lab), has a program that knows nothing of linkgauge send over
it, impaired in one way, and observes that from the sending host for some seconds: with the line rate of the link,
and without. Healthy transfers and senders without data must have no finding. Needs root; curl, iperf3, rsync,
socat and sshd each serve their own tries.

Links can be made in other ways (link_makers.py); `bridged` has a bridge and a router between the ends, and no
delay.
With --at-receiver the far end is observed: it shows fewer causes, and must not name others.
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

from bridged_link import FAR_IPV6, NEAR_IPV6, bridged_link
from grid_cases import Case
from link_makers import MAKERS, open_link
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
server = socket.socket(socket.AF_INET6)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if buffer:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
server.bind(("::", port))
server.listen()
connection, _ = server.accept()
while connection.recv(65536):
    if pause:
        time.sleep(pause)
"""
_SENDER: Final = """
import socket, sys, time
host, port, buffer, mss, size, pause = sys.argv[1], *map(int, sys.argv[2:6]), float(sys.argv[6])
client = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
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
    at_receiver: tuple[str, ...] = ("unknown", "healthy")

    @property
    def needs_delay(self) -> bool:
        """Whether it is no cause on a link without delay."""
        return bool(self.receive_buffer or self.send_buffer or self.far_sysctls or self.faults.loss_percent)


_HEALTHY: Final = ("healthy", "app-limited", "unknown")  # no finding; on a busy machine a program may lack data
_DELAYED: Final = Faults(delay_ms=10)
CAUSES: Final = (
    Cause("healthy", _HEALTHY),
    Cause("healthy-delay", _HEALTHY, Faults(delay_ms=2)),
    Cause(
        "window-small", ("window-below-bdp",), _DELAYED, receive_buffer=32_768, at_receiver=("window-below-bdp",)
    ),
    Cause(
        "buffer-small",
        ("window-below-bdp",),
        _DELAYED,
        send_buffer=32_768,
        at_receiver=("unknown", "window-below-bdp"),  # -w of iperf3 sets both ends' buffers
    ),
    Cause("receiver-slow", ("receive-window",), read_pause_s=0.02, at_receiver=("receive-window",)),
    Cause("sender-slow", ("app-limited",), send_bytes=100_000, send_pause_s=0.05),
    Cause("loss", ("loss",), Faults(delay_ms=5, loss_percent=1), at_receiver=("loss", "unknown")),
    Cause("policer", ("policer",), policed_mbit_s=20, at_receiver=("loss", "unknown")),
    Cause("mss-small", ("mss-small",), mss=500, without_rate=_HEALTHY),
    Cause("path-slow", ("path-slow",), Faults(slow_percent=20), without_rate=_HEALTHY),
    Cause(
        "window-clamped",
        ("window-below-bdp", "window-clamped"),
        _DELAYED,
        far_sysctls={"net.ipv4.tcp_rmem": "4096 65536 65536"},
        at_receiver=("window-clamped",),
    ),
    Cause(
        "scaling-off",
        ("window-scaling-off",),
        _DELAYED,
        far_sysctls={"net.ipv4.tcp_window_scaling": "0"},
        at_receiver=("window-scaling-off",),
    ),
)


@dataclass(frozen=True)
class Ends:
    """The words that command lines begin with to run at each end, the options that observe one, and addresses."""

    near: list[str]
    far: list[str]
    observed: list[str]  # options
    near_address: str = NEAR_ADDRESS
    far_address: str = FAR_ADDRESS

    @property
    def is_ipv6(self) -> bool:
        """Whether the programs use IPv6."""
        return ":" in self.far_address


Program = Callable[[Cause, Ends, contextlib.ExitStack], bool]
"""Starts a transfer from the near end to the far one; returns whether it can show the cause."""


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _start(stack: contextlib.ExitStack, command: list[str]) -> None:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.kill)


def _sockets(cause: Cause, ends: Ends, stack: contextlib.ExitStack) -> bool:
    receiver = [str(_PORT), str(cause.receive_buffer), str(cause.read_pause_s)]
    _start(stack, [*ends.far, sys.executable, "-c", _RECEIVER, *receiver])
    time.sleep(_READY_S)
    numbers = (_PORT, cause.send_buffer, cause.mss, cause.send_bytes)
    sender = [ends.far_address, *map(str, numbers), str(cause.send_pause_s)]
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
    _start(stack, [*ends.near, "iperf3", "-c", ends.far_address, "-p", str(_PORT), "-t", "60", *options])
    return True


def _http(cause: Cause, ends: Ends, stack: contextlib.ExitStack) -> bool:
    if cause.receive_buffer or cause.send_buffer or cause.mss or cause.send_pause_s:
        return False
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    with Path(folder, "file").open("wb") as stream:
        stream.truncate(1 << 30)
    _start(
        stack,
        [*ends.near, sys.executable, "-m", "http.server", str(_PORT), "-b", ends.near_address, "-d", folder],
    )
    time.sleep(_READY_S)
    slow = ["--limit-rate", "2M"] if cause.read_pause_s else []
    url = f"http://{_in_url(ends.near_address)}:{_PORT}/file"
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
    target = f"root@{_in_url(ends.far_address)}:{folder}/copy"
    _start(stack, [*ends.near, "rsync", "--whole-file", "-e", ssh, *slow, f"{folder}/file", target])
    return True


def _socat(cause: Cause, ends: Ends, stack: contextlib.ExitStack) -> bool:
    if cause.read_pause_s or cause.send_pause_s:
        return False  # it copies as fast as it can
    version = "TCP6" if ends.is_ipv6 else "TCP4"
    receive = f",rcvbuf={cause.receive_buffer}" if cause.receive_buffer else ""
    send = f",sndbuf={cause.send_buffer}" if cause.send_buffer else ""
    send += f",mss={cause.mss}" if cause.mss else ""
    _start(stack, [*ends.far, "socat", "-u", f"{version}-LISTEN:{_PORT},reuseaddr{receive}", "OPEN:/dev/null"])
    time.sleep(_READY_S)
    to = f"{version}:{_in_url(ends.far_address)}:{_PORT}{send}"
    _start(stack, [*ends.near, "socat", "-u", "OPEN:/dev/zero", to])
    return True


PROGRAMS: Final[dict[str, Program]] = {"sockets": _sockets, "iperf3": _iperf3, "http": _http, "rsync": _rsync}
UNTUNED: Final[dict[str, Program]] = {"socat": _socat}


@contextlib.contextmanager
def _ends(cause: Cause, options: argparse.Namespace) -> Generator[Ends]:
    """Build the link of a cause."""
    if options.maker == "bridged":
        with bridged_link(cause.faults, cause.policed_mbit_s, _BUCKET, options.queue) as names:
            commands = [["ip", "netns", "exec", name] for name in names]
            yield from _prepared(cause, options, commands, [["--netns", name] for name in names])
        return
    case = Case(0, cause.name, cause.wanted, _PRESET, cause.faults, maker=options.maker, queue=options.queue)
    if cause.policed_mbit_s:
        maker = "wire-on" if options.maker == "lab" else options.maker
        case = replace(case, maker=maker, policed_bit_s=cause.policed_mbit_s * 1_000_000, bucket_bytes=_BUCKET)
    with open_link(case) as link:
        pids = (str(link.near_pid), str(link.far_pid))
        commands = [["nsenter", "-t", pid, "-n"] for pid in pids]
        yield from _prepared(cause, options, commands, [["--pid", pid] for pid in pids])


def _prepared(
    cause: Cause, options: argparse.Namespace, commands: list[list[str]], entries: list[list[str]]
) -> Generator[Ends]:
    """Set the far kernel's values, and yield both ends, with the addresses that are wanted."""
    near, far = commands
    for name, value in cause.far_sysctls.items():
        subprocess.run([*far, "sysctl", "-qw", f"{name}={value}"], check=True)
    ends = Ends(near, far, entries[1 if options.at_receiver else 0])
    if options.ipv6:
        ends = replace(ends, near_address=NEAR_IPV6, far_address=FAR_IPV6)
    yield ends


def _observe(ends: Ends, direction: str, *rate: str) -> tuple[str, dict[str, Any]]:
    """Return the first finding of the fastest connection in a direction, or its status; and its row."""
    target = ends.far_address if direction == "out" else ends.near_address
    command = [sys.executable, "-m", "linkgauge", "observe", _in_url(target), "--json", *ends.observed]
    done = subprocess.run(
        [*command, "--seconds", str(_OBSERVED_S), "--interval", str(_OBSERVED_S), *rate],
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    if done.returncode:
        return done.stderr.strip().rpartition("\n")[2] or "failed", {}
    rows = [row for row in json.loads(done.stdout)["connections"] if row["direction"] == direction]
    if not rows:
        return "no connection", {}
    row = rows[0]
    return (row["findings"][0]["code"] if row["findings"] else row["status"]), row


def _exceeds_its_buffer(row: dict[str, Any]) -> bool:
    """Return whether more was in flight than the send buffer holds: then it is not the limit.

    Without offloads a Linux 6 kernel looks at the buffer once a write, and took 469,408 bytes for one of 65,536
    (`w` of `ss -tmi`).
    """
    out = row.get("out") or {}
    min_rtt_us, buffer_bytes = out.get("min_rtt_us"), out.get("send_buffer_bytes")
    if not min_rtt_us or not buffer_bytes:
        return False
    return row["mbit_s"] * min_rtt_us / 8 > 2 * buffer_bytes


def _try(cause: Cause, program: str, options: argparse.Namespace) -> tuple[str, str, dict[str, Any]] | None:
    with contextlib.ExitStack() as stack:
        ends = stack.enter_context(_ends(cause, options))
        if not (PROGRAMS | UNTUNED)[program](cause, ends, stack):
            return None
        time.sleep(2 * _READY_S)
        direction = "in" if options.at_receiver else "out"
        judged, row = _observe(ends, direction, "--line-rate", _LINE_RATE)
        plain, _ = _observe(ends, direction)
        if cause.send_buffer and _exceeds_its_buffer(row):
            print(f"{cause.name:<16} {program:<8} not made: the kernel held more than the buffer")
            return None
        return judged, plain, row


def main() -> None:
    """Try every cause with every program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=1)
    parser.add_argument("--only", help="causes by name, with commas between")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--maker", default="lab", choices=[*MAKERS, "bridged"])
    parser.add_argument("--queue", default="tbf", choices=["tbf", "htb"])
    parser.add_argument("--ipv6", action="store_true")
    parser.add_argument("--at-receiver", action="store_true")
    options = parser.parse_args()
    if options.ipv6 and options.maker != "bridged":
        parser.error("only a bridged link has IPv6; add --maker bridged")
    if os.geteuid() != 0:
        sys.exit("the namespaces of a lab are entered as root")
    only = None if options.only is None else options.only.split(",")
    right = tried = 0
    print(f"{'cause':<16} {'program':<8} {'with a line rate':<20} {'without':<20} {'Mb/s':>7}")
    for cause in CAUSES:
        if (only is not None and cause.name not in only) or (options.maker == "bridged" and cause.needs_delay):
            continue
        for program in options.programs.split(","):
            for _ in range(options.tries):
                result = _try(cause, program, options)
                if result is None:
                    continue
                judged, plain, row = result
                first, second = cause.wanted, cause.without_rate or cause.wanted
                if options.at_receiver:
                    first = second = (*cause.at_receiver, "unknown") if cause.send_pause_s else cause.at_receiver
                marks = ["" if judged in first else "!", "" if plain in second else "!"]
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
