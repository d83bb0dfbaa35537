"""The estimate of a run's memory, compared with the memory of real runs' workers."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.far.clients.admission import Admission
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.far.memory_estimate import count_connections, estimate_memory, windows_of
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import LimitReached, PeerRefused
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import (
    MAX_BLOCK_BYTES,
    MAX_REQUEST_BYTES,
    MAX_WORKERS,
    MIB,
    SECOND_NS,
    Mode,
    Plan,
    ResponsivenessTest,
    Settings,
)
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.connect import connect
from linkgauge.engine.near.run import Run, open_run
from linkgauge.engine.protocol.messages import Change, Open, Ready, Refuse, Report, SessionOpened, Start
from linkgauge.engine.protocol.preamble import DATA_KIND, DataHello, encode_preamble
from linkgauge.engine.protocol.tokens import Tickets

from ..child_processes import workers_of
from ..waiting import until

# The memory is measured in other processes.
pytestmark = [
    pytest.mark.usefixtures("fork_server"),
    pytest.mark.loop("uvloop"),
    pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from /proc"),
]

DEADLINE_S = 30.0
LARGEST = Plan(Settings(sessions=64), workers=MAX_WORKERS, block_bytes=MAX_BLOCK_BYTES)
SPACIOUS = Limits(workers=64, memory_bytes=1 << 40, client_memory_bytes=1 << 40)


def private_bytes(pids: list[int]) -> int:
    """Return the memory of processes, a shared page counted in shares (PSS)."""
    texts = [Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii") for pid in pids]
    return sum(int(text.partition("\nPss:")[2].split()[0]) * 1_024 for text in texts)


def test_probes_are_connections_and_only_the_first_has_a_worker() -> None:
    """The endpoint's own process answers the further ones of a responsiveness test."""
    plain = Plan(Settings(Direction.DUPLEX, 4))
    probed = replace(plain, probe=True)
    tested = replace(probed, responsiveness=ResponsivenessTest.ALONGSIDE)
    windows = windows_of(plain.settings)
    assert [count_connections(plan, windows) for plan in (plain, probed, tested)] == [8, 9, 11]
    assert estimate_memory(plain, windows, 8) < estimate_memory(probed, windows, 8)
    assert estimate_memory(tested, windows, 8) == estimate_memory(probed, windows, 8)


@pytest.mark.parametrize(
    ("limits", "plan", "words"),
    [
        (Limits(sessions=2), Plan(Settings(sessions=3)), "declines: 3 sessions are too many .*limit sessions is 2"),
        (Limits(duration_s=60), Plan(duration_ns=61 * SECOND_NS), "limit duration_s is 60"),
        (Limits(workers=4), LARGEST, r"64 worker processes are too many .*limit workers is 4"),
        (
            Limits(block_bytes=MIB),
            Plan(block_bytes=MAX_BLOCK_BYTES),
            "a block of 16M is too large .*limit block_bytes is 1048576",
        ),
        (
            Limits(request_bytes=65_536),
            Plan(workload=Workload.RR, request_bytes=1_024, burst=65),
            "65K of requests in flight are too many .*limit request_bytes is 65536",
        ),
        (
            Limits(workers=64, client_memory_bytes=512 * MIB),
            LARGEST,
            r"needs up to \d+ MiB of memory.*limit client_memory_bytes is 536870912",
        ),
        (
            Limits(workers=64, client_memory_bytes=1 << 40, memory_bytes=512 * MIB),
            LARGEST,
            r"needs up to \d+ MiB of memory.*limit memory_bytes is 536870912",
        ),
        (
            Limits(client_memory_bytes=512 * MIB),
            Plan(Settings(sessions=64), Workload.CRR, request_bytes=MAX_REQUEST_BYTES),
            "limit client_memory_bytes is",
        ),
        (
            Limits(samples_s=1_000),
            Plan(Settings(Direction.DUPLEX, 128), interval_ns=SECOND_NS // 20),
            "takes 5120 samples a second; give a longer --interval or fewer sessions .*limit samples_s is 1000",
        ),
    ],
    ids=["sessions", "duration", "workers", "block", "requests", "one address", "all", "copies of crr", "samples"],
)
async def test_a_plan_over_a_limit_of_size_is_refused_before_anything_is_allocated(
    limits: Limits, plan: Plan, words: str
) -> None:
    """The refusal names the limit and its value; no worker was started."""
    async with asyncio.timeout(DEADLINE_S), Endpoint(listen("127.0.0.1", 0), limits=limits) as endpoint:
        with pytest.raises(PeerRefused, match=words):
            async with open_run(plan, Peer(*endpoint.address)):
                raise AssertionError("the run must not start")
        assert workers_of(os.getpid()) == []


async def test_blocks_and_requests_take_no_memory_before_the_first_data_connection() -> None:
    """A client that asks for the largest sizes and then does nothing gets bare workers."""
    plan = replace(LARGEST, workers=8, settings=Settings(Direction.DUPLEX, 8))
    largest = [
        replace(plan, mode=Mode.SENDFILE),
        replace(plan, workload=Workload.RR, request_bytes=MAX_REQUEST_BYTES),
    ]
    async with asyncio.timeout(DEADLINE_S), Endpoint(listen("127.0.0.1", 0), limits=SPACIOUS) as endpoint:
        for each in largest:
            async with connect(Peer(*endpoint.address)) as (control, _ends):
                control.send(Open(each))
                while not isinstance(await control.receive(), Ready):
                    pass
                workers = workers_of(os.getpid())
                assert len(workers) == 8
                assert private_bytes(workers) < 8 * MAX_BLOCK_BYTES // 2
            await until(lambda: not endpoint.admission.admitted_clients)


async def test_the_memory_of_a_run_is_free_again_for_the_next_one() -> None:
    """Each of one address's runs counts while its client is there."""
    plan = Plan(Settings(sessions=2), duration_ns=None, workers=2, block_bytes=8 * MIB)
    limits = Limits(client_memory_bytes=2 * estimate_memory(plan, windows_of(plan.settings), 2) - 1)
    async with asyncio.timeout(DEADLINE_S), Endpoint(listen("127.0.0.1", 0), limits=limits) as endpoint:
        peer = Peer(*endpoint.address)
        async with open_run(plan, peer) as first:
            with pytest.raises(PeerRefused, match="limit client_memory_bytes is"):
                async with open_run(plan, peer):
                    raise AssertionError("the run must not start")
            first.stop()
            assert [event async for event in first]
        await until(lambda: not endpoint.admission.admitted_clients)
        async with open_run(replace(plan, duration_ns=SECOND_NS // 2), peer) as run:
            assert [event async for event in run]


def test_the_samples_of_one_address_leave_some_for_others_and_the_refusal_says_whose_they_are() -> None:
    """One address held all of them for hours by tests of many sessions, and a test of one session was refused."""
    large = Plan(Settings(Direction.DUPLEX, 128), duration_ns=None)
    small = Plan(Settings(), duration_ns=None)
    admission = Admission(SPACIOUS)
    with contextlib.ExitStack() as stack:
        *tests, last = (stack.enter_context(admission.admit("192.0.2.1")) for _ in range(6))
        for client in tests:
            admission.reserve(client, large, windows_of(large.settings))
        with pytest.raises(
            LimitReached, match=r"takes 4 .*; other tests take 5120, try again later.*client_samples_s is 5120"
        ):
            admission.reserve(last, small, windows_of(small.settings))
        other = stack.enter_context(admission.admit("192.0.2.2"))
        admission.reserve(other, small, windows_of(small.settings))
        assert other.samples_s == 4


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        (Limits(client_memory_bytes=64 * MIB, workers=8), "client_memory_bytes"),
        (Limits(samples_s=100), "samples_s"),
        (Limits(sessions=2), "sessions"),
    ],
    ids=["memory", "samples", "sessions"],
)
async def test_sessions_that_are_added_to_a_run_count_as_well(
    record: Callable[..., Any], limits: Limits, limit: str
) -> None:
    """The near end hears which limit the change exceeds."""
    changed: list[bool] = []

    def act(run: Run, _event: object) -> None:
        if not changed:
            changed.append(True)
            run.change_settings(Settings(sessions=128))

    plan = Plan(workers=4, duration_ns=None, interval_ns=SECOND_NS // 10, block_bytes=16 * MIB)
    async with Endpoint(listen("127.0.0.1", 0), limits=limits) as endpoint:
        recorded = await record(plan, Peer(*endpoint.address), act)
    assert recorded.end.reason in {Reason.FAILED, Reason.SESSION_LOST}
    if recorded.end.reason is Reason.FAILED:
        assert f"limit {limit} is {getattr(limits, limit)}" in recorded.end.detail


@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
async def test_sessions_that_a_change_does_not_close_count_until_the_end_of_the_run(direction: Direction) -> None:
    """A connection of settings to come stays open, whatever a change says that is older."""
    plan = Plan(Settings(direction), duration_ns=None, interval_ns=SECOND_NS // 10)
    limits = Limits(samples_s=200)
    async with asyncio.timeout(DEADLINE_S), Endpoint(listen("127.0.0.1", 0), limits=limits) as endpoint:
        peer = Peer(*endpoint.address)
        async with connect(peer) as (control, _ends), connect(peer) as (other, _):
            control.send(Open(plan))
            ready = await control.receive()
            assert isinstance(ready, Ready)
            secret = control.derive_run_secret(bytes.fromhex(ready.token))
            control.send(Start())
            session_secret = secret.session_secret(direction, 15, 9, None)
            hello = DataHello(secret.run_tag, Tickets(session_secret).token(0), direction, 15, 9, None)
            _reader, writer = await asyncio.open_connection(*endpoint.address)
            writer.write(encode_preamble(DATA_KIND) + hello.pack())
            while not isinstance(await control.receive(), SessionOpened):
                pass
            control.send(Change(Settings(direction), 1, 0))
            reports = 0
            while reports < 5:
                message = await control.receive()
                is_sampled = isinstance(message, Report) and bool(message.sample.sessions)
                reports += is_sampled
            other.send(Open(Plan(Settings(sessions=10), interval_ns=SECOND_NS // 10)))
            answer = await other.receive()
            assert isinstance(answer, Refuse)
            assert "limit samples_s is 200" in answer.text
            writer.close()


@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
async def test_the_windows_of_all_sessions_are_within_the_reserved_memory(direction: Direction) -> None:
    """Each connection has a window of its own, smaller than the last: no single one of them is over the limit."""
    largest, block = 128 << 10, 16 * MIB
    plan = Plan(Settings(direction, 2), duration_ns=None, workers=2, block_bytes=block, interval_ns=SECOND_NS)
    room = 4 * largest
    limits = Limits(client_memory_bytes=estimate_memory(plan, windows_of(plan.settings), 2) + room)
    used = refused = 0
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        async with (
            asyncio.timeout(DEADLINE_S),
            Endpoint(listen("127.0.0.1", 0), limits=limits) as endpoint,
            connect(Peer(*endpoint.address)) as (control, _ends),
        ):
            control.send(Open(plan))
            ready = await control.receive()
            assert isinstance(ready, Ready)
            secret = control.derive_run_secret(bytes.fromhex(ready.token))
            for session in range(1, 65):
                window = largest // session
                token = Tickets(secret.session_secret(direction, session, 1, window)).token(0)
                hello = DataHello(secret.run_tag, token, direction, session, 1, window)
                sock = stack.enter_context(socket.create_connection(endpoint.address, DEADLINE_S))
                sock.setblocking(False)
                await loop.sock_sendall(sock, encode_preamble(DATA_KIND) + hello.pack())
                is_open = bool(await loop.sock_recv(sock, 1))
                used += 2 * window * is_open
                refused += not is_open
    assert refused
    assert used <= room


@pytest.mark.parametrize(
    ("workload", "direction", "mode"),
    [
        (Workload.RR, Direction.IN, Mode.COPY),
        *[
            pytest.param(workload, direction, mode, marks=pytest.mark.every)
            for workload in (Workload.STREAM, Workload.RR, Workload.CRR, Workload.FETCH)
            for direction in Direction
            for mode in (Mode.COPY, Mode.SENDFILE)
            if workload.is_bulk or mode is Mode.COPY
        ],
    ],
)
async def test_a_run_has_no_more_memory_than_was_estimated(
    workload: Workload, direction: Direction, mode: Mode
) -> None:
    """In use, with the largest blocks and requests."""
    plan = Plan(
        Settings(direction, 2),
        workload,
        duration_ns=20 * SECOND_NS,
        interval_ns=SECOND_NS // 20,
        block_bytes=MAX_BLOCK_BYTES,
        mode=mode if workload.is_bulk else None,
        workers=2,
        request_bytes=MAX_REQUEST_BYTES if workload.is_transactional else None,
    )
    estimate = estimate_memory(plan, windows_of(plan.settings), MAX_WORKERS)
    most = samples = 0
    async with (
        asyncio.timeout(DEADLINE_S),
        Endpoint(listen("127.0.0.1", 0), limits=SPACIOUS) as endpoint,
        open_run(plan, Peer(*endpoint.address)) as run,
    ):
        async for _event in run:
            samples += 1
            if samples <= 20:  # both ends' workers have this process for a parent, and the near end's need as much
                most = max(most, private_bytes(workers_of(os.getpid())))
            if samples == 20:
                run.stop()
    assert most < 2 * estimate
