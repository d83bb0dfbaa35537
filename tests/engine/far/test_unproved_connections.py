"""Strangers that prove nothing: they neither slow accepting down nor keep clients out."""

import asyncio
import itertools
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

import pytest
import trustme
from linkgauge.engine.control.tls import Certificate
from linkgauge.engine.far.clients.admission import Admission
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.far.unproved_connections import UnprovedConnection, UnprovedConnections
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PeerRefused
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.shared_key import Access, SharedKey
from linkgauge.engine.near.connect import connect, query_host_info
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.framing import encode_frame
from linkgauge.engine.protocol.messages import Hello, Open, Ready
from linkgauge.engine.protocol.preamble import CONTROL_KIND, encode_preamble

from ..certificates import CertificateFiles
from ..conftest import RATE_BIT_S
from ..waiting import until

pytestmark = pytest.mark.usefixtures("fork_server")

KEY = SharedKey("a-key-of-this-test")
PENDING = 16
DEADLINE_S = 20.0  # with one connection accepted in a second, the crowd below takes twice as long
CROWD = 60
GREETING: Final = encode_preamble(CONTROL_KIND) + encode_frame(Hello())
CLIENT_HELLO_HEAD: Final = bytes.fromhex("1603010200010001fc0303")
BUSY: Final = b"it is busy with unproved connections from your network; try again"
UNSHARE: Final = shutil.which("unshare")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """Give a certificate and its key."""
    return CertificateFiles(tmp_path_factory.mktemp("tls"), trustme.CA())


@asynccontextmanager
async def serving(files: CertificateFiles | None, pending: int = PENDING) -> AsyncIterator[tuple[Endpoint, Peer]]:
    """Give an endpoint that waits long for silent connections, and the peer to reach it."""
    certificate = None if files is None else Certificate.load(files.cert, files.key)
    limits = Limits(pending=pending, handshake_s=60)
    fingerprint = None if files is None else files.fingerprint
    async with Endpoint(listen("127.0.0.1", 0), keys=[KEY], certificate=certificate, limits=limits) as endpoint:
        yield endpoint, Peer(*endpoint.address, access=Access(KEY, fingerprint=fingerprint))


def connect_stranger(address: tuple[str, int], kind: str, source: str) -> socket.socket:
    """Connect from an address, speak as far as `kind` says, and fall silent."""
    sock = socket.create_connection(address, DEADLINE_S, source_address=(source, 0))
    if kind == "TLS":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(sock)
    sock.sendall(
        {"half a client hello": CLIENT_HELLO_HEAD, "preamble": encode_preamble(CONTROL_KIND)}.get(kind, b"")
    )
    return sock


@pytest.mark.parametrize(
    ("kind", "has_tls"),
    [("silent", True), ("half a client hello", True), ("TLS", True), ("silent", False), ("preamble", False)],
)
async def test_silent_strangers_of_many_addresses_do_not_slow_accepting(
    files: CertificateFiles, kind: str, has_tls: bool
) -> None:
    """However far they have come: making room for a newer connection waits for no answer of the older one."""
    strangers: list[socket.socket] = []
    async with serving(files if has_tls else None) as (endpoint, peer):
        try:
            async with asyncio.timeout(DEADLINE_S):
                for number in range(CROWD):
                    source = f"127.0.2.{number + 1}"
                    stranger = await asyncio.to_thread(connect_stranger, endpoint.address, kind, source)
                    strangers.append(stranger)
                assert (await query_host_info(peer)).hostname
        finally:
            for sock in strangers:
                sock.close()


@pytest.mark.parametrize("opening", [b"", GREETING], ids=["silent", "greeting"])
async def test_the_address_with_the_most_connections_loses_its_oldest_and_is_told_why(opening: bytes) -> None:
    """The reason arrives though not all of its words were read. Those of others stay, and so do its newest."""
    async with asyncio.timeout(DEADLINE_S), serving(None) as (endpoint, _peer):
        others = [await asyncio.open_connection(*endpoint.address, local_addr=("127.0.0.3", 0)) for _ in range(3)]
        crowd: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        for _ in range(40):
            crowd.append(await asyncio.open_connection(*endpoint.address, local_addr=("127.0.0.2", 0)))
            crowd[-1][1].write(opening)
        newest = PENDING - len(others)
        for reader, _writer in crowd[:-newest]:
            assert BUSY in await reader.read()
        assert endpoint.get_status().pending == PENDING
        assert endpoint.get_status().totals.rejections == {"pending": 40 - newest}
        assert not endpoint._tasks  # a connection costs one once it has proved the key
        assert not any(reader.at_eof() for reader, _writer in [*others, *crowd[-newest:]])
        for _reader, writer in [*others, *crowd]:
            writer.close()


class DelayedPath:
    """A way to an endpoint, from an address of this host: whatever is sent on it arrives later."""

    def __init__(self, peer: Peer, source: str, delay_s: float = 0.02) -> None:
        self._peer, self._source, self._delay_s = peer, source, delay_s
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Peer:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return replace(self._peer, port=self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = self._peer.host, self._peer.port
        far_reader, far_writer = await asyncio.open_connection(*address, local_addr=(self._source, 0))
        try:
            await asyncio.gather(self._pass_on(reader, far_writer), self._pass_on(far_reader, writer))
        finally:
            writer.close()
            far_writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                asyncio.get_running_loop().call_later(self._delay_s, writer.write, data)
        asyncio.get_running_loop().call_later(self._delay_s, writer.close)


@asynccontextmanager
async def flood(
    address: tuple[str, int], source: str, rate_s: int, opening: bytes = b"", networks: int = 1
) -> AsyncIterator[None]:
    """Have a stranger open connections, that many a second, all of which stay open at its end.

    They come in turn from `source` and the addresses that follow it in the third byte.
    """

    async def connect() -> None:
        loop, began_s = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        while True:
            while len(strangers) < (loop.time() - began_s) * rate_s:
                strangers.append(sock := socket.socket())
                sock.setblocking(False)
                first, second, third, fourth = source.split(".")
                third = str(int(third) + len(strangers) % networks)
                sock.bind((f"{first}.{second}.{third}.{fourth}", 0))
                sock.connect_ex(address)  # over loopback the kernel alone accepts
                sock.send(opening)
            await asyncio.sleep(1 / rate_s)

    strangers: list[socket.socket] = []
    task = asyncio.create_task(connect())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for sock in strangers:
            sock.close()


@pytest.mark.parametrize("opening", [b"", GREETING], ids=["silent", "greeting"])
@pytest.mark.parametrize(
    "source",
    ["127.0.0.2", pytest.param("127.0.0.3", marks=pytest.mark.every)],
    ids=["own network", "other network"],
)
async def test_a_stranger_beside_a_client_keeps_no_new_client_out(source: str, opening: bytes) -> None:
    """However little it proves, while somebody at its address is served, and though the new client is 40 ms away.

    As many connections for each place as with 1,000 a second and the default limit.
    """
    plan = Plan(Settings(Direction.DUPLEX, 2), duration_ns=SECOND_NS // 2, rate_bit_s=RATE_BIT_S // 100)
    async with (
        asyncio.timeout(DEADLINE_S),
        serving(None, 32) as (endpoint, peer),
        DelayedPath(peer, "127.0.0.2", 0) as beside,
        DelayedPath(peer, source) as path,
        open_run(replace(plan, duration_ns=60 * SECOND_NS), beside),
        flood(endpoint.address, "127.0.0.2", 62, opening),
    ):
        await until(lambda: endpoint.get_status().pending == 32)
        for _ in range(2):
            async with open_run(plan, path) as run:
                events = [event async for event in run]
            assert events[-1].end.reason is Reason.COMPLETED


@pytest.mark.parametrize("opening", [b"", GREETING], ids=["silent", "greeting"])
async def test_strangers_of_many_networks_and_of_its_own_keep_no_new_client_out(opening: bytes) -> None:
    """They leave its own network few places, which a slow stranger there would renew before it has proved itself.

    As many connections for each place as with 672 a second and the default limit, from 200 ms away.
    """
    async with (
        asyncio.timeout(DEADLINE_S),
        serving(None, 64) as (endpoint, peer),
        DelayedPath(peer, "127.0.0.2", 0.1) as path,
        flood(endpoint.address, "127.0.3.1", 60, opening, networks=200),
        flood(endpoint.address, "127.0.0.2", 24, opening),
    ):
        await until(lambda: endpoint.get_status().totals.rejections.get("pending", 0) > 64)
        for _ in range(3):
            assert (await query_host_info(path)).hostname


async def test_a_client_that_opens_no_data_connections_gives_strangers_at_its_address_no_places() -> None:
    """They are awaited for some seconds, and the strangers hold all places meanwhile. Another address is served."""
    plan = Plan(Settings(Direction.DUPLEX, 32), duration_ns=SECOND_NS)
    async with (
        asyncio.timeout(DEADLINE_S),
        serving(None, 32) as (endpoint, peer),
        DelayedPath(peer, "127.0.0.2", 0) as beside,
        DelayedPath(peer, "127.0.0.3") as path,
        connect(beside) as (control, _ends),
    ):
        control.send(Open(plan))
        assert isinstance(await control.receive(), Ready)
        async with flood(endpoint.address, "127.0.0.2", 62):
            await until(lambda: endpoint.get_status().totals.rejections.get("pending", 0) > 4)
            assert (await query_host_info(path)).hostname
        assert endpoint.admission.awaited_connections() == {"127.0.0.2": 64}


def test_beyond_half_of_the_places_networks_the_oldest_connection_makes_room_whatever_its_network_has() -> None:
    """The largest network would be left with one place. Below half of them, the largest makes room."""
    places = UnprovedConnections(Admission(Limits(pending=16)), lambda _why: b"")
    with socket.socket() as sock:
        crowd = [UnprovedConnection(sock, f"192.0.2.{number}", places.encode_refusal) for number in range(9)]
        own = [UnprovedConnection(sock, "192.0.2.99", places.encode_refusal) for _ in range(7)]
        assert [places.add_connection(each) for each in [*crowd, *own]] == [None] * 16
        assert [places.make_room() for _ in range(4)] == [*crowd[:2], *own[:2]]


def test_without_a_descriptor_the_service_with_the_most_connections_makes_room() -> None:
    """All of them are descriptors of one process, though each service has places of its own."""
    own = UnprovedConnections(Admission(), lambda _why: b"")
    beside = own.for_iperf3(own.encode_refusal)
    assert own.release_descriptor() is None
    with socket.socket() as sock:
        one, *others = (UnprovedConnection(sock, f"192.0.2.{number}", own.encode_refusal) for number in range(3))
        own.add_connection(one)
        for each in others:
            beside.add_connection(each)
        assert (len(own), len(beside), own.total) == (1, 2, 3)
        assert [own.release_descriptor(), beside.release_descriptor()] == [others[0], one]
        assert own.total == 1


async def test_a_client_that_made_room_is_told_to_try_again() -> None:
    """On the way its words take longer than strangers take to fill all places."""
    async with (
        asyncio.timeout(DEADLINE_S),
        serving(None) as (endpoint, peer),
        DelayedPath(peer, "127.0.0.2", 1.0) as path,
        flood(endpoint.address, "127.0.0.2", 60),
    ):
        with pytest.raises(PeerRefused, match=r"declines: it is busy .* try again \(its limit pending is 16\)"):
            await query_host_info(path)


@pytest.mark.parametrize("has_tls", [True, False])
async def test_strangers_of_many_addresses_take_no_room_from_the_data_connections_of_a_client(
    files: CertificateFiles, has_tls: bool
) -> None:
    """Its connections are several of one address, and theirs one each of many."""
    plan = Plan(
        Settings(Direction.DUPLEX, 12),
        duration_ns=SECOND_NS // 2,
        interval_ns=SECOND_NS // 10,
        rate_bit_s=RATE_BIT_S,
    )
    async with asyncio.timeout(DEADLINE_S), serving(files if has_tls else None, 32) as (endpoint, peer):

        async def come(number: int) -> None:
            for turn in itertools.count():
                if not endpoint.admission.admitted_clients:  # the client itself was a stranger until now
                    await asyncio.sleep(0)
                    continue
                place = f"127.0.{10 + number}.{turn % 20 + 1}"
                _reader, writer = await asyncio.open_connection(*endpoint.address, local_addr=(place, 0))
                strangers.append(writer)

        strangers: list[asyncio.StreamWriter] = []
        crowd = [asyncio.create_task(come(number)) for number in range(4)]
        try:
            async with open_run(plan, peer) as run:
                events = [event async for event in run]
            assert events[-1].end.reason is Reason.COMPLETED
        finally:
            for task in crowd:
                task.cancel()
            await asyncio.wait(crowd)
            for writer in strangers:
                writer.close()
            await query_host_info(peer)  # behind all of them: none is being accepted while the endpoint ends


_MANY_ADDRESSES = """
import asyncio, socket, sys
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.model.limits import Limits
async def main():
    limits = Limits(pending=16, handshake_s=60, clients_per_address=1)
    async with Endpoint(listen(None, 0), limits=limits) as endpoint:
        port = endpoint.address[1]
        loop = asyncio.get_running_loop()
        socks = []
        async def connect(source, target):
            sock = socket.socket(socket.AF_INET6)
            sock.setblocking(False)
            sock.bind((source, 0, 0, 0))
            await loop.sock_connect(sock, (target, port))
            socks.append(sock)
        await connect("2001:db8:0:2::1", "2001:db8:0:1::1")
        for number in range(30):
            await connect(f"2001:db8:0:1::{number % 12 + 1:x}", "2001:db8:0:1::1")
        await asyncio.sleep(0.1)
        print(endpoint.get_status().pending, endpoint.get_status().totals.rejections)
        try:
            print(socks[0].recv(1))
        except BlockingIOError:
            print("open")
        for sock in socks:
            sock.close()

run(main())
"""
_IN_NAMESPACE = (
    "ip link set lo up && for n in 1 2 3 4 5 6 7 8 9 a b c; do ip addr add 2001:db8:0:1::$n/128 dev lo nodad; done "
    '&& ip addr add 2001:db8:0:2::1/128 dev lo nodad && exec "$@"'
)


@pytest.mark.loop("uvloop")
@pytest.mark.skipif(not UNSHARE or not shutil.which("ip"), reason="needs unshare and iproute2")
def test_the_addresses_of_one_ipv6_network_make_room_for_each_other() -> None:
    """A host has 2**64 of them to take: a connection of another network stays."""
    done = subprocess.run(
        [
            UNSHARE or "unshare",
            "--net",
            "sh",
            "-c",
            _IN_NAMESPACE,
            "sh",
            sys.executable,
            "-P",
            "-c",
            _MANY_ADDRESSES,
        ],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    if "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout.splitlines() == ["16 {'pending': 15}", "open"], done.stderr
