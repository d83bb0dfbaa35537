"""The connections to the page's server that have not shown the token: few, and each for a few seconds.

aiohttp bounds neither. Another user of this host could take every descriptor with idle connections, and so shut
out whoever has the token. Nor does it stop at the first bytes that are not HTTP: a flood over TLS took 25 to 35 MB
for each connection, for errors that repeat each piece.
"""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

MOST: Final = 128  # a browser opens six to a host
DEADLINE_S: Final = 10.0
_ANSWER_S: Final = 0.5
MOST_BYTES: Final = 1 << 15  # of a connection: a request has a line, a few headers, and no body


class _Door(asyncio.Protocol):
    """The protocol of a connection: passes all to aiohttp's, and ends one that sends much without the token."""

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler
        self._room: int | None = MOST_BYTES
        self._transport: asyncio.Transport | None = None

    def open(self) -> None:
        """Let everything through from now on, unless there was too much before."""
        if self._room is None or self._room > 0:
            self._room = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one by its methods only
        self._handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._room is None:
            self._handler.data_received(data)
        elif self._room > 0:
            allowed = data[: self._room]
            self._room -= len(data)
            self._handler.data_received(allowed)
            if self._room <= 0 and self._transport is not None:
                # In TLS a close would wait for the other end, and read on meanwhile.
                self._transport.pause_reading()
                asyncio.get_running_loop().call_later(_ANSWER_S, self._transport.abort)

    def eof_received(self) -> bool | None:
        self._handler.eof_received()
        return None

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._handler.connection_lost(exc)


class Visitors:
    """The connections that have shown no token yet. They are closed after a while, and the oldest make room."""

    def __init__(self) -> None:
        self._unproved: dict[RequestHandler, tuple[asyncio.TimerHandle, _Door]] = {}

    def admit_to(self, runner: web.AppRunner) -> Callable[[], asyncio.Protocol]:
        """Return what makes the protocol of each connection to a server."""
        server = runner.server
        if server is None:
            raise RuntimeError("the runner was not set up")

        def make() -> asyncio.Protocol:
            handler = server()
            if len(self._unproved) >= MOST:
                self._close(next(iter(self._unproved)))
            timer = asyncio.get_running_loop().call_later(DEADLINE_S, self._close, handler)
            door = _Door(handler)
            self._unproved[handler] = timer, door
            return door

        return make

    def trust(self, request: web.Request) -> None:
        """Keep the connection of a request that has the token."""
        known = self._unproved.pop(request.protocol, None)
        if known is not None:
            timer, door = known
            timer.cancel()
            door.open()

    def close(self) -> None:
        """Close all that have shown no token."""
        for handler in list(self._unproved):
            self._close(handler)

    def _close(self, handler: RequestHandler) -> None:
        timer, _door = self._unproved.pop(handler)
        timer.cancel()
        handler.force_close()
