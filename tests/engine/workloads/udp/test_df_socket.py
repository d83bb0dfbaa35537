"""Datagrams that are never fragmented: too long ones for the interface, and a port without a receiver."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from linkgauge.engine.workloads.udp.df_socket import DfSocket, SizeError

LONGEST = 65_507


@pytest.fixture(params=["127.0.0.1", "::1"])
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[tuple[DfSocket, socket.socket]]:
    """Give a socket that is connected to another one, of either family."""
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as far:
        far.bind((request.param, 0))
        far.setblocking(False)
        sock = socket.socket(family, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.connect(far.getsockname())
        df_socket = DfSocket(sock)
        yield df_socket, far
    df_socket.close()
    df_socket.close()


async def test_the_longest_packet_of_the_interface_passes_and_a_longer_one_is_told(
    pair: tuple[DfSocket, socket.socket],
) -> None:
    """Of IPv6 a datagram can be longer than the MTU of loopback, of IPv4 it cannot."""
    near, far = pair
    longest = min(LONGEST, 65_536 - near.header_bytes)
    assert near.send(bytes(longest))
    assert len(far.recv(LONGEST)) == longest
    assert near.take_errors() == []
    if longest < LONGEST:
        assert not near.send(bytes(longest + 1))
        assert near.take_errors() == [SizeError(65_536)]
        assert near.take_errors() == []


async def test_a_datagram_that_nobody_takes_is_an_error_and_wakes_the_watcher(
    pair: tuple[DfSocket, socket.socket],
) -> None:
    """On either event loop: uvloop's own reader would be stopped by the first error."""
    near, far = pair
    woken = asyncio.Event()
    far.close()
    near.watch(woken.set)
    for _ in range(2):
        woken.clear()
        near.answer(b"x")
        async with asyncio.timeout(20):
            await woken.wait()
        assert near.receive() is None
        assert near.take_errors() == []
