"""A WebSocket that carries payload: aiohttp opens it, and then a worker process has its connection.

With TLS its bytes stay in this process: only this process has the keys of the connection.
"""

import asyncio
import contextlib
import os
import socket
from typing import Final

from aiohttp import WSMsgType, web
from multidict import MultiMapping

from ....engine.browser.page_messages import DIRECTIONS, read_place
from ....engine.browser.page_run import PageRun
from ....engine.model.directions import Direction
from ....engine.model.errors import LinkgaugeError, RemoteProtocolError
from ....engine.near.foreign.hosted_probe import read_handshake_us
from ....engine.near.foreign.metered_session import MeteredReceiver, MeteredSender

_FLUSH_LOOKS: Final = 1_000
_FLUSH_LOOK_S: Final = 0.005
_MAX_NUMBER_DIGITS: Final = 7
_MAX_MESSAGE_BYTES: Final = 1 << 20
_MAX_ANSWER_BYTES: Final = 16


def read_query(query: MultiMapping[str]) -> tuple[Direction, int, int]:
    """Return direction, session and generation as a page names them; raise RemoteProtocolError otherwise."""
    flow, numbers = query.get("flow", ""), (query.get("n", ""), query.get("g", ""))
    are_numbers = all(text.isascii() and text.isdecimal() and len(text) <= _MAX_NUMBER_DIGITS for text in numbers)
    if flow not in DIRECTIONS or not are_numbers:
        raise RemoteProtocolError("a page's connection without a place")
    return DIRECTIONS[flow], *read_place(*map(int, numbers))


class DataSocket:
    """One such WebSocket, from its request to the worker."""

    def __init__(self, request: web.Request) -> None:
        self._request = request

    async def pass_to(self, run: PageRun | None) -> web.StreamResponse:
        """Open the WebSocket, and pass its connection to a run that awaits it; refuse it otherwise."""
        try:
            if run is None:
                raise RemoteProtocolError("no test of this page awaits it")
            direction, number, generation = read_query(self._request.query)
            run.sessions.claim(direction, number, generation)
        except LinkgaugeError as error:
            return web.Response(status=403, text=f"linkgauge: {error}\n")
        response = web.WebSocketResponse(compress=False, max_msg_size=_MAX_MESSAGE_BYTES)
        await response.prepare(self._request)
        if self._request.secure:
            await self._move_here(run, response, (direction, number, generation))
            return response
        fd = await self._take_descriptor()
        if fd is None:
            run.lose(direction, number, generation)
        else:
            await run.sessions.adopt(direction, number, generation, fd)
        return response

    async def probe(self, run: PageRun | None) -> web.StreamResponse:
        """Measure with a new connection beside the load; refuse it without a run, close it if too many are open."""
        if run is None:
            return web.Response(status=403, text="linkgauge: no test of this page awaits it\n")
        transport = self._request.transport
        handshake_us = read_handshake_us(None if transport is None else transport.get_extra_info("socket"))
        response = web.WebSocketResponse(compress=False, max_msg_size=_MAX_ANSWER_BYTES)

        async def ask() -> None:
            await response.send_bytes(b"?")
            if (await response.receive()).type is not WSMsgType.BINARY:
                raise ConnectionResetError("the page did not answer")

        await response.prepare(self._request)
        if run.begun.is_set() and run.probe.admits_new:
            with run.probe.new_connection():
                await run.probe.measure_new(handshake_us, ask)
        await response.close()
        return response

    async def _take_descriptor(self) -> int | None:
        """Return a descriptor of the connection, which aiohttp has given up; None if it has gone."""
        transport = self._request.transport
        fd = self._copy_descriptor()
        if transport is None or fd is None:
            return None
        for _ in range(_FLUSH_LOOKS):  # the answer must be out before other bytes follow it
            if not transport.get_write_buffer_size():  # type: ignore[attr-defined]
                break
            await asyncio.sleep(_FLUSH_LOOK_S)
        transport.abort()  # of two descriptors, one stays: the connection does, too
        return fd

    def _copy_descriptor(self) -> int | None:
        transport = self._request.transport
        sock = None if transport is None else transport.get_extra_info("socket")
        return None if sock is None else os.dup(sock.fileno())

    async def _move_here(
        self, run: PageRun, response: web.WebSocketResponse, place: tuple[Direction, int, int]
    ) -> None:
        """Move the payload of a connection with TLS until its run wants no more, or the page has closed it."""
        if run.over.is_set() or not run.sessions.is_wanted(*place):
            return
        fd = self._copy_descriptor()
        if fd is None:
            run.lose(*place)
            return
        metered = run.meter(*place[:2], socket.socket(fileno=fd))
        moving = asyncio.create_task(self._move(run, response, metered.session))
        over = asyncio.create_task(metered.over.wait())
        try:
            await asyncio.wait({moving, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            moving.cancel()
            over.cancel()
            await asyncio.gather(moving, over, return_exceptions=True)
            if not run.over.is_set():
                run.lose(*place)
            if self._request.transport is not None:
                self._request.transport.abort()

    @staticmethod
    async def _move(
        run: PageRun, response: web.WebSocketResponse, metered: MeteredSender | MeteredReceiver
    ) -> None:
        with contextlib.suppress(ConnectionError):
            if isinstance(metered, MeteredReceiver):
                async for message in response:
                    metered.count(len(message.data))
                    await asyncio.sleep(0)
                return
            await run.begun.wait()
            block = os.urandom(run.plan.block_bytes)
            while True:
                await response.send_bytes(block)
                await asyncio.sleep(0)  # to a fast reader, sending alone never gives way to other tasks
