"""Meshes on hosts that ssh reaches, each with an OpenSSH server of its own: nothing stays behind on any of them."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .mesh_hosts import StreamedCommand
from .mesh_ssh_hosts import SshHosts, open_ssh_hosts

HOSTS = 4
DEADLINE_S = 120.0  # a scheduler that does not answer is given up, another one starts
OPTIONS = ("--remote-python", sys.executable, "--rate", "20M", "--preset", "none")


class MeasuringHosts(SshHosts):
    """The same hosts, while a mesh measures them."""

    def measure(self, seconds: str) -> StreamedCommand:
        """Begin a mesh of all hosts."""
        return StreamedCommand(self.hosts, self.environment, *self.servers, "--seconds", seconds, *OPTIONS)

    def end_scheduler(self, number: signal.Signals) -> None:
        """Send a signal to the scheduler, which was started last of Dask on the first host."""
        server = next(iter(self.servers.values()))
        commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in server.processes()}
        python = f"{sys.executable}\0-P\0-c\0import linkgauge".encode()  # not the shell that starts it
        dask = [pid for pid, command in commands.items() if command.startswith(python)]
        started = {
            pid: int(Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[19]) for pid in dask
        }
        os.kill(max(started, key=lambda pid: started[pid]), number)


@pytest.fixture
def ssh_hosts(tmp_path: Path) -> Iterator[MeasuringHosts]:
    """Give four hosts, each with a server."""
    with open_ssh_hosts(tmp_path, HOSTS) as made:
        yield MeasuringHosts(made.hosts, made.servers, made.environment)


@pytest.mark.every
@pytest.mark.timeout(240)
def test_a_mesh_over_ssh_has_every_cell_and_leaves_nothing_behind(ssh_hosts: MeasuringHosts) -> None:
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
def test_an_interrupted_mesh_over_ssh_leaves_nothing_behind(ssh_hosts: MeasuringHosts) -> None:
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
def test_a_killed_mesh_over_ssh_leaves_nothing_behind(ssh_hosts: MeasuringHosts) -> None:
    """Its command cannot end anything there: what it has started ends with its ssh sessions."""
    command = ssh_hosts.measure("2")
    while (line := command.line()) is not None:
        item = json.loads(line)
        if item["type"] == "mesh_round" and item["number"] == 2:
            command.process.kill()
    status, _ = command.finish()
    assert status == -signal.SIGKILL
    ssh_hosts.check_that_nothing_is_left()


@pytest.mark.every
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_mesh_goes_on_where_its_scheduler_is_ended(ssh_hosts: MeasuringHosts, number: signal.Signals) -> None:
    """It measures every cell, those of the scheduler's host too. One that is asked to end says goodbye to all."""
    command = ssh_hosts.measure("1")
    document: dict[str, Any] = {}
    rounds = 0
    for item in command.items(DEADLINE_S):
        document = item.get("summary", document)
        rounds += item["type"] == "mesh_round"
        if item["type"] == "mesh_round" and rounds == 2:
            ssh_hosts.end_scheduler(number)
    status, errors = command.finish()
    assert document.get("is_complete"), errors
    assert status in {0, 1}, errors
    ssh_hosts.check_that_nothing_is_left()


@pytest.mark.every
@pytest.mark.timeout(300)
def test_a_scheduler_whose_host_loses_its_network_costs_that_hosts_cells_alone(ssh_hosts: MeasuringHosts) -> None:
    """The first host has the scheduler. Nothing tells the others that it has gone: they wait until a deadline."""
    command = ssh_hosts.measure("1")
    first = next(iter(ssh_hosts.servers))
    document: dict[str, Any] = {}
    is_cut = False
    for item in command.items(DEADLINE_S):
        document = item.get("summary", document)
        if item["type"] == "mesh_cell" and not is_cut:
            ssh_hosts.hosts.cut(first)
            is_cut = True
    status, errors = command.finish()
    measured = {(cell["sender"], cell["receiver"]) for cell in document["cells"] if cell["failure"] is None}
    others = [name for name in ssh_hosts.servers if name != first]
    assert measured >= {(sender, receiver) for sender in others for receiver in others if sender != receiver}, (
        errors
    )
    assert all(first in (cell["sender"], cell["receiver"]) for cell in document["cells"] if cell["failure"])
    assert status == 3, errors
    for name in others:
        ssh_hosts.servers[name].wait_until_gone()
    # The host without a network has not heard of the end. Its scheduler waits for five minutes.
    for pid in ssh_hosts.servers[first].processes():
        os.kill(pid, signal.SIGKILL)
