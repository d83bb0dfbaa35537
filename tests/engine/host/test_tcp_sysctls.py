"""The kernel's limits of TCP, read from files as it writes them."""

from pathlib import Path

from linkgauge.engine.host.tcp_sysctls import read_tcp_sysctls
from linkgauge.engine.model.host_info import TcpSysctls


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
