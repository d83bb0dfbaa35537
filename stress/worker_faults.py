"""What another program can do to the workers of a run: set the pace of their sockets, stop and continue them."""

# pyright: basic

import ctypes
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from processes import process_tree

_SO_MAX_PACING_RATE: Final = 47  # asm-generic/socket.h, which Python does not name
_SYS_PIDFD_GETFD: Final = 438
_POLL_S: Final = 0.02
_MAIN_PROGRAMS: Final = (b"--inside", b"far.loopback", b"lab.namespaces", b"linkgauge\0run")


def worker_sockets(root: int) -> dict[int, list[int]]:
    """Return the workers among a process's descendants, each with the descriptors of its connected TCP sockets."""
    workers = {pid: _connected_sockets(pid) for pid in process_tree(root) if not _is_main_program(pid)}
    return {pid: descriptors for pid, descriptors in workers.items() if descriptors}


def _is_main_program(pid: int) -> bool:
    with suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return any(name in command for name in _MAIN_PROGRAMS)
    return True


def _connected_sockets(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if link.readlink().name.startswith("socket:") and _is_connected_tcp(pid, int(link.name)):
                    found.append(int(link.name))
    return found


def _is_connected_tcp(pid: int, descriptor: int) -> bool:
    with _copy_socket(pid, descriptor) as sock:
        if sock.family not in {socket.AF_INET, socket.AF_INET6} or sock.type != socket.SOCK_STREAM:
            return False
        with suppress(OSError):
            sock.getpeername()
            return True
    return False


@contextmanager
def _copy_socket(pid: int, descriptor: int) -> Generator[socket.socket]:
    """Give a copy of another process's socket: pidfd_getfd(2)."""
    process = os.pidfd_open(pid)
    try:
        copy = ctypes.CDLL(None, use_errno=True).syscall(_SYS_PIDFD_GETFD, process, descriptor, 0)
        if copy < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
    finally:
        os.close(process)
    with socket.socket(fileno=copy) as sock:
        yield sock


def set_pace(workers: dict[int, list[int]], bit_s: int) -> None:
    """Share a rate out over the sockets of some workers, as a service manager's limit does."""
    each = max(1, bit_s // 8 // max(1, sum(map(len, workers.values()))))
    for pid, descriptors in workers.items():
        for descriptor in descriptors:
            with suppress(OSError), _copy_socket(pid, descriptor) as sock:
                sock.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, each)


def stop_again_and_again(
    workers: dict[int, list[int]], share: float, period_s: float, is_over: threading.Event
) -> None:
    """Stop some processes for a share of each period, until told that it is over; they run again afterwards."""
    try:
        while not is_over.is_set():
            _signal(workers, signal.SIGSTOP)
            time.sleep(share * period_s)
            _signal(workers, signal.SIGCONT)
            time.sleep((1 - share) * period_s)
    finally:
        _signal(workers, signal.SIGCONT)


def _signal(workers: dict[int, list[int]], number: int) -> None:
    for pid in workers:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def disturbed(
    root: int, disturb: Callable[[dict[int, list[int]], threading.Event], None], connections: int
) -> Generator[None]:
    """Disturb a process's workers within a `with` block, once they have this many connections."""
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            workers = worker_sockets(root)
            if sum(map(len, workers.values())) >= connections:
                disturb(workers, is_over)
                return
            time.sleep(_POLL_S)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
