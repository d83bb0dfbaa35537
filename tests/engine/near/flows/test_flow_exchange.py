"""Far ends that answer nonsense to a test of many flows: it ends, with a result of bounded size or an error."""

import asyncio
import random
from typing import Any

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.far.probes.flow_responder import FlowResponder
from linkgauge.engine.flows.flow_socket import FlowSocket
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PeerError
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.near.flows import flow_exchange
from linkgauge.engine.near.flows.flow_measurement import FlowsRequest, measure_flows
from linkgauge.engine.protocol.flow_datagrams import (
    ENTRIES_IN_DATAGRAM,
    LATEST,
    MAX_SWEEPS,
    ArrivalQuery,
    FlowArrivals,
    RoundStatus,
    numbers_in,
)
from linkgauge.engine.results.flows.flow_result import FlowsResult

from ...live_objects import most_alive

pytestmark = pytest.mark.usefixtures("fork_server")
MOST = numbers_in(MAX_SWEEPS)


async def measure(direction: Direction) -> FlowsResult:
    """Measure few flows, from a real endpoint whose answers are patched."""
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint, asyncio.timeout(60):
        return await measure_flows(Peer(*endpoint.address), FlowsRequest(direction, flows=8, sweeps=20))


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.every) for seed in range(2, 8))])
async def test_lists_of_any_numbers_give_a_result_or_an_error(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Lists that are too long, entries and counts of any value, and other places than were asked for."""
    chance = random.Random(seed)  # noqa: S311

    def report(_self: FlowResponder, flow: FlowSocket, query: ArrivalQuery) -> None:
        for place in {(query.flow, query.offset), (chance.randrange(1 << 32), 0)}:
            total = max(place[1], chance.choice([MOST, ENTRIES_IN_DATAGRAM, 30]))  # less is not decoded
            count = max(0, min(ENTRIES_IN_DATAGRAM, total - place[1]))
            entries = tuple(chance.choice([0, 1, LATEST, chance.randrange(LATEST)]) for _ in range(count))
            counts = (chance.choice([0, LATEST >> 1]), chance.choice([0, LATEST >> 1]), chance.choice([0, LATEST]))
            answer = FlowArrivals(query.round, place[0], total, *counts, place[1], entries)
            flow.answer(answer.pack(flow.secret))

    monkeypatch.setattr(FlowResponder, "_report", report)
    try:
        result = await measure(Direction.OUT)
    except PeerError:  # lists that no question was for may take the room of the others
        return
    (way,) = result.directions
    assert [0 < each.sent <= 16 * MAX_SWEEPS for each in way.flows] == [True] * 8
    assert max(len(each.delays) for each in way.flows) <= 16 * MAX_SWEEPS


async def test_lists_that_nobody_asked_for_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many come: of all that can be named they would take gigabytes."""
    sent = 0

    def report(_self: FlowResponder, flow: FlowSocket, query: ArrivalQuery) -> None:
        nonlocal sent
        for _ in range(20):
            sent += 1
            flow.answer(FlowArrivals(query.round, 1_000 + sent, 9, 0, 0, 0, 0, (1,) * 9).pack(flow.secret))

    monkeypatch.setattr(FlowResponder, "_report", report)
    monkeypatch.setattr(flow_exchange, "_ANSWER_S", 2.0)
    async with most_alive(FlowArrivals) as most:
        with pytest.raises(PeerError, match="reports of arrivals are lost"):
            await measure(Direction.OUT)
    assert sent > 1_000
    assert most.count <= 300


async def test_a_far_end_gains_no_time_answer_by_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """One list after the other, each just in time."""
    asked: dict[Any, int] = {}

    def report(_self: FlowResponder, flow: FlowSocket, query: ArrivalQuery) -> None:
        place = query.flow, query.offset
        asked[place] = asked.get(place, 0) + 1
        if len(asked) * 3 < sum(asked.values()):  # some rounds of questions for each answer
            asked.clear()
            flow.answer(FlowArrivals(query.round, query.flow, MOST, 0, 0, 0, query.offset).pack(flow.secret))

    monkeypatch.setattr(FlowResponder, "_report", report)
    monkeypatch.setattr(flow_exchange, "_ANSWER_S", 1.5)
    monkeypatch.setattr(flow_exchange, "_PART_S", 0.0)
    with pytest.raises(PeerError, match="reports of arrivals are lost"):
        await measure(Direction.OUT)


async def test_a_far_end_that_could_not_send_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever number it says."""

    def begin(_self: FlowResponder, flow: FlowSocket, order: Any) -> None:
        flow.answer(RoundStatus(order.round, LATEST, is_over=True).pack(flow.secret))

    monkeypatch.setattr(FlowResponder, "_begin", begin)
    with pytest.raises(PeerError, match="could not send datagrams of the flows"):
        await measure(Direction.IN)
