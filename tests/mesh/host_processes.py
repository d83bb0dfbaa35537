"""The processes of a mesh's host, read from /proc, and waiting for them."""

import asyncio
import contextlib
import sys
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

DEADLINE_S = 20.0
_POLL_S = 0.05
_LISTENING = "0A"


async def until(is_true: Callable[[], object]) -> None:
    """Return as soon as a condition holds; raise TimeoutError if it does not."""
    async with asyncio.timeout(DEADLINE_S):
        while not is_true():  # noqa: ASYNC110 - /proc has no event to wait for
            await asyncio.sleep(_POLL_S)


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children_of(pid: int) -> set[int]:
    """Return the children of all of a process's threads."""
    found: set[int] = set()
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found |= {int(child) for child in path.read_text(encoding="ascii").split()}
    return found


def descendants(pid: int) -> set[int]:
    """Return the children of a process, and theirs."""
    children = children_of(pid)
    return children.union(*(descendants(child) for child in children))


def command_of(pid: int) -> str:
    """Return the command line of a process; empty if it has gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def children_named(pid: int, name: str) -> set[int]:
    """Return the children of a process whose command line has a name in it.

    Grandchildren are left out: they have the command line of their parent until they start their own program.
    """
    return {child for child in children_of(pid) if name in command_of(child)}


def listening_hosts(pid: int) -> list[str]:
    """Return the address of each TCP socket on which a process listens, in the namespace of its network."""
    inodes: set[str] = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # it has been closed
            inodes.add(path.readlink().name)
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]
    ]
    return sorted(_address_of(row[1]) for row in rows if row[3] == _LISTENING and f"socket:[{row[9]}]" in inodes)


def _address_of(place: str) -> str:
    """Return the address in `0100007F:1F90`: words of 32 bits in the order of this machine."""
    digits = place.partition(":")[0]
    words = [int(digits[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(digits), 8)]
    return str(ip_address(b"".join(words)))


def holds_text(pid: int, text: str) -> list[str]:
    """Return the publicly readable files of a process that contain a text."""
    return [name for name in ("cmdline", "environ") if text.encode() in Path(f"/proc/{pid}/{name}").read_bytes()]
