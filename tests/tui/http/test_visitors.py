"""Connections without the token, of which another user of the host has as many as it likes."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import Iterator

import pytest

aiohttp = pytest.importorskip("aiohttp", reason="the extra linkgauge[web] is not installed")

from linkgauge.tui.http import visitors  # noqa: E402

from ..cli.web.test_web_server import serving  # noqa: E402

DEADLINE_S = 20.0
FORBIDDEN = b"GET /wrong-token/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """Let this process have fewer descriptors than there are strangers, both ends counted."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (800, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_descriptors")
@pytest.mark.parametrize("opening", [b"", FORBIDDEN, FORBIDDEN[:20]], ids=["idle", "wrong token", "half a request"])
async def test_strangers_do_not_shut_out_whoever_has_the_token(opening: bytes) -> None:
    """Without it a connection makes room for newer ones, and a page that is open keeps its own."""
    strangers: list[socket.socket] = []
    async with asyncio.timeout(DEADLINE_S), serving() as (origin, token, client):
        page = f"{origin}/{token}/"
        address = ("127.0.0.1", int(origin.rpartition(":")[2]))
        reader, writer = await asyncio.open_connection(*address)
        request = f"GET /{token}/ HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n\r\n".encode()
        writer.write(request)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        try:
            for number in range(500):
                sock = socket.create_connection(address, DEADLINE_S)
                sock.sendall(opening)
                strangers.append(sock)
                if number % 20 == 0:
                    await asyncio.sleep(0.01)
            async with client.get(page) as answer:
                assert answer.status == 200
            assert all(sock.recv(4_096) == b"" or opening == FORBIDDEN for sock in strangers[:300])
            writer.write(request)
            while b"HTTP/1.1 200" not in await reader.readline():
                pass
        finally:
            for sock in strangers:
                sock.close()
            writer.close()


async def test_a_connection_that_shows_no_token_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slowly its request comes."""
    monkeypatch.setattr(visitors, "DEADLINE_S", 0.2)
    async with asyncio.timeout(DEADLINE_S), serving() as (origin, _token, _client):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(origin.rpartition(":")[2]))
        writer.write(FORBIDDEN[:20])
        assert await reader.read() == b""
        writer.close()


async def test_a_flood_of_bytes_that_are_no_request_is_not_read(bytes_for_aiohttp: list[int]) -> None:
    """Over TLS each piece cost aiohttp four times its size, for an error that repeated it."""
    async with asyncio.timeout(DEADLINE_S), serving() as (origin, token, client):
        with socket.socket() as stranger, contextlib.suppress(ConnectionError):
            stranger.setblocking(False)
            loop, flood = asyncio.get_running_loop(), b"\xff" * 100_000
            await loop.sock_connect(stranger, ("127.0.0.1", int(origin.rpartition(":")[2])))
            while True:  # until it is closed
                await loop.sock_sendall(stranger, flood)
        assert sum(bytes_for_aiohttp) <= visitors.MOST_BYTES
        async with client.get(f"{origin}/{token}/") as answer:
            assert answer.status == 200
