"""Network namespaces of Linux without names: they last as long as a descriptor or a process in them.

`python -m linkgauge.engine.lab.namespaces KEEPER PARENT -- COMMAND …` runs a command at the near end of a lab. The
process becomes the command. When the process that started it ends, it gets SIGHUP, as if a terminal closed. Every
command in a lab starts with this module, so it imports next to nothing.

Python has os.unshare and os.setns since 3.12; for 3.11 the C library is called.
"""

import contextlib
import ctypes
import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from ..host.end_signals import die_with_parent
from ..model.errors import LabUnavailable, explain_os_error

_CLONE_NEWUSER: Final = 0x10000000  # linux/sched.h
_CLONE_NEWNET: Final = 0x40000000
_CURRENT: Final = "/proc/self/ns/net"
_GRACE_S: Final = 3.0
_POLL_S: Final = 0.05
_REMEDY: Final = (
    "run it as root, or allow namespaces to users: sysctl kernel.unprivileged_userns_clone=1 (Debian), "
    "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), user.max_user_namespaces above 0; "
    "in a container, its host must allow it"
)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Move this process into new namespaces (unshare(2)); raise OSError if that is not allowed."""
    _check(_libc().unshare(ctypes.c_int(flags)), "unshare")


def set_namespace(descriptor: int) -> None:
    """Move this process into a descriptor's namespace (setns(2)); raise OSError if that is not allowed."""
    _check(_libc().setns(ctypes.c_int(descriptor), ctypes.c_int(0)), "setns")


class NetworkNamespace:
    """A network namespace that lasts as long as its descriptor, or a process in it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def current(cls) -> Self:
        """Return the namespace of this process."""
        return cls(os.open(_CURRENT, os.O_RDONLY | os.O_CLOEXEC))

    @classmethod
    def create(cls) -> Self:
        """Move this process into a new namespace and return that."""
        unshare(_CLONE_NEWNET)
        return cls.current()

    @property
    def path(self) -> str:
        """The path by which another process of the lab opens it."""
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    @property
    def inode(self) -> int:
        """The kernel's number for it."""
        return os.fstat(self._descriptor).st_ino

    @contextmanager
    def enter(self) -> Generator[None]:
        """Move this process, with the children that it starts meanwhile, into the namespace for a block."""
        before = os.open(_CURRENT, os.O_RDONLY | os.O_CLOEXEC)
        set_namespace(self._descriptor)
        try:
            yield
        finally:
            set_namespace(before)
            os.close(before)


def create_privileged_namespace() -> NetworkNamespace:
    """Move this process into a network namespace that it may configure; raise LabUnavailable if there can be none.

    Without the rights for it, the process moves into a user namespace as well. There it is root, mapped to the
    user's own id, and its rights end at that namespace.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        return NetworkNamespace.create()
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EACCES}:
            raise LabUnavailable(
                f"this machine cannot create a network namespace: {explain_os_error(error)}; {_REMEDY}"
            ) from error
    try:
        unshare(_CLONE_NEWUSER)
        for name, line in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            Path("/proc/self", name).write_text(line, encoding="ascii")
        return NetworkNamespace.create()
    except OSError as error:
        raise LabUnavailable(
            f"user {user} cannot create a network namespace: {explain_os_error(error)}; {_REMEDY}"
        ) from error


def find_processes(inodes: set[int]) -> list[int]:
    """Return the processes in these network namespaces, except this one."""
    processes: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):  # it has ended, or belongs to another user
                if (folder / "ns/net").stat().st_ino in inodes:
                    processes.append(int(folder.name))
    return processes


def end_processes(
    find: Callable[[], Collection[int]], gently: signal.Signals, spared: Collection[int] = ()
) -> None:
    """End the processes that `find` returns, first with a signal and then with SIGKILL.

    Those that are `spared` do not get the first signal: they have another reason to end.
    """
    for number in (gently, signal.SIGKILL):
        deadline = time.monotonic() + _GRACE_S
        signalled: set[int] = set(spared) if number is gently else set()
        while (processes := set(find())) and time.monotonic() < deadline:
            for pid in processes - signalled:
                signalled.add(pid)
                with contextlib.suppress(OSError):  # it has ended
                    os.kill(pid, number)
            time.sleep(_POLL_S)


def enter_near_namespace(keeper: int) -> None:
    """Move this process into the near namespace of a keeper's lab."""
    for name in ("user", "net"):
        namespace = os.open(f"/proc/{keeper}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        if not os.path.samestat(os.fstat(namespace), os.stat(f"/proc/self/ns/{name}")):  # noqa: PTH116
            set_namespace(namespace)
        os.close(namespace)


def main() -> None:
    """Enter the namespace and become the command; exit with status 3 if that fails."""
    keeper, parent, dashes, *command = sys.argv[1:]
    if dashes != "--":  # link_lab.py writes this command line
        sys.exit(3)
    try:
        enter_near_namespace(int(keeper))
        die_with_parent(signal.SIGHUP)
        if os.getppid() != int(parent):  # the parent ended before `die_with_parent` took effect
            sys.exit(3)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the parent waits for signals with them blocked
        os.execvp(command[0], command)  # noqa: S606 - there is no shell in between
    except OSError as error:
        sys.stderr.write(
            f"linkgauge: {command[0]} cannot be run at the lab's local end: {explain_os_error(error)}\n"
        )
        sys.exit(3)


if __name__ == "__main__":
    main()
