"""`python -m linkgauge.engine.far.loopback [ADDRESS]`: an endpoint as a child process, for loopback and for labs.

It has its own process so that its cost is not mixed with the cost of drawing, and so that a loopback run takes the
same path as any other. The child ends when its standard input ends, so it cannot outlive its parent.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from ..host.debug_log import configure_debug_log
from ..host.event_loop import await_shielded, run
from ..model.errors import WorkerError
from ..model.limits import Limits
from ..model.peer import Peer
from .endpoint import serve_endpoint

_START_DEADLINE_S: Final = 10.0
_END_DEADLINE_S: Final = 5.0
_log = logging.getLogger(__name__)


@asynccontextmanager
async def embedded_endpoint() -> AsyncGenerator[Peer]:
    """Run an endpoint on 127.0.0.1 and yield its address; raise WorkerError if it does not start."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        __spec__.name,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None  # noqa: S101 - it was started with pipes
    assert process.stdout is not None  # noqa: S101
    try:
        try:
            async with asyncio.timeout(_START_DEADLINE_S):
                line = await process.stdout.readline()
            port = int(line)
        except (TimeoutError, ValueError) as error:
            raise WorkerError("the built-in endpoint did not start; try `linkgauge endpoint`") from error
        _log.debug("embedded endpoint %d listens on port %d", process.pid, port)
        yield Peer("127.0.0.1", port)
    finally:
        process.stdin.close()
        await await_shielded(_end(process))


async def _end(process: asyncio.subprocess.Process) -> None:
    """Wait for a process whose standard input has ended; kill it at the deadline."""
    try:
        async with asyncio.timeout(_END_DEADLINE_S):
            await process.communicate()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def serve_until_stdin_ends(bind: str = "127.0.0.1") -> None:
    """Serve on a free port of an address until standard input ends; print the port first."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    reader = asyncio.StreamReader()
    transport, _protocol = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def watch() -> None:
        await reader.read()
        stop.set()

    watch_task = asyncio.create_task(watch())

    def announce(address: tuple[str, int]) -> None:
        sys.stdout.write(f"{address[1]}\n")
        sys.stdout.flush()

    try:
        await serve_endpoint(bind, 0, stop=stop, limits=Limits.widest(), on_listening=announce)
    finally:
        watch_task.cancel()
        transport.close()


if __name__ == "__main__":
    configure_debug_log(has_stderr=False)
    run(serve_until_stdin_ends(*sys.argv[1:]))
