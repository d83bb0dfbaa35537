"""Transactions on connections of their own take up no ports; where ports run out for good, the remedy is told."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

DEADLINE_S: Final = 60.0
UNSHARE: Final = shutil.which("unshare")
_IN_NAMESPACE: Final = 'ip link set lo up && sysctl -qw net.ipv4.ip_local_port_range="$0" && exec "$@"'
_FEW: Final = "40000 40015"


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    """Give an environment with directories of the test's own."""
    if os.geteuid() != 0 or not UNSHARE or not all(map(shutil.which, ("ip", "sysctl"))):
        pytest.skip("network namespaces are made as root, with unshare, iproute2 and sysctl")
    given = {"LINKGAUGE_DATA_DIR": str(tmp_path / "data"), "LINKGAUGE_CONFIG_DIR": str(tmp_path / "config")}
    return {**os.environ, **given}


def run(ports: str, folders: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Carry a run of crr out in a network namespace that has only these ports to give."""
    command = [sys.executable, "-P", "-m", "linkgauge", "run", "loopback", "--workload", "crr", *arguments]
    return subprocess.run(
        [UNSHARE or "unshare", "--net", "sh", "-c", _IN_NAMESPACE, ports, *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        env=folders,
        check=False,
    )


@pytest.mark.every
def test_sixteen_ports_carry_transactions_without_end(folders: dict[str, str]) -> None:
    """What the endpoint and its listener leave is used again and again: none waits in TIME_WAIT."""
    # A connection from the port of one that ended within this millisecond may have to ask twice, a second apart.
    done = run(_FEW, folders, "--seconds", "2.5", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["measured"]["total"]["transactions_s"] > 32
    assert document["ended"]["reason"] == "completed"


@pytest.mark.every
def test_too_few_ports_are_reported_with_the_command_that_widens_the_range(folders: dict[str, str]) -> None:
    """Ten pairs want more than sixteen, and the run says so before it begins."""
    done = run(_FEW, folders, "--sessions", "10", "--seconds", "1")
    assert done.returncode == 3
    assert "no port is left for another connection" in done.stderr
    assert 'sysctl -w net.ipv4.ip_local_port_range="1024 65535"' in done.stderr
    assert "Traceback" not in done.stderr
