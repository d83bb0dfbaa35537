"""The connections to the page's server that have not shown the token: few, and each for a few seconds.

aiohttp bounds neither. Another user of this host could take every descriptor with idle connections, and so shut
out whoever has the token. Nor does it stop at the first bytes that are not HTTP: a flood over TLS took 25 to 35 MB
for each connection, for errors that repeat each piece.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, cast

from aiohttp import web

MOST: Final = 128  # a browser opens six to a host
DEADLINE_S: Final = 10.0
_ANSWER_S: Final = 0.5
MOST_BYTES: Final = 1 << 15  # of a connection: a request has a line, a few headers, and no body


class _Visitor(Protocol):
    """What handles a connection: aiohttp for HTTP/1.1, another protocol for HTTP/2."""

    def connection_made(self, transport: asyncio.BaseTransport, /) -> None: ...
    def data_received(self, data: bytes, /) -> None: ...
    def eof_received(self) -> bool | None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def connection_lost(self, exc: BaseException | None, /) -> None: ...
    def force_close(self) -> None:
        """Close at once, also if no connection was made yet."""


class _Door(asyncio.Protocol):
    """The protocol of a connection: passes all to its handler, and ends one that sends much without the token.

    `choose` returns another handler for a connection that was made, or None.
    """

    def __init__(self, handler: _Visitor, choose: Callable[["_Door", asyncio.BaseTransport], None]) -> None:
        self.handler = handler
        self._choose = choose
        self._room: int | None = MOST_BYTES
        self._is_shut = False
        self._transport: asyncio.Transport | None = None

    def open(self) -> None:
        """Let everything through from now on, unless there was too much before."""
        if not self._is_shut:
            self._room = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one by its methods only
        self._choose(self, transport)
        self.handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._room is None:
            self.handler.data_received(data)
        elif not self._is_shut:
            allowed, rest = data[: self._room], data[self._room :]
            self._room -= len(allowed)
            self.handler.data_received(allowed)
            if self._is_open and rest:  # since this very piece
                self.handler.data_received(rest)
            elif not self._is_open and not self._room:
                self._shut()

    @property
    def _is_open(self) -> bool:
        return self._room is None

    def _shut(self) -> None:
        self._is_shut = True
        if self._transport is not None:
            # In TLS a close would wait for the other end, and read on meanwhile.
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(_ANSWER_S, self._transport.abort)

    def eof_received(self) -> bool | None:
        self.handler.eof_received()
        return None

    def pause_writing(self) -> None:
        self.handler.pause_writing()

    def resume_writing(self) -> None:
        self.handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.handler.connection_lost(exc)


class Visitors:
    """The connections that have shown no token yet. They are closed after a while, and the oldest make room."""

    def __init__(self) -> None:
        self._unproved: dict[_Visitor, tuple[asyncio.TimerHandle, _Door]] = {}
        self._make_http2: Callable[[], _Visitor] | None = None

    def admit_to(
        self, runner: web.AppRunner, make_http2: Callable[[], _Visitor] | None = None
    ) -> Callable[[], asyncio.Protocol]:
        """Return what makes the protocol of each connection to a server.

        `make_http2` makes the handler of connections that have agreed on HTTP/2 (ALPN, RFC 7301).
        """
        server = runner.server
        if server is None:
            raise RuntimeError("the runner was not set up")
        self._make_http2 = make_http2

        def make() -> asyncio.Protocol:
            if len(self._unproved) >= MOST:
                self._close(next(iter(self._unproved)))
            door = _Door(server(), self._choose)
            timer = asyncio.get_running_loop().call_later(DEADLINE_S, lambda: self._close(door.handler))
            self._unproved[door.handler] = timer, door
            return door

        return make

    def _choose(self, door: _Door, transport: asyncio.BaseTransport) -> None:
        """Give a connection to the handler of its protocol."""
        tls = None if self._make_http2 is None else transport.get_extra_info("ssl_object")
        if self._make_http2 is None or tls is None or tls.selected_alpn_protocol() != "h2":
            return
        known = self._unproved.pop(door.handler, None)
        door.handler = self._make_http2()
        if known is not None:
            self._unproved[door.handler] = known

    def trust(self, handler: _Visitor) -> None:
        """Keep a connection that has shown the token."""
        known = self._unproved.pop(handler, None)
        if known is not None:
            timer, door = known
            timer.cancel()
            door.open()

    def forget(self, handler: _Visitor) -> None:
        """Forget a connection that has gone."""
        known = self._unproved.pop(handler, None)
        if known is not None:
            known[0].cancel()

    def close(self) -> None:
        """Close all that have shown no token."""
        for handler in list(self._unproved):
            self._close(handler)

    def _close(self, handler: _Visitor) -> None:
        known = self._unproved.pop(handler, None)
        if known is not None:
            known[0].cancel()
        handler.force_close()
