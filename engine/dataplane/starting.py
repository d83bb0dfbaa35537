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
import sys
from pathlib import Path
from typing import Final, Self

from ..errors import WorkerError
from ..loop import see_through
from ..travel import Carried
from .asking import ANSWER, REQUEST, Asked, Told

_END_DEADLINE_S: Final = 3.0  # it gives its workers a second
_READ_BYTES: Final = 4_096
_MOST_WORDS: Final = 65_536  # what a pipe holds
_NAMESPACE: Final = Path("/proc/thread-self/ns/net")


class WorkerProcess:
    """The process of a worker, as the end that asked for it has it."""

    def __init__(self, starter: "_Starter", whose: int, errors_fd: int) -> None:
        self._starter = starter
        self._whose = whose
        self._errors_fd = errors_fd
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._ending: asyncio.Task[tuple[str, str]] | None = None

    def has_ended(self, how: str) -> None:
        """Take note of how it ended."""
        if not self._ended.done():
            self._ended.set_result(how)

    async def end(self, deadline_s: float) -> tuple[str, str]:
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
            words = b""
            with contextlib.suppress(BlockingIOError):
                words = os.read(self._errors_fd, _MOST_WORDS)
        finally:
            os.close(self._errors_fd)
        return how, words.decode(errors="replace").strip().rpartition("\n")[2]


class _Starter:
    """A process that forks workers, in the network namespace that this one is in when it is begun."""

    def __init__(self) -> None:
        self.holders = 0
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
        os.set_blocking(reading, False)
        self._asked += 1
        try:
            request = REQUEST.pack(Asked.FORK, self._asked, number)
            socket.send_fds(self._sock, [request], [channel_fd, counters_fd, writing])
        except OSError as error:
            os.close(reading)
            raise WorkerError(f"a worker process could not be asked for: {error}") from error
        finally:
            os.close(writing)
        self._workers[self._asked] = found = WorkerProcess(self, self._asked, reading)
        return found

    def kill(self, whose: int) -> None:
        """Have a worker end at once."""
        with contextlib.suppress(OSError):
            self._sock.send(REQUEST.pack(Asked.KILL, whose, 0))

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
        try:
            self._process = await self._begun()
        except OSError as error:
            self._is_gone(f"no worker process could be started: {error}")
            return
        loop = asyncio.get_running_loop()
        if self._closing:
            self._kill()
        else:
            loop.add_reader(self._sock, self._read)
        _, errors = await self._process.communicate()
        words = errors.decode(errors="replace").strip().rpartition("\n")[2]
        self._read()
        self._is_gone(f"the process that starts workers has ended: {words or f'status {self._process.returncode}'}")

    async def _begun(self) -> asyncio.subprocess.Process:
        carried = Carried()
        try:
            return await asyncio.create_subprocess_exec(
                # -P keeps what lies in the current folder out of its imports.
                *(sys.executable, "-P", "-m", f"{__package__}.starter", str(self._theirs.fileno())),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(self._theirs.fileno(), *carried.fds),
                env=carried.environment,
                # Ctrl-C in the terminal is for the end's process, which ends its workers in order.
                start_new_session=True,
            )
        finally:
            self._theirs.close()
            carried.close()

    def _read(self) -> None:
        """Take in what it tells."""
        with contextlib.suppress(OSError):
            while part := self._sock.recv(_READ_BYTES):
                self._heard += part
            self._hang_up()
        whole = len(self._heard) // ANSWER.size * ANSWER.size
        for told, whose, value in ANSWER.iter_unpack(self._heard[:whole]):
            if told == Told.READY:
                self._up.set()
            elif (worker := self._workers.pop(whose, None)) is not None:
                worker.has_ended(_how(told, value))
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
            worker.has_ended(why)
        self._workers.clear()


def _how(told: int, value: int) -> str:
    if told == Told.FAILED:
        return f"it could not be forked: {os.strerror(value)}"
    return f"killed by signal {-value}" if value < 0 else f"exit status {value}"


_starters: Final[dict[tuple[asyncio.AbstractEventLoop, int], _Starter]] = {}


class Hold:
    """A hold on what starts workers; close it, or have it for an `async with` block."""

    def __init__(self) -> None:
        try:
            network = _NAMESPACE.stat().st_ino  # a worker opens its sockets where its starter is
        except OSError:
            network = 0
        self._key = asyncio.get_running_loop(), network
        self._starter = self._taken()

    async def __aenter__(self) -> Self:
        """Have it."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of it."""
        await self.close()

    async def start(self, channel_fd: int, counters_fd: int, number: int) -> WorkerProcess:
        """Ask for a worker; the descriptors stay the caller's. Raises WorkerError where there can be none."""
        if self._starter.why_gone is not None:
            lost, self._starter = self._starter, self._taken()
            lost.holders -= 1
        return await self._starter.start(channel_fd, counters_fd, number)

    async def close(self) -> None:
        """Let go of it; the last one to do so ends it."""
        starter = self._starter
        starter.holders -= 1
        if starter.holders:
            return
        if _starters.get(self._key) is starter:
            del _starters[self._key]
        await see_through(starter.close())

    def _taken(self) -> _Starter:
        starter = _starters.get(self._key)
        if starter is None or starter.why_gone is not None:
            starter = _starters[self._key] = _Starter()
        starter.holders += 1
        return starter
