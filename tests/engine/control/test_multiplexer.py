"""Several control connections over one pair of streams: on real sockets, also when these break."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from linkgauge.engine.control.connection import ControlConnection
from linkgauge.engine.control.key_proof import KeyCheck
from linkgauge.engine.control.multiplexer import Mux, MuxChannel
from linkgauge.engine.far.client_service import ServiceContext, serve_client
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.errors import ConnectionClosed
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.protocol.messages import Hello, Introduction, Ping, Welcome

from ..waiting import until

FACTS = HostInfo("web-07", "Linux", 8, "linkgauge", "asyncio")
EXTRA = {"sockname": ("192.0.2.1", 1), "peername": ("192.0.2.2", 22), "data_address": ("192.0.2.2", 4_000)}


class Pair:
    """Both ends of the streams; the far one serves every client."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        self.serving: set[asyncio.Task[None]] = set()
        self.near = Mux(None, lambda: self.lost.append("near"), extra=EXTRA, why_lost=lambda: "ssh ended: killed")
        self.far = Mux(self._accept, lambda: self.lost.append("far"), extra={})

    def _accept(self, _channel: MuxChannel) -> asyncio.Protocol:
        link = ControlConnection(End.FAR)
        task = asyncio.create_task(serve_client(link, ServiceContext(), KeyCheck(link.machine, lambda: None)))
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)
        return link

    def dial(self) -> ControlConnection:
        """Open a control connection."""
        link = ControlConnection(End.NEAR)
        self.near.open(link)
        return link


@asynccontextmanager
async def connected() -> AsyncIterator[Pair]:
    """Give a pair over a real pair of sockets."""
    pair = Pair()
    ours, theirs = socket.socketpair()
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(20):
        await loop.create_unix_connection(lambda: pair.near, sock=ours)
        await loop.create_unix_connection(lambda: pair.far, sock=theirs)
        yield pair
        pair.near.close()
        await until(lambda: len(pair.lost) == 2 and not pair.serving)


async def test_connections_at_once_are_greeted_each_and_closed_each() -> None:
    """The end of one leaves the other as it is."""
    async with connected() as pair:
        links = [pair.dial(), pair.dial()]
        for link in links:
            link.send(Hello())
            assert isinstance(await link.receive(), Welcome)
            assert isinstance(await link.receive(), Introduction)
            link.send(Introduction(FACTS))
        await links[0].aclose()
        await until(lambda: len(pair.serving) == 1)
        last_ns = links[1].last_received_ns
        links[1].send(Ping(1))
        await until(lambda: links[1].last_received_ns > last_ns)
        assert links[1].data_address == ("192.0.2.2", 4_000)
        assert links[1].peer_address == ("192.0.2.2", 22)
        assert links[1].ip_version == 4
        await links[1].aclose()
        await until(lambda: not pair.serving)


async def test_the_end_of_the_streams_is_the_end_of_every_connection_with_a_reason() -> None:
    """A caller that waits for a message gets the reason why none will come."""
    async with connected() as pair:
        link = pair.dial()
        link.send(Hello())
        assert isinstance(await link.receive(), Welcome)
        assert isinstance(await link.receive(), Introduction)
        pair.far.close()
        with pytest.raises(ConnectionClosed, match="ssh ended: killed"):
            await link.receive()
        assert pair.near.is_lost
        assert not link.try_send(Ping(1))


async def test_signs_of_life_are_heard_and_open_nothing() -> None:
    """They belong to no connection."""
    async with connected() as pair:
        last_ns = pair.far.last_received_ns
        pair.near.send_keepalive()
        await until(lambda: pair.far.last_received_ns > last_ns)
        assert not pair.serving


async def test_a_length_that_no_frame_has_ends_the_streams() -> None:
    """It is never waited for, nor is memory taken for it."""
    async with connected() as pair:
        pair.far.data_received(struct.pack(">II", 1, 2**32 - 1))
        await until(lambda: sorted(pair.lost) == ["far", "near"])


async def test_frames_of_a_closed_connection_open_no_new_connection() -> None:
    """They were on their way when it closed."""
    async with connected() as pair:
        pair.far.data_received(struct.pack(">II", 2, 1) + b"l")
        await until(lambda: len(pair.serving) == 1)
        pair.far.data_received(struct.pack(">II", 2, 0) + struct.pack(">II", 1, 1) + b"l")
        await until(lambda: not pair.serving)
