"""The first bytes of an accepted connection: its preamble, and refusals."""

import asyncio
import contextlib
import logging
import socket
from typing import Final

from ..host.event_loop import read_exactly
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

_log = logging.getLogger(__name__)

_REFUSE_DEADLINE_S: Final = 0.3  # refusals are made one by one: others wait behind this one


async def refuse(sock: socket.socket, why: str) -> None:
    """Send a client the reason of its refusal; close once the client has read it, or after a deadline."""
    _log.debug("refused: %s", why)
    loop = asyncio.get_running_loop()
    with sock, contextlib.suppress(OSError):
        sock.setblocking(False)
        async with asyncio.timeout(_REFUSE_DEADLINE_S):
            await loop.sock_sendall(sock, encode_preamble(CONTROL_KIND) + encode_frame(Refuse(why)))
            sock.shutdown(socket.SHUT_WR)
            while await loop.sock_recv(sock, 4_096):  # a close with unread bytes would reset the connection
                pass


async def read_connection_header(sock: socket.socket) -> tuple[bytes, DataHello | None]:
    """Return a connection's preamble, and the header of a data connection.

    Not one byte more is read: what follows may be payload, and belongs to a worker. Raises RemoteProtocolError for
    a client that does not speak this protocol, and for one that closes before its header is whole.
    """
    sock.setblocking(False)
    try:
        opening = await read_exactly(sock, PREAMBLE_BYTES)
        preamble = decode_preamble(opening)
        if preamble is None:
            raise RemoteProtocolError("a client that does not speak linkgauge")
        version, kind = preamble
        if version != PROTOCOL_VERSION:
            await asyncio.get_running_loop().sock_sendall(sock, encode_preamble(CONTROL_KIND))
            raise RemoteProtocolError(f"a client speaks protocol {version}, this endpoint {PROTOCOL_VERSION}")
        if kind == CONTROL_KIND:
            return opening, None
        return opening, DataHello.unpack(await read_exactly(sock, DATA_HELLO_BYTES))
    except EOFError as error:
        raise RemoteProtocolError("a client closed before it said anything") from error
