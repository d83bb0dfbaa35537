"""Who this host is, as its endpoint introduces itself."""

import os
import platform
import socket

from ... import __version__
from ..model.host_info import HostFacts
from .event_loop import loop_name
from .nic import Address, nic_of_connection
from .tcp_sysctls import read_tcp_facts


async def describe_self(local: Address, peer: Address) -> HostFacts:
    """Return the facts of this host, kernel and process, and of the interface between two addresses."""
    return HostFacts(
        hostname=socket.gethostname(),
        system=f"{platform.system()} {platform.release()}",
        cores=os.cpu_count() or 1,
        software=f"linkgauge {__version__}",
        event_loop=loop_name(),
        nic=await nic_of_connection(local, peer),
        tcp=read_tcp_facts(),
    )
