"""A host that tests another one takes part in no other test: with a real endpoint of its own, on loopback."""

import asyncio
from dataclasses import replace

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.errors import PeerBusy, PeerRefused
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.near.run import open_run
from linkgauge.tui.watch.running.own_turn import hold_own_turn
from linkgauge.watch.watch_plan import Timing, WatchedPeer

from ....engine.waiting import until

pytestmark = pytest.mark.usefixtures("fork_server")

DEADLINE_S = 30.0
BRIEF = Plan(duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10, rate_bit_s=20_000_000)


def pair(own: Peer | None) -> WatchedPeer:
    """Return another host, tested from the one with this endpoint."""
    return WatchedPeer("a_to_b", Peer("192.0.2.2"), BRIEF, None, timing=Timing(SECOND_NS, None), own=own)


async def carry_out(plan: Plan, peer: Peer) -> None:
    """Carry a run out."""
    async with open_run(plan, peer) as run:
        async for _ in run:
            pass


@pytest.mark.every
async def test_nobody_tests_this_host_while_it_tests_another_one() -> None:
    """Its turn is free again afterwards, and its log has no line of that."""
    log: list[str] = []
    async with asyncio.timeout(DEADLINE_S), Endpoint(listen("127.0.0.1", 0), log.append) as endpoint:
        own = Peer(*endpoint.address)
        async with hold_own_turn(pair(own)):
            with pytest.raises(PeerRefused, match="busy with a test that has the endpoint for itself, for"):
                await carry_out(BRIEF, own)
            waiting = asyncio.create_task(carry_out(replace(BRIEF, wait_ns=20 * SECOND_NS), own))
        await waiting
        async with hold_own_turn(replace(pair(own), is_shared=True)):
            await carry_out(BRIEF, own)
    assert sum("started" in line for line in log) == 2


async def test_a_long_test_keeps_the_turn_of_its_host_until_its_end() -> None:
    """The endpoint would end a test that never starts."""
    long = replace(pair(None), plan=replace(BRIEF, duration_ns=60 * SECOND_NS))
    log: list[str] = []
    async with asyncio.timeout(DEADLINE_S), Endpoint(listen("127.0.0.1", 0), log.append) as endpoint:
        own = Peer(*endpoint.address)
        async with hold_own_turn(replace(long, own=own)):
            await until(lambda: any("started" in line for line in log))
            with pytest.raises(PeerRefused, match="busy with a test that has the endpoint for itself, for"):
                await carry_out(BRIEF, own)
        await carry_out(BRIEF, own)


async def test_a_host_that_is_tested_tests_nobody() -> None:
    """It waits for the end of that test, a period at most."""
    async with asyncio.timeout(DEADLINE_S), Endpoint(listen("127.0.0.1", 0)) as endpoint:
        own = Peer(*endpoint.address)
        async with open_run(replace(BRIEF, duration_ns=None), own) as beside:
            await anext(aiter(beside))
            with pytest.raises(PeerBusy, match="busy with 1 other test"):
                async with hold_own_turn(pair(own)):
                    pytest.fail("it has a turn")
            beside.stop()


async def test_a_host_without_an_endpoint_tests_others_all_the_same() -> None:
    """So does a host that is not one of a mesh."""
    with listen("127.0.0.1", 0) as listener:
        absent = Peer(*listener.getsockname())
    async with hold_own_turn(pair(absent)) as problem:
        assert "does not know of its tests, and may serve others beside: nothing listens" in (problem or "")
    async with hold_own_turn(pair(None)) as problem:
        assert problem is None
