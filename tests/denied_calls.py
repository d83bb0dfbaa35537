"""`python denied_calls.py CALL,... -- COMMAND`: a command that may not use system calls, as in containers.

A real filter of seccomp(2), which every process of the command inherits: a denied call ends with EPERM.
"""

import ctypes
import os
import platform
import struct
import sys
from typing import NamedTuple


class Argument(NamedTuple):
    """A condition on the lower half of a call's argument: its bits of the mask have the value."""

    number: int
    mask: int
    value: int


class Call(NamedTuple):
    """A call of the kernel's table, x86-64's and aarch64's number, and what its arguments must be like."""

    numbers: tuple[int, int]
    arguments: tuple[Argument, ...] = ()


_ALL = 0xFFFFFFFF
_MSG_TRUNC = 0x20
_SOL_UDP = Argument(1, _ALL, 17)
CALLS = {
    "sendfile": Call((40, 71)),
    "memfd_create": Call((319, 279)),
    "discard": Call((45, 207), (Argument(3, _MSG_TRUNC, _MSG_TRUNC),)),  # recvfrom
    "udp_segment": Call((54, 208), (_SOL_UDP, Argument(2, _ALL, 103))),  # setsockopt
    "udp_group": Call((44, 206), (Argument(2, 0x8000, 0x8000),)),  # sendto of a whole group, as long as it is
    "udp_gro": Call((54, 208), (_SOL_UDP, Argument(2, _ALL, 104))),
}
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_LOAD, _AND, _EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06  # of the classic BPF
_ALLOW, _DENY = 0x7FFF0000, 0x00050001  # SECCOMP_RET_ERRNO with EPERM
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2


def is_possible() -> bool:
    """Return whether this machine has such filters."""
    return sys.platform == "linux" and platform.machine() in _ARCHITECTURES


def denying(*calls: str) -> tuple[str, ...]:
    """Return the beginning of a command line that runs a command without these calls."""
    return (sys.executable, __file__, ",".join(calls), "--")


def _program(calls: list[Call]) -> bytes:
    architecture, column = _ARCHITECTURES[platform.machine()]
    code = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _ALLOW)]
    for call in calls:
        checks = [(_LOAD, 0, 0, 0), (_EQUAL, 0, 0, call.numbers[column])]
        for number, mask, value in call.arguments:
            checks += [(_LOAD, 0, 0, 16 + 8 * number), (_AND, 0, 0, mask), (_EQUAL, 0, 0, value)]
        # A condition that does not hold jumps behind the answer of this call.
        left = len(checks)
        code += [
            (kind, 0, left - place if kind == _EQUAL else 0, value)
            for place, (kind, _, _, value) in enumerate(checks)
        ]
        code.append((_RETURN, 0, 0, _DENY))
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *each) for each in code)


def main() -> None:
    """Install the filter and become the command."""
    names, _dashes, *command = sys.argv[1:]
    program = _program([CALLS[name] for name in names.split(",")])
    memory = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(memory)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, header, 0, 0):
        sys.exit(os.strerror(ctypes.get_errno()))
    os.execvp(command[0], command)  # noqa: S606 - there is no shell in between


if __name__ == "__main__":
    main()
