"""The first bytes of a connection that an endpoint has accepted: what it is, and a word to whom it cannot serve."""

import asyncio
import contextlib
import socket
from typing import Final

from ..model.errors import RemoteProtocolError
from ..protocol.framing import encode_frame
from ..protocol.messages import Refuse
from ..protocol.preamble import (
    CONTROL_KIND,
    DATA_HELLO_BYTES,
    PREAMBLE_BYTES,
    PROTOCOL_VERSION,
    DataHello,
    decode_preamble,
    encode_preamble,
)

_REFUSE_DEADLINE_S: Final = 0.3  # one at a time: others wait behind it


async def refuse(sock: socket.socket, why: str) -> None:
    """Tell a client why it is not served, and close once it has heard, or does not listen."""
    loop = asyncio.get_running_loop()
    with sock, contextlib.suppress(OSError):
        sock.setblocking(False)
        async with asyncio.timeout(_REFUSE_DEADLINE_S):
            await loop.sock_sendall(sock, encode_preamble(CONTROL_KIND) + encode_frame(Refuse(why)))
            sock.shutdown(socket.SHUT_WR)
            while await loop.sock_recv(sock, 4_096):  # closing over what was not read would take the word back
                pass


async def read_connection_header(sock: socket.socket) -> tuple[bytes, DataHello | None]:
    """Return a connection's preamble, and what it says of itself where it carries data."""
    sock.setblocking(False)
    opening = await _read_exactly(sock, PREAMBLE_BYTES)
    found = decode_preamble(opening)
    if found is None:
        raise RemoteProtocolError("a client that does not speak linkgauge")
    version, kind = found
    if version != PROTOCOL_VERSION:
        await asyncio.get_running_loop().sock_sendall(sock, encode_preamble(CONTROL_KIND))
        raise RemoteProtocolError(f"a client speaks protocol {version}, this endpoint {PROTOCOL_VERSION}")
    if kind == CONTROL_KIND:
        return opening, None
    return opening, DataHello.unpack(await _read_exactly(sock, DATA_HELLO_BYTES))


async def _read_exactly(sock: socket.socket, count: int) -> bytes:
    """Read no byte more: what follows may be payload, and belongs to a worker."""
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < count:
        more = await loop.sock_recv(sock, count - len(data))
        if not more:
            raise RemoteProtocolError("a client closed before it said anything")
        data += more
    return data
