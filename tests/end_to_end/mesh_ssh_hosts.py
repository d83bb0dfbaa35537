"""Hosts of a mesh that ssh reaches: namespaces with an OpenSSH server each."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import linkgauge
import pytest

from .conftest import Sshd
from .mesh_hosts import MeshHosts


@dataclass
class SshHosts:
    """Hosts with their servers, and the environment in which ssh knows them."""

    hosts: MeshHosts
    servers: dict[str, Sshd]
    environment: dict[str, str]

    def check_that_nothing_is_left(self) -> None:
        """Check each host for processes, and for files in its home and folder of temporary files."""
        for server in self.servers.values():
            server.wait_until_gone()
            assert not [path for path in server.home.rglob("*") if path.is_file()]


@contextmanager
def open_ssh_hosts(folder: Path, count: int) -> Iterator[SshHosts]:
    """Yield so many hosts, `host-1` and so on. Skips without the programs."""
    if not all(map(shutil.which, ("ssh-keygen", "unshare"))):
        pytest.skip("ssh-keygen and unshare are needed (Debian: openssh-client, util-linux)")
    hosts = MeshHosts(count)
    known = folder / ".ssh"
    given = {"LINKGAUGE_SSH_COMMAND": f"ssh -F {known / 'config'}", "LINKGAUGE_DATA_DIR": str(folder / "data")}
    made = SshHosts(hosts, {}, {**os.environ, **given})
    made.environment.pop("SSH_AUTH_SOCK", None)
    try:
        for name, entry in hosts.entries.items():
            (folder / name).mkdir()
            made.servers[name] = server = Sshd(folder / name)
            for program in ("env", "uname"):
                server.provide(program, shutil.which(program) or "")
            server.start(
                address=hosts.address(name),
                within=lambda command, entry=entry: [*entry, *command],
                PYTHONPATH=str(Path(linkgauge.__path__[0]).parent),
            )
        _write_configuration(known, made.servers)
        yield made
    finally:
        for server in made.servers.values():
            server.stop()
        hosts.close()


def _write_configuration(folder: Path, servers: dict[str, Sshd]) -> None:
    """Have ssh know the servers by the names of their hosts."""
    folder.mkdir()
    lines: list[str] = []
    for name, server in servers.items():
        lines += [f"Host {name}", f"HostName {server.address}", f"Port {server.port}", "User root"]
        lines += [f"IdentityFile {server.folder / 'key'}", f"UserKnownHostsFile {server.folder / 'known_hosts'}"]
        lines += ["IdentitiesOnly yes"]
    (folder / "config").write_text("\n".join([*lines, ""]))
