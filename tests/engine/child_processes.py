"""The workers that a process has, as the kernel knows them."""

import contextlib
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """Return the processes that a process's first thread has started and not reaped."""
    with contextlib.suppress(OSError):  # it has ended
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    return []


def starters_of(pid: int) -> list[int]:
    """Return what starts workers for a process."""
    return [one for one in children_of(pid) if b"workers.fork_server" in _command(one)]


def workers_of(pid: int) -> list[int]:
    """Return the workers of a process."""
    return [one for starter in starters_of(pid) for one in children_of(starter)]


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
