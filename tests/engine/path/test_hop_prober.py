"""The probes of both ends over one connected pair of sockets: their pace, their answers, and what they ignore."""

import asyncio
import contextlib
import os
import shutil
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from linkgauge.engine.model.directions import End
from linkgauge.engine.path.hop_prober import MAX_PACKETS_S, HopProber, path_secrets
from linkgauge.engine.protocol.probe_datagrams import ProbeDatagram, decode_echo, decode_probe
from linkgauge.engine.protocol.tokens import RunSecret

from ..waiting import until
from .forged_icmp import ForgedIcmp, own_loopback

RUN = RunSecret(b"shared", b"nonce", b"open")
NEAR, FAR = path_secrets(RUN, End.NEAR), path_secrets(RUN, End.FAR)


@dataclass
class Ends:
    """A prober, and the socket at its other end."""

    host: str
    prober: HopProber
    other: socket.socket


def connected_pair(host: str) -> tuple[socket.socket, socket.socket]:
    """Return two UDP sockets that are connected to each other."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    first, second = (socket.socket(family, socket.SOCK_DGRAM) for _ in range(2))
    for sock in (first, second):
        sock.bind((host, 0))
        sock.setblocking(False)
    first.connect(second.getsockname())
    second.connect(first.getsockname())
    return first, second


@pytest.fixture(params=["127.0.0.1", "::1"])
async def ends(request: pytest.FixtureRequest) -> AsyncIterator[Ends]:
    """Give a near prober, and a socket in place of the far one."""
    near, far = connected_pair(request.param)
    prober = HopProber(near, End.NEAR, NEAR)
    with far:
        yield Ends(request.param, prober, far)
    prober.close()
    prober.close()


async def receive(sock: socket.socket) -> bytes:
    """Return the next datagram."""
    async with asyncio.timeout(20):
        while True:
            try:
                return sock.recv(2_048)
            except BlockingIOError:
                await asyncio.sleep(0.001)


async def test_two_probers_find_each_other_in_one_hop() -> None:
    """And then probe this hop alone, ten times a second."""
    near, far = connected_pair("127.0.0.1")
    probers = [HopProber(near, End.NEAR, NEAR), HopProber(far, End.FAR, FAR)]
    try:
        await until(lambda: all(prober.take_trace().is_reached for prober in probers))
        for prober in probers:
            prober.begin_load()
        await until(lambda: all(sum(prober.take_trace().received) >= 10 for prober in probers))
        for prober in probers:
            (hop,) = prober.take_trace().hops
            assert hop.routers == ("127.0.0.1",)
            assert all(sent <= 8 for sent in hop.sent[1:])
    finally:
        for prober in probers:
            prober.close()


async def test_probes_of_this_end_are_no_probes_of_the_other_one(ends: Ends) -> None:
    """A reflector on the path gets no echo, and an echo that nobody asked for counts as nothing."""
    reflected = await receive(ends.other)
    ends.other.send(reflected)
    ends.other.send(os.urandom(58))
    ends.other.send(ProbeDatagram(1 << 40, 1).echo(1, 2).pack(NEAR[0]))
    probe = ProbeDatagram(1, 5)
    ends.other.send(probe.pack(FAR[0]))
    while (echo := decode_echo(await receive(ends.other), FAR[0])) is None:
        pass
    assert (echo.serial, echo.sent_ns) == (1, 5)
    assert not ends.prober.take_trace().is_reached


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="forged messages of ICMP need root and iproute2"
)
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_forged_messages_of_icmp_take_no_memory_and_break_no_trace(host: str) -> None:
    """Whatever MTU they report, and whatever datagram they say has ended on its way."""
    with own_loopback():
        near, far = connected_pair(host)
        addresses = near.getsockname()[:2], far.getsockname()[:2]
        forged = ForgedIcmp(*addresses)
    ends = Ends(host, HopProber(near, End.NEAR, NEAR), far)
    await receive(ends.other)
    try:
        for mtu_bytes in ((1 << 32) - 1, 1 << 31, 0, 1, 1_280):
            forged.too_long(mtu_bytes)
        for payload in (b"", os.urandom(42), ProbeDatagram(1 << 40, 1).pack(NEAR[0]), bytes(1_000)):
            forged.time_exceeded(payload)
        await until(lambda: any(each.mtu_bytes == 1_280 for each in ends.prober.take_trace().mtus))
        tries = [len(await receive(ends.other)) for _ in range(20)]
        assert max(tries) <= 65_507
        ends.prober.begin_load()
        trace = ends.prober.take_trace()
        assert (trace.is_reached, [hop.routers for hop in trace.hops]) == (False, [])
    finally:
        forged.close()
        ends.prober.close()
        far.close()


async def test_no_more_probes_are_sent_than_allowed_whatever_comes_back(ends: Ends) -> None:
    """Each is asked for by time alone: echoes, garbage and another end's probes hurry nothing."""
    count, until_s = 0, asyncio.get_running_loop().time() + 1.0
    while asyncio.get_running_loop().time() < until_s:
        with contextlib.suppress(BlockingIOError):
            data = ends.other.recv(70_000)
            count += decode_probe(data, NEAR[0]) is not None
            for _ in range(20):
                ends.other.send(data)
        await asyncio.sleep(0)
    assert 0 < count <= MAX_PACKETS_S * 1.5


async def test_what_is_neither_a_probe_nor_an_echo_is_passed_on() -> None:
    """The far end answers a repeated hello."""
    near, far = connected_pair("127.0.0.1")
    taken: list[bytes] = []
    prober = HopProber(far, End.FAR, FAR, 50, taken.append)
    try:
        near.send(b"hello")
        await until(lambda: taken)
        assert taken == [b"hello"]
    finally:
        prober.close()
        near.close()


async def test_a_port_that_nobody_has_any_more_stops_neither_the_loop_nor_the_probes(ends: Ends) -> None:
    """Its errors are read, on either event loop."""
    address = ends.other.getsockname()
    await receive(ends.other)
    ends.other.close()
    await asyncio.sleep(0.2)
    family = socket.AF_INET6 if ":" in ends.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as again:
        again.bind(address)
        again.setblocking(False)
        await receive(again)
