"""Which sockets a request means: a filter for the kernel, and what the kernel cannot compare.

A host and a port become bytecode, so that the kernel reports no other socket. It knows no processes: those of a
process or a program are compared by the inodes of its descriptors.
"""

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..engine.host.sockets.socket_filter import EndCondition, compile_filter
from ..engine.host.sockets.socket_message import SocketMessage
from ..engine.host.sockets.socket_owners import list_processes, read_process_name, read_socket_inodes
from ..engine.model.errors import LinkgaugeError, PlanError, UsageError, explain_os_error
from .expected_rates import resolve
from .request import Target

_OWN_NAMESPACE: Final = Path("/proc/self/ns/net")
_MAX_ADDRESSES: Final = 64


class Selection:
    """The sockets of a request. Raises LinkgaugeError if its host, process or program does not exist.

    `bytecode` is for dumps; `matches` compares the sockets that the kernel broadcasts without a filter.
    """

    def __init__(self, target: Target | None) -> None:
        self.target = target
        self._alternatives: list[list[EndCondition]] = []
        self._name: str | None = None
        if target is not None:
            self._select(target)
        self.bytecode = compile_filter(self._alternatives)
        self._inodes: frozenset[int] | None = None

    @property
    def is_by_process(self) -> bool:
        """Whether the sockets are those of a process or a program."""
        return self.target is not None and (self.target.kind == "pid" or self._name is not None)

    def _select(self, target: Target) -> None:
        if target.kind == "pid":
            _check_process(target.pid or 0)
        elif target.kind == "port":
            self._alternatives = [[EndCondition(remote, None, target.port)] for remote in (False, True)]
        elif target.kind == "name" and _processes_named(target.text):
            self._name = target.text
        else:
            self._select_host(target)

    def _select_host(self, target: Target) -> None:
        try:
            addresses = resolve(target.host or "")[:_MAX_ADDRESSES]
        except OSError as error:
            name = target.host or ""
            if target.kind == "name":
                raise LinkgaugeError(f"no process is named {name}, and {explain_os_error(error, name)}") from error
            raise LinkgaugeError(explain_os_error(error, name)) from error
        except UnicodeError as error:
            raise PlanError("target", target.text, "it is not a host name") from error
        self._alternatives = [[EndCondition(True, address, target.port)] for address in addresses]

    def refresh(self) -> None:
        """Read the descriptors of the processes again. Raises LinkgaugeError if they may not be read."""
        if not self.is_by_process or self.target is None:
            return
        pids = [self.target.pid or 0] if self._name is None else _processes_named(self._name)
        inodes: set[int] = set()
        denied = 0
        for pid in pids:
            try:
                inodes.update(read_socket_inodes(pid))
            except PermissionError:
                denied += 1
        if denied and denied == len(pids):
            raise LinkgaugeError(
                f"the sockets of {self.target.text} belong to another user: run this as root, or name its peer"
            )
        self._inodes = frozenset(inodes)

    def allows(self, message: SocketMessage) -> bool:
        """Return whether a socket of a dump counts: the kernel has compared its addresses."""
        return self._inodes is None or message.user_and_inode[1] in self._inodes

    def matches(self, message: SocketMessage, known: Collection[bytes]) -> bool:
        """Return whether a socket counts that has ended: no process has it any more."""
        if self.is_by_process:
            return message.id in known
        return not self._alternatives or any(
            all(_holds(condition, message) for condition in conditions) for conditions in self._alternatives
        )


def _holds(condition: EndCondition, message: SocketMessage) -> bool:
    end = message.remote if condition.is_remote else message.local
    has_address = condition.address is None or condition.address == end.host
    return has_address and condition.port in {None, end.port}


def _processes_named(name: str) -> list[int]:
    return [pid for pid in list_processes() if read_process_name(pid) == name and pid != os.getpid()]


def _check_process(pid: int) -> None:
    """Raise LinkgaugeError for a process that does not exist, or whose sockets are not of this namespace."""
    if read_process_name(pid) is None:
        raise LinkgaugeError(f"there is no process {pid}")
    with suppress(OSError):
        if Path(f"/proc/{pid}/ns/net").stat().st_ino != _OWN_NAMESPACE.stat().st_ino:
            raise UsageError(f"process {pid} is in another network namespace: give --pid {pid} as well")
