"""A mesh over ssh that is resumed while a host is away: that one is named, and measured once it is back."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .mesh_hosts import StreamedCommand
from .mesh_ssh_hosts import SshHosts, open_ssh_hosts
from .namespaces import run_within

HOSTS = 3
DEADLINE_S = 90.0
OPTIONS = ("--remote-python", sys.executable, "--rate", "20M", "--preset", "none", "--seconds", "1")


@pytest.fixture
def ssh_hosts(tmp_path: Path) -> Iterator[SshHosts]:
    """Give three hosts, each with a server."""
    with open_ssh_hosts(tmp_path, HOSTS) as made:
        yield made


def carry_out(made: SshHosts, *words: str, cells: int | None = None) -> tuple[int, dict[str, Any], str]:
    """Carry a mesh out, until Ctrl-C after so many cells; return its status, its last document and its errors."""
    command = StreamedCommand(made.hosts, made.environment, *words)
    document: dict[str, Any] = {}
    measured = 0
    for item in command.items(DEADLINE_S):
        document = item.get("summary", document)
        measured += item["type"] == "mesh_cell"
        if item["type"] == "mesh_cell" and measured == cells:
            command.process.send_signal(signal.SIGINT)
    status, errors = command.finish()
    return status, document, errors


@pytest.mark.every
@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_cut", [False, True], ids=["shut", "cut"])
@pytest.mark.parametrize("away", ["host-1", "host-3"])
def test_a_resumed_mesh_names_a_host_that_is_away_and_measures_it_once_it_is_back(
    ssh_hosts: SshHosts, away: str, is_cut: bool
) -> None:
    """The first host would have the scheduler: another one has it then. Nothing is measured twice."""
    status, _, errors = carry_out(ssh_hosts, *ssh_hosts.servers, *OPTIONS, cells=1)
    assert status == 128 + signal.SIGINT, errors
    group = errors.rpartition("--resume ")[2].split()[0]
    server, entry = ssh_hosts.servers[away], ssh_hosts.hosts.entries[away]
    if is_cut:
        ssh_hosts.hosts.cut(away)
    else:
        server.stop()
    status, document, errors = carry_out(ssh_hosts, "--resume", group)
    assert status == 3, errors
    assert errors.count(away) - errors.count(f"/config {away}") == 2, errors  # its name, and the peer in one line
    assert f"{away}: not reached: ssh cannot log in to ssh://{away}: ssh: connect to host" in errors
    assert "try it by hand: ssh -F" in errors
    assert f"linkgauge mesh --resume {group}" in errors
    lost = {(cell["sender"], cell["receiver"]) for cell in document["cells"] if cell["failure"] is not None}
    assert lost
    assert all(away in pair for pair in lost)
    ssh_hosts.check_that_nothing_is_left()
    if is_cut:
        run_within(entry, "ip", "link", "set", "eth0", "up")
    else:
        server.start_again()
    status, document, errors = carry_out(ssh_hosts, "--resume", group)
    assert status in {0, 1}, errors  # a busy machine may make one slower than the others
    assert document["is_complete"]
    assert f"3 hosts, {len(lost)} tests" in errors.replace("\N{NO-BREAK SPACE}", " "), errors
    ssh_hosts.check_that_nothing_is_left()
