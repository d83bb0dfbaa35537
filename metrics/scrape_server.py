"""The HTTP server that Prometheus scrapes: one request a connection, with a deadline and a maximum of connections.

prometheus_client's own server starts a thread for each connection and waits for its request without a deadline: 200
silent connections were 200 threads for as long as they lasted. Here a connection has REQUEST_DEADLINE_S for its
request and its answer. Beyond MAX_CONNECTIONS the oldest connection is closed, so that silent ones keep no scraper
out. All of it runs in the event loop of the process, where the values are.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final, Self

from ..engine.model.errors import EndpointError, explain_os_error

MAX_CONNECTIONS: Final = 16
REQUEST_DEADLINE_S: Final = 5.0
_MAX_REQUEST_BYTES: Final = 8_192
_BACKLOG: Final = 64
_PATH: Final = "/metrics"
_TEXT: Final = "text/plain; charset=utf-8"
_log = logging.getLogger(__name__)

Render = Callable[[str], tuple[bytes, str]]
"""Returns the metrics and their content type, for the request's Accept header."""


def listen_for_scrapes(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise EndpointError if the address cannot be used."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        is_dual = host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, backlog=_BACKLOG, dualstack_ipv6=is_dual)
    except OSError as error:
        reason = "no such name" if isinstance(error, socket.gaierror) else explain_os_error(error)
        text = f"metrics cannot be served on {host} port {port}: {reason}; give --metrics another ADDR:PORT"
        raise EndpointError(text) from error


def scrape_url(listener: socket.socket) -> str:
    """Return the address that Prometheus scrapes."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{_PATH}"


class ScrapeServer:
    """Answers requests on a listening socket while its `async with` block lasts, and closes it at the end."""

    def __init__(self, listener: socket.socket, render: Render) -> None:
        self._listener = listener
        self._render = render
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}  # the oldest first

    async def __aenter__(self) -> Self:
        """Start accepting."""
        self._server = await asyncio.start_server(self._accept, sock=self._listener, limit=_MAX_REQUEST_BYTES)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop accepting, and end every connection."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._server is not None:
            await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            oldest = next(iter(self._connections))
            self._connections.pop(oldest).transport.abort()
            oldest.cancel()
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections[task] = writer
        task.add_done_callback(lambda done: self._connections.pop(done, None))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request. Close the connection of a client that is too slow or does not speak HTTP."""
        try:
            async with asyncio.timeout(REQUEST_DEADLINE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head.decode("latin-1")))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError) as error:
            _log.debug("a scrape broke off: %s", error or type(error).__name__)
        finally:
            writer.transport.abort()

    def _answer(self, head: str) -> bytes:
        request, *lines = head.split("\r\n")
        method, _, rest = request.partition(" ")
        target, _, version = rest.rpartition(" ")
        path = target.partition("?")[0]
        if not version.startswith("HTTP/1."):
            return _response("400 Bad Request", b"not HTTP/1\n", _TEXT)
        if method not in {"GET", "HEAD"}:
            return _response("405 Method Not Allowed", b"GET or HEAD\n", _TEXT, "Allow: GET, HEAD\r\n")
        if path != _PATH:
            return _response("404 Not Found", f"the metrics are at {_PATH}\n".encode(), _TEXT)
        headers = [line.partition(":") for line in lines]
        accept = next((value.strip() for name, _, value in headers if name.strip().lower() == "accept"), "")
        body, content_type = self._render(accept)
        answer = _response("200 OK", body, content_type)
        return answer if method == "GET" else answer[: -len(body) or None]


def _response(status: str, body: bytes, content_type: str, further: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        f"X-Content-Type-Options: nosniff\r\nConnection: close\r\n{further}\r\n"
    )
    return head.encode("latin-1") + body
