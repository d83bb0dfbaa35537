"""The server that Prometheus scrapes: its answers, and clients that it does not wait for."""

import asyncio
import socket
from collections.abc import AsyncGenerator

import pytest
from linkgauge.engine.model.errors import EndpointError
from linkgauge.metrics import scrape_server
from linkgauge.metrics.scrape_server import MAX_CONNECTIONS, ScrapeServer, listen_for_scrapes, scrape_url

DEADLINE_S = 20.0


@pytest.fixture
async def port() -> AsyncGenerator[int]:
    """Serve a metric that names the formats which its scraper accepts; yield the port."""
    listener = listen_for_scrapes("127.0.0.1", 0)
    number = int(listener.getsockname()[1])
    async with ScrapeServer(listener, lambda accept: (f"accepts {accept}\n".encode(), "text/x")):
        yield number


async def ask(port: int, request: bytes) -> bytes:
    """Send bytes, and return all that comes until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(DEADLINE_S):
        writer.write(request)
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.transport.abort()


async def test_a_scrape_is_answered_with_the_metrics_of_this_moment(port: int) -> None:
    """In the format that the Accept header asks for; HEAD has the same head without them."""
    answer = await ask(port, b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\nACCEPT: text/plain\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 19\r\n")
    assert body == b"accepts text/plain\n"
    answer = await ask(port, b"HEAD /metrics HTTP/1.1\r\nAccept: text/plain\r\n\r\n")
    assert answer == head + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /metrics HTTP/2\r\n\r\n", b"400"),
        (b"\x16\x03\x01\r\n\r\n", b"400"),
        (b"\r\n\r\n", b"400"),
    ],
)
async def test_other_requests_are_refused(port: int, request_: bytes, status: bytes) -> None:
    """Never with the metrics."""
    answer = await ask(port, request_)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b"accepts" not in answer


async def test_an_endless_request_is_cut_off(port: int) -> None:
    """It is not kept in memory."""
    assert await ask(port, b"GET /metrics HTTP/1.1\r\n" + b"x" * 100_000) == b""


async def test_a_silent_connection_has_a_deadline(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is closed without an answer."""
    monkeypatch.setattr(scrape_server, "REQUEST_DEADLINE_S", 0.1)
    assert await ask(port, b"GET /metrics HTTP/1.1\r\n") == b""


async def test_silent_connections_keep_no_scraper_out(port: int) -> None:
    """The oldest connections are closed."""
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3 * MAX_CONNECTIONS)]
    assert (await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n")).endswith(b"accepts \n")
    async with asyncio.timeout(DEADLINE_S):
        assert await asyncio.gather(
            *(reader.read() for reader, _ in silent[:MAX_CONNECTIONS]), return_exceptions=True
        )
    for _, writer in silent:
        writer.transport.abort()


def test_an_address_that_cannot_be_used_is_named_with_the_option() -> None:
    """If another program has the port, or the address is not this host's."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        text = rf"127\.0\.0\.1 port {number}: address already in use; give --metrics"
        with pytest.raises(EndpointError, match=text):
            listen_for_scrapes("127.0.0.1", number)
    with pytest.raises(EndpointError, match=r"192\.0\.2\.1 port 0: cannot assign"):
        listen_for_scrapes("192.0.2.1", 0)


def test_the_url_works_in_a_browser() -> None:
    """IPv6 in brackets."""
    with listen_for_scrapes("::1", 0) as listener:
        assert scrape_url(listener) == f"http://[::1]:{listener.getsockname()[1]}/metrics"
