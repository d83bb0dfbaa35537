"""The client of the fork server (fork_server.py): one server for each event loop and network namespace, shared.

A worker that is a new interpreter spends most of its start on imports, while the user waits; a forked one
has them already. If a fork server is running, payload flows 35 ms after the request for a run; if
each worker imports, 263 ms after it (medians of seven on loopback). Take a `ForkServerLease` as soon as workers
may be needed: the server starts in the background. It ends with the last lease.
"""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from ..host.child_process import end_process
from ..host.event_loop import await_shielded
from ..host.memory_file import InheritedBundle
from ..host.process_identity import is_process_stopped
from ..model.errors import WorkerError, explain_resource_error
from .fork_server import REPLY_STRUCT, REQUEST_STRUCT, ForkReply, ForkRequest

_PROGRAM_ERRORS: Final = {errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ENOTDIR}
_END_DEADLINE_S: Final = 3.0  # the server waits a second for its workers
_LOOK_S: Final = 1.0  # from one look at a server that does not answer to the next
_READ_BYTES: Final = 4_096
_PIPE_BYTES: Final = 65_536  # capacity of a pipe
_MAX_SERVERS: Final = 3  # for one worker, if others kill each of them: a host without memory kills every one
_NETWORK_NAMESPACE: Final = Path("/proc/thread-self/ns/net")
_log = logging.getLogger(__name__)


class WorkerProcess:
    """A worker process, as its owner sees it. Wait for `fork_result`, then call `shut_down` once."""

    def __init__(self, server: "_ServerProcess", worker_id: int, errors_fd: int) -> None:
        self._server = server
        self._worker_id = worker_id
        self._errors_fd = errors_fd
        self.fork_result: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._exit: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._shutdown: asyncio.Task[tuple[str, str]] | None = None

    def set_exit(self, status: str) -> None:
        """Note that the process has ended."""
        if not self._exit.done():
            self._exit.set_result(status)

    async def shut_down(self, deadline_s: float) -> tuple[str, str]:
        """Wait until the process ends and kill it after the deadline; return its exit and its last line of errors.

        Close its channel first. Several tasks may wait; the deadline of the first one counts.
        """
        if self._shutdown is None:
            self._shutdown = asyncio.create_task(self._await_exit(deadline_s))
        return await asyncio.shield(self._shutdown)

    async def _await_exit(self, deadline_s: float) -> tuple[str, str]:
        try:
            if not (await asyncio.wait([self._exit], timeout=deadline_s))[0]:
                _log.debug("worker %s did not end in %s s: killing it", self._worker_id, deadline_s)
                self._server.kill(self._worker_id)
                await asyncio.wait([self._exit], timeout=deadline_s)
            status = self._exit.result() if self._exit.done() else "it does not end"
        finally:
            last_line = _read_last_line(self._errors_fd)
        return status, last_line


class _ServerEndedError(Exception):
    """The fork server ended before it answered; another one can be asked."""


class _ServerProcess:
    """One fork server, in the network namespace in which it was started."""

    def __init__(self) -> None:
        self.why_ended: str | None = None
        self._was_killed = False
        self._process: asyncio.subprocess.Process | None = None
        self._sock, self._server_sock = socket.socketpair()
        self._sock.setblocking(False)
        self._closing = False
        self._last_worker_id = 0
        self._buffer = b""
        self._workers: dict[int, WorkerProcess] = {}
        self._is_settled = asyncio.Event()  # it is ready, or has ended
        self._task = asyncio.create_task(self._run())

    async def start_worker(self, channel_fd: int, counters_fd: int, number: int) -> WorkerProcess:
        """Fork a worker; the caller keeps its descriptors.

        Raises WorkerError if no worker can be forked, _ServerEndedError if another server may be able to.
        """
        settled = asyncio.ensure_future(self._is_settled.wait())
        try:
            await self._await_answer(settled)
        finally:
            settled.cancel()
        if self.why_ended is not None:
            raise (_ServerEndedError if self._was_killed else WorkerError)(self.why_ended)
        errors_fd, writing_fd = os.pipe()
        self._last_worker_id += 1
        worker_id = self._last_worker_id
        self._workers[worker_id] = process = WorkerProcess(self, worker_id, errors_fd)
        try:
            try:
                self._send(ForkRequest.FORK, worker_id, number, [channel_fd, counters_fd, writing_fd])
            finally:
                os.close(writing_fd)
            await self._await_answer(process.fork_result)
            process.fork_result.result()
        except BaseException:
            self._workers.pop(worker_id, None)
            os.close(errors_fd)
            raise
        return process

    async def _await_answer(self, answer: asyncio.Future[Any]) -> None:
        """Wait for an answer. A server that a signal has stopped would never give one: it is killed.

        It must be stopped at two looks in a row: one that was suspended together with this process continues.
        """
        looks = 0
        while not (await asyncio.wait([answer], timeout=_LOOK_S))[0]:
            process = self._process
            looks = looks + 1 if process is not None and is_process_stopped(process.pid) else 0
            if process is not None and looks > 1:
                _log.debug("fork server %d is stopped: killing it", process.pid)
                with contextlib.suppress(ProcessLookupError):
                    process.kill()

    def kill(self, worker_id: int) -> None:
        """Kill a worker."""
        self._send(ForkRequest.KILL, worker_id)

    def _send(self, request: ForkRequest, worker_id: int, number: int = 0, fds: Sequence[int] = ()) -> None:
        """Send a request, unless the server has ended: `_set_ended` then answers for it."""
        if self._sock.fileno() < 0:
            return
        try:
            socket.send_fds(self._sock, [REQUEST_STRUCT.pack(request, worker_id, number)], fds)
        except (BrokenPipeError, ConnectionResetError):
            pass
        except OSError as error:
            raise WorkerError(f"no worker process could be started: {explain_resource_error(error)}") from error

    async def close(self) -> None:
        """End the server and its workers."""
        self._closing = True
        self._close_socket()
        if self._process is not None:
            wait_s = _END_DEADLINE_S if self._is_settled.is_set() else 0  # else it is still importing
            await end_process(self._process, ((None, wait_s), (signal.SIGKILL, _END_DEADLINE_S)))
        await self._task

    async def _run(self) -> None:
        """Start the server and wait for its end."""
        errors_fd = writing_fd = -1
        try:
            # Not a pipe of the event loop: uvloop leaves a copy of that one to the server, whose workers inherit it
            # and may outlive it. The pipe would then end with the last worker.
            errors_fd, writing_fd = os.pipe()
            self._process = await self._start_process(writing_fd)
        except OSError as error:
            if errors_fd >= 0:
                os.close(errors_fd)
            self._set_ended(f"no worker process could be started: {_explain_start(error)}")
            return
        finally:
            self._server_sock.close()
            if writing_fd >= 0:
                os.close(writing_fd)
        if self._closing:
            await end_process(self._process, [(signal.SIGKILL, _END_DEADLINE_S)])
        else:
            asyncio.get_running_loop().add_reader(self._sock, self._read)
        status = await self._process.wait()
        self._read()
        last_line = _read_last_line(errors_fd)
        self._was_killed = status < 0
        self._set_ended(f"the process that starts workers has ended: {last_line or f'status {status}'}")

    async def _start_process(self, errors_fd: int) -> asyncio.subprocess.Process:
        bundle = InheritedBundle()
        try:
            return await asyncio.create_subprocess_exec(
                # -P keeps the current folder out of its imports.
                *(sys.executable, "-P", "-m", f"{__package__}.fork_server", str(self._server_sock.fileno())),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=errors_fd,
                pass_fds=(self._server_sock.fileno(), *bundle.fds),
                env=bundle.environment,
                # Ctrl-C in the terminal is for the end's process, which ends its workers in order.
                start_new_session=True,
            )
        finally:
            bundle.close()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._sock.recv(_READ_BYTES):
                self._buffer += data
            self._close_socket()
        whole = len(self._buffer) // REPLY_STRUCT.size * REPLY_STRUCT.size
        for reply, worker_id, value in REPLY_STRUCT.iter_unpack(self._buffer[:whole]):
            self._handle(reply, worker_id, value)
        self._buffer = self._buffer[whole:]

    def _handle(self, reply: int, worker_id: int, value: int) -> None:
        if reply == ForkReply.READY:
            _log.debug("fork server is ready")
            self._is_settled.set()
            return
        process = self._workers.get(worker_id)
        if process is None:
            return  # its request was cancelled
        if reply == ForkReply.ENDED:
            del self._workers[worker_id]
            process.set_exit(f"killed by signal {-value}" if value < 0 else f"exit status {value}")
        elif not process.fork_result.done():
            if reply == ForkReply.FORKED:
                process.fork_result.set_result(None)
            else:
                why = f"no worker process could be started: {explain_resource_error(OSError(value, ''))}"
                process.fork_result.set_exception(WorkerError(why))

    def _close_socket(self) -> None:
        if self._sock.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._sock)
            self._sock.close()

    def _set_ended(self, why: str) -> None:
        _log.debug("fork server: %s", why)
        self._close_socket()
        self.why_ended = why
        self._is_settled.set()
        for process in self._workers.values():
            if not process.fork_result.done():
                process.fork_result.set_exception(_ServerEndedError(why))
            process.set_exit(why)
        self._workers.clear()


def _explain_start(error: OSError | MemoryError) -> str:
    """Return the reason of a failed start, with the program and a remedy if it is the program that fails."""
    if getattr(error, "errno", None) not in _PROGRAM_ERRORS:
        return explain_resource_error(error)
    remedy = "put it back, make it executable, or start linkgauge with another Python"
    return f"{sys.executable}: {explain_resource_error(error)}; {remedy}"


def _read_last_line(fd: int) -> str:
    """Return the last line in a pipe, and close the pipe."""
    os.set_blocking(fd, False)
    data = b""
    with contextlib.suppress(BlockingIOError):
        data = os.read(fd, _PIPE_BYTES)
    os.close(fd)
    return data.decode(errors="replace").strip().rpartition("\n")[2]


@dataclass
class _SharedServer:
    """The fork server of one event loop and network namespace."""

    server: _ServerProcess
    leases: int = 0


_shared_servers: Final[dict[tuple[asyncio.AbstractEventLoop, int], _SharedServer]] = {}


class ForkServerLease:
    """A share in the fork server of the running loop; call `close` or use it in an `async with` block."""

    def __init__(self) -> None:
        try:
            namespace = _NETWORK_NAMESPACE.stat().st_ino  # a worker's sockets are in its server's namespace
        except OSError:
            namespace = 0
        self._key = asyncio.get_running_loop(), namespace
        if self._key not in _shared_servers:
            _shared_servers[self._key] = _SharedServer(_ServerProcess())
        self._shared = _shared_servers[self._key]
        self._shared.leases += 1

    async def __aenter__(self) -> Self:
        """Return the lease."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the lease."""
        await self.close()

    async def start(self, counters_fd: int, number: int) -> tuple[WorkerProcess, socket.socket]:
        """Fork a worker; return it, and this end of its command channel.

        A fork server that was killed or stopped is replaced. The caller keeps the counters and closes the channel.

        Args:
            counters_fd: The shared counters.
            number: The worker's number in its run.

        Raises:
            WorkerError: No worker can be forked.
        """
        why = ""
        for _ in range(_MAX_SERVERS):
            if self._shared.server.why_ended is not None:
                self._shared.server = _ServerProcess()
            # A new pair for each server: the last one may have forked a worker and been killed before its reply.
            # That worker ends with its own channel; on a shared one it would take half of the commands.
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    return await self._shared.server.start_worker(theirs.fileno(), counters_fd, number), ours
            except _ServerEndedError as error:
                why = str(error)
                ours.close()
                if not self._shared.leases:
                    break  # the last lease was returned meanwhile: nothing would end another server
            except BaseException:
                ours.close()
                raise
        raise WorkerError(why)

    async def close(self) -> None:
        """Return the lease. The last one returned ends the server."""
        self._shared.leases -= 1
        if self._shared.leases == 0:
            del _shared_servers[self._key]
            await await_shielded(self._shared.server.close())
