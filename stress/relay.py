"""A relay between a near end and an endpoint: it gives each client an address, and reads or rewrites its bytes."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace

from attack_target import Target
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.protocol.preamble import DATA_HELLO_BYTES, DATA_KIND, PREAMBLE_BYTES, decode_preamble

Rewrite = Callable[[bytes, bytes], bytes]


def keep_bytes(_header: bytes, chunk: bytes) -> bytes:
    """Pass bytes on as they are."""
    return chunk


@contextlib.asynccontextmanager
async def open_relay(
    target: Target, source: str, headers: list[bytes] | None = None, rewrite: Rewrite = keep_bytes
) -> AsyncGenerator[Peer]:
    """Relay connections to the endpoint from an address of this host; yield the peer to connect to.

    Args:
        target: The endpoint.
        source: The address that the endpoint sees.
        headers: Gets the header of each data connection that the endpoint has accepted.
        rewrite: Returns what to send in place of the first bytes after the header of a data connection.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            beginning = await reader.readexactly(PREAMBLE_BYTES)
            is_data = (decode_preamble(beginning) or (0, b""))[1] == DATA_KIND
            if is_data:
                beginning += await reader.readexactly(DATA_HELLO_BYTES)
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target.port, local_addr=(source, 0))
            far_writer.write(beginning)
            if not is_data:
                await asyncio.gather(_pass_on(reader, far_writer), _pass_on(far_reader, writer))
                return

            def note_header(chunk: bytes) -> bytes:
                if headers is not None:
                    headers.append(beginning)
                return chunk

            await asyncio.gather(
                _pass_on(reader, far_writer, lambda chunk: rewrite(beginning, chunk)),
                _pass_on(far_reader, writer, note_header),
            )
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield replace(target.peer, port=server.sockets[0].getsockname()[1])
    finally:
        server.close()


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: Callable[[bytes], bytes] | None = None
) -> None:
    try:
        while chunk := await reader.read(65_536):
            if first is not None:
                chunk, first = first(chunk), None
            writer.write(chunk)
            await writer.drain()
    finally:
        writer.close()
