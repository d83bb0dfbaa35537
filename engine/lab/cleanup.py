"""Search for processes that a lab has left behind, and their end.

A lab's namespaces and devices disappear with its last process, and its processes end with the one that started it.
Only a process that has detached itself (a daemon from a lab's shell) is left when the keeper was killed.
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
    """End every process of a lab whose owner has ended; return their process ids."""
    orphans = find_orphans()
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _GRACE_S
        left = [pid for pid in orphans if _owner(pid)]
        for pid in left:
            with contextlib.suppress(OSError):  # it has ended
                os.kill(pid, number)
        while any(_owner(pid) for pid in left) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    return orphans


def find_orphans() -> list[int]:
    """Return the processes of labs whose owner has ended; without root, only those of this user."""
    orphans: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            owner = _owner(int(folder.name))
            if owner and not is_process_alive(owner):
                orphans.append(int(folder.name))
    return orphans


def _owner(pid: int) -> str | None:
    """Return the identity of the owner of a process's lab; None if it has no lab, or has ended."""
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _, value = entry.partition(b"=")
            if name == LAB_OWNER_VARIABLE.encode():
                return value.decode(errors="replace")
    return None
