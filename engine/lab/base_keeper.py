"""What every keeper of a lab does: it builds, holds and takes down, as its standard input says.

A keeper reads the request from one line of its standard input and answers with one line. When that input ends, as
it does when the process at its other end has ended, the keeper ends everything that runs in the lab. With the last
process the kernel removes namespaces, devices and queues.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final, TypeVar

from ..host.end_signals import die_with_parent
from ..model.errors import DecodeError, LabError, LabUnavailable
from ..model.serialization import decode
from .namespaces import NetworkNamespace, find_processes

_GRACE_S: Final = 3.0
_POLL_S: Final = 0.05
Request = TypeVar("Request")


class BaseKeeper(ABC):
    """A lab, from the first namespace to the last process. Call `build` once, then `take_down`."""

    def __init__(self) -> None:
        self.namespaces: list[NetworkNamespace] = []
        self._children: list[subprocess.Popen[bytes]] = []
        self._tethered: set[int] = set()

    @abstractmethod
    def build(self) -> dict[str, Any]:
        """Build the lab and return the answer to the one who asked for it."""

    def start_tethered(self, command: Sequence[str], pass_fds: Sequence[int] = ()) -> "subprocess.Popen[bytes]":
        """Start a child that ends with its standard input, and so with this process."""
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=pass_fds,
        )
        self._children.append(child)
        self._tethered.add(child.pid)
        return child

    def start_foreign(self, command: Sequence[str], log: int) -> "subprocess.Popen[bytes]":
        """Start a program that knows nothing of labs, its output in a file. It ends with this process."""
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=lambda: die_with_parent(signal.SIGHUP),  # noqa: PLW1509 - this process has one thread
        )
        self._children.append(child)
        return child

    def take_down(self) -> None:
        """End everything that runs in the lab, first with SIGHUP, then with SIGKILL."""
        for child in self._children:
            if child.stdin is not None:
                child.stdin.close()
        inodes = {namespace.inode for namespace in self.namespaces}
        for number in (signal.SIGHUP, signal.SIGKILL):
            deadline = time.monotonic() + _GRACE_S
            signalled: set[int] = set()
            while (processes := self._find_processes(inodes)) and time.monotonic() < deadline:
                for pid in processes - signalled:
                    signalled.add(pid)
                    if number is signal.SIGKILL or pid not in self._tethered:
                        with contextlib.suppress(OSError):
                            os.kill(pid, number)
                time.sleep(_POLL_S)

    def _find_processes(self, inodes: set[int]) -> set[int]:
        own = {child.pid for child in self._children if child.poll() is None}
        return own | set(find_processes(inodes))


def keep(kind: type[Request], make: Callable[[Request], BaseKeeper]) -> None:
    """Keep the lab that standard input asks for, until that ends."""
    with ExitStack() as stack:
        try:
            keeper = make(decode(kind, json.loads(sys.stdin.readline() or "null")))
            stack.callback(keeper.take_down)
            _answer(keeper.build())
        except (LabError, DecodeError) as error:
            _answer({"error": str(error), "unavailable": isinstance(error, LabUnavailable)})
            return
        while sys.stdin.readline():
            pass


def _answer(value: dict[str, Any]) -> None:
    # The process at the other end may have ended; then standard input has ended as well.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()
