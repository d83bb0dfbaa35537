"""Answers over a real connection: read to their end and no byte further, and bounded in size and time."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest
from linkgauge.engine.model.errors import ConnectionClosed, RemoteProtocolError, SilentPeer
from linkgauge.engine.speedtest import http_connection
from linkgauge.engine.speedtest.http_connection import HttpConnection, request_head
from linkgauge.engine.speedtest.http_wire import PlainWire

UPGRADE = (("Connection", "Upgrade"), ("Upgrade", "websocket"))


@asynccontextmanager
async def connection_to(*sent: bytes, ends: bool = False) -> AsyncGenerator[tuple[HttpConnection, socket.socket]]:
    """Give a connection whose server has sent these bytes, and the server's end."""
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        for data in sent:
            far.sendall(data)
        if ends:
            far.shutdown(socket.SHUT_WR)
        yield HttpConnection(PlainWire(near), "h"), far


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", b"abc"),
        (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
    ],
)
async def test_an_answer_is_read_to_its_end_and_what_follows_stays(answer: bytes, body: bytes) -> None:
    """The next answer, or payload for another process."""
    async with connection_to(answer + b"HTTP/1.1 204 No Content\r\nX: y\r\n\r\nrest") as (connection, _far):
        read = await connection.request("GET", "/x")
        assert (read.status, read.body, read.keeps_connection) == (200, body, True)
        second = await connection.read_answer("GET")
        assert (second.status, second.header("x"), second.header("y")) == (204, "y", "")
        assert await connection.wire.peek() == b"rest"


async def test_the_head_of_an_upgrade_ends_where_the_frames_begin() -> None:
    """Not a byte of them is lost, however the head comes."""
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    async with connection_to() as (connection, far):

        async def send() -> None:
            for at in range(0, len(head), 9):
                far.send(head[at : at + 9])
                await asyncio.sleep(0.001)
            far.send(b"\x82\x00")

        sending = asyncio.create_task(send())
        answer = await connection.begin("GET", "/x", UPGRADE)
        await sending
        assert answer.status == 101
        assert await connection.wire.peek() == b"\x82\x00"
        assert far.recv(1_000).startswith(b"GET /x HTTP/1.1\r\nHost: h\r\nUser-Agent: linkgauge/")


class _Rush(PlainWire):
    """A connection on which much is there at once, as with TLS."""

    def __init__(self, sock: socket.socket, data: bytes) -> None:
        super().__init__(sock)
        self.data = data

    async def peek(self) -> bytes:
        """Return all of it."""
        return self.data

    async def take(self, count: int) -> None:
        """Remove some of it."""
        self.data = self.data[count:]


async def test_payload_that_has_come_behind_a_head_does_not_count_as_its_size() -> None:
    """It may be more than an answer may have."""
    head, near = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", socket.socket()
    with near:
        wire = _Rush(near, head + bytes(300_000))
        answer = await HttpConnection(wire, "h").read_answer("GET", is_whole=False)
    assert answer.status == 200
    assert wire.data == bytes(300_000)


@pytest.mark.parametrize(
    ("sent", "ends", "error", "words"),
    [
        ([b"HTTP/1.1 200 OK\r\nX: " + 40_000 * b"y"], False, RemoteProtocolError, "not HTTP"),
        (
            [b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n" + bytes(110_000)],
            False,
            RemoteProtocolError,
            "more",
        ),
        (
            [2_000 * b"HTTP/1.1 103 Early Hints\r\nX: yyyyyyyyyyyyyyyyyyyyyy\r\n\r\n"],
            False,
            RemoteProtocolError,
            "more",
        ),
        ([b"SSH-2.0-OpenSSH_9.6\r\n"], False, RemoteProtocolError, "not HTTP"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"], False, RemoteProtocolError, "not HTTP"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"], False, RemoteProtocolError, "not HTTP"),
        (
            [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8000000000000000\r\nab"],
            False,
            SilentPeer,
            "0.2 s",
        ),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"], True, RemoteProtocolError, "not HTTP"),
        ([], False, SilentPeer, "0.2 s"),
        ([], True, ConnectionClosed, "closed"),
        ([b"HTTP/1.1 200 OK\r\n"], False, SilentPeer, "0.2 s"),
    ],
)
async def test_a_hostile_answer_is_an_error_of_bounded_size_and_time(
    monkeypatch: pytest.MonkeyPatch,
    sent: Sequence[bytes],
    ends: bool,
    error: type[Exception],
    words: str,
) -> None:
    """An endless head, an endless body, chunks of 2^63, silence, another protocol."""
    async with connection_to(*sent, ends=ends) as (connection, _far):
        with pytest.raises(error, match=words) as caught:
            await connection.read_answer("GET", deadline_s=0.2)
        assert str(caught.value).isprintable()
    assert http_connection.MAX_HEAD_BYTES < 100_000


async def test_headers_are_shown_without_control_characters_and_short() -> None:
    """A redirect's place is shown to the user."""
    answer = b"HTTP/1.1 302 Found\r\nLocation: http://x/\x9b2J" + b"y" * 500 + b"\r\nContent-Length: 0\r\n\r\n"
    async with connection_to(answer) as (connection, _far):
        read = await connection.read_answer("GET")
    assert read.header("location").isprintable()
    assert len(read.header("location")) <= 100


async def test_a_server_that_does_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline is that of an answer."""
    monkeypatch.setattr(http_connection, "ANSWER_DEADLINE_S", 0.1)
    async with connection_to() as (connection, _far):
        with pytest.raises(SilentPeer, match="does not read"):
            await connection.send(bytes(8 << 20))


def test_a_request_has_one_host() -> None:
    """And the headers that were given."""
    head = request_head("[::1]:8080", "POST", "/x", (("Content-Length", "5"),))
    assert head.split(b"\r\n")[:2] == [b"POST /x HTTP/1.1", b"Host: [::1]:8080"]
    assert head.endswith(b"Content-Length: 5\r\n\r\n")
