"""Transactions between two real ends on loopback: real sockets, real worker processes."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.metering.shared_counters import CounterField, SharedCounters, histogram_offset
from linkgauge.engine.model.events import Event, Opened, Reason, Sampled
from linkgauge.engine.model.latency_histogram import BUCKET_COUNT
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Direction, End, Mode, Plan, Settings, SocketOptions
from linkgauge.engine.model.workload import Workload, all_workloads
from linkgauge.engine.near.run import Run
from linkgauge.engine.protocol.auth import Tickets
from linkgauge.engine.results.json_document import build_document
from linkgauge.engine.results.meter import replay
from linkgauge.engine.workloads import crr_requester
from linkgauge.engine.workloads.crr_requester import CrrRequester
from linkgauge.engine.workloads.crr_responder import CrrResponder, open_listener
from linkgauge.engine.workloads.poller import create_poller
from linkgauge.engine.workloads.session import Payload, SessionContext, WorkerResources
from linkgauge.engine.workloads.session_handshake import SessionConfig, SessionSpec, negotiate_listener

Recorder = Callable[..., Any]
TRANSACTIONAL = [workload for workload in all_workloads() if workload.is_transactional]


def plan_of(
    workload: Workload, direction: Direction = Direction.OUT, sessions: int = 1, seconds: float = 0.6, **more: Any
) -> Plan:
    """Return a short plan that samples ten times a second; a fetch is small, so that there are several."""
    if workload is Workload.FETCH:
        more = {"response_bytes": 2_000_000} | more
    settings = Settings(direction, sessions)
    return Plan(settings, workload, int(seconds * SECOND_NS), interval_ns=SECOND_NS // 10, **more)


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("workload", TRANSACTIONAL)
async def test_who_asks_counts_transactions_and_the_bytes_of_their_answers(
    far_end: Peer, record: Recorder, workload: Workload, direction: Direction
) -> None:
    """Out is asked by the near end, in by the far one; every pair gets answers; nobody else counts any."""
    plan = plan_of(workload, direction, 3)
    recorded = await record(plan, far_end)
    assert recorded.end.reason is Reason.COMPLETED
    for flow in direction.flows:
        asker = End.NEAR if flow is Direction.OUT else End.FAR
        asked = [e.sample for e in recorded.samples if e.sample.end is asker]
        for number in (1, 2, 3):
            parts = [s for one in asked for s in one.sessions if (s.direction, s.session) == (flow, number)]
            transactions = sum(part.transactions or 0 for part in parts)
            assert transactions > 0, (flow, number)
            arrived = sum(part.bytes for part in parts) / plan.transaction_sizes[1]
            if workload is Workload.FETCH:  # its bytes are counted as they come, and read a moment earlier
                between = max(4, transactions // 20)  # a busy machine makes that moment long
                assert transactions - between <= arrived < transactions + between, (flow, number)
            else:
                assert arrived == transactions, (flow, number)
        others = [e.sample for e in recorded.samples if e.sample.end is asker.other]
        assert all(s.transactions is None for one in others for s in one.sessions if s.direction is flow)


@pytest.mark.parametrize("workload", TRANSACTIONAL)
async def test_counts_and_percentiles_of_a_run_agree_everywhere(
    far_end: Peer, record: Recorder, workload: Workload
) -> None:
    """Sessions, histogram, summary and document tell the same number, and percentiles rise."""
    recorded = await record(plan_of(workload, Direction.DUPLEX, 2), far_end)
    for event in recorded.samples:
        for one in event.sample.latency:
            told = [s.transactions for s in event.sample.sessions if s.direction is one.direction]
            assert sum(count or 0 for count in told) == one.transactions
    summary = replay(recorded.events).summary()
    assert summary.measured.out
    assert summary.measured.in_
    assert summary.measured.total
    assert summary.measured.total.transactions == (summary.measured.out.transactions or 0) + (
        summary.measured.in_.transactions or 0
    )
    assert summary.near_cpu.msec_per_transaction
    measured = build_document(summary, run_id="r", preset="", verdict="none")["measured"]["total"]
    percentiles = [measured["latency_us"][name] for name in ("min", "p50", "p90", "p99", "p99_9", "max")]
    assert percentiles == sorted(percentiles)
    assert percentiles[0] > 0
    assert measured["transactions_s"] > 0


async def test_the_answering_end_sends_what_the_asking_end_receives(far_end: Peer, record: Recorder) -> None:
    """Of rr both ends' counters tell the same answers, but for those under way at the readings."""
    recorded = await record(plan_of(Workload.RR, seconds=1.0), far_end)

    def total(end: End) -> int:
        return sum(s.bytes for e in recorded.samples if e.sample.end is end for s in e.sample.sessions)

    assert 0.8 < total(End.FAR) / total(End.NEAR) < 1.25


@pytest.mark.parametrize(
    ("request_bytes", "response_bytes", "burst"),
    [(1, 1, 1), (1, 1, 1_024), (200, 1_000, 16), (3_000_000, 5, 2), (7, 3_000_001, 4)],
)
async def test_requests_of_any_size_are_answered_in_any_number(
    far_end: Peer, record: Recorder, request_bytes: int, response_bytes: int, burst: int
) -> None:
    """One byte or megabytes, one in flight or a thousand: no deadlock, and whole answers."""
    sizes = {"request_bytes": request_bytes, "response_bytes": response_bytes, "burst": burst}
    recorded = await record(plan_of(Workload.RR, Direction.DUPLEX, **sizes), far_end)
    assert recorded.end.reason is Reason.COMPLETED
    found = replay(recorded.events).summary().measured.total
    assert found
    assert found.transactions


@pytest.mark.parametrize("mode", list(Mode))
async def test_a_fetch_moves_payload_in_each_mode(far_end: Peer, record: Recorder, mode: Mode) -> None:
    """Copy, sendfile and discard carry the same answers."""
    recorded = await record(plan_of(Workload.FETCH, mode=mode, block_bytes=100_000), far_end)
    assert recorded.end.reason is Reason.COMPLETED
    found = replay(recorded.events).summary().measured.total
    assert found
    assert found.transactions


@pytest.mark.parametrize(("request_bytes", "response_bytes"), [(32, 1), (64, 8_192), (300_000, 3_000_000)])
async def test_each_connection_of_crr_carries_a_whole_answer(
    far_end: Peer, record: Recorder, request_bytes: int, response_bytes: int
) -> None:
    """What fits in a segment and what needs waiting for room."""
    sizes = {"request_bytes": request_bytes, "response_bytes": response_bytes}
    recorded = await record(plan_of(Workload.CRR, Direction.DUPLEX, **sizes), far_end)
    assert recorded.end.reason is Reason.COMPLETED
    found = replay(recorded.events).summary().measured.total
    assert found
    assert found.transactions


async def test_crr_takes_the_options_of_a_plan(far_end: Peer, record: Recorder) -> None:
    """Window, congestion control, marks and the near end's source are those of every connection."""
    options = SocketOptions("reno", dscp=10, source="127.0.0.1", device="lo")
    settings = Settings(Direction.DUPLEX, 1, 65_536)
    recorded = await record(Plan(settings, Workload.CRR, SECOND_NS // 2, socket=options), far_end)
    assert recorded.end.reason is Reason.COMPLETED
    assert {e.facts.congestion for e in recorded.events if isinstance(e, Opened)} == {"reno"}


@pytest.mark.parametrize("workload", TRANSACTIONAL)
async def test_pairs_are_added_and_taken_away_while_it_runs(
    far_end: Peer, record: Recorder, workload: Workload
) -> None:
    """What is let go of in the middle of a transaction is no lost session."""

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.end is End.FAR:
            if event.sample.index >= 7:
                run.change(Settings(Direction.IN, 2, 65_536))
            elif event.sample.index >= 3:
                run.change(Settings(Direction.DUPLEX, 4))

    recorded = await record(plan_of(workload, seconds=1.4, warmup_ns=SECOND_NS // 10), far_end, act)
    assert recorded.end.reason is Reason.COMPLETED
    last = [e.sample for e in recorded.samples if e.sample.end is End.FAR][-1]
    assert {(s.direction, s.session) for s in last.sessions if s.transactions} == {
        (Direction.IN, 1),
        (Direction.IN, 2),
    }


SECRET = bytes(range(32))


class Pair:
    """Both sides of one crr session in this process."""

    def __init__(self) -> None:
        self.counters = SharedCounters.create()
        self.payload = Payload(65_536)
        self.readiness = create_poller()
        self.lost: list[str] = []
        buffer, requests = memoryview(bytearray(65_536)), memoryview(os.urandom(64))
        supplies = WorkerResources(self.payload, buffer, Mode.COPY, requests, self.readiness, 64, 8_192)
        with socket.create_server(("127.0.0.1", 0)) as anchor:
            near = socket.create_connection(anchor.getsockname())
            far, _ = anchor.accept()
        self.listener = open_listener(far)
        near.setblocking(False)
        far.setblocking(False)
        self.near = near
        place = SessionContext(self.counters, 1, 0, self.lost.append)
        self.answerer = CrrResponder(far, place, supplies, self.listener, Tickets(SECRET))
        address = self.listener.getsockname()
        place = SessionContext(self.counters, 0, 0, self.lost.append)
        self.asker = CrrRequester(near, place, supplies, address, Tickets(SECRET), (None, SocketOptions()))

    @property
    def transactions(self) -> int:
        """How many transactions the asking side counted."""
        first = histogram_offset(0)
        return sum(self.counters.words[first : first + BUCKET_COUNT])

    async def until(self, transactions: int) -> None:
        """Wait until so many are counted."""
        while self.transactions < transactions and not self.lost:  # noqa: ASYNC110 - only looking tells
            await asyncio.sleep(0.01)

    def close(self) -> None:
        """Give everything back."""
        self.asker.close()
        self.answerer.close()
        self.readiness.close()
        self.payload.close()
        self.counters.close()


def sockets_open() -> int:
    """Return how many sockets this process has."""
    return sum("socket:" in str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink())


@pytest.mark.parametrize("is_alone", [False, True])
async def test_five_thousand_connections_leave_no_descriptor_and_equal_counts(is_alone: bool) -> None:
    """What was opened for a transaction is closed with it, at both ends, and both count the same."""
    pair = Pair()
    try:
        before = sockets_open()
        pair.answerer.start(is_alone=is_alone)
        pair.asker.start(is_alone=is_alone)
        async with asyncio.timeout(20):
            await pair.until(5_000)
        assert not pair.lost
        assert sockets_open() <= before + 2  # the transaction under way has two ends
        pair.asker.close()
        words = pair.counters.words
        asked, answered = words[CounterField.BYTES], words[16 + CounterField.BYTES]
        assert asked == pair.transactions * 8_192
        assert asked <= answered <= asked + 8_192
    finally:
        pair.close()


async def test_a_pair_that_is_no_longer_alone_goes_on_without_its_thread() -> None:
    """Nothing is lost on the way from the thread to the event loop, and the thread is gone."""
    pair = Pair()
    try:
        threads = threading.active_count()
        pair.answerer.start()
        pair.asker.start(is_alone=True)
        async with asyncio.timeout(20):
            await pair.until(50)
            pair.asker.share_worker()
            while threading.active_count() > threads:  # noqa: ASYNC110 - only looking tells
                await asyncio.sleep(0.01)
            await pair.until(pair.transactions + 50)
        assert not pair.lost
    finally:
        pair.close()


@pytest.mark.parametrize(
    ("said", "why"), [(b"", "closed by the other end"), (b"x", "the other end said something where it has nothing")]
)
async def test_a_session_of_crr_ends_for_what_its_own_connection_says_and_for_nothing_else(
    said: bytes, why: str
) -> None:
    """To be told that there is something to read, with nothing there, is no end; its end is one, and words are."""
    pair = Pair()
    try:
        pair.answerer.start()
        waked: Any = pair.answerer
        waked._check_for_end()
        assert not pair.lost
        if said:
            pair.near.send(said)
        else:
            pair.near.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(20):
            await pair.until(1)
        (lost,) = pair.lost
        assert lost.startswith(why)
    finally:
        pair.close()


async def ask(address: Any, request: bytes, answer_bytes: int) -> bytes:
    """Return what comes back for a request, up to so many bytes."""
    loop = asyncio.get_running_loop()
    answer = b""
    with socket.socket() as sock:
        sock.setblocking(False)
        async with asyncio.timeout(10):
            await loop.sock_connect(sock, address)
            await loop.sock_sendall(sock, request)
            with contextlib.suppress(ConnectionResetError):  # with what it said unread the kernel says so
                while len(answer) < answer_bytes and (more := await loop.sock_recv(sock, 65_536)):
                    answer += more
    return answer


async def test_a_stranger_at_the_port_of_crr_gets_no_answer_and_a_ticket_gets_one() -> None:
    """Whoever has no ticket of the session, or one that was used, is cut off, and the session goes on."""
    pair = Pair()
    try:
        pair.answerer.start()
        address = pair.listener.getsockname()
        theirs, ours = Tickets(bytes(32)), Tickets(SECRET)
        request = ours.issue() + bytes(40)
        assert await ask(address, b"GET / HTTP/1.1\r\nHost: example\r\n\r\n", 1) == b""
        assert await ask(address, theirs.issue() + bytes(40), 1) == b""
        assert len(await ask(address, request, 8_192)) == 8_192
        assert await ask(address, request, 1) == b""
        asker: Any = pair.asker
        asker._tickets = ours
        asker.start()
        async with asyncio.timeout(10):
            await pair.until(3)
        assert not pair.lost
    finally:
        pair.close()


async def test_no_port_that_is_left_is_told_with_how_to_widen_the_range(monkeypatch: Any) -> None:
    """The kernel's refusal names the remedy."""
    pair = Pair()
    try:
        pair.answerer.start()

        class Refusing(socket.SocketType):
            def connect_ex(self, _address: object) -> int:
                return 99

        monkeypatch.setattr(crr_requester, "SocketType", Refusing)
        pair.asker.start()
        assert len(pair.lost) == 1
        assert "ip_local_port_range" in pair.lost[0]
    finally:
        pair.close()


async def test_a_port_that_cannot_be_reached_is_told_by_the_end_that_listens_there() -> None:
    """It says who could not reach whom, and what helps; no listener is left."""
    with socket.create_server(("127.0.0.1", 0)) as anchor:
        near = socket.create_connection(anchor.getsockname())
        far, _ = anchor.accept()
    spec = SessionSpec(Direction.IN, 1, 0, None, "")
    text = r"the far end cannot connect to the near end's 127\.0\.0\.1 port \d+ .*--direction out"
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        answering = asyncio.create_task(
            negotiate_listener(near, SessionConfig(End.NEAR, Workload.CRR, SocketOptions()), spec)
        )
        async with asyncio.timeout(10):
            await asyncio.get_running_loop().sock_recv(far, 2)
            far.close()
            with pytest.raises(OSError, match=text):
                await answering


async def test_an_asking_end_that_is_refused_says_so() -> None:
    """The port it was told is closed by the time it tries."""
    with socket.create_server(("127.0.0.1", 0)) as anchor:
        near = socket.create_connection(anchor.getsockname())
        far, _ = anchor.accept()
        port = anchor.getsockname()[1]
    with near, far:
        near.setblocking(False)
        far.send(port.to_bytes(2, "big"))
        opening = SessionConfig(End.NEAR, Workload.CRR, SocketOptions())
        async with asyncio.timeout(10):
            with pytest.raises(OSError, match=r"near end cannot connect .*refused.*--direction in"):
                await negotiate_listener(near, opening, SessionSpec(Direction.OUT, 1, 0, None, ""))
