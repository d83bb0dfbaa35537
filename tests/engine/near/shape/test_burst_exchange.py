"""Far ends that answer nonsense to a measurement of bursts: it ends, and takes no memory by their numbers."""

import asyncio
import random

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.far.probes.burst_responder import BurstResponder
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PeerError
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.near.shape import burst_exchange, shape_measurement
from linkgauge.engine.near.shape.shape_measurement import ShapeRequest, measure_shape
from linkgauge.engine.protocol.burst_datagrams import (
    ARRIVALS_IN_DATAGRAM,
    MAX_ARRIVAL_NS,
    MAX_BURST_DATAGRAMS,
    BurstArrivals,
    BurstQuery,
    BurstRequest,
    BurstSent,
)
from linkgauge.engine.results.shape.shape_document import shape_document
from linkgauge.engine.results.shape.shape_result import ShapeResult

from ...live_objects import most_alive

pytestmark = pytest.mark.usefixtures("fork_server")


async def measure(direction: Direction) -> ShapeResult:
    """Measure with few bursts, from a real endpoint whose answers are patched."""
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint, asyncio.timeout(90):
        return await measure_shape(Peer(*endpoint.address), ShapeRequest(direction, bursts=3, datagram_bytes=1_400))


@pytest.mark.every
@pytest.mark.parametrize("seed", range(4))
async def test_lists_of_any_numbers_end_in_a_result_or_an_error(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Places twice or beyond the burst, times in any order, and counts of any value."""
    chance = random.Random(seed)  # noqa: S311

    def report(self: BurstResponder, query: BurstQuery) -> None:
        total = 600
        count = max(0, min(ARRIVALS_IN_DATAGRAM, total - query.offset))
        arrivals = tuple(
            (chance.choice([0, chance.randrange(700), (1 << 32) - 1]), chance.randrange(MAX_ARRIVAL_NS))
            for _ in range(count)
        )
        answer = BurstArrivals(query.burst, total, 0, query.offset, arrivals)
        self._socket.answer(answer.pack(self._secret))

    monkeypatch.setattr(BurstResponder, "_report", report)
    monkeypatch.setattr(shape_measurement, "DIRECTION_S", 15.0)
    result = await measure(Direction.OUT)
    assert shape_document(result)


async def test_lists_that_nobody_asked_for_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many come: of all that can be named they would take a gigabyte."""
    sent = 0

    def report(self: BurstResponder, query: BurstQuery) -> None:
        nonlocal sent
        answer = BurstArrivals(query.burst, MAX_BURST_DATAGRAMS, 0, query.offset)
        self._socket.answer(answer.pack(self._secret))
        for _ in range(20):
            sent += 1
            unasked = BurstArrivals(query.burst, MAX_BURST_DATAGRAMS, 0, 60_001 + sent % 5_000, ((1, 1),) * 9)
            self._socket.answer(unasked.pack(self._secret))

    monkeypatch.setattr(BurstResponder, "_report", report)
    monkeypatch.setattr(burst_exchange, "_ANSWER_S", 2.0)
    monkeypatch.setattr(burst_exchange, "_PART_S", 0.0)
    async with most_alive(BurstArrivals) as most:
        with pytest.raises(PeerError, match="reports of arrivals are lost"):
            await measure(Direction.OUT)
    assert sent > 1_000
    assert most.count <= 600


async def test_a_far_end_that_has_sent_more_than_a_burst_has_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reading would take as much memory as it says."""

    def begin(self: BurstResponder, request: BurstRequest) -> None:
        self._socket.answer(BurstSent(request.burst, (1 << 32) - 1, 0, is_over=True).pack(self._secret))

    monkeypatch.setattr(BurstResponder, "_begin", begin)
    with pytest.raises(PeerError, match="more datagrams than a burst has"):
        await measure(Direction.IN)
