"""The far end on this machine, for a run on loopback: an endpoint in a process of its own.

A process of its own, so that what the far end costs is not mixed with what drawing costs, and so that loopback runs
take the same path as any other. The child ends when its standard input does: it cannot outlive its parent.
"""

import asyncio
import contextlib
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


@asynccontextmanager
async def embedded_endpoint() -> AsyncGenerator[Peer]:
    """Give a peer on 127.0.0.1 that lasts as long as the block; raise WorkerError where it does not start."""
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
            raise WorkerError("the embedded endpoint did not start; try `linkgauge endpoint`") from error
        yield Peer("127.0.0.1", port)
    finally:
        process.stdin.close()
        await await_shielded(_end(process))


async def _end(process: asyncio.subprocess.Process) -> None:
    """Wait for a process whose standard input has ended; kill it where it does not end by itself."""
    try:
        async with asyncio.timeout(_END_DEADLINE_S):
            await process.communicate()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def serve_until_stdin_ends(bind: str = "127.0.0.1") -> None:
    """Serve on a free port of an address, and print its number, until standard input ends."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    reader = asyncio.StreamReader()
    transport, _protocol = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def watch() -> None:
        await reader.read()
        stop.set()

    watching = asyncio.create_task(watch())

    def announce(address: tuple[str, int]) -> None:
        sys.stdout.write(f"{address[1]}\n")
        sys.stdout.flush()

    try:
        await serve_endpoint(bind, 0, stop=stop, limits=Limits.widest(), on_listening=announce)
    finally:
        watching.cancel()
        transport.close()


if __name__ == "__main__":
    configure_debug_log(has_stderr=False)
    run(serve_until_stdin_ends())
