"""`python -m linkgauge.engine.far.loopback [ADDRESS]`: an endpoint as a child process, for loopback and for labs.

It has its own process so that its cost is not mixed with the cost of drawing, and so that a loopback run takes the
same path as any other. The child ends when its standard input ends, so it cannot outlive its parent.

Every user of this machine can connect to 127.0.0.1. The embedded endpoint therefore requires a key, which is made
for it alone: with `--with-key` it is the first line of standard input, and no file, environment or command line
has it. Nobody but their owner and root can enter the namespaces of a lab, so the lab's endpoint requires none.
"""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from ..host.debug_log import configure_debug_log
from ..host.event_loop import await_shielded, run
from ..model.errors import WorkerError
from ..model.limits import Limits
from ..model.peer import Access, Peer, SharedKey
from .endpoint import serve_endpoint

_WITH_KEY: Final = "--with-key"
_START_DEADLINE_S: Final = 10.0
_END_DEADLINE_S: Final = 5.0
_log = logging.getLogger(__name__)


@asynccontextmanager
async def embedded_endpoint() -> AsyncGenerator[Peer]:
    """Run an endpoint on 127.0.0.1 for this process alone, and yield its address with its key.

    Raises WorkerError if it does not start.
    """
    key = SharedKey.generate()
    process, tether = await _start(key)
    assert process.stdout is not None  # noqa: S101 - it was started with a pipe
    try:
        try:
            async with asyncio.timeout(_START_DEADLINE_S):
                line = await process.stdout.readline()
            port = int(line)
        except (TimeoutError, ValueError) as error:
            raise WorkerError("the built-in endpoint did not start; try `linkgauge endpoint`") from error
        _log.debug("embedded endpoint %d listens on port %d", process.pid, port)
        yield Peer("127.0.0.1", port, Access(key))
    finally:
        os.close(tether)
        await await_shielded(_end(process))


async def _start(key: SharedKey) -> tuple[asyncio.subprocess.Process, int]:
    """Start the child and give it the key; return it, and the descriptor whose closing ends it."""
    stdin, tether = os.pipe()
    try:
        os.write(tether, f"{key.reveal()}\n".encode())  # before the start, so that the child never waits for it
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", __spec__.name, _WITH_KEY),
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except BaseException:
        os.close(tether)
        raise
    finally:
        os.close(stdin)
    return process, tether


async def _end(process: asyncio.subprocess.Process) -> None:
    """Wait for a process whose standard input has ended; kill it at the deadline."""
    try:
        async with asyncio.timeout(_END_DEADLINE_S):
            await process.communicate()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def serve_until_stdin_ends(bind: str = "127.0.0.1", *, has_key: bool = False) -> None:
    """Serve on a free port of an address until standard input ends; print the port first.

    With `has_key` the first line of standard input is the key that clients must prove. Raises InvalidKeyError where
    it is none.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    reader = asyncio.StreamReader()
    transport, _protocol = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    key = SharedKey((await reader.readline()).decode().strip()) if has_key else None

    async def watch() -> None:
        await reader.read()
        stop.set()

    watch_task = asyncio.create_task(watch())

    def announce(address: tuple[str, int]) -> None:
        sys.stdout.write(f"{address[1]}\n")
        sys.stdout.flush()

    try:
        await serve_endpoint(bind, 0, stop=stop, key=key, limits=Limits.widest(), on_listening=announce)
    finally:
        watch_task.cancel()
        transport.close()


if __name__ == "__main__":
    configure_debug_log(has_stderr=False)
    arguments = sys.argv[1:]
    addresses = [argument for argument in arguments if argument != _WITH_KEY]
    run(serve_until_stdin_ends(*addresses, has_key=_WITH_KEY in arguments))
