"""Use of a lab: `with open_lab(link) as lab: lab.run([...])`, and the end of processes that one left behind."""

import contextlib
import logging
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..host.process_identity import is_process_alive
from ..model.peer import Peer
from .kept_lab import LAB_OWNER_VARIABLE, KeptLab, start_keeper
from .link_spec import FAR_ADDRESS, LabLink
from .namespaces import end_processes

_KEEPER: Final = f"{__package__}.link_keeper"
_BUILD_DEADLINE_S: Final = 30.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab(KeptLab):
    """A lab of one link that is up: the address of its far end. Commands run at its near end."""

    peer: Peer


@contextmanager
def open_lab(link: LabLink) -> Generator[Lab]:
    """Build a lab with this link, yield it, and take it down.

    Raises LabUnavailable if this machine cannot have labs, LabError if this one cannot be built.
    """
    with start_keeper(_KEEPER, link, _BUILD_DEADLINE_S, has_offloads_off=link.has_offloads_off) as (pid, answer):
        _log.debug("lab of keeper %d is up; its far end listens on port %d", pid, answer["port"])
        yield Lab(
            peer=Peer(FAR_ADDRESS, answer["port"]),
            notes=tuple(answer["notes"]),
            keeper_pid=pid,
            has_offloads_off=link.has_offloads_off,
        )


def terminate_orphans() -> list[int]:
    """End every process of a lab whose owner has ended; return their process ids."""
    orphans = find_orphans()
    end_processes(lambda: [pid for pid in orphans if _owner(pid)], signal.SIGTERM)
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
