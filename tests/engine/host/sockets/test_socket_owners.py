"""The processes of sockets: this one's, those of other users, and names that are somebody else's text."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from linkgauge.engine.host.sockets import socket_owners
from linkgauge.engine.host.sockets.socket_owners import (
    SocketOwners,
    read_family_inodes,
    read_process_name,
    read_socket_inodes,
    read_user_name,
)

from ...tcp_pair import only_linux


def process(folder: Path, pid: int, name: str, inodes: list[int]) -> None:
    """Make a process with sockets in a folder like /proc."""
    (folder / str(pid) / "fd").mkdir(parents=True)
    (folder / str(pid) / "comm").write_text(f"{name}\n", encoding="utf-8")
    for number, inode in enumerate(inodes):
        (folder / str(pid) / "fd" / str(number)).symlink_to(f"socket:[{inode}]")
    (folder / str(pid) / "fd" / "99").symlink_to("/dev/null")


@only_linux
def test_a_socket_of_this_process_has_it_as_its_owner() -> None:
    """By the real /proc."""
    with socket.socket() as sock:
        inode = os.fstat(sock.fileno()).st_ino
        owner = None
        owners = SocketOwners()
        while owner is None:
            owner = owners.find([inode]).get(inode)
    assert owner.pid == os.getpid()
    assert owner.name == read_process_name(os.getpid())
    assert inode in range(1, 2**63)


@only_linux
def test_sockets_of_descendants_are_those_of_the_family() -> None:
    """A worker process, or ssh that a run has started; sockets of other processes are not."""
    code = "import os, socket; sock = socket.socket(); print(os.fstat(sock.fileno()).st_ino, flush=True); input()"
    shell = ["/bin/sh", "-c", f'{sys.executable} -c "{code}"; true']
    with (
        socket.socket() as own,
        subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child,
    ):
        assert child.stdout is not None
        wanted = {os.fstat(own.fileno()).st_ino, int(child.stdout.readline())}
        found = read_family_inodes()
        child.communicate("\n")
    assert wanted <= found
    assert not wanted & set(read_socket_inodes(1))


def test_names_are_cleaned_and_sharers_are_counted(tmp_path: Path) -> None:
    """A process chooses its name: it must not drive a terminal."""
    process(tmp_path, 10, "evil\x1b[2J\u202e", [1, 2])
    process(tmp_path, 20, "child", [2])
    found = SocketOwners(tmp_path).find([1, 2, 3])
    assert set(found) == {1, 2}
    assert "\x1b" not in found[1].name
    assert "\u202e" not in found[1].name
    assert (found[2].pid, found[2].others) == (10, 1)


def test_hidden_processes_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their connections are known, and their names are not."""
    process(tmp_path, 10, "own", [1])
    process(tmp_path, 20, "another", [2])
    listdir = os.listdir

    def refuse(path: str) -> list[str]:
        if "/20/" in str(path):
            raise PermissionError(13, "no", path)
        return listdir(path)

    monkeypatch.setattr(socket_owners.os, "listdir", refuse)
    owners = SocketOwners(tmp_path)
    assert set(owners.find([1, 2])) == {1}
    assert owners.has_hidden


def test_a_scan_lasts_a_bounded_time_and_goes_on_at_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host with thousands of processes does not stop the observer."""
    for pid in range(1, 6):
        process(tmp_path, pid, f"p{pid}", [pid])
    monkeypatch.setattr(socket_owners, "_SCAN_S", 0.0)
    owners = SocketOwners(tmp_path)
    counts = [len(owners.find([1, 2, 3, 4, 5])) for _ in range(5)]
    assert counts == [1, 2, 3, 4, 5]


def test_a_process_that_has_ended_has_no_sockets_and_an_unknown_user_has_a_number(tmp_path: Path) -> None:
    """Between the list of processes and the look at one of them."""
    assert not list(read_socket_inodes(77, tmp_path))
    assert read_process_name(77, tmp_path) is None
    assert read_user_name(4_000_000_123) == "4000000123"
