"""The network namespaces of a benchmark: its own, with cubic as the default, and one beyond a veth pair."""

import atexit
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_INSIDE = "LINKGAUGE_BENCH_INSIDE"
ESTABLISHED, LISTENING = "01", "0A"  # states in /proc/net/tcp (proc(5))
_DEFAULT = "net.ipv4.tcp_congestion_control"
# A namespace may choose only among the algorithms that the machine allows to all.
_NOT_CUBIC = (
    "cubic cannot be made the default here, so tools without an option for it use another: "
    "sysctl net.ipv4.tcp_allowed_congestion_control must name cubic"
)
_NEAR_ADDRESS, _FAR_ADDRESS = "198.51.100.1", "198.51.100.2"  # RFC 5737
_PATIENCE_S = 20.0


@dataclass(frozen=True)
class Place:
    """Where the server of an entry is: the address by which its client gets there."""

    name: str
    host: str

    def server_prefix(self) -> list[str]:
        """Return what the command of a server begins with there. Raises OSError and SubprocessError."""
        return [] if self is LOOPBACK else ["nsenter", f"--net=/proc/{_far_namespace()}/ns/net"]


LOOPBACK = Place("loopback", "127.0.0.1")
VETH = Place("veth", _FAR_ADDRESS)


@cache
def _far_namespace() -> int:
    """Create a namespace at the other end of a veth pair; return a process in it, which ends with this one."""
    if not os.environ.get(_INSIDE):
        raise OSError("a veth pair is only made in a network namespace of the benchmark's own")
    script = "ip link set lo up && echo up && exec cat"
    holder = subprocess.Popen(
        [shutil.which("unshare") or "unshare", "--net", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    atexit.register(holder.communicate)
    if holder.stdout is None or holder.stdout.readline() != "up\n":
        raise OSError("no second network namespace can be made here")
    veth = ["ip", "link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", str(holder.pid)]
    within = ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
    for command in (
        veth,
        ["ip", "address", "add", f"{_NEAR_ADDRESS}/30", "dev", "near0"],
        ["ip", "link", "set", "near0", "up"],
        [*within, "ip", "address", "add", f"{_FAR_ADDRESS}/30", "dev", "far0"],
        [*within, "ip", "link", "set", "far0", "up"],
    ):
        subprocess.run(command, check=True, capture_output=True, timeout=_PATIENCE_S)
    return holder.pid


def enter_namespace() -> None:
    """Replace this process by itself in a new network namespace, where cubic is the default of every tool.

    If none can be created, print that and return.
    """
    if os.environ.get(_INSIDE) or not shutil.which("unshare") or not shutil.which("ip"):
        return
    # With only the addresses of lo, getaddrinfo (AI_ADDRCONFIG) resolves no host for netperf, not even 127.0.0.1.
    address = "ip address add 192.0.2.1/32 dev lo"
    cubic = f"{{ sysctl -qw {_DEFAULT}=cubic 2>/dev/null || echo '{_NOT_CUBIC}'; }}"
    script = f'ip link set lo up && {address} && {cubic}; exec "$@"'
    namespace = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*namespace, "true"], check=False, capture_output=True).returncode:
        print("no network namespace can be made here: tools without an option for it use the machine's default")
        return
    command = [*namespace, "sh", "-c", script, "sh", sys.executable, *sys.argv]
    os.environ[_INSIDE] = "1"
    os.execvp(command[0], command)


def count_sockets(port: int, state: str, pid: int | str = "self") -> int:
    """Return the number of TCP sockets with this local port that are in a state, in a process's namespace."""
    count = 0
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii").splitlines()[1:]:
                _, local, _, found, *_ = line.split()
                count += found == state and int(local.rpartition(":")[2], 16) == port
    return count
