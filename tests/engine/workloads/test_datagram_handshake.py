"""The near end's handshake of a UDP session: silence, refusals and forged answers are told apart."""

import asyncio
import contextlib
import socket

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import SocketOptions
from linkgauge.engine.protocol.datagram_handshake import (
    DatagramAccepted,
    DatagramChallenge,
    DatagramHello,
    decode_handshake,
)
from linkgauge.engine.workloads.datagram_handshake import connect_datagrams
from linkgauge.engine.workloads.session_handshake import NOT_ACCEPTED, ConnectTarget, SessionSpec

DEADLINE_S = 20.0
SPEC = SessionSpec(Direction.OUT, 1, 0, None, "ab" * 32)
SECRET = bytes.fromhex(SPEC.secret_hex)


def target_at(sock: socket.socket) -> ConnectTarget:
    """Return the target at a socket's address."""
    return ConnectTarget.from_address("cd" * 16, sock.getsockname())


async def connect(sock: socket.socket, target: ConnectTarget) -> None:
    """Carry out the near end's part."""
    sock.setblocking(False)
    async with asyncio.timeout(DEADLINE_S):
        await connect_datagrams(sock, SPEC, target, SocketOptions())


def udp_pair() -> tuple[socket.socket, socket.socket]:
    """Return a client's socket and a bound one."""
    far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    far.bind(("127.0.0.1", 0))
    far.setblocking(False)
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM), far


async def hello_at(far: socket.socket) -> tuple[DatagramHello, tuple[str, int]]:
    """Return the next hello, and where it came from."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with contextlib.suppress(BlockingIOError):
                data, source = far.recvfrom(2_048)
                hello = decode_handshake(data)
                assert isinstance(hello, DatagramHello)
                return hello, source
            await asyncio.sleep(0.001)


@pytest.mark.every
async def test_silence_is_told_within_three_seconds_with_the_port_to_allow() -> None:
    """A NAT or firewall lets no UDP through: the datagrams disappear."""
    near, far = udp_pair()
    with near, far:
        port = far.getsockname()[1]
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(OSError, match=rf"no UDP came back from 127.0.0.1 port {port} in 3 s.*allow UDP port"):
            await connect(near, target_at(far))
        assert asyncio.get_running_loop().time() - began_s >= 3.0


async def test_a_port_that_nobody_has_is_told_apart_from_silence() -> None:
    """The kernel of the far end answers in the place of an endpoint."""
    near, far = udp_pair()
    with near:
        with far:
            target = target_at(far)
        with pytest.raises(OSError, match=r"127.0.0.1 answers, but nothing takes UDP on its port"):
            await connect(near, target)


async def test_hellos_and_answers_that_are_lost_are_repeated() -> None:
    """One refusal, a lost hello, a lost challenge and a lost acceptance delay a session, and no more."""
    near, far = udp_pair()
    with near, far:
        connecting = asyncio.create_task(connect(near, target_at(far)))
        await hello_at(far)
        hello, source = await hello_at(far)
        assert hello.cookie == bytes(16)
        far.sendto(DatagramChallenge(b"c" * 16, hello.header.token).pack(), source)
        for _ in range(2):
            while (hello := (await hello_at(far))[0]).cookie != b"c" * 16:
                pass
        far.sendto(DatagramAccepted.of_session(SECRET).pack(), source)
        await connecting


async def test_forged_answers_are_ignored() -> None:
    """A challenge with another token, an acceptance without the secret, and noise open no session and end none."""
    near, far = udp_pair()
    with near, far:
        connecting = asyncio.create_task(connect(near, target_at(far)))
        hello, source = await hello_at(far)
        for forged in (
            DatagramChallenge(b"f" * 16, b"x" * 16).pack(),
            DatagramAccepted.of_session(b"other").pack(),
            b"",
            b"\xff" * 1_400,
            hello.pack(),
        ):
            far.sendto(forged, source)
        assert (await hello_at(far))[0].cookie == bytes(16)
        assert not connecting.done()
        far.sendto(DatagramAccepted.of_session(SECRET).pack(), source)
        await connecting


@pytest.mark.every
async def test_a_far_end_that_challenges_and_accepts_nothing_is_told_apart_from_a_firewall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """UDP comes through: the reason is in the endpoint's log."""
    monkeypatch.setattr("linkgauge.engine.workloads.datagram_handshake._ACCEPTANCE_DEADLINE_S", 0.2)
    near, far = udp_pair()
    with near, far:
        connecting = asyncio.create_task(connect(near, target_at(far)))
        hello, source = await hello_at(far)
        far.sendto(DatagramChallenge(b"c" * 16, hello.header.token).pack(), source)
        with pytest.raises(OSError, match=NOT_ACCEPTED):
            await connecting
