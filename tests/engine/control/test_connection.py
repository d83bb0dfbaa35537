"""The control connection on real sockets: messages arrive, its end has a reason, nothing piles up."""

import asyncio
import os
import shutil
import socket
import struct
import sys
from collections.abc import AsyncIterator
from typing import Any, TypeVar, cast

import pytest
from linkgauge.engine.control.connection import ControlConnection, limit_messages
from linkgauge.engine.control.keepalive import MAX_SILENCE_NS
from linkgauge.engine.lab.namespaces import NetworkNamespace
from linkgauge.engine.model.counters.samples import Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import (
    ConnectionClosed,
    ConnectionTampered,
    LimitReached,
    LocalProtocolError,
    PeerNotLinkgauge,
    RemoteProtocolError,
)
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.shared_key import NEAR_ROLE
from linkgauge.engine.protocol.framing import FrameCodes, FrameReader, decode_body, encode_frame
from linkgauge.engine.protocol.messages import (
    Begun,
    Hello,
    Message,
    Notice,
    Ping,
    Pong,
    Report,
    Start,
    Stop,
    Welcome,
)
from linkgauge.engine.protocol.preamble import CONTROL_KIND, encode_preamble
from linkgauge.engine.protocol.state_machine import ControlState, ControlStateMachine
from linkgauge.engine.protocol.tokens import CODE_BYTES

from ...end_to_end.veth_link import VethLink
from ..waiting import soon, until

T = TypeVar("T")
STOP = Stop(RunEnd(Reason.STOPPED, "enough"))
RESET = struct.pack("ii", 1, 0)


def tcp_pair(buffer_bytes: int | None = None) -> tuple[socket.socket, socket.socket]:
    """Return both ends of a connection on 127.0.0.1, with small buffers if wanted."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.socket()
        if buffer_bytes is not None:
            for sock in (near, listener):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
        near.connect(listener.getsockname())
        far, _address = listener.accept()
    near.setblocking(False)
    far.setblocking(False)
    return near, far


def running_far_end() -> ControlStateMachine:
    """Return the state machine of a far end in the middle of a run."""
    machine = ControlStateMachine(End.FAR)
    machine.receive_data(encode_preamble(CONTROL_KIND))
    machine.state = ControlState.RUNNING
    return machine


async def link_on(sock: socket.socket, end: End, machine: ControlStateMachine | None = None) -> ControlConnection:
    """Return a link on a connected socket."""
    loop = asyncio.get_running_loop()
    _transport, link = await loop.create_connection(lambda: ControlConnection(end, machine), sock=sock)
    return link


def _retransmits(sock: socket.socket) -> int:
    """Return how many segments the kernel has sent again, at any time (tcpi_total_retrans)."""
    return int.from_bytes(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)[100:], sys.byteorder)


class Raw:
    """A far end's peer that says exactly the bytes it is told to."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._frames = FrameReader(End.FAR)
        self._greeting = len(encode_preamble(CONTROL_KIND))

    async def say(self, data: bytes) -> None:
        """Send bytes."""
        await soon(asyncio.get_running_loop().sock_sendall(self.sock, data))

    async def hear(self) -> list[object]:
        """Return the messages of the next bytes that come; none at the end of them."""
        data = await soon(asyncio.get_running_loop().sock_recv(self.sock, 65_536))
        data, self._greeting = data[self._greeting :], max(0, self._greeting - len(data))
        return [decode_body(body, End.FAR) for body in self._frames.read_frames(data)]

    async def hear_end(self) -> None:
        """Read until the other side has closed, in order or not."""
        loop = asyncio.get_running_loop()
        try:
            while await soon(loop.sock_recv(self.sock, 65_536)):
                pass
        except ConnectionResetError:
            pass


@pytest.fixture
async def ends() -> AsyncIterator[tuple[ControlConnection, ControlConnection]]:
    """Give both ends of a control connection."""
    near_sock, far_sock = tcp_pair()
    near, far = await link_on(near_sock, End.NEAR), await link_on(far_sock, End.FAR)
    yield near, far
    await near.aclose()
    await far.aclose()


@pytest.fixture
async def raw_and_link() -> AsyncIterator[tuple[Raw, ControlConnection]]:
    """Give a far end whose peer is a bare socket with small buffers, in the middle of a run."""
    raw, sock = tcp_pair(8_192)
    link = await link_on(sock, End.FAR, running_far_end())
    with raw:
        yield Raw(raw), link
    await link.aclose()


async def test_each_end_receives_the_messages_of_the_other(
    ends: tuple[ControlConnection, ControlConnection],
) -> None:
    """A greeting goes through both ways, over one connection."""
    near, far = ends
    near.send(Hello())
    assert await soon(far.receive()) == Hello()
    far.send(Welcome())
    assert await soon(near.receive()) == Welcome()
    assert near.peer_address[0] == far.peer_address[0] == "127.0.0.1"
    assert near.family == socket.AF_INET


async def test_control_bytes_do_not_wait_for_each_other(ends: tuple[ControlConnection, ControlConnection]) -> None:
    """Nagle's algorithm is off, and the packets ask for low delay."""
    for link in ends:
        assert link._transport is not None
        sock: socket.socket = link._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 0x10


@pytest.mark.every
@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare"))), reason="makes namespaces as root"
)
@pytest.mark.parametrize(
    ("family", "subnet", "mark"),
    [
        (socket.AF_INET, "198.18.7.{}/30", (socket.IPPROTO_IP, socket.IP_TOS)),
        (socket.AF_INET6, "fd00:7::{}/64", (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)),
    ],
    ids=["IPv4", "IPv6"],
)
async def test_control_packets_that_are_lost_are_tried_again_soon(
    family: socket.AddressFamily, subnet: str, mark: tuple[int, int]
) -> None:
    """A full queue on the way loses most of them: with doubled waits a healthy link was silent for half a minute.

    Nine retries take TCP 100 s by default.
    """
    link = VethLink()
    descriptors = [os.open(f"/proc/{end[2]}/ns/net", os.O_RDONLY) for end in (link.near, link.far)]
    namespaces = [NetworkNamespace(descriptor) for descriptor in descriptors]
    near_address, far_address = (subnet.format(number).partition("/")[0] for number in (1, 2))
    try:
        link.run(link.near, "ip", "address", "add", subnet.format(1), "dev", "near0", "nodad")
        link.run(link.far, "ip", "address", "add", subnet.format(2), "dev", "far0", "nodad")
        with namespaces[1].enter():
            listener = socket.create_server((far_address, 0), family=family)
        with listener, namespaces[0].enter():
            near = socket.create_connection(listener.getsockname()[:2], timeout=10)
            near.setblocking(False)
            control = await link_on(near, End.NEAR)
            assert near.getsockopt(*mark) == 0x10
            assert near.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY) == 6  # TC_PRIO_INTERACTIVE
            assert near.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) > MAX_SILENCE_NS // 1_000_000
            link.run(link.far, "ip", "route", "add", "blackhole", near_address)
            control.send(Hello(""))
            await until(lambda: _retransmits(near) >= 9)
            control.abort()
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        link.close()


async def test_pings_are_answered_and_are_nobodys_business(raw_and_link: tuple[Raw, ControlConnection]) -> None:
    """The answer carries the ping's number; the receiver gets only later messages."""
    raw, link = raw_and_link
    before_ns = link.last_received_ns
    await raw.say(encode_frame(Ping(41)) + encode_frame(Pong(7)) + encode_frame(Ping(42)) + encode_frame(STOP))
    assert await soon(link.receive()) == STOP
    heard_messages: list[object] = []
    while len(heard_messages) < 2:
        heard_messages += await raw.hear()
    assert heard_messages == [Pong(41), Pong(42)]
    assert link.last_received_ns > before_ns


async def test_answers_do_not_pile_up_for_a_peer_that_does_not_read(
    raw_and_link: tuple[Raw, ControlConnection],
) -> None:
    """A megabyte of pings leaves no megabyte of pongs in memory."""
    raw, link = raw_and_link
    await raw.say(encode_frame(Ping(123_456_789)) * 30_000 + encode_frame(STOP))
    assert await soon(link.receive()) == STOP
    assert cast("asyncio.Transport", link._transport).get_write_buffer_size() < 200_000


async def test_pings_are_answered_again_once_the_peer_reads(raw_and_link: tuple[Raw, ControlConnection]) -> None:
    """A peer that was slow is not punished for it."""
    raw, link = raw_and_link
    await raw.say(encode_frame(Ping(1)) * 20_000 + encode_frame(STOP))
    assert await soon(link.receive()) == STOP
    heard_messages: list[object] = []
    while cast("asyncio.Transport", link._transport).get_write_buffer_size():
        heard_messages += await raw.hear()
    await raw.say(encode_frame(Ping(2)))
    while Pong(2) not in heard_messages:
        heard_messages += await raw.hear()


async def test_bytes_that_were_read_before_are_part_of_the_conversation() -> None:
    """The endpoint reads the first bytes to identify a connection; the link goes on from there."""
    raw, sock = tcp_pair()
    machine = ControlStateMachine(End.FAR)
    machine.receive_data(encode_preamble(CONTROL_KIND) + encode_frame(Hello())[:9])
    with raw:
        link = await link_on(sock, End.FAR, machine)
        await Raw(raw).say(encode_frame(Hello())[9:])
        assert await soon(link.receive()) == Hello()
        await link.aclose()


async def test_a_peer_that_closes_ends_the_link_for_everyone_who_asks(
    ends: tuple[ControlConnection, ControlConnection],
) -> None:
    """Its earlier messages are received first; then each receive says that it closed."""
    near, far = ends
    near.send(Hello())
    near.close()
    assert await soon(far.receive()) == Hello()
    for _ in range(2):
        with pytest.raises(ConnectionClosed, match="it closed the connection"):
            await soon(far.receive())
    assert near.is_closing
    assert not near.try_send(Start())


async def test_a_connection_that_is_reset_says_so(raw_and_link: tuple[Raw, ControlConnection]) -> None:
    """The network's own words are kept."""
    raw, link = raw_and_link
    raw.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    raw.sock.close()
    with pytest.raises(ConnectionClosed, match="reset by peer"):
        await soon(link.receive())


async def test_a_connection_that_was_reset_still_has_its_addresses(
    raw_and_link: tuple[Raw, ControlConnection],
) -> None:
    """A client may reset its connection before the endpoint asks for its address."""
    raw, link = raw_and_link
    ends = raw.sock.getsockname(), raw.sock.getpeername()
    raw.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    raw.sock.close()
    with pytest.raises(ConnectionClosed):
        await soon(link.receive())
    for _ in range(3):  # until uvloop has closed the descriptor
        await asyncio.sleep(0)
    assert (link.peer_address, link.local_address) == ends
    assert link.data_address == link.peer_address


async def test_a_peer_that_never_greets_is_foreign() -> None:
    """A connection that closes before its preamble was no linkgauge's."""
    raw, sock = tcp_pair()
    link = await link_on(sock, End.NEAR)
    raw.close()
    with pytest.raises(PeerNotLinkgauge, match="without a word"):
        await soon(link.receive())
    await link.aclose()


async def test_a_broken_rule_ends_the_conversation_and_closes_the_connection(
    raw_and_link: tuple[Raw, ControlConnection],
) -> None:
    """Messages before it in the same packet are received, then the error; the peer sees the end."""
    raw, link = raw_and_link
    await raw.say(encode_frame(STOP) + struct.pack(">I", 2**32 - 1) + bytes(1000))
    assert await soon(link.receive()) == STOP
    with pytest.raises(RemoteProtocolError, match="4294967295 bytes is over the limit"):
        await soon(link.receive())
    assert not link.try_send(Notice("too late"))
    await raw.hear_end()


async def test_a_message_out_of_turn_is_not_sent(ends: tuple[ControlConnection, ControlConnection]) -> None:
    """`send` says that it is our bug; `try_send` says no."""
    near, far = ends
    assert not far.try_send(Begun())
    with pytest.raises(LocalProtocolError):
        far.send(Begun())
    near.send(Hello())
    assert await soon(far.receive()) == Hello()


@pytest.mark.parametrize("is_keyed", [False, True], ids=["open", "key"])
async def test_messages_over_the_limit_are_not_decoded(is_keyed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of them may come in one piece: the loop serves others as well."""
    decoded: list[object] = []

    def decode(*arguments: Any) -> Message:
        decoded.append(decode_body(*arguments))
        return cast("Message", decoded[-1])

    monkeypatch.setattr("linkgauge.engine.protocol.state_machine.decode_body", decode)
    link = ControlConnection(End.FAR, running_far_end())
    limit_messages(link.machine, Limits())
    frames = [encode_frame(Ping(1))] * 8_000
    if is_keyed:
        link.machine.authenticate_frames(b"secret")
        codes = FrameCodes(b"secret", NEAR_ROLE)
        frames = [frame + codes.next_code(frame) for frame in frames]
    link.data_received(b"".join(frames))
    assert 2 * Limits().messages_s <= len(decoded) < 3 * Limits().messages_s  # time passes meanwhile
    with pytest.raises(LimitReached, match="limit messages_s is 100"):
        await soon(link.receive())


async def test_bytes_without_a_right_code_are_no_sign_of_life() -> None:
    """Half a frame is none yet, and so is one of a stranger; the frame of the other end is."""
    link = ControlConnection(End.FAR, running_far_end())
    link.machine.authenticate_frames(b"secret")
    frame = encode_frame(Ping(1))
    code = FrameCodes(b"secret", NEAR_ROLE).next_code(frame)
    before_ns = link.last_received_ns
    for byte in frame + code[:-1]:
        link.data_received(bytes([byte]))
    assert link.last_received_ns == before_ns
    link.data_received(code[-1:])
    assert link.last_received_ns > before_ns
    before_ns = link.last_received_ns
    link.data_received(frame + bytes(CODE_BYTES))
    assert link.last_received_ns == before_ns
    with pytest.raises(ConnectionTampered):
        await soon(link.receive())


async def test_closing_does_not_wait_for_a_peer_that_does_not_read(
    raw_and_link: tuple[Raw, ControlConnection],
) -> None:
    """The queue is dropped after the deadline, and the connection is cut."""
    raw, link = raw_and_link
    # Reports are squeezed: of a thousand alike little would be left to wait.
    counts = [number**7 * 1_000_003 % 2**50 for number in range(1, 129)]
    sessions = tuple(SessionSample(Direction.OUT, number, count) for number, count in enumerate(counts, 1))
    index = 0
    while cast("asyncio.Transport", link._transport).get_write_buffer_size() <= 100_000:
        link.send(Report(Sample(End.FAR, index, index + 1, 1, sessions)))
        index += 1
    await soon(link.aclose(0.05))
    with pytest.raises(ConnectionClosed):
        await soon(link.receive())
    await raw.hear_end()


async def test_closing_twice_is_closing_once(ends: tuple[ControlConnection, ControlConnection]) -> None:
    """A caller that closes need not know who else did."""
    near, far = ends
    for link in (near, near, far):
        await soon(link.aclose())
        assert link.is_closing
