"""The fork server: a process that has imported everything for a worker, and forks one on each request.

Started by an end's process (fork_client.py) as `python -m linkgauge.engine.workers.fork_server SOCKET`. It ends
when the socket does, so it cannot outlive the process that started it. Its workers' channels end at the same
moment: it waits a second for them and kills the rest.

Requests and replies have one size each. A FORK comes with three descriptors (SCM_RIGHTS, unix(7)): the worker's end
of its command channel, the counters, and its standard error.

multiprocessing's forkserver with a preload was tried in its place. A worker was ready after 22 to 29 ms; this
server takes 6 to 10 (medians of 30 on two busy cores). If the command line is `__main__`, which each child imports
again, it took 310 to 440 ms. It also allows one server in a process, and ours has one for each network namespace.
Its start() blocks: with the server stopped (SIGSTOP) it did not return in 5 s. When the server is killed, the exit
status of its workers is lost. All children write to one standard error.
"""

import contextlib
import errno
import gc
import logging
import os
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NoReturn

from ..host.debug_log import configure_debug_log, flush_debug_log
from ..host.event_loop import loop_factory
from ..model.errors import DecodeError, WorkerError
from ..model.serialization import decode
from . import worker
from .ipc import COMMANDS

REQUEST_STRUCT: Final = struct.Struct(
    "=BIi"
)  # ForkRequest, worker id, and with FORK the worker's number in its run
REPLY_STRUCT: Final = struct.Struct("=BIi")  # ForkReply, worker id, errno of FAILED or exit status of ENDED
FORK_FD_COUNT: Final = 3
_END_DEADLINE_S: Final = 1.0
_log = logging.getLogger(__name__)


class ForkRequest(IntEnum):
    """A message to the fork server."""

    FORK = 1
    KILL = 2


class ForkReply(IntEnum):
    """A message from the fork server: READY once, FORKED or FAILED for each FORK, ENDED for each worker."""

    READY = 1
    FORKED = 2
    FAILED = 3
    ENDED = 4  # its status is negative for a signal: -9 for SIGKILL


class ForkServer:
    """Forks, kills and reaps workers as its socket asks. Create it once in a process, then call `serve`."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._worker_ids: dict[int, int] = {}  # by process id
        self._wakeup_read, self._wakeup_write = os.pipe()
        for fd in (self._wakeup_read, self._wakeup_write):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, _ignore)  # SIG_IGN would write nothing to the wakeup descriptor
        signal.set_wakeup_fd(self._wakeup_write)
        self._poll = select.poll()
        for fd in (self._wakeup_read, sock.fileno()):
            self._poll.register(fd, select.POLLIN)

    def serve(self) -> None:
        """Serve requests until the socket ends, then end the workers."""
        self._reply(ForkReply.READY, 0, 0)
        while self._wait(None):
            pass
        self._poll.unregister(self._sock)
        self._sock.close()
        deadline = time.monotonic() + _END_DEADLINE_S
        while self._worker_ids and (left_s := deadline - time.monotonic()) > 0:
            self._wait(left_s)
        for pid in self._worker_ids:
            os.kill(pid, signal.SIGKILL)

    def _wait(self, timeout_s: float | None) -> bool:
        """Wait for a request or an ended worker and handle it; return False at the end of the socket."""
        ready = {fd for fd, _ in self._poll.poll(None if timeout_s is None else timeout_s * 1e3)}
        if self._wakeup_read in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakeup_read, 4_096)
            for worker_id, status in self._reap():
                _log.debug("worker %s ended with status %s", worker_id, status)
                self._reply(ForkReply.ENDED, worker_id, status)
        return self._sock.fileno() not in ready or self._handle_request()

    def _handle_request(self) -> bool:
        """Handle one request; return False at the end of the socket."""
        try:
            message, fds, _flags, _address = socket.recv_fds(self._sock, REQUEST_STRUCT.size, FORK_FD_COUNT)
        except OSError:
            return False
        if len(message) != REQUEST_STRUCT.size:
            return False
        request, worker_id, number = REQUEST_STRUCT.unpack(message)
        if request == ForkRequest.KILL:
            for pid in [pid for pid, owner in self._worker_ids.items() if owner == worker_id]:
                _log.debug("killing worker %s", worker_id)
                os.kill(pid, signal.SIGKILL)
            return True
        failure = self._fork(worker_id, number, fds)
        _log.debug("forked worker %s: errno %s", worker_id, failure)
        self._reply(ForkReply.FAILED if failure else ForkReply.FORKED, worker_id, failure)
        for fd in fds:
            os.close(fd)
        return True

    def _fork(self, worker_id: int, number: int, fds: list[int]) -> int:
        """Fork a worker; return 0, or the errno of the failure."""
        if len(fds) != FORK_FD_COUNT:
            return errno.EMFILE  # the kernel drops descriptors beyond the limit
        try:
            pid = os.fork()
        except OSError as error:
            return error.errno or errno.EAGAIN
        if pid == 0:
            self._run_worker(number, *fds)
        self._worker_ids[pid] = worker_id
        return 0

    def _run_worker(self, number: int, channel_fd: int, counters_fd: int, errors_fd: int) -> NoReturn:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in (self._wakeup_read, self._wakeup_write, self._sock.detach()):
                os.close(fd)
            os.setsid()
            os.dup2(errors_fd, 2)
            os.close(errors_fd)
            worker.serve(channel_fd, counters_fd, number)
            status = 0
        except WorkerError as error:
            sys.stderr.write(f"{error}\n")
        except BaseException:  # noqa: BLE001 - nothing above could report it
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.flush()
            flush_debug_log()
            os._exit(status)  # the exit handlers are the server's

    def _reap(self) -> Iterator[tuple[int, int]]:
        """Yield the id and exit status of each worker that has ended."""
        while self._worker_ids:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            worker_id = self._worker_ids.pop(pid, None)
            if worker_id is not None:
                yield worker_id, os.waitstatus_to_exitcode(status)

    def _reply(self, reply: ForkReply, worker_id: int, value: int) -> None:
        with contextlib.suppress(OSError):  # the next request reads the end of the socket
            self._sock.send(REPLY_STRUCT.pack(reply, worker_id, value))


def _ignore(_number: int, _frame: object) -> None:
    """Handle a signal whose only use is to wake poll(2)."""


def main() -> None:
    """Serve the socket whose descriptor is the first argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    configure_debug_log(has_stderr=False)
    # Work that each worker would do at its start is done here once: load uvloop, build the decoders of commands.
    loop_factory()
    for kind in COMMANDS:
        with contextlib.suppress(DecodeError):
            decode(kind, None)
    gc.collect()
    gc.freeze()  # a collection would write to pages that all of them share
    ForkServer(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
