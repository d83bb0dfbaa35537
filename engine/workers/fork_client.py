"""Workers for the ends of this process: forked by a starter (starter.py), which all of them share.

A worker that is an interpreter of its own spends most of its start on imports, each time, while somebody waits;
one that is forked has them already. Where a starter is at hand payload flows 35 ms after a run was asked for, and
263 ms after where each worker imports (medians of seven on loopback). Who may need workers before long takes hold
of the starter, which then begins without being waited for; who lets go of it last ends it.
"""

import asyncio
import contextlib
import os
import socket
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final, Self

from ..host.event_loop import await_shielded
from ..host.memory_archive import InheritedBundle
from ..model.errors import WorkerError

# MERGED FROM engine/dataplane/asking:
# What an end's process asks of its starter, and what that tells: messages of one size, so that each is read whole.
#
# With a FORK come three descriptors (SCM_RIGHTS, unix(7)): the worker's end of its command channel, the counters,
# and
# what it writes its errors to.

REQUEST_STRUCT: Final = struct.Struct("=BIi")  # what; of which worker; the worker's number in its run, of a FORK
REPLY_STRUCT: Final = struct.Struct(
    "=BIi"
)  # what; of which worker; errno of FAILED, exit status of ENDED (-9: signal 9)
FORK_FD_COUNT: Final = 3


class ForkRequest(IntEnum):
    """What a starter is asked for."""

    FORK = 1
    KILL = 2


class ForkReply(IntEnum):
    """What a starter tells: that it can be asked, that a worker was forked or could not be, that one has ended."""

    READY = 1
    FORKED = 2
    FAILED = 3
    ENDED = 4


_END_DEADLINE_S: Final = 3.0  # it gives its workers a second
_READ_BYTES: Final = 4_096
_MOST_WORDS: Final = 65_536  # what a pipe holds
_NAMESPACE: Final = Path("/proc/thread-self/ns/net")


class WorkerProcess:
    """The process of a worker, as the end that asked for it has it."""

    def __init__(self, fork_server: "_Starter", worker_id: int, errors_fd: int) -> None:
        self._starter = fork_server
        self._whose = worker_id
        self._errors_fd = errors_fd
        self.fork_result: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._ending: asyncio.Task[tuple[str, str]] | None = None

    def set_exit(self, how: str) -> None:
        """Take note of how it ended."""
        if not self._ended.done():
            self._ended.set_result(how)

    async def shut_down(self, deadline_s: float) -> tuple[str, str]:
        """Wait for its end, by force where that does not come in time; return how it ended, and its last words.

        Its channel must be closed. Several may wait; the first one says how long.
        """
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(deadline_s))
        return await asyncio.shield(self._ending)

    async def _end(self, deadline_s: float) -> tuple[str, str]:
        try:
            if not (await asyncio.wait([self._ended], timeout=deadline_s))[0]:
                self._starter.kill(self._whose)
                await asyncio.wait([self._ended], timeout=deadline_s)
            how = self._ended.result() if self._ended.done() else "it does not end"
        finally:
            words = _last_words(self._errors_fd)
        return how, words


class _GoneError(Exception):
    """A starter has ended before it did what it was asked for: the next one can."""


class _Starter:
    """A process that forks workers, in the network namespace that this one is in when it is begun."""

    def __init__(self) -> None:
        self.why_gone: str | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._sock, self._theirs = socket.socketpair()
        self._sock.setblocking(False)
        self._closing = False
        self._asked = 0
        self._heard = b""
        self._workers: dict[int, WorkerProcess] = {}
        self._up = asyncio.Event()  # it has answered, or never will
        self._life = asyncio.create_task(self._live())

    async def start(self, channel_fd: int, counters_fd: int, number: int) -> WorkerProcess:
        """Ask for a worker; the descriptors stay the caller's. Raises WorkerError where nobody can be asked."""
        await self._up.wait()
        if self.why_gone is not None:
            raise WorkerError(self.why_gone)
        reading, writing = os.pipe()
        self._asked += 1
        whose = self._asked
        self._workers[whose] = found = WorkerProcess(self, whose, reading)
        try:
            try:
                self._ask(ForkRequest.FORK, whose, number, [channel_fd, counters_fd, writing])
            finally:
                os.close(writing)
            await found.fork_result
        except BaseException:
            self._workers.pop(whose, None)
            os.close(reading)
            raise
        return found

    def kill(self, whose: int) -> None:
        """Have a worker end at once."""
        self._ask(ForkRequest.KILL, whose)

    def _ask(self, asked: ForkRequest, whose: int, number: int = 0, fds: Sequence[int] = ()) -> None:
        """Ask, where it is there to be asked; that it is not is known to everybody in a moment (_is_gone)."""
        if self._sock.fileno() < 0:
            return
        try:
            socket.send_fds(self._sock, [REQUEST_STRUCT.pack(asked, whose, number)], fds)
        except (BrokenPipeError, ConnectionResetError):
            pass
        except OSError as error:
            raise WorkerError(f"a worker process could not be asked for: {error}") from error

    async def close(self) -> None:
        """End it, and what it has forked."""
        self._closing = True
        self._hang_up()
        if not self._up.is_set():
            self._kill()  # it imports what nobody needs any more
        if not (await asyncio.wait([self._life], timeout=_END_DEADLINE_S))[0]:
            self._kill()
        await self._life

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def _live(self) -> None:
        """Begin it, and wait for its end, whichever way that comes."""
        errors = writing = -1
        try:
            # Not a pipe of the event loop's: uvloop leaves a copy of it to the child, and that to its workers, who
            # may outlive it. Who waits for the end of what is written there would wait for theirs.
            errors, writing = os.pipe()
            self._process = await self._begun(writing)
        except OSError as error:
            if errors >= 0:
                os.close(errors)
            self._is_gone(f"no worker process could be started: {error}")
            return
        finally:
            self._theirs.close()
            if writing >= 0:
                os.close(writing)
        if self._closing:
            self._kill()
        else:
            asyncio.get_running_loop().add_reader(self._sock, self._read)
        status = await self._process.wait()
        self._read()
        self._is_gone(f"the process that starts workers has ended: {_last_words(errors) or f'status {status}'}")

    async def _begun(self, errors_fd: int) -> asyncio.subprocess.Process:
        carried = InheritedBundle()
        try:
            return await asyncio.create_subprocess_exec(
                # -P keeps what lies in the current folder out of its imports.
                *(sys.executable, "-P", "-m", f"{__package__}.fork_server", str(self._theirs.fileno())),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=errors_fd,
                pass_fds=(self._theirs.fileno(), *carried.fds),
                env=carried.environment,
                # Ctrl-C in the terminal is for the end's process, which ends its workers in order.
                start_new_session=True,
            )
        finally:
            carried.close()

    def _read(self) -> None:
        """Take in what it tells."""
        with contextlib.suppress(OSError):
            while part := self._sock.recv(_READ_BYTES):
                self._heard += part
            self._hang_up()
        whole = len(self._heard) // REPLY_STRUCT.size * REPLY_STRUCT.size
        for told, whose, value in REPLY_STRUCT.iter_unpack(self._heard[:whole]):
            if told == ForkReply.READY:
                self._up.set()
            elif (worker := self._workers.get(whose)) is None:
                continue  # nobody waits for it any more
            elif told == ForkReply.ENDED:
                del self._workers[whose]
                worker.set_exit(f"killed by signal {-value}" if value < 0 else f"exit status {value}")
            elif not worker.fork_result.done():
                if told == ForkReply.FORKED:
                    worker.fork_result.set_result(None)
                else:
                    why = f"a worker process could not be forked: {os.strerror(value)}"
                    worker.fork_result.set_exception(WorkerError(why))
        self._heard = self._heard[whole:]

    def _hang_up(self) -> None:
        if self._sock.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._sock)
            self._sock.close()

    def _is_gone(self, why: str) -> None:
        self._hang_up()
        self.why_gone = why
        self._up.set()
        for worker in self._workers.values():
            if not worker.fork_result.done():
                worker.fork_result.set_exception(_GoneError(why))
            worker.set_exit(why)
        self._workers.clear()


def _last_words(fd: int) -> str:
    """Return the last line of what was written to a pipe, and close it."""
    os.set_blocking(fd, False)
    words = b""
    with contextlib.suppress(BlockingIOError):
        words = os.read(fd, _MOST_WORDS)
    os.close(fd)
    return words.decode(errors="replace").strip().rpartition("\n")[2]


@dataclass
class _Shared:
    """What all who hold on in one event loop and network namespace have together."""

    starter: _Starter
    holders: int = 0


_shared: Final[dict[tuple[asyncio.AbstractEventLoop, int], _Shared]] = {}


class ForkServerLease:
    """A hold on what starts workers; close it, or have it for an `async with` block."""

    def __init__(self) -> None:
        try:
            network = _NAMESPACE.stat().st_ino  # a worker opens its sockets where its starter is
        except OSError:
            network = 0
        self._key = asyncio.get_running_loop(), network
        if self._key not in _shared:
            _shared[self._key] = _Shared(_Starter())
        self._shared = _shared[self._key]
        self._shared.holders += 1

    async def __aenter__(self) -> Self:
        """Have it."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of it."""
        await self.close()

    async def start(self, channel_fd: int, counters_fd: int, number: int) -> WorkerProcess:
        """Ask for a worker; the descriptors stay the caller's. Raises WorkerError where there can be none."""
        while True:
            if self._shared.starter.why_gone is not None:  # killed, perhaps
                self._shared.starter = _Starter()
            with contextlib.suppress(_GoneError):
                return await self._shared.starter.start(channel_fd, counters_fd, number)

    async def close(self) -> None:
        """Let go of it; the last one to do so ends it."""
        self._shared.holders -= 1
        if self._shared.holders == 0:
            del _shared[self._key]
            await await_shielded(self._shared.starter.close())
