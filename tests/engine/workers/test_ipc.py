"""The command channel: each command, event and descriptor arrives in order, and both ends notice its end."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TypeVar

import pytest
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.plan import Mode, Settings, SocketOptions
from linkgauge.engine.model.serialization import decode, encode, make_printable
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.workers.ipc import (
    COMMANDS,
    EVENTS,
    AdoptSession,
    ChangeSettings,
    Command,
    Configure,
    ConnectionFailed,
    ConnectionLost,
    ConnectionOpened,
    MessageReceived,
    OpenSession,
    PayloadStopped,
    ProbesStopped,
    StartPayload,
    StopPayload,
    StopProbes,
    WorkerChannel,
    WorkerEvent,
    WorkerReady,
)
from linkgauge.engine.workloads.session_handshake import ConnectTarget, Iperf3Format, SessionConfig, SessionSpec

from ..waiting import soon

T = TypeVar("T")
_LARGE = 10**15  # 17 bytes of a message


@dataclass(frozen=True)
class Note:
    """A message with a load of any size."""

    number: int
    text: str = ""
    load: tuple[int, ...] = ()


@dataclass(frozen=True)
class Bye:
    """Another message."""


class Side:
    """One end of a channel and the messages it has received."""

    def __init__(self, sock: socket.socket) -> None:
        self.received: asyncio.Queue[tuple[Note | Bye, int | None]] = asyncio.Queue()
        self.ended = asyncio.Event()
        self.channel = WorkerChannel[Note | Bye](
            sock, (Note, Bye), lambda message, fd: self.received.put_nowait((message, fd)), self.ended.set
        )

    async def next(self) -> tuple[Note | Bye, int | None]:
        """Return the next message and its descriptor."""
        return await soon(self.received.get())

    async def next_note(self) -> tuple[Note, int | None]:
        """Return the next message, a note, and its descriptor."""
        message, fd = await self.next()
        assert isinstance(message, Note)
        return message, fd


@pytest.fixture
async def sides() -> AsyncIterator[tuple[Side, Side]]:
    """Give both ends of a channel."""
    ours, theirs = socket.socketpair()
    this_side, other_side = Side(ours), Side(theirs)
    yield this_side, other_side
    this_side.channel.close()
    other_side.channel.close()


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
    """Texts may have line ends; control characters are replaced, as in all messages."""
    this_side, other_side = sides
    text = "a\nb\x00\u00e9"
    for number in range(100):
        this_side.channel.send(Note(number, text))
    other_side.channel.send(Bye())
    for number in range(100):
        assert await other_side.next() == (Note(number, make_printable(text)), None)
    assert await this_side.next() == (Bye(), None)


async def test_more_than_a_socket_holds_arrives_whole(sides: tuple[Side, Side]) -> None:
    """The rest waits until the other side reads."""
    this_side, other_side = sides
    for number in range(20):
        this_side.channel.send(Note(number, load=(_LARGE,) * 10_000))
    for number in range(20):
        message, _ = await other_side.next_note()
        assert (message.number, len(message.load)) == (number, 10_000)


async def test_each_descriptor_arrives_with_its_own_message(sides: tuple[Side, Side]) -> None:
    """Messages with and without one are mixed."""
    this_side, other_side = sides
    for number in range(60):
        fd = pipe_with(b"%d" % number) if number % 3 else None
        this_side.channel.send(Note(number, load=(_LARGE,) * (number % 7) * 1_000), fd)
    for number in range(60):
        message, fd = await other_side.next_note()
        assert message.number == number
        assert (fd is None) == (number % 3 == 0)
        if fd is not None:
            assert drain(fd) == b"%d" % number


async def test_a_descriptor_that_was_sent_is_closed_here(sides: tuple[Side, Side]) -> None:
    """Only the receiver owns it from then on: when it closes the descriptor, it is closed everywhere."""
    this_side, other_side = sides
    ours, sent = socket.socketpair()
    with ours:
        this_side.channel.send(Bye(), sent.detach())
        _message, received = await other_side.next()
        assert received is not None
        os.close(received)
        ours.setblocking(False)
        assert ours.recv(1) == b""


async def test_the_end_of_a_channel_comes_after_all_its_messages(sides: tuple[Side, Side]) -> None:
    """The last message of a worker is not lost."""
    this_side, other_side = sides
    this_side.channel.send(Note(1, "last words"))
    this_side.channel.close()
    await soon(other_side.ended.wait())
    assert await other_side.next() == (Note(1, "last words"), None)


async def test_half_a_message_at_the_end_is_dropped() -> None:
    """A process that was killed while it wrote leaves no half message."""
    ours, theirs = socket.socketpair()
    side = Side(ours)
    with theirs:
        theirs.sendall(b'{"type":"Bye","fd":false}\n{"type":')
    await soon(side.ended.wait())
    assert await side.next() == (Bye(), None)
    assert side.received.empty()
    side.channel.close()


async def test_bytes_may_be_cut_anywhere() -> None:
    """A message is delivered when its whole line has arrived."""
    ours, theirs = socket.socketpair()
    side = Side(ours)
    with theirs:
        for byte in b'{"type":"Bye","fd":false}\n{"type":"Note","number":2,"fd":false}\n':
            theirs.send(bytes([byte]))
            await asyncio.sleep(0)
        assert await side.next() == (Bye(), None)
        assert await side.next() == (Note(2), None)
    side.channel.close()


async def test_sending_to_a_process_that_is_gone_is_no_error() -> None:
    """The channel reports its end; descriptors that could not be sent are closed with it."""
    ours, theirs = socket.socketpair()
    side = Side(ours)
    theirs.close()
    sock = socket.socket()
    fd = sock.detach()
    side.channel.send(Note(1), fd)
    side.channel.send(Note(2))
    await soon(side.ended.wait())
    side.channel.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


async def test_sending_on_a_closed_channel_closes_the_descriptor(sides: tuple[Side, Side]) -> None:
    """The channel owns each descriptor from the call on. Closing twice is closing once."""
    this_side, _other_side = sides
    this_side.channel.close()
    this_side.channel.close()
    fd = socket.socket().detach()
    this_side.channel.send(Bye(), fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


async def test_closing_gives_back_what_is_still_queued() -> None:
    """Descriptors behind a message that does not fit are not lost."""
    ours, theirs = socket.socketpair()
    side = Side(ours)
    fds = [socket.socket().detach() for _ in range(5)]
    for fd in fds:
        side.channel.send(Note(1, load=(_LARGE,) * 30_000), fd)
    side.channel.close()
    theirs.close()
    for fd in fds:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


async def test_a_channel_closed_by_its_own_callback_delivers_no_more() -> None:
    """A message that ends a worker is its last, and no descriptor behind it is left open."""
    ours, theirs = socket.socketpair()
    received: list[Bye | Note] = []
    done = asyncio.Event()

    def close_on_message(message: Bye | Note, _fd: int | None) -> None:
        received.append(message)
        channel.close()
        done.set()

    channel = WorkerChannel[Bye | Note](ours, (Bye, Note), close_on_message, done.set)
    with theirs, socket.socket() as extra:
        theirs.sendall(b'{"type":"Bye","fd":false}\n{"type":"Bye","fd":false}\n')
        socket.send_fds(theirs, [b'{"type":"Bye","fd":true}\n'], [extra.fileno()])
        await soon(done.wait())
    assert received == [Bye()]


SPEC = SessionSpec(Direction.IN, 3, 1, 65_536, "00" * 16)
SAMPLES: tuple[Command | WorkerEvent, ...] = (
    Configure(SessionConfig(End.FAR, Workload.RR, SocketOptions(), Iperf3Format()), 1, 2, Mode.COPY, cores=(0, 1)),
    OpenSession(SPEC, ConnectTarget.from_address("00" * 16, ("::1", 5820, 0, 0))),
    AdoptSession(SPEC),
    StartPayload(),
    StopPayload(),
    ChangeSettings(Settings(Direction.DUPLEX, 4), 2, 1),
    StopProbes(),
    WorkerReady(),
    PayloadStopped(),
    MessageReceived(Direction.IN, 1, 8, "03e8"),
    ProbesStopped(),
    ConnectionOpened(SocketInfo(End.FAR, Direction.IN, 3, "cubic", None, None, None, None, None)),
    ConnectionFailed(Direction.IN, 3, 1, "no answer in time"),
    ConnectionLost(Direction.IN, 3, 1, "the other end closed it"),
)


@pytest.mark.parametrize("message", SAMPLES, ids=lambda message: type(message).__name__)
def test_each_command_and_event_arrives_as_it_was_sent(message: Command | WorkerEvent) -> None:
    """A field that JSON cannot carry would fail in a worker only."""
    assert decode(type(message), encode(message)) == message


def test_every_kind_is_in_its_table() -> None:
    """The channel decodes by these tables."""
    assert {type(message) for message in SAMPLES} == {*COMMANDS, *EVENTS}
