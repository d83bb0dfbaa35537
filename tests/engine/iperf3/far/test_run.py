"""One test of an iperf3 client: clients that break off in every state, deadlines, the end of the endpoint."""

import asyncio
import contextlib
import signal
import socket
import struct
from collections.abc import Awaitable, Callable

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.far.status import LogEntry
from linkgauge.engine.iperf3.far import run as far_run
from linkgauge.engine.iperf3.far.server_output import Iperf3Options
from linkgauge.engine.iperf3.far.service import Iperf3Service
from linkgauge.engine.iperf3.protocol.datagrams import HEADER_32, HELLO, REPLY
from linkgauge.engine.iperf3.protocol.refusals import ErrorNumber
from linkgauge.engine.iperf3.protocol.states import State
from linkgauge.engine.model.limits import Limits

from ...iperf3_peer import needs_iperf3
from ...waiting import DEADLINE_S, until
from .stock_clients import RawClient, finish, serve, start_client

pytestmark = pytest.mark.usefixtures("fork_server")

Step = Callable[[RawClient], Awaitable[object]]


async def nothing(_client: RawClient) -> None:
    """Send the cookie alone."""


async def asked(client: RawClient) -> None:
    """Be asked for parameters."""
    assert await client.state() is State.PARAM_EXCHANGE


async def half_a_document(client: RawClient) -> None:
    """Send a part of the parameters."""
    await asked(client)
    client.writer.write(struct.pack(">I", 100) + b"{")


async def no_stream(client: RawClient) -> None:
    """Be asked for streams."""
    await client.send_parameters(parallel=2)
    assert await client.state() is State.CREATE_STREAMS


async def one_stream(client: RawClient) -> None:
    """Open one of two streams."""
    await no_stream(client)
    await client.open_stream()


async def receives(client: RawClient) -> None:
    """Receive, and read nothing."""
    await client.start(reverse=True)


async def sends(client: RawClient) -> None:
    """Send a few bytes."""
    await client.start()
    await asyncio.get_running_loop().sock_sendall(client.streams[0], bytes(100_000))


async def ended(client: RawClient) -> None:
    """End the test, and send no results."""
    await client.start(2, bidirectional=True)
    client.writer.write(State.TEST_END.wire_byte)
    assert await client.state() is State.EXCHANGE_RESULTS


async def undone(client: RawClient) -> None:
    """Exchange results, and do not say that it is done."""
    await client.start()
    await client.exchange()
    assert await client.state() is State.DISPLAY_RESULTS


STEPS: list[Step] = [nothing, asked, half_a_document, no_stream, one_stream, receives, sends, ended, undone]


async def go(port: int, step: Step) -> RawClient:
    """Return a client after a step."""
    client = await RawClient.connect(port)
    await step(client)
    return client


def reset(sock: socket.socket) -> None:
    """Have a socket reset its connection when it closes."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("is_reset", [False, True])
async def test_clients_that_break_off_in_any_state_leave_nothing(*, is_reset: bool) -> None:
    """All states at once. Each client that had begun a test is in the log with the reason."""
    async with serve() as scene:
        clients = await asyncio.gather(*(go(scene.port, step) for step in STEPS))
        assert len(scene.endpoint.get_status().clients) == len(STEPS) - 3
        for client in clients:
            if is_reset:
                for sock in client.streams:
                    reset(sock)
                client.writer.transport.abort()
            await client.close()
        await scene.has_no_clients()
        assert {end["reason"] for end in scene.ends()} == {"peer_lost"}
        assert len(scene.ends()) == len(STEPS) - 3


@pytest.mark.every
async def test_clients_that_fall_silent_before_and_after_payload_are_not_waited_for() -> None:
    """Every state but the test itself has a deadline, though the client's host answers."""
    silent = [step for step in STEPS if step not in {receives, sends}]
    async with serve() as scene:
        clients = await asyncio.gather(*(go(scene.port, step) for step in silent))
        try:
            async with asyncio.timeout(10):
                await scene.has_no_clients()
        finally:
            for client in clients:
                await client.close()


async def test_a_stream_that_never_comes_ends_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the number for that."""
    monkeypatch.setattr(far_run, "STREAMS_DEADLINE_S", 0.2)
    async with serve() as scene:
        client = await go(scene.port, one_stream)
        assert await client.error() == ErrorNumber.STREAM_ACCEPT
        await client.close()


async def test_all_streams_have_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a long way they have more time together; one now and then keeps no place for ever."""
    monkeypatch.setattr(far_run, "STREAMS_DEADLINE_S", 0.3)
    async with serve() as scene:
        for pause_s, last in ((0.2, State.TEST_START), (0.5, State.SERVER_ERROR)):
            client = await RawClient.connect(scene.port)
            await client.send_parameters(parallel=5)
            assert await client.state() is State.CREATE_STREAMS
            with contextlib.suppress(ConnectionError):
                for _ in range(5):
                    await asyncio.sleep(pause_s)
                    await client.open_stream()
            assert await client.state() is last
            await client.close()


async def test_an_endpoint_that_drains_lets_a_test_finish_and_takes_no_further_one() -> None:
    """A later client reads that it is busy, as a client of any version understands."""
    async with serve() as scene:
        client = await go(scene.port, sends)
        draining = asyncio.create_task(scene.endpoint.drain(DEADLINE_S))
        await asyncio.sleep(0)
        late = await RawClient.connect(scene.port)
        await late.send_parameters()
        assert await late.state() is State.ACCESS_DENIED
        assert not draining.done()
        await client.exchange()
        client.writer.write(State.IPERF_DONE.wire_byte)
        await client.close()
        async with asyncio.timeout(DEADLINE_S):
            await draining
        await late.close()
        assert [end["reason"] for end in scene.ends()] == ["completed"]


@needs_iperf3
@pytest.mark.parametrize(("number", "reason"), [(signal.SIGINT, "stopped"), (signal.SIGKILL, "peer_lost")])
@pytest.mark.parametrize("form", ["--bidir", "-R"])
async def test_a_client_that_is_stopped_or_killed_frees_its_slot(
    number: signal.Signals, reason: str, form: str
) -> None:
    """While payload flows."""
    async with serve() as scene:
        process = await start_client(scene.port, "-t", "30", "-b", "50M", form)
        await until(scene.endpoint.total_bytes)
        process.send_signal(number)
        await process.communicate()
        await scene.has_no_clients()
        assert [end["reason"] for end in scene.ends()] == [reason]


def busy_clients(endpoint: Endpoint) -> list[int]:
    """Return the clients whose test has begun."""
    return [each.number for each in endpoint.get_status().clients if each.run is not None and each.run.elapsed_ns]


@needs_iperf3
async def test_clients_are_told_when_the_endpoint_ends() -> None:
    """In the words that their version has for it; the log has the reason."""
    entries: list[str] = []
    iperf3 = Iperf3Options(listen("127.0.0.1", 0))
    async with Endpoint(listen("127.0.0.1", 0), entries.append) as endpoint, Iperf3Service(iperf3, endpoint):
        port = iperf3.listener.getsockname()[1]
        processes = [await start_client(port, "-t", "30", "-b", "10M", *form) for form in ((), ("-R",))]
        await until(lambda: len(busy_clients(endpoint)) >= 2)
    for process in processes:
        assert "the server has terminated" in (await finish(process)).error
    ends = [entry for entry in entries if isinstance(entry, LogEntry) and entry.event == "run_ended"]
    assert [entry.fields["reason"] for entry in ends] == ["peer_stopped"] * 2


@needs_iperf3
@pytest.mark.parametrize("form", ["-R", pytest.param("--bidir", marks=pytest.mark.every)])
async def test_a_test_without_an_end_is_ended_at_the_longest_duration(form: str) -> None:
    """A client may ask for a test without an end; the endpoint's limit ends it."""
    async with serve(limits=Limits(duration_s=1)) as scene:
        process = await start_client(scene.port, "-t", "0", "-b", "10M", form)
        assert (await finish(process)).error
        await scene.has_no_clients()
        assert [end["reason"] for end in scene.ends()] == ["peer_stopped"]
        assert "longest duration" in scene.texts("run_ended")[0]


async def test_a_client_that_brings_more_datagrams_than_a_limit_is_stopped() -> None:
    """Whatever its rate."""
    async with serve(limits=Limits(udp_rate_bit_s=1_000_000)) as scene:
        client = await RawClient.connect(scene.port)
        await client.send_parameters(tcp=False, udp=True, len=1000, bandwidth=500_000)
        assert await client.state() is State.CREATE_STREAMS
        sock = socket.socket(type=socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.connect(("127.0.0.1", scene.port))
        client.streams.append(sock)
        loop = asyncio.get_running_loop()
        sock.send(HELLO)
        assert await loop.sock_recv(sock, 10) == REPLY
        assert await client.state() is State.TEST_START
        assert await client.state() is State.TEST_RUNNING
        error = asyncio.create_task(client.error())
        number = 0
        async with asyncio.timeout(DEADLINE_S):
            while not error.done():
                for _ in range(20):
                    number += 1
                    with contextlib.suppress(OSError):
                        sock.send(HEADER_32.pack(0, 0, number) + bytes(988))
                await asyncio.sleep(0.02)
        assert await error == ErrorNumber.TOTAL_RATE
        await client.close()
        await scene.has_no_clients()
        assert [end["reason"] for end in scene.ends()] == ["peer_stopped"]


async def test_a_state_out_of_order_ends_the_test() -> None:
    """A client may only end, stop, or be done."""
    async with serve() as scene:
        for byte in (State.IPERF_DONE.wire_byte, State.TEST_RUNNING.wire_byte, b"\x63"):
            client = await go(scene.port, sends)
            client.writer.write(byte)
            assert await client.error() == ErrorNumber.MESSAGE
            await client.close()


async def test_results_that_cannot_be_used_end_the_test() -> None:
    """Values are bounded before they reach any sum."""
    stream = {"id": 1, "bytes": 2**70, "retransmits": -1, "jitter": 0, "errors": 0, "packets": 0}
    async with serve() as scene:
        for streams in ([stream], [{"id": 1}], "none", [stream | {"bytes": 1}] * 2):
            client = await go(scene.port, sends)
            client.writer.write(State.TEST_END.wire_byte)
            assert await client.state() is State.EXCHANGE_RESULTS
            client.send_json({"streams": streams})
            assert await client.error() == ErrorNumber.MESSAGE
            await client.close()


async def test_the_rest_of_a_number_of_bytes_is_waited_for_while_it_comes() -> None:
    """A client that claims to have sent more than it did waits a second for its results, and no longer."""
    async with serve() as scene:
        client = await RawClient.connect(scene.port)
        await client.start(num=10**12)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(client.streams[0], bytes(1_000_000))
        stream = {"id": 1, "bytes": 1_200_000, "retransmits": 0, "jitter": 0, "errors": 0, "packets": 0}
        exchange = asyncio.create_task(client.exchange(streams=[stream]))
        await asyncio.sleep(0.1)
        await loop.sock_sendall(client.streams[0], bytes(200_000))
        assert (await exchange)["streams"][0]["bytes"] == 1_200_000
        client.writer.write(State.DISPLAY_RESULTS.wire_byte)
        await client.close()
        hopeful = await RawClient.connect(scene.port)
        await hopeful.start(num=10**12)
        assert (await hopeful.exchange(streams=[stream]))["streams"][0]["bytes"] == 0
        await hopeful.close()


async def receive_until_quiet(client: RawClient, quiet_s: float = 0.5, most: int = 32 << 20) -> int:
    """Return the bytes of all streams until none comes for a while, or far too many have come."""

    def receive(sock: socket.socket) -> int:
        sock.settimeout(quiet_s)
        count = 0
        with contextlib.suppress(TimeoutError):
            while count < most:
                count += len(sock.recv(1 << 20))
        return count

    return sum(await asyncio.gather(*(asyncio.to_thread(receive, sock) for sock in client.streams)))


@pytest.mark.parametrize(
    ("version", "asked", "sent"),
    [
        ("3.12", {"num": 5 << 20}, 5 << 20),
        ("3.21", {"num": 5_000_001}, 39 << 17),
        ("3.21", {"blockcount": 40}, 5 << 20),
        (None, {"num": 1_000_001, "len": 1000}, 1_001_000),
    ],
    ids=["bytes", "no whole blocks", "blocks", "small blocks"],
)
async def test_a_client_of_any_version_is_sent_the_bytes_that_it_asks_for_and_no_more(
    version: str | None, asked: dict[str, int], sent: int
) -> None:
    """In whole blocks, as its own server sends them: it waits for the rest of a block that has begun."""
    async with serve() as scene:
        client = await RawClient.connect(scene.port)
        await client.start(2, parallel=2, reverse=True, client_version=version, **asked)
        assert await receive_until_quiet(client) == sent
        results = await client.exchange()
        assert sum(stream["bytes"] for stream in results["streams"]) == sent
        await client.close()


async def test_both_directions_of_a_number_of_bytes_end_at_it() -> None:
    """Only the second stream is sent payload."""
    async with serve() as scene:
        client = await RawClient.connect(scene.port)
        await client.start(2, bidirectional=True, num=5 << 20, client_version="3.21")
        assert await receive_until_quiet(client) == 5 << 20
        await client.close()


@pytest.mark.every
async def test_a_client_that_has_miscounted_its_bytes_gets_more_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of a client share one count without a lock. It would wait for the rest of it for ever."""
    monkeypatch.setattr(far_run, "_UNCOUNTED_NS", 0)
    async with serve() as scene:
        client = await RawClient.connect(scene.port)
        await client.start(reverse=True, num=5 << 20, client_version="3.21")
        assert await receive_until_quiet(client, 1.5, most=6 << 20) >= 6 << 20
        await client.close()


@pytest.mark.every
async def test_bytes_of_the_omitted_part_are_sent_again_after_it() -> None:
    """The counts begin anew then, at both ends."""
    async with serve() as scene:
        client = await RawClient.connect(scene.port)
        await client.start(reverse=True, num=5 << 20, omit=1, client_version="3.21")
        assert await receive_until_quiet(client, 1.5) == 2 * (5 << 20)
        await client.close()
