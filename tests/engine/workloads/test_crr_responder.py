"""The responding end of crr: which connections get a response."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any

import pytest
from linkgauge.engine.protocol.tokens import Tickets

from ..waiting import until
from .crr_pair import SECRET, CrrPair, sockets_open

DEADLINE_S = 20.0
LARGE = 32 << 20  # more than the kernel takes for both ends of a connection
READ_BYTES = 1 << 16
STRANGERS = 150
MOST_STRANGERS = 64


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
    with CrrPair() as pair:
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


def connect(pair: CrrPair, data: bytes) -> socket.socket:
    """Return a connection to the listener of a pair that has sent these bytes."""
    sock = socket.create_connection(pair.listener.getsockname(), DEADLINE_S)
    sock.sendall(data)
    sock.setblocking(False)
    return sock


async def read_to_end(sock: socket.socket) -> int:
    """Return the number of bytes that arrive until the connection ends, in whatever way."""
    count = 0
    with sock, contextlib.suppress(ConnectionResetError):
        async with asyncio.timeout(DEADLINE_S):
            while more := len(await asyncio.get_running_loop().sock_recv(sock, 1 << 20)):
                count += more
    return count


@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize("in_pieces", [True, False])
async def test_a_client_that_reads_no_response_holds_one_of_them(is_alone: bool, in_pieces: bool) -> None:
    """A newer ticket ends the connection of the one before it, and the kernel drops the rest of its response.

    Each would take up megabytes of the kernel's memory, which no estimate of a run has.
    """
    tickets = Tickets(SECRET)
    with CrrPair(LARGE) as pair:
        pair.responder.start(is_alone=is_alone)
        socks: list[socket.socket] = []
        for _ in range(6):
            request = tickets.issue() + bytes(40)
            sock = connect(pair, request[:30] if in_pieces else request)
            socks.append(sock)
            if in_pieces:
                await asyncio.sleep(0.02)
                sock.sendall(request[30:])
            async with asyncio.timeout(DEADLINE_S):
                assert await asyncio.get_running_loop().sock_recv(sock, 1)
        *older, newest = socks
        assert max([await read_to_end(sock) for sock in older]) < LARGE - 1
        assert await read_to_end(newest) == LARGE - 1
        assert not pair.lost


async def until_sockets(condition: Callable[[int], bool]) -> None:
    """Wait until the number of this process's sockets is as it should be."""
    await until(lambda: condition(sockets_open()))


@pytest.mark.parametrize("is_alone", [True, False])
async def test_strangers_at_a_listener_take_few_descriptors_and_break_no_transaction(is_alone: bool) -> None:
    """They make room for each other, and not at the cost of a connection that has shown a ticket."""
    tickets = Tickets(SECRET)
    with CrrPair(LARGE) as pair, contextlib.ExitStack() as strangers:
        pair.responder.start(is_alone=is_alone)
        honest = connect(pair, tickets.issue() + bytes(40))
        async with asyncio.timeout(DEADLINE_S):
            assert await asyncio.get_running_loop().sock_recv(honest, 1)
        before, count = sockets_open(), 0
        for number in range(STRANGERS):
            # An unread response is dropped after some seconds; a busy machine takes as long for all.
            count += len(await asyncio.get_running_loop().sock_recv(honest, READ_BYTES))
            strangers.enter_context(connect(pair, b"G"))
            accepted = before + 2 + number + min(number, MOST_STRANGERS - 1)
            await until_sockets(accepted.__le__)
        await until_sockets((before + STRANGERS + MOST_STRANGERS).__ge__)
        assert count + await read_to_end(honest) == LARGE - 1
        assert not pair.lost
