"""The processes of a mesh's host, read from /proc, and waiting for them."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

DEADLINE_S = 20.0
_POLL_S = 0.05


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


def holds_text(pid: int, text: str) -> list[str]:
    """Return the publicly readable files of a process that contain a text."""
    return [name for name in ("cmdline", "environ") if text.encode() in Path(f"/proc/{pid}/{name}").read_bytes()]
