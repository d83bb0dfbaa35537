"""The fork servers and workers of a process, read from /proc."""

import contextlib
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """Return the child processes of a process's first thread that are not reaped."""
    with contextlib.suppress(OSError):  # it has ended
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        ]
    return []


def fork_servers_of(pid: int) -> list[int]:
    """Return the fork servers of a process."""
    return [child for child in children_of(pid) if b"workers.fork_server" in _command(child)]


def workers_of(pid: int) -> list[int]:
    """Return the workers of a process."""
    return [child for server in fork_servers_of(pid) for child in children_of(server)]


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
