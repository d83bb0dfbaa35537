"""iperf3's own clients at an endpoint: every kind of test, many at once, refusals, strangers."""

import asyncio
import contextlib
import itertools
import socket
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.far.event_log import MAX_SOURCES
from linkgauge.engine.iperf3.far import service
from linkgauge.engine.iperf3.protocol.refusals import ErrorNumber
from linkgauge.engine.iperf3.protocol.states import State
from linkgauge.engine.iperf3.protocol.users import UserList, hash_password, make_token
from linkgauge.engine.model.events import Ended
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import MIB, SECOND_NS, Plan
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.near.run import open_run

from ...iperf3_peer import needs_iperf3
from ...rsa_keys import private_pem, public_pem, server_key
from ...waiting import DEADLINE_S, until
from .stock_clients import (
    Outcome,
    RawClient,
    finish,
    run_client,
    serve,
    start_client,
)

FORMS: dict[str, tuple[str, ...]] = {"out": (), "in": ("-R",), "duplex": ("--bidir",)}
PROTOCOLS: dict[str, tuple[str, ...]] = {"tcp": (), "udp": ("-u", "-b", "20M", "-l", "1200")}
ENDS: dict[str, tuple[str, ...]] = {
    "time": ("-t", "1"),
    "bytes": ("-n", "1M"),
    "blocks": ("-k", "40"),
    "omit": ("-t", "1", "-O", "1"),
}
FURTHER_OF_UDP = [
    ("-w", "256K"),
    ("-l", "60"),
    ("-l", "20000"),
    ("-b", "2M/5"),
    ("-S", "0x20"),
    ("--udp-counters-64bit",),
    ("-T", "a title", "--get-server-output"),
    ("-6",),
]
FURTHER = [
    ("-w", "64K"),
    ("-M", "1000", "-N"),
    ("-l", "4000"),
    ("-b", "20M"),
    ("-Z",),
    ("-C", "reno"),
    ("-S", "0x20"),
    ("-T", "a title", "--get-server-output"),
    ("--fq-rate", "30M"),
    ("--repeating-payload", "-6"),
]


def check_sound(outcome: Outcome, options: tuple[str, ...]) -> None:
    """Fail unless a client has ended well, with numbers that can be."""
    assert not outcome.error, (options, outcome.error)
    assert outcome.status == 0
    sums = outcome.document["end"]
    assert 0 <= sums["cpu_utilization_percent"]["remote_total"] < 10_000
    if "-u" in options:
        assert sums["sum"]["packets"] > 0, options
        if not {"-R", "--bidir"} & set(options):  # a stock client loses datagrams on a busy machine
            assert sums["sum"]["lost_packets"] == 0, options
        return
    # By bytes, a test in both directions is over once one of them has carried its own.
    is_long = "--bidir" in options and "-t" in options
    for name in ("sum_sent", "sum_received", *(("sum_received_bidir_reverse",) if is_long else ())):
        assert sums[name]["bytes"] > 0, (options, name)
        assert sums[name]["bits_per_second"] > 0, (options, name)


@needs_iperf3
@pytest.mark.parametrize(
    "protocol", [pytest.param(each, marks=[] if each == "tcp" else pytest.mark.every) for each in PROTOCOLS]
)
async def test_clients_of_every_kind_at_once_get_sound_results(protocol: str) -> None:
    """Eight clients from one address: each direction, one and three streams, by bytes and by blocks."""
    kinds = [
        (*PROTOCOLS[protocol], *FORMS[form], "-P", streams, "-n", "1M")
        for form, streams in itertools.product(FORMS, ("1", "3"))
    ]
    kinds += [(*PROTOCOLS[protocol], "-k", "40"), (*PROTOCOLS[protocol], "-R", "-k", "40", "-l", "1000")]
    async with serve() as scene:
        outcomes = await asyncio.gather(*(run_client(scene.port, *kind) for kind in kinds))
        for kind, outcome in zip(kinds, outcomes, strict=True):
            check_sound(outcome, kind)
        await scene.has_no_clients()
        assert [end["reason"] for end in scene.ends()] == ["completed"] * len(kinds)


@needs_iperf3
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_the_output_of_the_server_reaches_the_client_of_a_short_test(protocol: str) -> None:
    """However few bytes it has."""
    options = (*PROTOCOLS[protocol], "-n", "50K", "--get-server-output")
    async with serve() as scene:
        outcome = await run_client(scene.port, *options)
        check_sound(outcome, options)
        assert (
            "result" in outcome.document["server_output_text"] or "Mb/s" in outcome.document["server_output_text"]
        )


@pytest.mark.every
@needs_iperf3
async def test_a_test_by_time_reports_the_rate_of_the_measured_part() -> None:
    """With an omitted second, whose bytes are in no result; the server's output reaches the client."""
    async with serve() as scene:
        options = ("-t", "1", "-O", "1", "-b", "80M", "-T", "night\x1b[2J", "--get-server-output")
        outcome = await run_client(scene.port, *options)
        check_sound(outcome, options)
        received = outcome.document["end"]["sum_received"]
        assert 0.5e8 < received["bits_per_second"] < 1.2e8
        assert 0.9 < received["seconds"] < 1.5
        assert (
            "result" in outcome.document["server_output_text"] or "Mb/s" in outcome.document["server_output_text"]
        )
        await scene.has_no_clients()
        (end,) = scene.ends()
        assert end["title"] is not None
        assert end["title"].isprintable()
        assert end["software"].startswith("iperf3 3.")
        assert end["received_bytes"] > 1.5 * received["bytes"]


@pytest.mark.every
@needs_iperf3
async def test_sixteen_clients_at_once_and_the_endpoint_count_the_same_bytes() -> None:
    """From one address, TCP and UDP mixed, each with a number of bytes by one to three streams."""
    kinds = [("-n", "2M", "-P", str(1 + number % 3), *(("-R",) if number % 2 else ())) for number in range(8)]
    kinds += [
        ("-u", "-b", "20M", "-l", "1000", "-n", "200K", "-P", str(1 + number % 3), *further)
        for number, further in enumerate([(), ("--udp-counters-64bit",)] * 4)
    ]
    async with serve() as scene:
        outcomes = await asyncio.gather(*(run_client(scene.port, *kind) for kind in kinds))
        sent: list[int] = []
        for kind, outcome in zip(kinds, outcomes, strict=True):
            check_sound(outcome, kind)
            sums = outcome.document["end"]
            if "-u" in kind:
                sent.append(sums["sum"]["bytes"])
                assert sums["sum"]["packets"] == sums["sum"]["bytes"] / 1000
            else:
                sent.append(sums["sum_sent"]["bytes"])
                assert sums["sum_received"]["bytes"] == sent[-1]
        await scene.has_no_clients()
        assert sorted(sent) == sorted(end["bytes"] for end in scene.ends())


@pytest.mark.every
@pytest.mark.loop("asyncio")  # on uvloop the matrix in tests/end_to_end runs from the command line
@needs_iperf3
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("end", ENDS)
async def test_every_option_of_a_client(protocol: str, form: str, end: str) -> None:
    """One and four streams, and each further option, four clients at a time."""
    further = FURTHER_OF_UDP if protocol == "udp" else FURTHER
    kinds = [
        (*PROTOCOLS[protocol], *FORMS[form], *ENDS[end], *options)
        for options in [("-P", "1"), ("-P", "4"), *further]
    ]
    async with serve(None) as scene:
        for batch in (kinds[:4], kinds[4:8], kinds[8:]):
            hosts = ["::1" if "-6" in kind else "127.0.0.1" for kind in batch]
            outcomes = await asyncio.gather(
                *(run_client(scene.port, *kind, host=host) for kind, host in zip(batch, hosts, strict=True))
            )
            for kind, outcome in zip(batch, outcomes, strict=True):
                check_sound(outcome, kind)


@needs_iperf3
async def test_a_stock_client_prints_the_reason_of_a_refusal() -> None:
    """Each limit has a number, and the client of each version a sentence for it."""
    refused: dict[tuple[str, ...], tuple[Limits, str]] = {
        ("-P", "3"): (Limits(sessions=2), "number of parallel streams too large"),
        ("-l", "256K"): (Limits(block_bytes=131_072), "block size too large"),
        ("-t", "20"): (Limits(duration_s=10), "test duration"),
        ("-u", "-b", "2M"): (Limits(udp_rate_bit_s=1_000_000), "total required bandwidth"),
        ("-w", "200M"): (Limits(), "socket buffer size not set correctly"),
        ("-t", "2"): (Limits(clients=1, clients_per_address=1), "the server is busy running a test"),
    }
    for options, (limits, sentence) in refused.items():
        async with serve(limits=limits) as scene:
            other = await RawClient.connect(scene.port)
            payload = asyncio.create_task(asyncio.sleep(0))
            if limits.clients == 1:
                await other.start()
                payload = asyncio.create_task(_send_slowly(other.streams[0]))
            outcome = await run_client(scene.port, *options)
            assert sentence in outcome.error, (options, outcome.error)
            assert scene.texts("refused"), options
            payload.cancel()
            await other.close()


@needs_iperf3
async def test_a_client_may_come_back_as_soon_as_its_test_is_over() -> None:
    """The place of its last test is still taken, until that one's workers have ended."""
    async with serve(limits=Limits(clients=1, clients_per_address=1)) as scene:
        for _ in range(4):
            outcome = await run_client(scene.port, "-n", "100K")
            assert not outcome.error


@pytest.mark.parametrize(
    ("limits", "streams"),
    [(Limits(clients_per_address=2), 1), (Limits(client_memory_bytes=80 * MIB), 16)],
    ids=["places", "memory"],
)
async def test_a_test_without_payload_makes_room_for_another_of_its_address(
    monkeypatch: pytest.MonkeyPatch, limits: Limits, streams: int
) -> None:
    """Silent ones, and those that trickle; the one that has been idle for longest goes first."""
    monkeypatch.setattr(service, "_IDLE_NS", SECOND_NS // 5)
    async with serve(limits=limits) as scene:
        first, trickling = await RawClient.connect(scene.port), await RawClient.connect(scene.port)
        for client in (first, trickling):
            await client.start(streams, parallel=streams)
        async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
            drops = group.create_task(_trickle(trickling))
            honest: list[RawClient] = []
            for _ in range(2):
                await asyncio.sleep(1.2)  # two looks of the watch over each test
                honest.append(client := await RawClient.connect(scene.port))
                await client.start(streams, parallel=streams)
            drops.cancel()
        for evicted in (first, trickling):
            assert await evicted.error() == ErrorNumber.NO_DATA
        for client in honest:
            await client.exchange()
        for client in (first, trickling, *honest):
            await client.close()
        assert sum("another test needed its place" in end["text"] for end in scene.ends()) == 2


async def test_clients_that_wait_for_a_place_all_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has its place and prepares its test does not wait for those that have none."""
    monkeypatch.setattr(service, "_IDLE_NS", SECOND_NS // 5)
    monkeypatch.setattr(service, "_PLACE_DEADLINE_S", 3 * DEADLINE_S)  # nobody is refused instead
    async with serve(limits=Limits(clients_per_address=2)) as scene:
        async with asyncio.timeout(DEADLINE_S):
            clients = [await RawClient.connect(scene.port) for _ in range(8)]
            await asyncio.gather(*(client.send_parameters() for client in clients))
            assert {await client.state() for client in clients} == {State.CREATE_STREAMS}
        for client in clients:
            await client.close()


async def test_tests_of_iperf3_take_no_place_of_a_linkgauge_client_of_their_address() -> None:
    """Whoever proves a key has places beside those who cannot."""
    limits = Limits(clients=1, clients_per_address=1, client_memory_bytes=40 * MIB)
    async with serve(limits=limits) as scene:
        stranger = await RawClient.connect(scene.port)
        await stranger.start(16, parallel=16)
        plan = Plan(duration_ns=SECOND_NS // 2, rate_bit_s=10_000_000)
        async with asyncio.timeout(DEADLINE_S), open_run(plan, Peer(*scene.endpoint.address)) as run:
            events = [event async for event in run]
        assert isinstance(events[-1], Ended)
        assert events[-1].end.reason is Reason.COMPLETED
        await stranger.exchange()
        await stranger.close()


async def _trickle(client: RawClient) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            await asyncio.get_running_loop().sock_sendall(client.streams[0], b"a")
            await asyncio.sleep(0.05)


async def test_a_test_that_moves_payload_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other client reads that the server is busy, and the first one ends as it would alone."""
    monkeypatch.setattr(service, "_IDLE_NS", SECOND_NS)
    async with serve(limits=Limits(clients_per_address=1)) as scene:
        client = await RawClient.connect(scene.port)
        await client.start()
        async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
            payload = group.create_task(_send_slowly(client.streams[0]))
            await asyncio.sleep(2)
            late = await RawClient.connect(scene.port)
            await late.send_parameters()
            assert await late.state() is State.ACCESS_DENIED
            payload.cancel()
        await client.exchange()
        for each in (client, late):
            await each.close()


async def test_a_test_keeps_its_place_until_its_results_are_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its payload is over, and it has been worth its place."""
    monkeypatch.setattr(service, "_IDLE_NS", SECOND_NS // 5)
    async with serve(limits=Limits(clients_per_address=1)) as scene:
        client, late = await RawClient.connect(scene.port), await RawClient.connect(scene.port)
        await client.start()
        await asyncio.get_running_loop().sock_sendall(client.streams[0], bytes(4_000))
        await until(lambda: scene.service.tests[0].has_payload)
        client.writer.write(State.TEST_END.wire_byte)
        assert await client.state() is State.EXCHANGE_RESULTS
        await asyncio.sleep(0.5)
        await late.send_parameters()
        assert await late.state() is State.ACCESS_DENIED
        await client.close()
        await late.close()


async def _send_slowly(stream: socket.socket) -> None:
    while True:  # 64 kb/s, as a phone call
        await asyncio.get_running_loop().sock_sendall(stream, bytes(800))
        await asyncio.sleep(0.1)


async def test_strangers_of_a_service_with_users_take_no_clients_place() -> None:
    """They are refused by the number for the reason, which the log has as well. A user's test runs."""
    users = UserList({"mario": hash_password("mario", "rossi")}, private_pem(server_key()))
    async with serve(limits=Limits(clients=1, clients_per_address=1), users=users) as scene:
        strangers = [await RawClient.connect(scene.port) for _ in range(3)]
        for stranger in strangers:
            assert await stranger.state() is State.PARAM_EXCHANGE
        token = make_token("mario", "rossi", public_pem(), time.time())
        assert (
            await _refused_by(scene.port, authtoken=make_token("mario", "verdi", public_pem(), time.time())) == 142
        )
        assert await _refused_by(scene.port) == ErrorNumber.AUTHORIZATION
        user = await RawClient.connect(scene.port)
        await user.start(authtoken=token)
        assert len(scene.endpoint.get_status().clients) == 1
        assert await _refused_by(scene.port, authtoken=token) == ErrorNumber.AUTHORIZATION  # it was used
        await user.exchange()
        for client in (user, *strangers):
            await client.close()
        assert len(scene.texts("run_began")) == 1
        assert any("unknown user or wrong password" in text for text in scene.texts("refused"))


async def test_a_token_that_was_used_before_a_restart_is_refused() -> None:
    """Though the new process has never seen it, and it is seconds old."""
    first, second = (
        UserList({"mario": hash_password("mario", "rossi")}, private_pem(server_key())) for _ in range(2)
    )
    async with serve(users=first) as scene:
        token = make_token("mario", "rossi", public_pem(), made_s := time.time())
        user = await RawClient.connect(scene.port)
        await user.start(authtoken=token)
        await user.close()
    await asyncio.sleep(int(made_s) + 1 - time.time())
    async with serve(users=second) as scene:
        assert await _refused_by(scene.port, authtoken=token) == ErrorNumber.AUTHORIZATION


@needs_iperf3
async def test_a_stock_client_logs_in_with_its_password(tmp_path: Path) -> None:
    """Before 3.17 it encrypts its password in a way that has to be allowed."""
    users = UserList({"mario": hash_password("mario", "rossi")}, private_pem(server_key()), accepts_pkcs1=True)
    key = tmp_path / "public.pem"
    key.write_bytes(public_pem())
    async with serve(users=users) as scene:
        for user, is_known in (("mario", True), ("luigi", False)):
            options = ("--username", user, "--rsa-public-key-path", str(key), "-n", "100K")
            process = await start_client(scene.port, *options, environment={"IPERF3_PASSWORD": "rossi"})
            outcome = await finish(process)
            if "unrecognized option" in outcome.error:
                pytest.skip("this iperf3 has no users")
            assert outcome.error == ("" if is_known else "test authorization failed"), outcome.error
        assert len(scene.texts("run_began")) == 1


async def _refused_by(port: int, **changes: Any) -> int:
    client = await RawClient.connect(port)
    await client.send_parameters(**changes)
    number = await client.error()
    await client.close()
    return number


async def test_parameters_that_no_test_can_have_are_refused_by_number() -> None:
    """Anything that a client of this protocol sends in the place of parameters."""
    async with serve() as scene:
        for changes, number in (
            ({"parallel": 10**9}, ErrorNumber.STREAMS),
            ({"congestion": "\x1b[2Jreno"}, ErrorNumber.CONGESTION),
        ):
            assert await _refused_by(scene.port, **changes) == number, changes
        await scene.has_no_clients()
        assert not scene.texts("run_began")
        for text in scene.texts("refused"):
            assert text.isprintable()


@pytest.mark.parametrize(
    "body",
    [
        struct.pack(">I", 2**32 - 1),
        struct.pack(">I", 9_000) + b"{" * 9_000,
        struct.pack(">I", 4) + b"{{{{",
        struct.pack(">I", 5) + b"[[[]]",
        struct.pack(">I", 4) + b"1e99",
        struct.pack(">I", 8_000) + b"[" * 8_000,
    ],
)
async def test_a_document_that_is_none_is_refused(body: bytes) -> None:
    """Nothing is allocated for a length, and depth is bounded."""
    async with serve() as scene:
        client = await RawClient.connect(scene.port)
        assert await client.state() is State.PARAM_EXCHANGE
        client.writer.write(body)
        assert await client.error() == ErrorNumber.PARAMETERS
        await client.close()
        assert scene.texts("refused")


async def test_refusals_whose_texts_differ_do_not_fill_the_log() -> None:
    """Each names the duration that was asked for; all are counted."""
    async with serve() as scene:
        for number in range(MAX_SOURCES + 20):
            assert await _refused_by(scene.port, time=20_000 + number) == ErrorNumber.DURATION
        assert len(scene.entries) == len(scene.texts("refused")) == MAX_SOURCES
        totals = scene.endpoint.get_status().totals
        assert totals.rejections == {"duration_s": MAX_SOURCES + 20}


async def drip(writer: asyncio.StreamWriter) -> None:
    """Send a byte now and then, for ever."""
    while True:
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(0.2)


async def test_a_cookie_that_never_ends_is_not_waited_for() -> None:
    """A byte at a time does not count as progress; strangers are dropped, and their words are not logged."""
    async with serve(limits=Limits(handshake_s=1)) as scene:
        reader, writer = await asyncio.open_connection("127.0.0.1", scene.port)
        stranger_reader, stranger = await asyncio.open_connection("127.0.0.1", scene.port)
        stranger.write(b"GET / HTTP/1.0\r\n\r\n")
        stranger.write_eof()
        async with asyncio.timeout(DEADLINE_S):
            assert not await stranger_reader.read()
            with pytest.raises(ConnectionError):
                await drip(writer)
        del reader
        stranger.close()
        writer.close()
        assert any("handshake_s" in text for text in scene.texts("dropped"))
        assert any("not a client of iperf3" in text for text in scene.texts("dropped"))


async def test_a_stream_comes_from_the_address_of_its_client_only() -> None:
    """A cookie that somebody has read opens nothing, and disturbs nothing."""
    async with serve(None) as scene:
        client = await RawClient.connect(scene.port)
        await client.send_parameters()
        assert await client.state() is State.CREATE_STREAMS
        thief = socket.socket()
        thief.bind(("127.0.0.2", 0))
        thief.connect(("127.0.0.1", scene.port))
        thief.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(thief, client.cookie)
        async with asyncio.timeout(DEADLINE_S):
            assert not await loop.sock_recv(thief, 1)
        thief.close()
        await client.open_stream()
        assert await client.state() is State.TEST_START
        assert await client.state() is State.TEST_RUNNING
        second = await RawClient.connect(scene.port)
        second.writer.write(client.cookie)
        await client.exchange()
        await client.close()
        await second.close()
        assert any("another address" in text for text in scene.texts("dropped"))


async def test_silent_connections_at_its_port_take_no_place_of_linkgauges_own_clients() -> None:
    """Nor the other way round; one that makes room receives iperf3's "server is busy"."""
    async with serve(limits=Limits(pending=16, handshake_s=60)) as scene:
        async with asyncio.timeout(DEADLINE_S):
            waiting = await asyncio.open_connection(*scene.endpoint.address)
            client = await RawClient.connect(scene.port)
            assert await client.state() is State.PARAM_EXCHANGE
            crowd = [await asyncio.open_connection("127.0.0.1", scene.port) for _ in range(40)]
            assert await client.state() is State.ACCESS_DENIED
            assert await crowd[0][0].read() == State.ACCESS_DENIED.wire_byte
            assert scene.endpoint.get_status().pending == 16 + 1
            assert not waiting[0].at_eof()
        for _reader, writer in (*crowd, waiting):
            writer.close()
        await client.close()


async def test_a_second_connection_with_a_known_cookie_is_closed() -> None:
    """While the test runs, and before it has parameters."""
    async with serve() as scene:
        client = await RawClient.connect(scene.port)
        assert await client.state() is State.PARAM_EXCHANGE
        for _ in range(2):
            twin = await client.open_stream()
            async with asyncio.timeout(DEADLINE_S):
                assert not await asyncio.get_running_loop().sock_recv(twin, 1)
            if not scene.texts("run_began"):
                client.send_json({"tcp": True, "time": 0})
                assert await client.state() is State.CREATE_STREAMS
                await client.open_stream()
                assert await client.state() is State.TEST_START
                assert await client.state() is State.TEST_RUNNING
        await client.exchange()
        await client.close()


async def test_streams_count_in_the_order_of_their_acceptance() -> None:
    """Though the cookie of the first comes last: of a test in both directions the first stream is the client's."""
    async with serve() as scene:
        client = await RawClient.connect(scene.port)
        await client.send_parameters(bidirectional=True)
        assert await client.state() is State.CREATE_STREAMS
        loop = asyncio.get_running_loop()
        first, second = socket.socket(), socket.socket()
        for sock in (first, second):
            sock.setblocking(False)
            await loop.sock_connect(sock, ("127.0.0.1", scene.port))
        await loop.sock_sendall(second, client.cookie)
        await asyncio.sleep(0.05)
        await loop.sock_sendall(first, client.cookie)
        assert await client.state() is State.TEST_START
        assert await client.state() is State.TEST_RUNNING
        async with asyncio.timeout(DEADLINE_S):
            assert await loop.sock_recv(second, 1)  # the server sends on the second one
        client.streams += [first, second]
        await client.close()
