"""Meshes on hosts that ssh reaches, each with an OpenSSH server of its own: nothing stays behind on any of them."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import linkgauge
import pytest

from .conftest import Sshd
from .mesh_hosts import MeshHosts, StreamedCommand

HOSTS = 4
OPTIONS = ("--remote-python", sys.executable, "--rate", "20M", "--preset", "none")


@dataclass
class SshHosts:
    """Hosts with their servers, and the environment in which ssh knows them."""

    hosts: MeshHosts
    servers: dict[str, Sshd]
    environment: dict[str, str]

    def measure(self, seconds: str) -> StreamedCommand:
        """Begin a mesh of all hosts."""
        return StreamedCommand(self.hosts, self.environment, *self.servers, "--seconds", seconds, *OPTIONS)

    def check_that_nothing_is_left(self) -> None:
        """Check each host for processes, and for files in its home and folder of temporary files."""
        for server in self.servers.values():
            server.wait_until_gone()
            assert not [path for path in server.home.rglob("*") if path.is_file()]


@pytest.fixture
def ssh_hosts(tmp_path: Path) -> Iterator[SshHosts]:
    """Give four hosts, each with a server."""
    if not all(map(shutil.which, ("ssh-keygen", "unshare"))):
        pytest.skip("ssh-keygen and unshare are needed (Debian: openssh-client, util-linux)")
    hosts = MeshHosts(HOSTS)
    made = SshHosts(hosts, {}, {**os.environ, "HOME": str(tmp_path), "LINKGAUGE_DATA_DIR": str(tmp_path / "data")})
    made.environment.pop("SSH_AUTH_SOCK", None)
    try:
        for name, entry in hosts.entries.items():
            folder = tmp_path / name
            folder.mkdir()
            made.servers[name] = server = Sshd(folder)
            for program in ("env", "uname"):
                server.provide(program, shutil.which(program) or "")
            server.start(
                address=hosts.address(name),
                within=lambda command, entry=entry: [*entry, *command],
                PYTHONPATH=str(Path(linkgauge.__path__[0]).parent),
            )
        write_configuration(tmp_path / ".ssh", made.servers)
        yield made
    finally:
        for server in made.servers.values():
            server.stop()
        hosts.close()


def write_configuration(folder: Path, servers: dict[str, Sshd]) -> None:
    """Have ssh know the servers by the names of their hosts."""
    folder.mkdir()
    lines: list[str] = []
    for name, server in servers.items():
        lines += [f"Host {name}", f"HostName {server.address}", f"Port {server.port}", "User root"]
        lines += [f"IdentityFile {server.folder / 'key'}", f"UserKnownHostsFile {server.folder / 'known_hosts'}"]
    (folder / "config").write_text("\n".join([*lines, ""]))


@pytest.mark.every
@pytest.mark.timeout(240)
def test_a_mesh_over_ssh_has_every_cell_and_leaves_nothing_behind(ssh_hosts: SshHosts) -> None:
    """Its hosts have the names that ssh knows them by, and the addresses of their servers."""
    command = ssh_hosts.measure("0.5")
    document: dict[str, Any] = {}
    while (line := command.line()) is not None:
        document = json.loads(line).get("summary", document)
    status, errors = command.finish()
    assert document.get("is_complete"), errors
    assert [(host["name"], host["address"]) for host in document["hosts"]] == [
        (name, server.address) for name, server in ssh_hosts.servers.items()
    ]
    assert len(document["cells"]) == HOSTS * (HOSTS - 1)
    assert status in {0, 1}, errors  # a busy machine may make one slower than the others
    ssh_hosts.check_that_nothing_is_left()


@pytest.mark.every
@pytest.mark.timeout(240)
def test_an_interrupted_mesh_over_ssh_leaves_nothing_behind(ssh_hosts: SshHosts) -> None:
    """Ctrl-C comes while its second round is measured."""
    command = ssh_hosts.measure("2")
    while (line := command.line()) is not None:
        item = json.loads(line)
        if item["type"] == "mesh_round" and item["number"] == 2:
            command.process.send_signal(signal.SIGINT)
    status, errors = command.finish()
    assert status == 128 + signal.SIGINT, errors
    assert "linkgauge mesh --resume" in errors
    ssh_hosts.check_that_nothing_is_left()


@pytest.mark.every
@pytest.mark.timeout(240)
def test_a_killed_mesh_over_ssh_leaves_nothing_behind(ssh_hosts: SshHosts) -> None:
    """Its command cannot end anything there: what it has started ends with its ssh sessions."""
    command = ssh_hosts.measure("2")
    while (line := command.line()) is not None:
        item = json.loads(line)
        if item["type"] == "mesh_round" and item["number"] == 2:
            command.process.kill()
    status, _ = command.finish()
    assert status == -signal.SIGKILL
    ssh_hosts.check_that_nothing_is_left()
