"""A process that has imported all that a worker needs, and forks one whenever it is asked to.

Started by an end's process as `python -m linkgauge.engine.workers.fork_server SOCKET`. It ends when the
socket does, so it cannot outlive the process that started it, however that one ended; its workers, whose channels
end at the same moment, have a while to end by themselves, then it ends them.
"""

import contextlib
import errno
import gc
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Final, NoReturn

from ..host.event_loop import loop_factory
from ..model.errors import DecodeError
from ..model.serialization import decode
from . import worker
from .commands import COMMANDS
from .fork_client import FORK_FD_COUNT, REPLY_STRUCT, REQUEST_STRUCT, ForkReply, ForkRequest

_PATIENCE_S: Final = 1.0


class _Starter:
    """The workers it has forked and not reaped, by process id, with whose they are."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._workers: dict[int, int] = {}
        self._wakes, self._woken = os.pipe()
        for fd in (self._wakes, self._woken):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, _wake)  # a signal that is ignored wakes nobody
        signal.set_wakeup_fd(self._woken)
        self._poll = select.poll()
        for fd in (self._wakes, sock.fileno()):
            self._poll.register(fd, select.POLLIN)

    def serve(self) -> None:
        """Fork, kill and reap until nobody can ask any more, and see the workers to their end."""
        self._tell(ForkReply.READY, 0, 0)
        while self._look(None):
            pass
        self._poll.unregister(self._sock)
        self._sock.close()
        deadline = time.monotonic() + _PATIENCE_S
        while self._workers and (left_s := deadline - time.monotonic()) > 0:
            self._look(left_s)
        for pid in self._workers:
            os.kill(pid, signal.SIGKILL)

    def _look(self, timeout_s: float | None) -> bool:
        """Wait for the next thing to do and do it; return False where nobody can ask any more."""
        ready = {fd for fd, _ in self._poll.poll(None if timeout_s is None else timeout_s * 1e3)}
        if self._wakes in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakes, 4_096)
            for whose, status in self._reaped():
                self._tell(ForkReply.ENDED, whose, status)
        return self._sock.fileno() not in ready or self._take()

    def _take(self) -> bool:
        """Do what the next message asks for; return False where there is none, and never will be."""
        try:
            message, fds, _flags, _address = socket.recv_fds(self._sock, REQUEST_STRUCT.size, FORK_FD_COUNT)
        except OSError:
            return False
        if len(message) != REQUEST_STRUCT.size:
            return False
        asked, whose, number = REQUEST_STRUCT.unpack(message)
        if asked == ForkRequest.KILL:
            for pid in [pid for pid, owner in self._workers.items() if owner == whose]:
                os.kill(pid, signal.SIGKILL)
            return True
        why = self._fork(whose, number, fds)
        self._tell(ForkReply.FAILED if why else ForkReply.FORKED, whose, why)
        for fd in fds:
            os.close(fd)
        return True

    def _fork(self, whose: int, number: int, fds: list[int]) -> int:
        """Fork a worker; return why that cannot be (errno), or 0."""
        if len(fds) != FORK_FD_COUNT:
            return errno.EMFILE  # the kernel drops those that there is no room for
        try:
            pid = os.fork()
        except OSError as error:
            return error.errno or errno.EAGAIN
        if pid == 0:
            self._be_worker(number, *fds)
        self._workers[pid] = whose
        return 0

    def _be_worker(self, number: int, channel_fd: int, counters_fd: int, errors_fd: int) -> NoReturn:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in (self._wakes, self._woken, self._sock.detach()):
                os.close(fd)
            os.setsid()
            os.dup2(errors_fd, 2)
            os.close(errors_fd)
            worker.serve(channel_fd, counters_fd, number)
            status = 0
        except BaseException:  # noqa: BLE001 - there is nobody above
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(status)  # what a starter would do at its end is not a worker's to do

    def _reaped(self) -> Iterator[tuple[int, int]]:
        while self._workers:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            whose = self._workers.pop(pid, None)
            if whose is not None:
                yield whose, os.waitstatus_to_exitcode(status)

    def _tell(self, told: ForkReply, whose: int, value: int) -> None:
        with contextlib.suppress(OSError):  # nobody is there to hear it: the next look says so
            self._sock.send(REPLY_STRUCT.pack(told, whose, value))


def _wake(_number: int, _frame: object) -> None:
    """Take a signal: what it wakes looks what has happened."""


def main() -> None:
    """Serve the socket whose descriptor the command line names."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Work that each worker would do at its start is done here once: load uvloop, build the decoders of commands.
    loop_factory()
    for kind in COMMANDS:
        with contextlib.suppress(DecodeError):
            decode(kind, None)
    gc.collect()
    gc.freeze()  # a collection would write to pages that all of them share
    _Starter(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
