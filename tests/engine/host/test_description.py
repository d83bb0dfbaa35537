"""The description of a host: what its own system reports."""

import os
import socket

from linkgauge import __version__
from linkgauge.engine.host.description import describe_host


async def test_a_host_is_described_by_its_own_system() -> None:
    """With the interface of the connection, which is loopback here."""
    info = await describe_host(("127.0.0.1", 1), ("127.0.0.1", 2))
    assert info.hostname == socket.gethostname()
    assert info.cores == os.cpu_count()
    assert info.software == f"linkgauge {__version__}"
    assert info.event_loop
    assert info.nic is None or info.nic.sort == "loopback"
