"""Sessions of iperf3's dialect: their opening, and their payload against stock programs."""

import asyncio
import socket
from typing import Any

import pytest
from linkgauge.engine.model.plan import Direction, Plan, Settings, SocketOptions
from linkgauge.engine.workloads.iperf3.session_opening import connect_stream
from linkgauge.engine.workloads.session_handshake import ConnectTarget, SessionSpec

from ...iperf3_peer import Sessions, drive_far, drive_near, needs_iperf3, stock_server

ENOUGH_BYTES = 20_000_000
RATE = 400_000_000


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
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize(("host", "sessions"), [("127.0.0.1", 1), ("::1", 3)])
async def test_a_stock_server_counts_what_our_streams_carry(direction: Direction, host: str, sessions: int) -> None:
    """Each session is its own stream, and none is lost though the server closes all of them first."""
    keys: dict[Direction, dict[str, Any]] = {
        Direction.OUT: {},
        Direction.IN: {"reverse": True},
        Direction.DUPLEX: {"bidirectional": True},
    }
    parameters = {"tcp": True, "len": 131_072, **keys[direction]}
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
    """The cookie is no payload, whenever it is acknowledged."""
    plan = plan_of(Direction.OUT, sessions, bytes_limit=3_000_001)

    async def until_all(sessions: Sessions) -> None:
        while sessions.carried(Direction.OUT) < 3_000_001:  # noqa: ASYNC110 - counters have no event
            await asyncio.sleep(0.01)

    async with stock_server() as port:
        outcome = await drive_near(plan, port, {"tcp": True, "len": 131_072, "num": 3_000_001}, until_all)
    assert outcome.out_bytes == sum(stream["bytes"] for stream in outcome.results["streams"]) == 3_000_001


@needs_iperf3
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize(("host", "sessions"), [("127.0.0.1", 3), ("::1", 1)])
async def test_a_stock_client_counts_what_our_streams_carry(direction: Direction, host: str, sessions: int) -> None:
    """It drains what is on its way, and reads no reset in place of its end."""
    keys: dict[Direction, list[str]] = {Direction.OUT: [], Direction.IN: ["-R"], Direction.DUPLEX: ["--bidir"]}
    arguments = ("-n", "5M", "-b", f"{RATE // sessions}", "-P", str(sessions), *keys[direction])
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
