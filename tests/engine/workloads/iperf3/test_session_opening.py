"""Sessions of iperf3's dialect: their opening, and their payload against stock programs."""

import asyncio
import itertools
import socket
from typing import Any

import pytest
from linkgauge.engine.model.datagram_counters import DATAGRAM_COUNTER_NAMES
from linkgauge.engine.model.plan import Direction, End, Mode, Plan, Settings, SocketOptions
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.workloads.iperf3 import session_opening
from linkgauge.engine.workloads.iperf3.session_opening import connect_datagrams, connect_stream, open_session
from linkgauge.engine.workloads.session_handshake import ConnectTarget, Iperf3Format, SessionConfig, SessionSpec
from linkgauge.engine.workloads.udp import socket_options

from ...iperf3_peer import Outcome, Sessions, drive_far, drive_near, needs_iperf3, stock_server, until_all_is_read
from ...waiting import until

ENOUGH_BYTES = 20_000_000
RATE = 400_000_000
LIMIT_BYTES = 24 * 131_072  # servers since 3.16 count whole blocks only
KEYS: dict[Direction, dict[str, Any]] = {
    Direction.OUT: {},
    Direction.IN: {"reverse": True},
    Direction.DUPLEX: {"bidirectional": True},
}
OPTIONS: dict[Direction, list[str]] = {Direction.OUT: [], Direction.IN: ["-R"], Direction.DUPLEX: ["--bidir"]}
_FIRST = {(Direction.OUT, "127.0.0.1", 1), (Direction.IN, "::1", 3), (Direction.DUPLEX, "::1", 1)}
CASES = [
    pytest.param(*case, marks=() if case in _FIRST else pytest.mark.every)
    for case in itertools.product(Direction, ("127.0.0.1", "::1"), (1, 3))
]


def plan_of(direction: Direction, sessions: int = 1, **values: Any) -> Plan:
    """Return a plan of streams in iperf3's blocks."""
    window = values.pop("window_bytes", None)
    return Plan(Settings(direction, sessions, window), block_bytes=131_072, rate_bit_s=RATE, **values)


async def until_enough(sessions: Sessions) -> None:
    """Wait until every session of both directions has carried something, and all of them enough."""
    counters = sessions.pool.counters
    while sum(map(sessions.carried, Direction.DUPLEX.flows)) < ENOUGH_BYTES or any(  # noqa: ASYNC110
        not (slot := counters.read(event.info.direction, event.info.session)) or not slot.bytes
        for event in sessions.opened
    ):
        await asyncio.sleep(0.01)


@needs_iperf3
@pytest.mark.parametrize(("direction", "host", "sessions"), CASES)
async def test_a_stock_server_counts_what_our_streams_carry(direction: Direction, host: str, sessions: int) -> None:
    """Each session is its own stream, and none is lost though the server closes all of them first."""
    parameters = {"tcp": True, "len": 131_072, **KEYS[direction]}
    async with stock_server(host) as port:
        outcome = await drive_near(plan_of(direction, sessions), port, parameters, until_enough, host=host)
    assert outcome.failed == []
    streams = outcome.results["streams"]
    assert len(streams) == sessions * len(direction.flows)
    carried = outcome.out_bytes + outcome.in_bytes
    theirs = sum(stream["bytes"] for stream in streams)
    assert carried >= ENOUGH_BYTES
    # What was on its way when the test ended is in one count only: the buffers of the sessions, at most.
    assert abs(theirs - carried) < 8_000_000 * sessions * len(direction.flows)
    assert all(stream["bytes"] for stream in streams)


@needs_iperf3
@pytest.mark.parametrize("sessions", [1, 3])
async def test_a_limit_of_bytes_is_the_same_count_at_both_ends(sessions: int) -> None:
    """The cookie is no payload, whenever it is acknowledged, and every session carries whole blocks.

    The server counts what it has read by the end of the test, and a busy machine keeps it from reading.
    """
    plan = plan_of(Direction.OUT, sessions, bytes_limit=LIMIT_BYTES)
    async with stock_server() as port:

        async def until_all(sessions: Sessions) -> None:
            await until(lambda: sessions.carried(Direction.OUT) >= LIMIT_BYTES)
            await until_all_is_read(port)

        outcome = await drive_near(plan, port, {"tcp": True, "len": 131_072, "num": LIMIT_BYTES}, until_all)
    assert outcome.out_bytes == sum(stream["bytes"] for stream in outcome.results["streams"]) == LIMIT_BYTES


@needs_iperf3
@pytest.mark.parametrize(("direction", "host", "sessions"), CASES)
async def test_a_stock_client_counts_what_our_streams_carry(direction: Direction, host: str, sessions: int) -> None:
    """It drains what is on its way, and reads no reset in place of its end."""
    arguments = ("-n", "5M", "-b", f"{RATE // sessions}", "-P", str(sessions), *OPTIONS[direction])
    outcome = await drive_far(plan_of(direction, sessions), *arguments, host=host)
    assert outcome.failed == []
    assert outcome.results["sum_received"]["bytes"] > 0
    for flow, carried in ((Direction.OUT, outcome.out_bytes), (Direction.IN, outcome.in_bytes)):
        assert bool(carried) is (flow in direction.flows)


@needs_iperf3
async def test_the_window_of_a_test_is_set_before_its_streams_connect() -> None:
    """A stock server reports what it got for the same request."""
    plan = plan_of(Direction.OUT, window_bytes=65_536, socket=SocketOptions(mss_bytes=1_000))
    async with stock_server() as port:
        parameters = {"tcp": True, "len": 131_072, "window": 65_536, "MSS": 1_000}
        sessions: list[Sessions] = []

        async def until(running: Sessions) -> None:
            sessions.append(running)

        await drive_near(plan, port, parameters, until)
    info = sessions[0].opened[0].info
    assert info.window_granted_bytes == 65_536
    assert info.mss_bytes is not None
    assert info.mss_bytes <= 1_000


async def test_a_stream_sends_its_cookie_and_nothing_else() -> None:
    """Nothing comes back, and nothing is awaited."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as sock:
        sock.setblocking(False)
        cookie = bytes(range(37))
        spec = SessionSpec(Direction.OUT, 1, 0, None, cookie.hex())
        await connect_stream(sock, spec, ConnectTarget.from_address("", listener.getsockname()), SocketOptions())
        accepted, _ = listener.accept()
        with accepted:
            accepted.settimeout(5)
            assert accepted.recv(100) == cookie


def datagram_plan(direction: Direction, sessions: int) -> Plan:
    """Return a plan of 40 Mb/s in each direction."""
    settings = Settings(direction, sessions, rate_bit_s=40_000_000, datagram_bytes=1_400)
    return Plan(settings, workload=Workload.UDP)


def counted(outcome: Outcome, direction: Direction, name: str) -> int:
    """Return a counter of the first session of a direction."""
    value = outcome.datagrams[direction][DATAGRAM_COUNTER_NAMES.index(name)]
    assert value is not None
    return value


@needs_iperf3
@pytest.mark.parametrize(("direction", "host", "sessions"), CASES)
async def test_a_stock_server_exchanges_our_datagrams(direction: Direction, host: str, sessions: int) -> None:
    """In each direction the receiver has counted what the sender has sent, in headers of both sizes.

    On a busy machine a worker may read so late that its socket has no room: those are counted as well, as dropped.
    """
    is_wide = sessions == 1
    plan = datagram_plan(direction, sessions)
    parameters = {"udp": True, "len": 1_400, "bandwidth": 40_000_000 // sessions, **KEYS[direction]}
    if is_wide:
        parameters["udp_counters_64bit"] = 1

    async def until_some(running: Sessions) -> None:
        await until(lambda: not (any(running.carried(flow) < 700_000 for flow in direction.flows)))

    async with stock_server(host) as port:
        outcome = await drive_near(plan, port, parameters, until_some, host=host, has_64bit_counters=is_wide)
    assert outcome.failed == []
    streams = outcome.results["streams"]
    assert len(streams) == sessions * len(direction.flows)
    for flow, stream in zip(direction.flows, streams[::sessions], strict=True):
        if flow is Direction.OUT:
            sent, received = counted(outcome, flow, "sent"), stream["packets"]
            assert stream["errors"] == 0
        else:
            read, dropped = counted(outcome, flow, "received"), counted(outcome, flow, "socket_dropped")
            sent, received = stream["packets"], read + dropped
            assert counted(outcome, flow, "invalid") == 0
            assert read <= counted(outcome, flow, "advanced") <= received
        assert sent * 0.7 < received <= sent + 100


@needs_iperf3
@pytest.mark.parametrize(("direction", "host", "sessions"), CASES)
async def test_a_stock_client_exchanges_our_datagrams(direction: Direction, host: str, sessions: int) -> None:
    """It prints the datagrams that were sent, and none out of order."""
    is_wide = sessions == 1
    arguments = ["-u", "-n", "700K", "-l", "1400", "-b", f"{40_000_000 // sessions}", "-P", str(sessions)]
    arguments += OPTIONS[direction] + ["--udp-counters-64bit"] * is_wide
    plan = datagram_plan(direction, sessions)
    outcome = await drive_far(plan, *arguments, host=host, has_64bit_counters=is_wide)
    assert outcome.failed == []
    for flow in direction.flows:
        theirs = next(
            each["udp"] for each in outcome.results["streams"] if each["udp"]["sender"] is (flow is Direction.OUT)
        )
        if flow is Direction.OUT:
            assert counted(outcome, flow, "invalid") == 0
            assert counted(outcome, flow, "received") == counted(outcome, flow, "advanced")
            assert theirs["packets"] * 0.7 < counted(outcome, flow, "received") <= theirs["packets"]
        else:
            # A client that is held up for long has no room for what comes: it loses datagrams of any server.
            assert theirs["out_of_order"] == 0
            assert theirs["lost_packets"] < theirs["packets"]
            assert theirs["packets"] * 0.7 < counted(outcome, flow, "sent")


async def test_a_silent_udp_port_is_told_from_a_closed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The TCP port answers in both cases; the remedies differ."""
    monkeypatch.setattr(session_opening, "HELLO_DEADLINE_S", 0.1)
    with socket.socket(type=socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        target = ConnectTarget.from_address("", server.getsockname())
        with socket.socket(type=socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            with pytest.raises(OSError, match="nothing came back from its UDP port"):
                await connect_datagrams(sock, target, SocketOptions())
        assert server.recv(100) == b"9876"
        server.setblocking(False)
        with pytest.raises(BlockingIOError):  # a second hello would be a second stream
            server.recv(100)
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        with pytest.raises(OSError, match="nothing takes UDP on that port"):
            await connect_datagrams(sock, target, SocketOptions())


@pytest.mark.parametrize("reply", ["36373839", "39383736", "b168de3a", "3ade68b1"])
async def test_the_reply_of_every_version_opens_a_session(reply: str) -> None:
    """After datagrams of payload, which a server may send too early."""
    with socket.socket(type=socket.SOCK_DGRAM) as server, socket.socket(type=socket.SOCK_DGRAM) as sock:
        server.bind(("127.0.0.1", 0))
        sock.setblocking(False)
        sock.bind(("127.0.0.1", 0))
        target = ConnectTarget.from_address("", server.getsockname())
        for data in (bytes(1_400), b"678", bytes.fromhex(reply)):
            server.sendto(data, sock.getsockname())
        # A connected socket still has what came before.
        await connect_datagrams(sock, target, SocketOptions())
        server.settimeout(5)
        assert server.recv(100) == b"9876"


async def test_an_adopted_socket_forgets_what_came_before_it_was_connected() -> None:
    """A stranger's datagram may have come in between, and would be payload."""
    with socket.socket(type=socket.SOCK_DGRAM) as stranger, socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.bind(("127.0.0.1", 0))
        for _ in range(10):
            stranger.sendto(bytes(1_400), sock.getsockname())
        sock.connect(("127.0.0.1", 9))
        config = SessionConfig(End.FAR, Workload.UDP, SocketOptions(), Iperf3Format())
        await open_session(sock, SessionSpec(Direction.OUT, 1, 0, None, ""), None, config)
        with pytest.raises(BlockingIOError):
            sock.recv(1)


async def test_a_receiver_has_its_buffer_before_the_hello() -> None:
    """A server sends as soon as it has answered the last hello: what finds no room is lost."""
    plan = datagram_plan(Direction.IN, 1)
    granted: list[int] = []
    with socket.socket(type=socket.SOCK_DGRAM) as server, socket.socket(type=socket.SOCK_DGRAM) as sock:
        server.bind(("127.0.0.1", 0))

        def answer() -> None:
            _, address = server.recvfrom(100)
            granted.append(sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
            server.sendto(b"6789", address)

        loop = asyncio.get_running_loop()
        loop.add_reader(server, answer)
        config = SessionConfig(End.NEAR, Workload.UDP, SocketOptions(), Iperf3Format())
        target = ConnectTarget.from_address("", server.getsockname())
        spec = SessionSpec(Direction.IN, 1, 0, None, "")
        await open_session(sock, spec, target, config, plan.settings)
        loop.remove_reader(server)
        socket_options.set_up_receiver(sock, Mode.QUALITY, plan.settings)
        assert granted == [sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)]
