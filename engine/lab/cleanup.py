"""What a lab could leave behind, and its end.

A lab's namespaces and devices go with its last process, its processes with the one that started it. Left
is only what detached itself from everything (a daemon, started in a lab's shell) when the keeper was killed.
"""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Final

from ..host.process_identity import is_process_alive
from .builder import LAB_OWNER_VARIABLE

_GRACE_S: Final = 3.0
_POLL_S: Final = 0.05


def terminate_orphans() -> list[int]:
    """End every process of a lab whose own process has ended; return their process ids."""
    orphans = find_orphans()
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _GRACE_S
        left = [pid for pid in orphans if _owner(pid)]
        for pid in left:
            with contextlib.suppress(OSError):  # it has ended meanwhile
                os.kill(pid, number)
        while any(_owner(pid) for pid in left) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    return orphans


def find_orphans() -> list[int]:
    """Return the processes of labs that are no more; of this user's, where it is not root."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            owner = _owner(int(folder.name))
            if owner and not is_process_alive(owner):
                found.append(int(folder.name))
    return found


def _owner(pid: int) -> str | None:
    """Return who started the lab that a process belongs to; None where it belongs to none, or has ended."""
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _, value = entry.partition(b"=")
            if name == LAB_OWNER_VARIABLE.encode():
                return value.decode(errors="replace")
    return None
