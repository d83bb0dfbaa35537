"""Several clients of iperf3 at once: their sum, and what is said where one of them fails."""

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "many_clients.py"
pytestmark = pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3")


def free_ports(count: int) -> int:
    """Return the first of some ports in a row that nothing uses."""
    for port in range(33_000, 60_000, count):
        try:
            with socket.socket() as first, socket.socket() as last:
                first.bind(("127.0.0.1", port))
                last.bind(("127.0.0.1", port + count - 1))
                return port
        except OSError:
            continue
    raise AssertionError("no ports are free")


def ask(port: int, ports: str) -> "subprocess.CompletedProcess[str]":
    """Run two clients of 20 Mb/s each."""
    command = [sys.executable, str(SCRIPT), "ask", str(port), "2", "1", ports, "-b", "20M"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)


@pytest.mark.every
def test_the_rate_of_clients_is_their_sum_and_their_servers_end_with_them() -> None:
    """Each client has a server of its own: one would be busy."""
    port = free_ports(2)
    server = subprocess.Popen([sys.executable, str(SCRIPT), "serve", str(port), "2"])
    try:
        deadline = time.monotonic() + 20
        while (result := ask(port, "each")).returncode and time.monotonic() < deadline:
            time.sleep(0.05)  # it is still starting
        assert 36e6 < float(result.stdout) < 44e6
        assert "busy" in ask(port, "one").stderr
    finally:
        server.terminate()
        server.wait(10)
    failed = ask(port, "each")
    assert failed.returncode == 1
    assert "refused" in failed.stderr.lower()
