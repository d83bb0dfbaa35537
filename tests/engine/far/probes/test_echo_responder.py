"""The echo of datagram probes: once each, never longer, at a bounded rate, with the far end's own times."""

import asyncio
import select
import socket
import time
from collections.abc import AsyncIterator

import pytest
from linkgauge.engine.far.probes.echo_responder import EchoResponder
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.limits import TokenBucket
from linkgauge.engine.model.plan import DATAGRAM_PROBE_SESSION
from linkgauge.engine.protocol.datagram_handshake import DatagramAccepted, DatagramHello, decode_handshake
from linkgauge.engine.protocol.preamble import DataHello
from linkgauge.engine.protocol.probe_datagrams import EchoDatagram, ProbeDatagram, decode_echo
from linkgauge.engine.workloads.session_handshake import SessionSpec

from ...waiting import until

SPEC = SessionSpec(Direction.OUT, DATAGRAM_PROBE_SESSION, 0, None, "ab" * 32)
SECRET = bytes.fromhex(SPEC.secret_hex)


class Scene:
    """The near end's socket of a session, and the responder at its other end."""

    def __init__(self, host: str, echoes_s: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.near, far = (socket.socket(family, socket.SOCK_DGRAM) for _ in range(2))
        for sock in (self.near, far):
            sock.bind((host, 0))
            sock.setblocking(False)
        self.near.connect(far.getsockname())
        far.connect(self.near.getsockname())
        self.responder = EchoResponder(far, SPEC, echoes_s)

    def close(self) -> None:
        """Close both ends."""
        self.responder.close()
        self.near.close()

    async def receive(self) -> bytes:
        """Return the next datagram."""
        async with asyncio.timeout(20):
            while True:
                try:
                    return self.near.recv(2_048)
                except BlockingIOError:
                    await asyncio.sleep(0.001)

    async def echo(self) -> EchoDatagram:
        """Return the next datagram, which is an echo."""
        echo = decode_echo(await self.receive(), SECRET)
        assert echo is not None
        return echo


@pytest.fixture(params=["127.0.0.1", "::1"])
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    """Give a session of either family, after its acceptance."""
    if ":" in request.param and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    made = Scene(request.param, 1_000)
    try:
        assert isinstance(decode_handshake(await made.receive()), DatagramAccepted)
        yield made
    finally:
        made.close()


async def test_a_probe_is_echoed_with_the_times_of_its_arrival_and_its_answer(scene: Scene) -> None:
    """They lie between its sending and its return, on this host's clock as on the far end's."""
    sent_ns = time.monotonic_ns()
    scene.near.send(ProbeDatagram(7, 123).pack(SECRET))
    echo = await scene.echo()
    assert (echo.serial, echo.sent_ns) == (7, 123)
    assert sent_ns <= echo.arrived_ns <= echo.answered_ns <= time.monotonic_ns()


async def test_the_arrival_is_the_kernels_and_not_that_of_the_process(scene: Scene) -> None:
    """A delay of the endpoint's process does not count as latency of the link."""
    scene.near.send(ProbeDatagram(1, 1).pack(SECRET))
    sent_ns = time.monotonic_ns()
    time.sleep(0.1)  # noqa: ASYNC251 - the loop is held up
    held_ns = time.monotonic_ns()
    echo = await scene.echo()
    assert echo.arrived_ns < sent_ns + (held_ns - sent_ns) // 2
    assert echo.answered_ns >= held_ns


async def test_the_same_serial_is_not_echoed_twice_and_strangers_get_nothing(scene: Scene) -> None:
    """Neither do echoes that are sent back, nor other bytes; a serial that was overtaken does."""
    probe = ProbeDatagram(5, 1).pack(SECRET)
    for data in (
        probe,
        probe,
        ProbeDatagram(6, 1).pack(b"another secret"),
        EchoDatagram(7, 1, 2, 3).pack(SECRET),
        b"",
        b"\xff" * 1_400,
        ProbeDatagram(4, 1).pack(SECRET),
        probe,
        ProbeDatagram(9, 1).pack(SECRET),
    ):
        scene.near.send(data)
    assert [(await scene.echo()).serial for _ in range(3)] == [5, 4, 9]
    assert not select.select([scene.near], [], [], 0)[0]


async def test_a_repeated_hello_is_accepted_once_more(scene: Scene) -> None:
    """The first acceptance may have been lost."""
    header = DataHello(bytes(16), SPEC.make_tickets().token(0), Direction.OUT, DATAGRAM_PROBE_SESSION, 0, None)
    scene.near.send(DatagramHello(header).pack())
    assert isinstance(decode_handshake(await scene.receive()), DatagramAccepted)


async def test_a_flood_gets_a_bounded_number_of_echoes_and_leaves_the_loop_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A burst of twice the rate, and then none: the clock stands still here."""
    take = TokenBucket.take
    monkeypatch.setattr(TokenBucket, "take", lambda bucket, _now_ns: take(bucket, bucket._then_ns))
    made = Scene("127.0.0.1", 10)
    try:
        assert isinstance(decode_handshake(await made.receive()), DatagramAccepted)
        for serial in range(1, 101):
            made.near.send(ProbeDatagram(serial, 1).pack(SECRET))
        assert [(await made.echo()).serial for _ in range(20)] == list(range(1, 21))
        async with asyncio.timeout(20):
            await until(lambda: made.responder._timer is None)
        assert not select.select([made.near], [], [], 0)[0]
    finally:
        made.close()


async def test_it_outlives_a_near_end_that_has_gone() -> None:
    """An echo that cannot be delivered is refused; it closes when the run does."""
    made = Scene("127.0.0.1", 1_000)
    try:
        address = made.near.getsockname()
        made.near.send(ProbeDatagram(1, 1).pack(SECRET))
        made.near.close()
        far = made.responder._sock.getsockname()
        for serial in range(2, 6):
            await asyncio.sleep(0.001)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
                again.bind(address)
                again.connect(far)
                again.send(ProbeDatagram(serial, 1).pack(SECRET))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.bind(address)
            last.connect(far)
            last.setblocking(False)
            made.near = last
            last.send(ProbeDatagram(100, 1).pack(SECRET))
            while (await made.echo()).serial != 100:
                pass
    finally:
        made.close()
        made.responder.close()
