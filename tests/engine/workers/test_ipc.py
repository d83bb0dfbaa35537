"""The command channel: lines and descriptors arrive in order, and its end is heard at both sides."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

import pytest
from linkgauge.engine.workers.ipc import WorkerChannel, WorkerMessage

T = TypeVar("T")


async def soon(awaitable: Awaitable[T]) -> T:
    """Await with a deadline."""
    async with asyncio.timeout(10):
        return await awaitable


class Side:
    """One end of a channel and what it has heard."""

    def __init__(self, sock: socket.socket) -> None:
        self.heard: asyncio.Queue[tuple[WorkerMessage, int | None]] = asyncio.Queue()
        self.ended = asyncio.Event()
        self.channel = WorkerChannel(sock, lambda message, fd: self.heard.put_nowait((message, fd)), self.ended.set)

    async def next(self) -> tuple[WorkerMessage, int | None]:
        """Return what is heard next."""
        return await soon(self.heard.get())


@pytest.fixture
async def sides() -> AsyncIterator[tuple[Side, Side]]:
    """Give both ends of a channel."""
    ours, theirs = socket.socketpair()
    one, other = Side(ours), Side(theirs)
    yield one, other
    one.channel.close()
    other.channel.close()


def pipe_with(text: bytes) -> int:
    """Return the reading end of a pipe that holds some text."""
    reading, writing = os.pipe()
    os.write(writing, text)
    os.close(writing)
    return reading


def drain(fd: int | None) -> bytes:
    """Read a descriptor to its end and close it."""
    assert fd is not None
    with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        return file.read()


async def test_messages_arrive_in_order_both_ways(sides: tuple[Side, Side]) -> None:
    """Any text is fine in them, line ends included."""
    one, other = sides
    for number in range(100):
        one.channel.send({"number": number, "text": "a\nb\x00\u00e9"})
    other.channel.send({"event": "ready"})
    for number in range(100):
        assert await other.next() == ({"number": number, "text": "a\nb\x00\u00e9"}, None)
    assert await one.next() == ({"event": "ready"}, None)


async def test_more_than_a_socket_holds_arrives_whole(sides: tuple[Side, Side]) -> None:
    """What does not fit waits, and goes on when the other side reads."""
    one, other = sides
    for number in range(20):
        one.channel.send({"number": number, "load": "x" * 100_000})
    for number in range(20):
        message, _ = await other.next()
        assert (message["number"], len(message["load"])) == (number, 100_000)


async def test_each_descriptor_arrives_with_its_own_message(sides: tuple[Side, Side]) -> None:
    """Messages with and without one are mixed."""
    one, other = sides
    for number in range(60):
        fd = pipe_with(b"%d" % number) if number % 3 else None
        one.channel.send({"number": number, "load": "x" * (number % 7) * 10_000}, fd)
    for number in range(60):
        message, fd = await other.next()
        assert message["number"] == number
        assert (fd is None) == (number % 3 == 0)
        if fd is not None:
            assert drain(fd) == b"%d" % number


async def test_a_descriptor_that_was_sent_is_closed_here(sides: tuple[Side, Side]) -> None:
    """Only the receiver owns it from then on: when that one closes it, nobody has it open."""
    one, other = sides
    kept, sent = socket.socketpair()
    with kept:
        one.channel.send({}, sent.detach())
        _message, received = await other.next()
        assert received is not None
        os.close(received)
        kept.setblocking(False)
        assert kept.recv(1) == b""


async def test_the_end_of_a_channel_is_heard_once_after_all_that_was_said(sides: tuple[Side, Side]) -> None:
    """A worker's last words are not lost."""
    one, other = sides
    one.channel.send({"last": "words"})
    one.channel.close()
    await soon(other.ended.wait())
    assert await other.next() == ({"last": "words"}, None)


async def test_half_a_message_at_the_end_is_dropped() -> None:
    """A process that was killed while it spoke leaves no half message."""
    ours, theirs = socket.socketpair()
    side = Side(ours)
    with theirs:
        theirs.sendall(b'{"whole":1,"fd":false}\n{"half":')
    await soon(side.ended.wait())
    assert await side.next() == ({"whole": 1}, None)
    assert side.heard.empty()
    side.channel.close()


async def test_bytes_may_be_cut_anywhere() -> None:
    """A line is a message once its end has come."""
    ours, theirs = socket.socketpair()
    side = Side(ours)
    with theirs:
        for byte in b'{"a":1,"fd":false}\n{"b":2,"fd":false}\n':
            theirs.send(bytes([byte]))
            await asyncio.sleep(0)
        assert await side.next() == ({"a": 1}, None)
        assert await side.next() == ({"b": 2}, None)
    side.channel.close()


async def test_sending_to_a_process_that_is_gone_is_no_error() -> None:
    """The end of the channel tells; descriptors that could not be sent are closed with it."""
    ours, theirs = socket.socketpair()
    side = Side(ours)
    theirs.close()
    sock = socket.socket()
    fd = sock.detach()
    side.channel.send({"number": 1}, fd)
    side.channel.send({"number": 2})
    await soon(side.ended.wait())
    side.channel.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


async def test_sending_on_a_closed_channel_closes_the_descriptor(sides: tuple[Side, Side]) -> None:
    """Whoever hands a descriptor over is rid of it, always. Closing twice is closing once."""
    one, _other = sides
    one.channel.close()
    one.channel.close()
    fd = socket.socket().detach()
    one.channel.send({}, fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


async def test_closing_gives_back_what_is_still_queued() -> None:
    """Descriptors behind a message that does not fit are not lost."""
    ours, theirs = socket.socketpair()
    side = Side(ours)
    fds = [socket.socket().detach() for _ in range(5)]
    for fd in fds:
        side.channel.send({"load": "x" * 1_000_000}, fd)
    side.channel.close()
    theirs.close()
    for fd in fds:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


async def test_whoever_closes_while_listening_hears_no_more() -> None:
    """A message that ends a worker is its last, and no descriptor behind it is left open."""
    ours, theirs = socket.socketpair()
    heard: list[WorkerMessage] = []
    heard_one = asyncio.Event()

    def hear(message: WorkerMessage, _fd: int | None) -> None:
        heard.append(message)
        channel.close()
        heard_one.set()

    channel = WorkerChannel(ours, hear, heard_one.set)
    with theirs, socket.socket() as extra:
        theirs.sendall(b'{"a":1,"fd":false}\n{"b":2,"fd":false}\n')
        socket.send_fds(theirs, [b'{"c":3,"fd":true}\n'], [extra.fileno()])
        await soon(heard_one.wait())
    assert heard == [{"a": 1}]
