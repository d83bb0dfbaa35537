"""`python -m linkgauge.engine.far.loopback [ADDRESS]`: an endpoint as a child process, for loopback and for labs.

It has its own process so that its cost does not mix with the cost of drawing, and so that a loopback run takes the
same path as any other. The child ends when its standard input ends, so it cannot outlive its parent.

Every user of this machine can connect to 127.0.0.1. The embedded endpoint therefore requires a key, which is made
for it alone: with `--with-key` it is the first line of standard input, and no file, environment or command line
has it. Nobody but their owner and root can enter the namespaces of a lab, so the lab's endpoint requires none.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from ..host.child_process import TetheredChild, open_standard_input
from ..host.debug_log import configure_debug_log
from ..host.event_loop import run
from ..model.errors import WorkerError
from ..model.limits import Limits
from ..model.peer import Peer
from ..model.shared_key import Access, SharedKey
from .endpoint import serve_endpoint

_WITH_KEY: Final = "--with-key"
_START_DEADLINE_S: Final = 10.0
_log = logging.getLogger(__name__)


@asynccontextmanager
async def embedded_endpoint() -> AsyncGenerator[Peer]:
    """Run an endpoint on 127.0.0.1 for this process alone, and yield its address with its key.

    Raises WorkerError if it does not start.
    """
    key = SharedKey.generate()
    child = await TetheredChild.start(__spec__.name, [_WITH_KEY], key.reveal(), "the endpoint on this host")
    try:
        try:
            port = int(await child.read_line(_START_DEADLINE_S) or "")
        except ValueError as error:
            raise WorkerError("the built-in endpoint did not start; try `linkgauge endpoint`") from error
        _log.debug("embedded endpoint %d listens on port %d", child.pid, port)
        yield Peer("127.0.0.1", port, Access(key))
    finally:
        await child.end()


async def serve_until_stdin_ends(bind: str = "127.0.0.1", *, has_key: bool = False) -> None:
    """Serve on a free port of an address until standard input ends; print the port first.

    With `has_key` the first line of standard input is the key that clients must prove. Raises InvalidKeyError if
    it is none.
    """
    stop = asyncio.Event()

    def announce(address: tuple[str, int]) -> None:
        sys.stdout.write(f"{address[1]}\n")
        sys.stdout.flush()

    async with open_standard_input() as reader:
        keys = [SharedKey((await reader.readline()).decode().strip())] if has_key else None

        async def watch() -> None:
            await reader.read()
            stop.set()

        watching = asyncio.create_task(watch())
        try:
            await serve_endpoint(
                bind,
                0,
                stop=stop,
                keys=keys,
                limits=Limits.widest(),
                on_listening=announce,
            )
        finally:
            watching.cancel()


if __name__ == "__main__":
    configure_debug_log(has_stderr=False)
    arguments = sys.argv[1:]
    addresses = [argument for argument in arguments if argument != _WITH_KEY]
    run(serve_until_stdin_ends(*addresses, has_key=_WITH_KEY in arguments))
