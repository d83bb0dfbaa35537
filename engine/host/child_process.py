"""Child processes: how each of them ends, and our own modules as children that end with their standard input.

Such a child ends with this process as well. The pipe is the tether: only this process has its writing end, and the
child reads its end as soon as this process is gone, for whatever reason. Secrets go through the pipe, too: no
command line, environment or file contains them.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, Self

from ..model.errors import WorkerError, explain_resource_error
from ..model.peer import IPERF3_PASSWORD_VARIABLE
from ..model.shared_key import KEY_VARIABLE
from .event_loop import await_shielded

_END_DEADLINE_S: Final = 5.0
_KILL_DEADLINE_S: Final = 1.0
_READ_BYTES: Final = 65_536
_PIPE_BYTES: Final = 65_536  # capacity of a pipe


_log = logging.getLogger(__name__)

_SECRETS: Final = frozenset({KEY_VARIABLE, IPERF3_PASSWORD_VARIABLE})


def foreign_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for another program: this process's variables and these, without secrets.

    It needs neither the key of endpoints nor a password. The user's ssh may send variables to any host (SendEnv).
    """
    own = {name: value for name, value in os.environ.items() if name not in _SECRETS}
    return own | dict(variables or {})


EndSteps = Sequence[tuple[signal.Signals | None, float]]
"""Signals, each with the seconds of waiting after it. None sends nothing: the process knows that it must end."""


async def end_process(process: asyncio.subprocess.Process, steps: EndSteps) -> int | None:
    """End a process less and less politely; return its status, None if it outlives every step."""
    for number, wait_s in steps:
        if process.returncode is None:
            with contextlib.suppress(TimeoutError, ProcessLookupError):
                if number is not None:
                    _log.debug("process %d is sent %s", process.pid, number.name)
                    process.send_signal(number)
                async with asyncio.timeout(wait_s):
                    await process.wait()
    return process.returncode


class TetheredChild:
    """A child process. After `start`, the caller must call `end`."""

    def __init__(self, process: asyncio.subprocess.Process, tether: int) -> None:
        self._process = process
        self._tether = tether
        self._ending: asyncio.Task[int] | None = None

    @classmethod
    async def start(
        cls, module: str, arguments: Sequence[str], first_line: str, name: str = "a helper process"
    ) -> Self:
        """Start a module with the first line of its standard input; raise WorkerError if that fails.

        Its standard output is for `read_line` and `read_all`. `name` says in the error what it is.
        """
        first = f"{first_line}\n".encode()
        if len(first) > _PIPE_BYTES:
            raise WorkerError(f"{name} cannot be given {len(first)} bytes at its start")
        stdin, tether = os.pipe()
        try:
            os.set_blocking(tether, False)
            os.write(tether, first)  # before the start: the pipe takes all of it
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", module, *arguments),
                stdin=stdin,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in this process's terminal must not reach it
            )
        except OSError as error:
            os.close(tether)
            raise WorkerError(f"{name} does not start: {explain_resource_error(error)}") from error
        except BaseException:
            os.close(tether)
            raise
        finally:
            os.close(stdin)
        return cls(process, tether)

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    async def wait(self) -> int:
        """Wait until the process has ended, and return its status, which is negative for a signal."""
        return await self._process.wait()

    def write_line(self) -> bool:
        """Write an empty line to the process; return whether it is there, and reads."""
        if self._ending is not None or self._process.returncode is not None:
            return False
        try:
            return os.write(self._tether, b"\n") == 1
        except OSError:  # it has ended, or has not read for a long time
            return False

    async def read_line(self, deadline_s: float) -> str | None:
        """Return the next line; None if it has not come by the deadline, or cannot come any more."""
        assert self._process.stdout is not None  # noqa: S101 - it was started with a pipe
        with contextlib.suppress(TimeoutError, ValueError):
            async with asyncio.timeout(deadline_s):
                line = await self._process.stdout.readline()
            return line.decode(errors="replace") or None
        return None

    async def read_all(self, max_bytes: int) -> str | None:
        """Return all that the process writes until its end; None as soon as it is more than that."""
        assert self._process.stdout is not None  # noqa: S101 - it was started with a pipe
        parts: list[bytes] = []
        size = 0
        while part := await self._process.stdout.read(_READ_BYTES):
            size += len(part)
            if size > max_bytes:
                return None
            parts.append(part)
        return b"".join(parts).decode(errors="replace")

    async def end(self) -> int:
        """End the process in order, and by force at the deadline; return its status. Several tasks may wait for it.

        Do not read its output meanwhile.
        """
        if self._ending is None:
            os.close(self._tether)
            self._ending = asyncio.create_task(self._reap())
        return await await_shielded(self._join(self._ending))

    @staticmethod
    async def _join(ending: asyncio.Task[int]) -> int:
        return await ending

    async def _reap(self) -> int:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_DEADLINE_S):
                await self._discard_output()
                return await self._process.wait()
        await end_process(self._process, [(signal.SIGKILL, _KILL_DEADLINE_S)])
        return await self._process.wait()

    async def _discard_output(self) -> None:
        """Read and drop the rest: a process that cannot write would not end."""
        assert self._process.stdout is not None  # noqa: S101 - it was started with a pipe
        while await self._process.stdout.read(_READ_BYTES):
            pass


@asynccontextmanager
async def open_standard_input(max_line_bytes: int = _PIPE_BYTES) -> AsyncGenerator[asyncio.StreamReader]:
    """Yield the reader of this process's own standard input, in a child.

    A longer line is a ValueError where it is read.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(max_line_bytes)
    transport, _protocol = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        yield reader
    finally:
        transport.close()
