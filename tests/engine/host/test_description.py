"""The description of a host: its own system's words, and its limits of TCP."""

import os
import socket
from pathlib import Path

from linkgauge import __version__
from linkgauge.engine.host.description import describe_host, read_tcp_sysctls
from linkgauge.engine.model.host_info import TcpSysctls


async def test_a_host_is_described_by_its_own_system() -> None:
    """With the interface of the connection, which is loopback here."""
    info = await describe_host(("127.0.0.1", 1), ("127.0.0.1", 2))
    assert info.hostname == socket.gethostname()
    assert info.cores == os.cpu_count()
    assert info.program == f"linkgauge {__version__}"
    assert info.reads_waits
    assert info.event_loop
    assert info.nic is None or info.nic.sort == "loopback"


def test_limits_are_the_last_of_three_numbers_and_a_missing_file_is_unknown(tmp_path: Path) -> None:
    """A namespace may lack an entry that its machine has."""
    (tmp_path / "ipv4").mkdir()
    (tmp_path / "ipv4/tcp_rmem").write_text("4096\t131072\t6291456\n")
    (tmp_path / "ipv4/tcp_timestamps").write_text("0\n")
    (tmp_path / "ipv4/tcp_window_scaling").write_text("1\n")
    (tmp_path / "ipv4/tcp_wmem").write_text("what is this\n")
    (tmp_path / "ipv4/tcp_congestion_control").write_text("cubic\n")
    assert read_tcp_sysctls(tmp_path) == TcpSysctls(
        tcp_rmem_max_bytes=6_291_456, window_scaling=True, timestamps=False, congestion="cubic"
    )
    assert read_tcp_sysctls(tmp_path / "nowhere") is None
