"""Identities of processes, to tell a run in progress from one whose process died."""

import os
import platform
from pathlib import Path


def process_identity() -> str:
    """Return a text that identifies this process on this host; no later process has the same."""
    pid = os.getpid()
    return f"{platform.node()}/{pid}/{_start_of(pid) or ''}"


def is_process_alive(identity: str) -> bool:
    """Return whether the process with this identity still runs; False for one of another host."""
    host, _, rest = identity.rpartition("/")[0].rpartition("/")
    start = identity.rpartition("/")[2]
    if host != platform.node() or not rest.isdecimal():
        return False
    pid = int(rest)
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass  # it exists, and belongs to another user
    except (OSError, OverflowError):
        return False
    return (_start_of(pid) or "") == start


def _start_of(pid: int) -> str | None:
    """Return when a process started, in ticks since boot (proc(5)); None where unknown, or it is dead."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()  # the name before it may hold anything
    return None if state in {"Z", "X"} else fields[18]
