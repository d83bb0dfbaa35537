"""The far end's part in measuring a path's MTU: it answers the holder of the session's secret, within bounds."""

import asyncio
import socket
from collections.abc import Iterator

import pytest
from linkgauge.engine.far.probes import path_responder
from linkgauge.engine.far.probes.path_responder import PathResponder
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import PROBE_SESSION
from linkgauge.engine.protocol.datagram_handshake import DatagramAccepted, DatagramHello, decode_handshake
from linkgauge.engine.protocol.path_probe import PathDatagram, PathKind, decode_path_datagram
from linkgauge.engine.protocol.preamble import DataHello
from linkgauge.engine.workloads.session_handshake import SessionSpec

SPEC = SessionSpec(Direction.OUT, PROBE_SESSION, 0, None, "ab" * 32)
SECRET = bytes.fromhex(SPEC.secret_hex)


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give the sockets of a session, connected with each other; the second one is the responder's."""
    near, far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    for sock in (near, far):
        sock.bind(("127.0.0.1", 0))
        sock.setblocking(False)
    near.connect(far.getsockname())
    far.connect(near.getsockname())
    with near:
        yield near, far


async def answers(near: socket.socket, count: int) -> list[bytes]:
    """Return the next datagrams."""
    received: list[bytes] = []
    async with asyncio.timeout(20):
        while len(received) < count:
            try:
                received.append(near.recv(65_535))
            except BlockingIOError:
                await asyncio.sleep(0.001)
    return received


async def test_it_accepts_reports_what_arrived_and_sends_what_is_asked_for(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    """A repeated hello is accepted once more."""
    near, far = sockets
    responder = PathResponder(far, SPEC)
    try:
        hello = DataHello(b"r" * 16, SPEC.make_tickets().token(0), Direction.OUT, PROBE_SESSION, 0, None)
        near.send(DatagramHello(hello).pack())
        for data in await answers(near, 2):
            assert isinstance(decode_handshake(data), DatagramAccepted)
        near.send(PathDatagram(PathKind.PROBE, 1, 9_000).pack(SECRET))
        near.send(PathDatagram(PathKind.REQUEST, 2, 20_000).pack(SECRET))
        reached, large = await answers(near, 2)
        assert decode_path_datagram(reached, SECRET) == PathDatagram(PathKind.REACHED, 1, 9_000)
        assert decode_path_datagram(large, SECRET) == PathDatagram(PathKind.LARGE, 2, 20_000)
        assert len(large) == 20_000
        near.send(PathDatagram(PathKind.TRACE, 3, 1_000, ttl=9).pack(SECRET))
        (traced,) = await answers(near, 1)
        assert decode_path_datagram(traced, SECRET) == PathDatagram(PathKind.LARGE, 3, 1_000)
    finally:
        responder.close()


async def test_a_request_without_the_secret_gets_nothing(sockets: tuple[socket.socket, socket.socket]) -> None:
    """A forger of the client's address cannot have it flooded."""
    near, far = sockets
    responder = PathResponder(far, SPEC)
    try:
        for data in (
            PathDatagram(PathKind.REQUEST, 1, 60_000).pack(b"other"),
            PathDatagram(PathKind.LARGE, 1, 1_000).pack(SECRET),
            PathDatagram(PathKind.REQUEST, 1, 3).pack(SECRET),
            b"\xff" * 1_000,
            b"",
        ):
            near.send(data)
        near.send(PathDatagram(PathKind.REQUEST, 2, 100).pack(SECRET))
        _accepted, only = await answers(near, 2)
        assert decode_path_datagram(only, SECRET) == PathDatagram(PathKind.LARGE, 2, 100)
    finally:
        responder.close()


async def test_its_answers_have_a_rate_and_a_number(
    sockets: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client with the secret is bounded as well."""
    monkeypatch.setattr(path_responder, "_MAX_ANSWERS", 10)
    near, far = sockets
    responder = PathResponder(far, SPEC)
    try:
        for serial in range(40):
            near.send(PathDatagram(PathKind.REQUEST, serial, 100).pack(SECRET))
        await answers(near, 11)
        near.send(DatagramHello(DataHello(b"", SPEC.make_tickets().token(0), Direction.OUT, 0, 0, None)).pack())
        [last] = await answers(near, 1)
        assert isinstance(decode_handshake(last), DatagramAccepted)
    finally:
        responder.close()
