"""The far end's answers to further probes: for tokens of its run, once each, at a bounded rate."""

import asyncio
import os
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest
from linkgauge.engine.far.probes.probe_responders import ProbeResponders
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import RemoteProtocolError
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.plan import (
    DATAGRAM_PROBE_SESSION,
    HANDSHAKE_PROBE_SESSION,
    PATH_PROBE_SESSION,
    Plan,
    ResponsivenessTest,
)
from linkgauge.engine.protocol.preamble import DATA_ACCEPTED, DataHello
from linkgauge.engine.protocol.tokens import RunSecret, TicketCheck, Tickets

PLAN = Plan(probe=True, responsiveness=ResponsivenessTest.PHASES)
SECRET = RunSecret(b"shared", b"nonce", b"open")
OTHER_SECRET = RunSecret(b"shared", b"another nonce", b"open")


def make_responders(plan: Plan = PLAN, limits: Limits | None = None) -> ProbeResponders:
    """Return those of a run."""
    return ProbeResponders(plan, limits or Limits(), TicketCheck(SECRET))


def handshake(serial: int, secret: RunSecret = SECRET, token_serial: int | None = None) -> DataHello:
    """Return the header of a handshake probe."""
    tickets = Tickets(secret.session_secret(Direction.OUT, HANDSHAKE_PROBE_SESSION, 0, None))
    token = tickets.token(serial if token_serial is None else token_serial)
    return DataHello(SECRET.run_tag, token, Direction.OUT, HANDSHAKE_PROBE_SESSION, serial, None)


def datagrams(generation: int = 0) -> DataHello:
    """Return the header of the datagram probe's session."""
    settings = (Direction.OUT, DATAGRAM_PROBE_SESSION, generation, None)
    return DataHello(SECRET.run_tag, Tickets(SECRET.session_secret(*settings)).token(0), *settings)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give both ends of a connection; the second one is the far end's."""
    near, far = socket.socketpair()
    far.setblocking(False)
    near.settimeout(20)
    with near, far:
        yield near, far


async def answer(responders: ProbeResponders, hello: DataHello) -> bytes:
    """Return all that a connection with this header gets."""
    near, far = socket.socketpair()
    far.setblocking(False)
    with near, far:
        await responders.attach(far, hello)
        near.settimeout(20)
        return near.recv(10) + near.recv(10)


async def test_each_handshake_gets_one_byte_and_its_connection_is_closed() -> None:
    """Even if a later one has overtaken it."""
    responders = make_responders()
    for serial in (1, 3, 2, 500):
        assert await answer(responders, handshake(serial)) == DATA_ACCEPTED


async def test_a_token_is_valid_once_for_its_serial_and_in_its_run() -> None:
    """A thief who has read one can do nothing with it."""
    responders = make_responders()
    await answer(responders, handshake(5))
    for hello in (handshake(5), handshake(6, token_serial=5), handshake(7, OTHER_SECRET), handshake(0)):
        with pytest.raises(RemoteProtocolError, match="invalid token"):
            await answer(responders, hello)
    assert await answer(responders, handshake(6)) == DATA_ACCEPTED


async def test_a_flood_of_handshakes_is_refused() -> None:
    """The near end begins ten a second; bursts are of a queue that is emptied."""
    responders = make_responders()
    with pytest.raises(RemoteProtocolError, match="more handshake probes"):  # noqa: PT012 - one of them
        for serial in range(1, 1_000):
            await answer(responders, handshake(serial))


async def test_a_run_without_a_responsiveness_test_has_no_such_probes(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """Nor after its end, nor over the other protocol."""
    _near, far = pair
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        for responders, sock, hello in (
            (make_responders(Plan(probe=True)), far, handshake(1)),
            (make_responders(Plan(probe=True)), udp, datagrams()),
            (make_responders(), udp, handshake(1)),
            (make_responders(), far, datagrams()),
        ):
            with pytest.raises(RemoteProtocolError, match="a probe that the test does not have"):
                await responders.attach(sock, hello)
    ended = make_responders()
    ended.close()
    with pytest.raises(RemoteProtocolError, match="has ended"):
        await ended.attach(far, handshake(1))


async def test_the_datagram_probe_has_one_socket_whose_token_is_valid_once() -> None:
    """A later one takes the place of an earlier one."""
    responders = make_responders()
    near, far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    with near, far:
        for sock in (near, far):
            sock.bind(("127.0.0.1", 0))
        far.connect(near.getsockname())
        await responders.attach(far, datagrams())
        first = responders._echo
        with pytest.raises(RemoteProtocolError, match="invalid token"):
            await responders.attach(far, datagrams())
        await responders.attach(far, datagrams(1))
        assert first is not None
        assert first._sock.fileno() < 0
        responders.close()
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("limits", "echoes_s"), [({}, 150), ({"udp_packets_s": 7}, 7), ({"udp_rate_bit_s": 1_000}, 2)]
)
def test_limits_of_datagrams_hold_for_echoes(limits: dict[str, object], echoes_s: int) -> None:
    """An endpoint whose operator allows few datagrams sends few."""
    assert make_responders(limits=Limits().with_changes(limits))._echoes_s == echoes_s


def udp_pair() -> tuple[socket.socket, socket.socket]:
    """Return two UDP sockets of loopback that are connected to each other."""
    near, far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    for each in (near, far):
        each.bind(("127.0.0.1", 0))
        each.setblocking(False)
    near.connect(far.getsockname())
    far.connect(near.getsockname())
    return near, far


async def test_traces_that_clients_begin_and_abandon_leave_nothing_open() -> None:
    """Each has a socket and what watches it; a second one of a run is refused."""
    settings = (Direction.OUT, PATH_PROBE_SESSION, 0, None)
    token = Tickets(SECRET.session_secret(*settings)).token(0)
    hello = DataHello(SECRET.run_tag, token, *settings)

    async def abandon() -> None:
        responders = make_responders(replace(PLAN, path=True))
        near, far = udp_pair()
        with near, far:
            await responders.attach(far, hello)
            await asyncio.sleep(0.002)
            with pytest.raises(RemoteProtocolError):
                await responders.attach(far, hello)
        responders.close()
        responders.close()

    await abandon()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(200):
        await abandon()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
