"""The UDP port of the iperf3 service: hellos of every version, turns of one client's tests, strangers."""

import asyncio
import select
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from linkgauge.engine.far.listener import listen
from linkgauge.engine.iperf3.far import run as far_run
from linkgauge.engine.iperf3.far.datagram_hellos import DatagramHellos
from linkgauge.engine.iperf3.far.run import ClientTest
from linkgauge.engine.iperf3.protocol.datagrams import HELLO, OLD_HELLO, OLD_REPLY, REPLY
from linkgauge.engine.iperf3.protocol.refusals import ErrorNumber
from linkgauge.engine.iperf3.protocol.states import State
from linkgauge.engine.model.errors import RemoteProtocolError

from ...waiting import DEADLINE_S, until
from .stock_clients import RawClient, serve

ADDRESSES = [("127.0.0.1", "127.0.0.1"), (None, "127.0.0.1"), (None, "::1"), (None, "127.0.0.9")]
UDP = {"tcp": False, "udp": True, "len": 1000, "bandwidth": 10**7}


class Streams(ClientTest):
    """A test that takes a number of sockets, without a client."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.sockets: list[socket.socket] = []

    @property
    def stream_count(self) -> int:
        """The number of sockets."""
        return self.count

    @property
    def takes_streams(self) -> bool:
        """Return whether one is missing."""
        return len(self.sockets) < self.count

    async def attach_stream(self, sock: socket.socket, serial: int) -> None:
        """Keep a socket."""
        assert serial == len(self.sockets) + 1
        if not self.takes_streams:
            raise RemoteProtocolError("one too many")
        self.sockets.append(socket.socket(fileno=sock.detach()))

    def close(self) -> None:
        """Close all sockets."""
        for sock in self.sockets:
            sock.close()


@asynccontextmanager
async def open_hellos(host: str | None) -> AsyncIterator[tuple[DatagramHellos, int, list[str]]]:
    """Give an open port, its number and its log."""
    log: list[str] = []
    with listen(host, 0) as listener:
        hellos = DatagramHellos(log.append)
        hellos.open(listener)
        try:
            yield hellos, listener.getsockname()[1], log
        finally:
            await hellos.close()


def make_client(host: str, port: int) -> socket.socket:
    """Return a socket that talks to the port."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    sock.connect((host, port))
    return sock


async def receive(sock: socket.socket) -> bytes:
    """Return the next datagram."""
    async with asyncio.timeout(DEADLINE_S):
        return await asyncio.get_running_loop().sock_recv(sock, 100)


@pytest.mark.parametrize(("bind", "host"), ADDRESSES)
async def test_a_hello_of_each_version_opens_a_stream_from_the_address_it_was_sent_to(
    bind: str | None, host: str
) -> None:
    """The reply comes from the address that the hello went to: the client's socket is connected to it."""
    async with open_hellos(bind) as (hellos, port, log):
        test = Streams(3)
        clients = [make_client(host, port) for _ in range(3)]
        source = clients[0].getsockname()[0]
        async with hellos.take_turn(source, test):
            for client, hello, reply in zip(
                clients, (HELLO, OLD_HELLO, b"\0\0\0\1"), (REPLY, OLD_REPLY, OLD_REPLY), strict=True
            ):
                client.send(hello)
                assert await receive(client) == reply
            await until(lambda: not test.takes_streams)
        for client, stream in zip(clients, test.sockets, strict=True):
            client.send(b"payload")
            assert await receive(stream) == b"payload"
            client.close()
        test.close()
        assert not log


async def test_a_hello_that_comes_twice_or_from_a_stranger_opens_nothing() -> None:
    """A second stream would be in the place of one that comes later."""
    async with open_hellos("127.0.0.1") as (hellos, port, log):
        test, client, stranger = Streams(2), make_client("127.0.0.1", port), socket.socket(type=socket.SOCK_DGRAM)
        stranger.bind(("127.0.0.3", 0))
        async with hellos.take_turn("127.0.0.1", test):
            stranger.sendto(HELLO, ("127.0.0.1", port))
            client.send(HELLO)
            client.send(HELLO)
            client.send(b"too long for a hello")
            assert await receive(client) == REPLY
            await asyncio.sleep(0.1)
        assert len(test.sockets) == 1
        client.send(HELLO)  # after the turn
        other = make_client("127.0.0.1", port)
        other.send(HELLO)
        await asyncio.sleep(0.1)
        assert len(log) == 2
        with pytest.raises(BlockingIOError):
            other.recv(10)
        hellos.forget(test)
        for sock in (client, stranger, other):
            sock.close()
        test.close()


async def test_a_test_opens_as_many_sockets_as_it_has_streams() -> None:
    """However many hellos are in the queue: each takes a socket before its test knows of it."""
    async with serve() as scene:
        client = await RawClient.connect(scene.port)
        await client.send_parameters(**UDP)
        assert await client.state() is State.CREATE_STREAMS
        crowd = [make_client("127.0.0.1", scene.port) for _ in range(100)]
        for sock in crowd:
            sock.send(HELLO)
        assert await client.state() is State.TEST_START
        await asyncio.sleep(0.1)
        answers = [sock for sock in crowd if select.select([sock], [], [], 0)[0]]
        assert len(answers) == 1
        for sock in crowd:
            sock.close()
        await client.close()


async def test_tests_of_one_client_open_their_streams_in_turn_and_others_do_not_wait() -> None:
    """A test that is waited for is known by its turn alone."""
    async with open_hellos("127.0.0.1") as (hellos, _, _log):
        order: list[str] = []
        first_may_go = asyncio.Event()

        async def hold(client: str, name: str, until: asyncio.Event | None = None) -> None:
            async with hellos.take_turn(client, Streams(1)):
                order.append(name)
                if until is not None:
                    await until.wait()

        tasks = [asyncio.create_task(hold("192.0.2.1", "first", first_may_go))]
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(hold("192.0.2.1", "second")), asyncio.create_task(hold("192.0.2.2", "other"))]
        await asyncio.sleep(0.01)
        assert order == ["first", "other"]
        first_may_go.set()
        await asyncio.gather(*tasks)
        assert order == ["first", "other", "second"]


async def test_a_hello_that_is_lost_ends_its_test_and_lets_the_next_one_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A firewall that lets no UDP through, and a client that does not need it."""
    monkeypatch.setattr(far_run, "STREAMS_DEADLINE_S", 0.3)
    async with serve() as scene:
        silent, other = await RawClient.connect(scene.port), await RawClient.connect(scene.port)
        await silent.send_parameters(**UDP)
        assert await silent.state() is State.CREATE_STREAMS
        await other.send_parameters(**UDP)
        assert await silent.error() == ErrorNumber.STREAM_ACCEPT
        assert await other.state() is State.CREATE_STREAMS
        sock = make_client("127.0.0.1", scene.port)
        sock.send(HELLO)
        assert await receive(sock) == REPLY
        assert await other.state() is State.TEST_START
        sock.close()
        await silent.close()
        await other.close()


async def test_a_client_that_goes_while_it_waits_for_its_turn_is_not_waited_for() -> None:
    """Its slot is free at once."""
    async with serve() as scene:
        first, second = await RawClient.connect(scene.port), await RawClient.connect(scene.port)
        await first.send_parameters(**UDP)
        assert await first.state() is State.CREATE_STREAMS
        await second.send_parameters(**UDP)
        await until(lambda: sum(each.run is not None for each in scene.endpoint.get_status().clients) == 2)
        await second.close()
        async with asyncio.timeout(2):
            await until(lambda: len(scene.endpoint.get_status().clients) <= 1)
        await first.close()
