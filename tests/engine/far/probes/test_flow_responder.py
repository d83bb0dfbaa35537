"""The far end's part in a test of many flows: only with the secret, within bounds, one round at a time."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from linkgauge.engine.far.probes.flow_responder import FlowResponder, flow_settings
from linkgauge.engine.model.errors import LimitReached, RemoteProtocolError
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.protocol.flow_datagrams import (
    ArrivalQuery,
    FlowArrivals,
    FlowDatagram,
    RoundOrder,
    RoundStatus,
    decode_flow_datagram,
    flow_number,
)
from linkgauge.engine.protocol.payload_datagrams import PAYLOAD_HEADER, DatagramKeys
from linkgauge.engine.protocol.preamble import DataHello
from linkgauge.engine.protocol.tokens import RunSecret, Tickets

SECRET = RunSecret(b"shared", b"nonce", b"open")


def secret_of(flow: int) -> bytes:
    """Return the secret of a flow's session."""
    return SECRET.session_secret(*flow_settings(flow))


def hello_of(flow: int, token: bytes | None = None) -> DataHello:
    """Return the hello of a flow."""
    direction, session, generation, window_bytes = flow_settings(flow)
    own = Tickets(secret_of(flow)).token(0)
    return DataHello(SECRET.run_tag, token or own, direction, session, generation, window_bytes)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give two sockets that are connected with each other; the second one is the far end's."""
    with ExitStack() as stack:
        near, far = (stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2))
        for sock in (near, far):
            sock.bind(("127.0.0.1", 0))
            sock.setblocking(False)
        near.connect(far.getsockname())
        far.connect(near.getsockname())
        yield near, far


async def answer(near: socket.socket, kind: type[FlowDatagram]) -> FlowDatagram:
    """Return the next answer of a kind."""
    async with asyncio.timeout(20):
        while True:
            datagram = decode_flow_datagram(await asyncio.get_running_loop().sock_recv(near, 9_000), secret_of(1))
            if isinstance(datagram, kind):
                return datagram


def responder_with(limits: Limits, excess: list[LimitReached] | None = None) -> FlowResponder:
    """Return a responder that traces nothing."""
    return FlowResponder(SECRET, limits, (excess if excess is not None else []).append, lambda _trace: None)


async def test_it_sends_a_round_once_and_reports_what_arrived(pair: tuple[socket.socket, socket.socket]) -> None:
    """A repeated order is only answered."""
    near, far = pair
    responder = responder_with(Limits())
    try:
        responder.attach(far, hello_of(1))
        order = RoundOrder(1, 20, 64, 50_000, (1, 2)).pack(secret_of(1))
        near.send(order)
        status = await answer(near, RoundStatus)
        while not getattr(status, "is_over", False):
            near.send(order)
            status = await answer(near, RoundStatus)
        assert status == RoundStatus(1, 0, is_over=True)
        cookie = DatagramKeys(secret_of(1)).cookie
        near.send(PAYLOAD_HEADER.pack(flow_number(1, 2), 0, cookie))
        near.send(ArrivalQuery(1, 1, 0).pack(secret_of(1)))
        arrivals = await answer(near, FlowArrivals)
        assert isinstance(arrivals, FlowArrivals)
        assert [bool(entry) for entry in arrivals.entries] == [False, False, True]
    finally:
        responder.close()


async def test_a_wrong_token_a_repeated_flow_and_one_too_many_are_refused(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """Each flow opens once."""
    _near, far = pair
    responder = responder_with(Limits())
    try:
        responder.attach(far, hello_of(1))
        for hello in (hello_of(1), hello_of(2, b"w" * 16), hello_of(600)):
            with pytest.raises(RemoteProtocolError):
                responder.attach(far, hello)
    finally:
        responder.close()


async def test_more_datagrams_than_a_limit_end_the_run(pair: tuple[socket.socket, socket.socket]) -> None:
    """What arrives counts as in other tests of UDP."""
    near, far = pair
    excess: list[LimitReached] = []
    responder = responder_with(Limits(udp_packets_s=10), excess)
    try:
        responder.attach(far, hello_of(1))
        cookie = DatagramKeys(secret_of(1)).cookie
        for number in range(100):
            near.send(PAYLOAD_HEADER.pack(flow_number(1, number), 0, cookie))
        near.send(ArrivalQuery(1, 1, 0).pack(secret_of(1)))
        async with asyncio.timeout(20):
            while not excess:  # noqa: ASYNC110 - a list tells nobody
                await asyncio.sleep(0.001)
        assert excess[0].limit == "udp_packets_s"
    finally:
        responder.close()
