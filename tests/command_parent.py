"""`python command_parent.py SOCKET linkgauge`: imports linkgauge, and forks a process for each command.

Each request on the socket is a command line with its environment and standard streams. The process made for it does
what a new interpreter would, without half a second of imports, and is a child of the process that asked
(command_process.py). This process has one thread, as fork(2) requires.
"""

import atexit
import ctypes
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
import termios
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

REQUEST_BYTES: Final = 150_000
_execv: Final = os.execv
_CLONE_NEWNET: Final = 0x40000000


@dataclass(frozen=True)
class ForkRequest:
    """One command: its arguments after `python -m linkgauge`, and what subprocess.Popen is told of its process."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    namespace: str  # the network namespace's path
    umask: int = -1
    is_session: bool = False
    process_group: int = -1
    is_login: bool = False  # standard input becomes the controlling terminal


def _preload() -> None:
    """Import everything that commands import when they run, except `__main__`, which each of them runs."""
    from linkgauge.tui.cli import commands, runners

    for package in (commands, runners):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    importlib.import_module("linkgauge.tui.app.app")
    from linkgauge.engine.host.event_loop import loop_factory
    from linkgauge.presets.catalog import load_catalog

    loop_factory()
    load_catalog()


class CommandParent:
    """Serves one socket until the other end closes it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def serve(self) -> ForkRequest | None:
        """Fork a process for each request; return None at the end, and in the new process its request."""
        while True:
            data, fds, _, _ = socket.recv_fds(self._sock, REQUEST_BYTES, 3)
            if not data:
                self._sock.close()
                return None
            if self._is_child():
                for number, fd in enumerate(fds):
                    os.dup2(fd, number)
                    os.close(fd)
                self._sock.close()
                return ForkRequest(**json.loads(data))
            for fd in fds:
                os.close(fd)
            self._sock.send(b"forked")

    def _is_child(self) -> bool:
        """Fork twice, so that the new process becomes a child of the one that asked; return whether this is it."""
        reading, writing = os.pipe()
        between = os.fork()
        if between:
            os.close(reading)
            os.waitpid(between, 0)
            os.close(writing)  # the child has its parent now
            return False
        os.close(writing)
        if pid := os.fork():
            self._sock.send(str(pid).encode())
            os._exit(0)
        os.read(reading, 1)
        os.close(reading)
        return True


def _become(request: ForkRequest) -> None:
    """Make this process what a new one would be."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request.is_session:
        os.setsid()
    if request.process_group >= 0:
        os.setpgid(0, request.process_group)
    if request.is_login:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    _enter(request.namespace)
    if request.umask >= 0:
        os.umask(request.umask)
    os.chdir(request.folder)
    for name in os.environ.keys() - request.environment.keys():
        del os.environ[name]
    os.environ.update(request.environment)
    time.tzset()
    sys.path[0] = request.folder
    _open_streams()


def _enter(namespace: str) -> None:
    """Move into a network namespace, unless this process is in it: not every user may."""
    fd = os.open(namespace, os.O_RDONLY)
    if not os.path.samestat(os.fstat(fd), os.stat("/proc/self/ns/net")) and (  # noqa: PTH116
        ctypes.CDLL(None, use_errno=True).setns(fd, _CLONE_NEWNET)
    ):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(fd)


def _open_streams() -> None:
    """Make the standard streams as an interpreter does at its start: they depend on the files behind them."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        before: Any = getattr(sys, name)
        buffer: Any = open(fd, f"{mode}b", closefd=False)  # noqa: SIM115 - it is open as long as this process
        buffer.raw.name = f"<{name}>"
        is_lines = fd == 2 or buffer.raw.isatty()
        text = io.TextIOWrapper(
            buffer,
            encoding=before.encoding,
            errors=before.errors,
            newline=None if fd == 0 else "\n",
            line_buffering=is_lines,
            write_through=before.write_through,
        )
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)


def _replace(path: str, arguments: list[str]) -> NoReturn:
    """Do what os.execv does, for `linkgauge endpoint`, which replaces itself with a module of its own."""
    if path != sys.executable or arguments[1:3] != ["-P", "-m"]:
        _execv(path, arguments)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    module, *sys.argv[1:] = arguments[3:]
    del sys.modules[module]
    status = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
        status = 1
    # Nothing of the command that was replaced may be carried out after it.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main() -> None:
    """Serve the socket; in a forked process, be the command."""
    sock = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the commands, which take it in order
    _preload()
    assert len(list(Path("/proc/self/task").iterdir())) == 1
    gc.collect()
    gc.freeze()  # a search for garbage would write to pages that all commands share
    request = CommandParent(sock).serve()
    if request is not None:
        _become(request)
        sys.argv[1:] = request.arguments
        os.execv = _replace
        runpy.run_module("linkgauge", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
