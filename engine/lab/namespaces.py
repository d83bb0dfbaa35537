"""Network namespaces without names: held by open descriptors of one process, gone when it ends. Linux only.

Python gained os.unshare and os.setns with 3.12; here they are, straight from the C library.
"""

import contextlib
import ctypes
import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from ..model.errors import LabUnavailable

_CLONE_NEWUSER: Final = 0x10000000  # linux/sched.h
_CLONE_NEWNET: Final = 0x40000000
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_CURRENT: Final = "/proc/self/ns/net"
_REMEDY: Final = (
    "run it as root, or let users have namespaces: sysctl kernel.unprivileged_userns_clone=1 (Debian), "
    "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), user.max_user_namespaces above 0; "
    "a container must be let do so by its host"
)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Move this process into new namespaces (unshare(2)); raise OSError where that is not allowed."""
    _check(_libc().unshare(ctypes.c_int(flags)), "unshare")


def set_namespace(descriptor: int) -> None:
    """Move this process into the namespace that a descriptor holds (setns(2)); raise OSError where it may not."""
    _check(_libc().setns(ctypes.c_int(descriptor), ctypes.c_int(0)), "setns")


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send this process a signal when its parent ends, however that ends (prctl(2))."""
    _check(_libc().prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "prctl")


class NetworkNamespace:
    """A network namespace that lasts as long as its descriptor, or a process in it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def current(cls) -> Self:
        """Return the one that this process is in."""
        return cls(os.open(_CURRENT, os.O_RDONLY | os.O_CLOEXEC))

    @classmethod
    def create(cls) -> Self:
        """Return a new one; this process is in it from here on."""
        unshare(_CLONE_NEWNET)
        return cls.current()

    @property
    def path(self) -> str:
        """Where another process of the lab finds it."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    @property
    def inode(self) -> int:
        """What the kernel knows it by."""
        return os.fstat(self._descriptor).st_ino

    @contextmanager
    def enter(self) -> Generator[None]:
        """Have this process, and the children that it starts meanwhile, in this namespace for a block."""
        before = os.open(_CURRENT, os.O_RDONLY | os.O_CLOEXEC)
        set_namespace(self._descriptor)
        try:
            yield
        finally:
            set_namespace(before)
            os.close(before)


def create_privileged_namespace() -> NetworkNamespace:
    """Move this process into a network namespace that it may furnish; raise LabUnavailable where it may not.

    Where it is not allowed to as it is, it moves into a user namespace too, in which it is root, mapped to
    the person's own user: what it may do there reaches nothing outside.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        return NetworkNamespace.create()
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EACCES}:
            raise LabUnavailable(f"this machine cannot make a network namespace: {error}; {_REMEDY}") from error
    try:
        unshare(_CLONE_NEWUSER)
        for name, line in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            Path("/proc/self", name).write_text(line, encoding="ascii")
        return NetworkNamespace.create()
    except OSError as error:
        raise LabUnavailable(f"user {user} may not make a network namespace here: {error}; {_REMEDY}") from error


def find_processes(inodes: set[int]) -> list[int]:
    """Return the processes, but this one, that are in one of these network namespaces."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):  # it has ended, or is somebody else's
                if (folder / "ns/net").stat().st_ino in inodes:
                    found.append(int(folder.name))
    return found
