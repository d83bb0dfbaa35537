"""The processes and users of sockets: /proc/PID/fd names the inode of each (proc(5)).

A user sees the descriptors of its own processes, root those of all. A scan reads every visible one, so a call
lasts a bounded time and the next one goes on with it. What a scan has found counts until the next scan.
"""

import os
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from ...model.errors import make_printable

_PROC: Final = Path("/proc")
_SCAN_S: Final = 0.1  # CPU time of a call
_PAUSE_S: Final = 2.0  # from the end of a scan to the next
_MAX_NAME: Final = 64
_PREFIX: Final = "socket:["
_MOST_THREADS: Final = 64


class SocketOwner(NamedTuple):
    """A process that has a socket open, its name (its own text, cleaned), and how many others have it open."""

    pid: int
    name: str
    others: int = 0


class SocketOwners:
    """Finds processes by the inodes of their sockets.

    `has_hidden` tells whether the last scan met processes whose descriptors this user may not see. `folder` is
    where proc is mounted.
    """

    def __init__(self, folder: Path = _PROC) -> None:
        self._folder = folder
        self.has_hidden = False
        self._index: dict[int, list[int]] = {}
        self._scan: Iterator[None] | None = None
        self._ended_s = float("-inf")

    def find(self, inodes: Collection[int]) -> dict[int, SocketOwner]:
        """Return the owners of those inodes whose process is visible; look for unknown ones for a moment."""
        if any(inode not in self._index for inode in inodes):
            self._continue_scan()
        found: dict[int, SocketOwner] = {}
        for inode in inodes:
            pids = self._index.get(inode)
            name = None if not pids else read_process_name(pids[0], self._folder)
            if pids and name is not None:
                found[inode] = SocketOwner(pids[0], name, len(pids) - 1)
        return found

    def _continue_scan(self) -> None:
        """Go on with a scan, or begin one if the last ended some time ago."""
        if self._scan is None:
            if time.monotonic() - self._ended_s < _PAUSE_S:
                return
            self._scan = self._scan_all()
        end_s = time.thread_time() + _SCAN_S
        for _ in self._scan:
            if time.thread_time() >= end_s:
                return
        self._scan, self._ended_s = None, time.monotonic()

    def _scan_all(self) -> Iterator[None]:
        """Read the descriptors of one process after another; the found ones count at once."""
        index: dict[int, list[int]] = {}
        has_hidden = False
        for pid in list_processes(self._folder):
            try:
                inodes = set(read_socket_inodes(pid, self._folder))
            except PermissionError:
                has_hidden = True
                continue
            for inode in inodes:
                index.setdefault(inode, []).append(pid)
                self._index.setdefault(inode, index[inode])
            yield
        self._index, self.has_hidden = index, has_hidden


def list_processes(folder: Path = _PROC) -> list[int]:
    """Return the numbers of the visible processes, in order."""
    with suppress(OSError):
        return sorted(int(each.name) for each in folder.iterdir() if each.name.isdecimal())
    return []


def read_family_inodes(folder: Path = _PROC) -> set[int]:
    """Return the inodes of the sockets of this process and of its descendants, as far as they are visible."""
    parents = {pid: read_parent(pid, folder) for pid in list_processes(folder)}
    family = {os.getpid()}
    while grown := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= grown
    inodes: set[int] = set()
    for pid in family:
        with suppress(PermissionError):
            inodes.update(read_socket_inodes(pid, folder))
    return inodes


def read_parent(pid: int, folder: Path = _PROC) -> int | None:
    """Return the parent of a process; None if it has ended."""
    with suppress(OSError):  # the name, in parentheses, may contain anything
        words = (folder / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        return int(words[1]) if len(words) > 1 else None
    return None


def read_thread_times(pid: int, folder: Path = _PROC) -> dict[int, tuple[int, int]]:
    """Return the nanoseconds for which each of some threads ran on a core, and for which it was ready and had none.

    None are there if the process has ended, or if this kernel does not count them (/proc/PID/schedstat).
    """
    times: dict[int, tuple[int, int]] = {}
    with suppress(OSError):
        threads = sorted(os.listdir(f"{folder}/{pid}/task"), key=int)[:_MOST_THREADS]  # noqa: PTH208
        for thread in threads:
            with suppress(OSError, ValueError):
                on_core, waiting, _ = (folder / str(pid) / "task" / thread / "schedstat").read_bytes().split()
                times[int(thread)] = int(on_core), int(waiting)
    return times


def read_socket_inodes(pid: int, folder: Path = _PROC) -> Iterator[int]:
    """Yield the inodes of a process's sockets; none if it has ended. Raises PermissionError."""
    own = f"{folder}/{pid}/fd"
    try:
        descriptors = os.listdir(own)  # noqa: PTH208 - a host has thousands: paths take three times as long
    except (FileNotFoundError, ProcessLookupError):
        return
    for descriptor in descriptors:
        with suppress(OSError):
            target = os.readlink(f"{own}/{descriptor}")  # noqa: PTH115
            if target.startswith(_PREFIX):
                yield int(target[len(_PREFIX) : -1])


def read_process_name(pid: int, folder: Path = _PROC) -> str | None:
    """Return the name of a process without control characters; None if it has ended."""
    with suppress(OSError):
        text = (folder / str(pid) / "comm").read_text(encoding="utf-8", errors="replace")
        return make_printable(text.removesuffix("\n"))[:_MAX_NAME]
    return None


@cache
def read_user_name(uid: int) -> str:
    """Return the name of a user, or its number if it has none here."""
    try:
        import pwd  # not on every system

        return make_printable(pwd.getpwuid(uid).pw_name)[:_MAX_NAME]
    except (ImportError, KeyError, OverflowError):
        return str(uid)
