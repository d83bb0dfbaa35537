"""A far end of an earlier version that speaks the same protocol, and does not know a part of the plan."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from linkgauge.engine.control.connection import ControlConnection
from linkgauge.engine.control.handshake import handshake_as_far
from linkgauge.engine.control.key_proof import KeyCheck
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.peer import Peer


@asynccontextmanager
async def older_end() -> AsyncIterator[Peer]:
    """Give a far end that cannot read a plan, and closes the connection."""
    with listen("127.0.0.1", 0) as listener:
        listener.setblocking(False)

        async def serve() -> None:
            loop = asyncio.get_running_loop()
            while True:
                sock, _address = await loop.sock_accept(listener)
                link = ControlConnection(End.FAR)
                await loop.connect_accepted_socket(lambda link=link: link, sock)
                await handshake_as_far(link, KeyCheck(link.machine, lambda: None), lambda: None)
                await link.receive()
                await link.aclose()

        serving = asyncio.create_task(serve())
        try:
            yield Peer(*listener.getsockname())
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
