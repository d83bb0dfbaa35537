"""The connections to the page's server that have not shown the token: few, and each for a few seconds.

aiohttp bounds neither. Another user of this host could take every descriptor with idle connections, and so shut
out whoever has the token.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

MOST: Final = 128  # a browser opens six to a host
DEADLINE_S: Final = 10.0


class Visitors:
    """The connections that have shown no token yet. They are closed after a while, and the oldest make room."""

    def __init__(self) -> None:
        self._unproved: dict[RequestHandler, asyncio.TimerHandle] = {}

    def admit_to(self, runner: web.AppRunner) -> Callable[[], RequestHandler]:
        """Return what makes the protocol of each connection to a server."""
        server = runner.server
        if server is None:
            raise RuntimeError("the runner was not set up")

        def make() -> RequestHandler:
            handler = server()
            if len(self._unproved) >= MOST:
                self._close(next(iter(self._unproved)))
            self._unproved[handler] = asyncio.get_running_loop().call_later(DEADLINE_S, self._close, handler)
            return handler

        return make

    def trust(self, request: web.Request) -> None:
        """Keep the connection of a request that has the token."""
        timer = self._unproved.pop(request.protocol, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """Close all that have shown no token."""
        for handler in list(self._unproved):
            self._close(handler)

    def _close(self, handler: RequestHandler) -> None:
        self._unproved.pop(handler).cancel()
        handler.force_close()
