"""A WebSocket that carries payload: aiohttp opens it, and then a worker process has its connection.

With TLS its bytes stay in this process (`tls_payload`): only this process has the keys of the connection.
"""

import asyncio
import os
from typing import Final

from aiohttp import web
from multidict import MultiMapping

from ....engine.browser.page_messages import DIRECTIONS
from ....engine.browser.page_run import PageRun
from ....engine.model.directions import Direction
from ....engine.model.errors import LinkgaugeError, RemoteProtocolError

_FLUSH_LOOKS: Final = 1_000
_FLUSH_LOOK_S: Final = 0.005
_MAX_NUMBER_DIGITS: Final = 3


def read_place(query: MultiMapping[str]) -> tuple[Direction, int]:
    """Return the direction and the session that a page names; raise RemoteProtocolError for anything else."""
    flow, number = query.get("flow", ""), query.get("n", "")
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MAX_NUMBER_DIGITS
    if flow not in DIRECTIONS or not is_number:
        raise RemoteProtocolError("a page's connection without a place")
    return DIRECTIONS[flow], int(number)


class DataSocket:
    """One such WebSocket, from its request to the worker."""

    def __init__(self, request: web.Request, *, has_tls: bool) -> None:
        self._request, self._has_tls = request, has_tls

    async def pass_to(self, run: PageRun | None) -> web.StreamResponse:
        """Open the WebSocket, and pass its connection to a run that awaits it; refuse it otherwise."""
        try:
            if run is None:
                raise RemoteProtocolError("no test of this page awaits it")
            direction, number = read_place(self._request.query)
            run.sessions.claim(direction, number)
        except LinkgaugeError as error:
            return web.Response(status=403, text=f"linkgauge: {error}\n")
        response = web.WebSocketResponse(compress=False)
        await response.prepare(self._request)
        fd = await self._take_descriptor()
        if fd is not None:
            await run.sessions.adopt(direction, number, fd)
        return response

    async def _take_descriptor(self) -> int | None:
        """Return a descriptor of the connection, which aiohttp has given up; None if it has gone."""
        transport = self._request.transport
        sock = None if transport is None else transport.get_extra_info("socket")
        if transport is None or sock is None:
            return None
        for _ in range(_FLUSH_LOOKS):  # the answer must be out before other bytes follow it
            if not transport.get_write_buffer_size():  # type: ignore[attr-defined]
                break
            await asyncio.sleep(_FLUSH_LOOK_S)
        fd = os.dup(sock.fileno())
        transport.abort()  # of two descriptors, one stays: the connection does, too
        return fd
