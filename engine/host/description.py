"""The description of this host that an end sends in its handshake."""

import os
import platform
import socket

from ... import __version__
from ..model.host_info import HostInfo
from .event_loop import loop_name
from .nic import AddressPort, read_connection_nic
from .tcp_sysctls import read_tcp_sysctls


async def describe_host(local: AddressPort, peer: AddressPort) -> HostInfo:
    """Return host, kernel, process, and the interface of the connection between two addresses."""
    return HostInfo(
        hostname=socket.gethostname(),
        system=f"{platform.system()} {platform.release()}",
        cores=os.cpu_count() or 1,
        software=f"linkgauge {__version__}",
        event_loop=loop_name(),
        nic=await read_connection_nic(local, peer),
        tcp=read_tcp_sysctls(),
    )
