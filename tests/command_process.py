"""Starts `python -m linkgauge` as processes that tests can signal and wait for.

A start of the interpreter takes half a second of CPU, most of it for imports. So one process that has them already
(command_parent.py) forks each command: a process of its own with the standard streams, environment, folder, umask
and session of subprocess.Popen. Tests of the start itself use subprocess.
"""

import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Final

from .command_parent import ForkRequest

COMMAND: Final = (sys.executable, "-m", "linkgauge")
_PR_SET_CHILD_SUBREAPER: Final = 36
_DEADLINE_S: Final = 30.0
_PARENT: Final = Path(__file__).with_name("command_parent.py")
# What an interpreter, the C library or a module reads once at its start.
_READ_AT_START: Final = ("PYTHON", "LC_ALL", "LD_", "MALLOC_", "TEXTUAL", "UVLOOP", "LINKGAUGE_WORKLOADS")
# Makes standard input, a terminal, the controlling one, so that signals of a terminal arrive.
LOGIN: Final = (
    *(sys.executable, "-ISc"),
    "import fcntl,os,sys,termios;fcntl.ioctl(0,termios.TIOCSCTTY,0);os.execvp(sys.argv[1],sys.argv[1:])",
)
_DETAILS: Final = tuple(inspect.signature(subprocess.Popen._execute_child).parameters)[1:]


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_READ_AT_START) and not name.startswith("TEXTUAL_SNAPSHOT")  # of pytest's plugin
    }


_AT_START: Final = {**_read_at_start(os.environ), "LC_ALL": "C.UTF-8", "PYTHONWARNINGS": "error"}


class _Parent:
    """The process that forks commands, for as long as this process runs tests."""

    def __init__(self) -> None:
        self._sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._sock.settimeout(_DEADLINE_S)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_PARENT), str(theirs.fileno()), "linkgauge"],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={
                    **{name: os.environ[name] for name in os.environ.keys() - _read_at_start(os.environ)},
                    **_AT_START,
                },
            )

    def fork(self, request: ForkRequest, streams: Sequence[int]) -> int:
        """Fork a command that becomes a child of this process; return its number."""
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)  # who gets the child of a process that has ended (prctl(2))
        try:
            socket.send_fds(self._sock, [json.dumps(asdict(request)).encode()], streams)
            pid = int(self._sock.recv(20))
            assert self._sock.recv(20) == b"forked"
        finally:
            libc.prctl(_PR_SET_CHILD_SUBREAPER, 0)
        return pid

    def close(self) -> None:
        """End it."""
        self._sock.close()
        self._process.wait(_DEADLINE_S)


class CommandProcess(subprocess.Popen[Any]):
    """A process of `python -m linkgauge`; the arguments are those of subprocess.Popen.

    It is forked if a new interpreter would make no difference: no other program starts it, and the variables that
    count at the start of an interpreter are as usual. `nsenter -t PID -n` may stand before it.

    Args:
        is_login: Whether its standard input, a terminal, becomes the controlling one, as a login does.
    """

    _parent: ClassVar[_Parent | None] = None

    def __init__(self, arguments: Sequence[str], *, is_login: bool = False, **options: Any) -> None:
        self._is_login = is_login
        super().__init__(list(arguments), **options)

    @classmethod
    def end_parent(cls) -> None:
        """End the process that forks commands."""
        if cls._parent is not None:
            cls._parent.close()
            cls._parent = None

    def _execute_child(self, *values: Any) -> None:
        details = dict(zip(_DETAILS, values, strict=True))
        request = _request(details, is_login=self._is_login)
        if request is None:
            if self._is_login:
                values = ([*LOGIN, *details["args"]], *values[1:])
            super()._execute_child(*values)
            return
        if CommandProcess._parent is None:
            CommandProcess._parent = _Parent()
        ends = [details[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        self.pid = CommandProcess._parent.fork(request, [fd if fd >= 0 else std for std, fd in enumerate(ends)])
        self._child_created = True
        self._close_pipe_fds(*(details[name] for name in _DETAILS if name[:3] in {"p2c", "c2p", "err"}))


def _request(details: Mapping[str, Any], *, is_login: bool) -> ForkRequest | None:
    """Return the request for a process like this; None if it needs a new interpreter."""
    words = [os.fspath(word) for word in details["args"]]
    namespace = f"/proc/{os.getpid()}/task/{threading.get_native_id()}/ns/net"
    if words[:2] == ["nsenter", "-t"] and words[3] == "-n":
        namespace, words = f"/proc/{words[2]}/ns/net", words[4:]
    if words[1:2] == ["-P"]:
        del words[1]
    environment = dict(os.environ if details["env"] is None else details["env"])
    if (
        tuple(words[: len(COMMAND)]) != COMMAND
        or _read_at_start(environment) != _AT_START
        or any(details[name] for name in ("preexec_fn", "pass_fds", "shell", "executable"))
        or any(details[name] is not None for name in ("gid", "gids", "uid"))
    ):
        return None
    return ForkRequest(
        words[len(COMMAND) :],
        environment,
        os.fspath(details["cwd"] or Path.cwd()),
        namespace,
        details["umask"],
        details["start_new_session"],
        details["process_group"],
        is_login,
    )
