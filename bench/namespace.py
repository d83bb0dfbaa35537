"""A private network namespace for a benchmark, with cubic as its default, and the TCP sockets in it."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_INSIDE = "LINKGAUGE_BENCH_INSIDE"
ESTABLISHED, LISTENING = "01", "0A"  # states in /proc/net/tcp (proc(5))
_DEFAULT = "net.ipv4.tcp_congestion_control"
# A namespace may choose only among the algorithms that the machine allows to all.
_NOT_CUBIC = (
    "cubic cannot be made the default here, so tools without an option for it use another: "
    "sysctl net.ipv4.tcp_allowed_congestion_control must name cubic"
)


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


def count_sockets(port: int, state: str) -> int:
    """Return the number of TCP sockets with this local port that are in a state."""
    count = 0
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]:
                _, local, _, found, *_ = line.split()
                count += found == state and int(local.rpartition(":")[2], 16) == port
    return count
