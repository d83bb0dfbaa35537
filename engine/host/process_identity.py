"""Identities of processes, to distinguish a run in progress from one whose process died.

An identity is `host/pid/start`: the host's name, the number of the process, and its start in ticks since boot.
A saved identity ends in `@boot`, the id of that boot: after a reboot numbers and ticks repeat.
"""

import os
import platform
from functools import cache
from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def process_identity() -> str:
    """Return a text that identifies this process on this host; no later process of this boot has the same."""
    pid = os.getpid()
    return f"{platform.node()}/{pid}/{_start_of(pid) or ''}"


def saved_process_identity() -> str:
    """Return a text that identifies this process on this host; no process of a later boot has the same either."""
    return _saved_identity(os.getpid())


@cache
def _saved_identity(_pid: int) -> str:
    """Return it from memory: a mesh of 64 hosts begins 4,032 runs, and it takes two files of /proc."""
    boot_id = _boot_id()
    return process_identity() if boot_id is None else f"{process_identity()}@{boot_id}"


def is_process_alive(identity: str) -> bool:
    """Return whether the process with this identity still runs; False for one of another host or boot."""
    host_and_pid, _, rest = identity.rpartition("/")
    host, _, number = host_and_pid.rpartition("/")
    start, _, boot_id = rest.partition("@")
    if host != platform.node() or not number.isdecimal() or (boot_id and boot_id != _boot_id()):
        return False
    pid = int(number)
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass  # it exists, and belongs to another user
    except (OSError, OverflowError):
        return False
    return (_start_of(pid) or "") == start


def is_process_stopped(pid: int) -> bool:
    """Return whether a signal has stopped a process (SIGSTOP), as far as this system reports it."""
    return _stat_of(pid)[:1] == ["T"]


def _start_of(pid: int) -> str | None:
    """Return when a process started, in ticks since boot; None if unknown, or it is dead."""
    stat = _stat_of(pid)
    return None if not stat or stat[0] in {"Z", "X"} else stat[19]


def _stat_of(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat (proc(5)) from the state on; none if unknown."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()  # the name before it may hold anything


def _boot_id() -> str | None:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None
