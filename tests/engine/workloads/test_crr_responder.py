"""The responding end of crr: which connections get a response."""

import asyncio
import contextlib
import socket
from typing import Any

from linkgauge.engine.protocol.auth import Tickets

from .crr_pair import SECRET, CrrPair


async def request_once(address: Any, request: bytes, response_bytes: int) -> bytes:
    """Return the response to a request, up to a number of bytes."""
    loop = asyncio.get_running_loop()
    response = b""
    with socket.socket() as sock:
        sock.setblocking(False)
        async with asyncio.timeout(10):
            await loop.sock_connect(sock, address)
            await loop.sock_sendall(sock, request)
            with contextlib.suppress(
                ConnectionResetError
            ):  # the kernel resets a connection that is closed with unread data
                while len(response) < response_bytes and (more := await loop.sock_recv(sock, 65_536)):
                    response += more
    return response


async def test_only_a_valid_ticket_gets_a_response() -> None:
    """Connections without a ticket, or with a used one, are closed, and the session continues."""
    pair = CrrPair()
    try:
        pair.responder.start()
        address = pair.listener.getsockname()
        foreign, own = Tickets(bytes(32)), Tickets(SECRET)
        request = own.issue() + bytes(40)
        assert await request_once(address, b"GET / HTTP/1.1\r\nHost: example\r\n\r\n", 1) == b""
        assert await request_once(address, foreign.issue() + bytes(40), 1) == b""
        assert len(await request_once(address, request, 8_192)) == 8_192
        assert await request_once(address, request, 1) == b""
        requester: Any = pair.requester
        requester._tickets = own
        requester.start()
        async with asyncio.timeout(10):
            await pair.until(3)
        assert not pair.lost
    finally:
        pair.close()
