"""The description of this host that an end sends in its handshake, with the kernel's limits of TCP.

The limits are Linux's, and unknown elsewhere. /proc/sys/net shows the network namespace of the process that reads
it; if a namespace lacks an entry, as net.core.rmem_max once did, that one is unknown.
"""

import os
import platform
import socket
from pathlib import Path
from typing import Final

from ... import __version__
from ..model.host_info import READS, HostInfo, TcpSysctls
from .event_loop import loop_name
from .nics.nic import read_connection_nic
from .nics.rtnetlink import AddressPort


async def describe_host(local: AddressPort, peer: AddressPort) -> HostInfo:
    """Return host, kernel, process, and the interface of the connection between two addresses."""
    return HostInfo(
        hostname=socket.gethostname(),
        system=f"{platform.system()} {platform.release()}",
        cores=os.cpu_count() or 1,
        software=f"linkgauge {__version__}{READS}",
        event_loop=loop_name(),
        nic=await read_connection_nic(local, peer),
        tcp=read_tcp_sysctls(),
    )


_NET: Final = Path("/proc/sys/net")


def read_tcp_sysctls(root: Path = _NET) -> TcpSysctls | None:
    """Return the limits in force; None if none is known."""
    sysctls = TcpSysctls(
        rmem_max_bytes=_number(root / "core/rmem_max"),
        wmem_max_bytes=_number(root / "core/wmem_max"),
        tcp_rmem_max_bytes=_number(root / "ipv4/tcp_rmem"),
        tcp_wmem_max_bytes=_number(root / "ipv4/tcp_wmem"),
        window_scaling=_switch(root / "ipv4/tcp_window_scaling"),
        timestamps=_switch(root / "ipv4/tcp_timestamps"),
        congestion=_word(root / "ipv4/tcp_congestion_control"),
    )
    return None if sysctls == TcpSysctls() else sysctls


def _word(path: Path) -> str | None:
    """Return the last word of an entry: the maximum, if it lists minimum, default and maximum."""
    try:
        words = path.read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return None
    return words[-1][:64] if words else None


def _number(path: Path) -> int | None:
    word = _word(path)
    return int(word) if word is not None and word.isdecimal() and int(word) > 0 else None


def _switch(path: Path) -> bool | None:
    word = _word(path)
    return None if word is None else word != "0"
