"""The crr workload: connections of each size and option, and sessions that end or share their worker."""

import asyncio
import os
import resource
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from linkgauge.engine.metering.shared_counters import WORDS_PER_SLOT, CounterField
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import Opened
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings, SocketOptions
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.meter import replay
from linkgauge.engine.workloads import crr_requester

from ..waiting import until
from .crr_pair import CrrPair, sockets_open
from .plans import plan_of

Recorder = Callable[..., Any]


@pytest.mark.parametrize(
    ("request_bytes", "response_bytes"),
    [(64, 8_192), *(pytest.param(*case, marks=pytest.mark.every) for case in [(32, 1), (300_000, 3_000_000)])],
)
async def test_each_connection_carries_a_whole_response(
    far_end: Peer, record: Recorder, request_bytes: int, response_bytes: int
) -> None:
    """Whether it fits in a segment or waits for room."""
    sizes = {"request_bytes": request_bytes, "response_bytes": response_bytes}
    recorded = await record(plan_of(Workload.CRR, Direction.DUPLEX, **sizes), far_end)
    assert recorded.end.reason is Reason.COMPLETED
    total = replay(recorded.events).summary().measured.total
    assert total
    assert total.transactions


async def test_each_connection_has_the_options_of_the_plan(far_end: Peer, record: Recorder) -> None:
    """Every connection has the window, congestion control, marks and the near end's source."""
    options = SocketOptions("reno", dscp=10, source="127.0.0.1", device="lo")
    settings = Settings(Direction.DUPLEX, 1, 65_536)
    recorded = await record(Plan(settings, Workload.CRR, SECOND_NS // 2, socket=options), far_end)
    assert recorded.end.reason is Reason.COMPLETED
    assert {e.facts.congestion for e in recorded.events if isinstance(e, Opened)} == {"reno"}


@pytest.mark.parametrize("is_alone", [False, pytest.param(True, marks=pytest.mark.every)])
async def test_five_thousand_connections_leave_no_descriptor_and_equal_counts(is_alone: bool) -> None:
    """Both ends close the connection of each transaction, and both count the same."""
    with CrrPair() as pair:
        before = sockets_open()
        pair.responder.start(is_alone=is_alone)
        pair.requester.start(is_alone=is_alone)
        async with asyncio.timeout(20):
            await pair.until(5_000)
        assert not pair.lost
        assert sockets_open() <= before + 2  # the transaction under way has two ends
        pair.requester.close()
        words = pair.counters.words
        received, sent = words[CounterField.BYTES], words[WORDS_PER_SLOT + CounterField.BYTES]
        assert received == pair.transactions * 8_192
        assert received <= sent <= received + 8_192


async def test_a_pair_that_shares_its_worker_continues_without_its_thread() -> None:
    """No transaction is lost between the thread and the event loop, and the thread has ended."""
    with CrrPair() as pair:
        threads = threading.active_count()
        pair.responder.start()
        pair.requester.start(is_alone=True)
        async with asyncio.timeout(20):
            await pair.until(50)
            pair.requester.share_worker()
            await until(lambda: threading.active_count() <= threads)
            await pair.until(pair.transactions + 50)
        assert not pair.lost


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"", "closed by the other host"), (b"x", "the other host sent unexpected data")],
)
async def test_a_session_ends_with_its_own_connection_and_for_no_other_reason(data: bytes, why: str) -> None:
    """A readiness callback without data is not an end; the end of the connection is one, and so is any data."""
    with CrrPair() as pair:
        pair.responder.start()
        responder: Any = pair.responder
        responder._check_for_end()
        assert not pair.lost
        if data:
            pair.near.send(data)
        else:
            pair.near.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(20):
            await pair.until(1)
        (lost,) = pair.lost
        assert lost.startswith(why)


async def test_a_refusal_for_lack_of_ports_names_the_remedy(monkeypatch: Any) -> None:
    """It names the system control that widens the range of ports."""
    with CrrPair() as pair:
        pair.responder.start()

        class Refusing(socket.SocketType):
            def connect_ex(self, _address: object) -> int:
                return 99

        monkeypatch.setattr(crr_requester, "SocketType", Refusing)
        pair.requester.start()
        assert len(pair.lost) == 1
        assert "ip_local_port_range" in pair.lost[0]


@pytest.mark.parametrize("is_alone", [False, True])
@pytest.mark.parametrize("is_requester", [False, True])
async def test_either_end_without_a_descriptor_names_the_cause_and_the_remedy(
    is_requester: bool, is_alone: bool
) -> None:
    """The limit of a worker process is reached: `ulimit -n` sets it."""
    with CrrPair() as pair, socket.create_connection(pair.listener.getsockname()) as client:
        client.sendall(bytes(64))
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        os.close(free := os.dup(0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
        try:
            (pair.requester if is_requester else pair.responder).start(is_alone=is_alone)
            async with asyncio.timeout(20):
                await pair.until(1)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert pair.lost == ["too many open files: raise ulimit -n"]
