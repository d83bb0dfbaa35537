"""Clients of an endpoint beside each other: what they learn of each other, and which may run."""

import asyncio
import socket
from unittest.mock import AsyncMock

import pytest
from linkgauge.engine.control import handshake
from linkgauge.engine.far import client_service
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.far.status import LogEntry
from linkgauge.engine.model.counters.samples import OtherTests
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import PeerBusy, PeerError, PeerRefused
from linkgauge.engine.model.events import Ended, Event, Sampled, Warned
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.near.connect import connect
from linkgauge.engine.near.path_mtu import prepare_path_session
from linkgauge.engine.near.run import Run, open_run
from linkgauge.engine.protocol.messages import Finish, Stop
from linkgauge.engine.results.meter import Meter

from ..conftest import DEADLINE_S, RATE_BIT_S
from ..waiting import until

pytestmark = pytest.mark.usefixtures("fork_server")

LONG = Plan(Settings(sessions=2), duration_ns=60 * SECOND_NS, interval_ns=SECOND_NS // 10, rate_bit_s=RATE_BIT_S)
SHORT = Plan(Settings(Direction.IN), duration_ns=SECOND_NS, interval_ns=SECOND_NS // 10, rate_bit_s=RATE_BIT_S)


async def events_of(plan: Plan, peer: Peer) -> list[Event]:
    """Return the events of a whole run."""
    async with open_run(plan, peer) as run:
        return [event async for event in run]


def others_in(events: list[Event]) -> list[OtherTests | None]:
    """Return the other tests in the far end's samples."""
    return [e.sample.others for e in events if isinstance(e, Sampled) and e.sample.end is End.FAR]


async def until_payload(run: Run) -> None:
    """Wait until a run carries payload."""
    async for event in run:
        if isinstance(event, Sampled) and any(session.bytes for session in event.sample.sessions):
            return


async def test_a_run_learns_what_another_one_on_its_endpoint_carries(endpoint: Endpoint) -> None:
    """By direction, from the endpoint's own counters, with one warning; and the other one learns of it."""
    peer = Peer(*endpoint.address)
    async with asyncio.timeout(DEADLINE_S), open_run(LONG, peer) as beside:
        await until_payload(beside)
        events = await events_of(SHORT, peer)
        beside.stop()
        others_of_beside = others_in([event async for event in beside])
    others = [each for each in others_in(events) if each is not None]
    assert {(each.tests, each.sessions, each.sent_bytes) for each in others} == {(1, 2, 0)}
    meter = Meter()
    for event in events:
        meter.feed(event)
    summary = meter.summary().others
    assert summary is not None
    assert (summary.most_tests, summary.most_sessions, summary.sent_bit_s) == (1, 2, 0.0)
    assert summary.received_bit_s == pytest.approx(RATE_BIT_S, rel=0.3)
    (warning,) = [event.text for event in events if isinstance(event, Warned) and "another test" in event.text]
    assert warning.startswith("another test on this endpoint: 1 test, 2 sessions, receives ")
    assert {each.tests for each in others_of_beside if each is not None} == {0, 1}


async def test_a_run_that_has_the_endpoint_for_itself_learns_so(far_end: Peer) -> None:
    """None at all is measured, and is not unknown."""
    events = await events_of(SHORT, far_end)
    assert set(others_in(events)) == {OtherTests()}


@pytest.mark.every
@pytest.mark.parametrize("software", ["linkgauge 0.1.0 (waits)", "linkgauge 0.1.0"])
async def test_a_near_end_of_an_earlier_version_is_told_nothing_of_other_tests(
    far_end: Peer, monkeypatch: pytest.MonkeyPatch, software: str
) -> None:
    """The key would end its run. It is counted as another test all the same."""
    earlier = HostInfo("web-07", "Linux", 2, software, "uvloop")
    monkeypatch.setattr(handshake, "describe_host", AsyncMock(return_value=earlier))
    events = await events_of(SHORT, far_end)
    assert isinstance(events[-1], Ended)
    assert set(others_in(events)) == {None}


async def test_an_endpoint_of_an_earlier_version_is_not_asked_for_a_turn(
    far_end: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would close the connection without a word."""
    earlier = HostInfo("web-07", "Linux", 2, "linkgauge 0.1.0 (waits)", "uvloop")
    monkeypatch.setattr(handshake, "describe_host", AsyncMock(return_value=earlier))
    for plan, option in ((Plan(exclusive=True), "--exclusive"), (Plan(wait_ns=SECOND_NS), "--wait")):
        with pytest.raises(PeerError, match=f"earlier version, which does not know {option}; update linkgauge"):
            await events_of(plan, far_end)


async def test_an_exclusive_run_is_refused_beside_another_and_refuses_others(endpoint: Endpoint) -> None:
    """Those that wait are served, once it is over."""
    peer = Peer(*endpoint.address)
    exclusive = Plan(duration_ns=60 * SECOND_NS, rate_bit_s=RATE_BIT_S, exclusive=True)
    patient = Plan(duration_ns=SECOND_NS // 2, rate_bit_s=RATE_BIT_S, wait_ns=60 * SECOND_NS)
    async with asyncio.timeout(DEADLINE_S):
        async with open_run(LONG, peer) as beside:
            await until_payload(beside)
            with pytest.raises(PeerRefused, match="declines: busy with 1 other test, for 60 s more at most"):
                await events_of(exclusive, peer)
            beside.stop()
        async with open_run(exclusive, peer) as run, asyncio.TaskGroup() as group:
            await until_payload(run)
            with pytest.raises(PeerRefused, match="busy with a test that has the endpoint for itself"):
                await events_of(SHORT, peer)
            waiting = group.create_task(events_of(patient, peer))
            run.stop()
            events = await waiting
    assert others_in(events)


@pytest.mark.parametrize("software", ["linkgauge 0.1.0 (buffers) (others) (waits)", None])
async def test_a_busy_endpoint_says_when_it_is_free_to_those_that_read_it(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, software: str | None
) -> None:
    """An earlier version gets the words alone."""
    peer = Peer(*endpoint.address)
    async with asyncio.timeout(DEADLINE_S), open_run(LONG, peer) as beside:
        await until_payload(beside)
        if software is not None:
            earlier = HostInfo("web-07", "Linux", 2, software, "uvloop")
            monkeypatch.setattr(handshake, "describe_host", AsyncMock(return_value=earlier))
        with pytest.raises(
            PeerRefused, match=r"declines: busy with 1 other test, for \d+ s more at most"
        ) as refusal:
            await events_of(Plan(exclusive=True), peer)
        error = refusal.value
        free_in_s = error.free_in_s if isinstance(error, PeerBusy) else None
        beside.stop()
    assert free_in_s is None if software is not None else 0 < (free_in_s or 0) <= 60


async def test_one_that_waits_and_leaves_gives_its_place_to_the_next() -> None:
    """The endpoint sees that its connection is closed; otherwise the next one would wait for ever."""
    patient = Plan(duration_ns=SECOND_NS // 2, rate_bit_s=RATE_BIT_S, exclusive=True, wait_ns=60 * SECOND_NS)
    async with (
        asyncio.timeout(DEADLINE_S),
        Endpoint(listen("127.0.0.1", 0)) as endpoint,
        open_run(LONG, Peer(*endpoint.address)) as beside,
    ):
        await until_payload(beside)
        leaving = asyncio.create_task(events_of(patient, Peer(*endpoint.address)))
        await until(lambda: len(endpoint.admission.admitted_clients) == 2)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        waiting = asyncio.create_task(events_of(patient, Peer(*endpoint.address)))
        beside.stop()
        assert isinstance((await waiting)[-1], Ended)


async def test_an_exclusive_endpoint_serves_one_run_after_the_other() -> None:
    """As a sweep asks for them: the next one is served as soon as the last one has its end."""
    async with asyncio.timeout(DEADLINE_S), Endpoint(listen("127.0.0.1", 0)) as endpoint:
        endpoint.admission.turns.is_exclusive = True
        peer = Peer(*endpoint.address)
        for _ in range(3):
            assert isinstance((await events_of(SHORT, peer))[-1], Ended)
        async with open_run(LONG, peer) as run:
            await until_payload(run)
            with pytest.raises(PeerRefused, match="busy with another test, and has one at a time"):
                await events_of(SHORT, peer)


async def test_one_that_waits_in_silence_loses_its_place(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked each second whether it is still there; here it has no time to answer."""
    monkeypatch.setattr(client_service, "PING_INTERVAL_S", 0.01)
    monkeypatch.setattr(client_service, "MAX_SILENCE_NS", -1)
    peer = Peer(*endpoint.address)
    async with asyncio.timeout(DEADLINE_S), open_run(LONG, peer) as beside:
        await until_payload(beside)
        with pytest.raises(PeerError, match="was lost before the test began"):
            await events_of(Plan(exclusive=True, wait_ns=60 * SECOND_NS), peer)
        beside.stop()


@pytest.mark.every
async def test_a_probe_is_counted_and_not_logged() -> None:
    """A watch probes each of its peers once a minute: three lines each would bury those of tests."""
    log: list[str] = []
    async with asyncio.timeout(DEADLINE_S), Endpoint(listen("127.0.0.1", 0), log.append) as endpoint:
        peer = Peer(*endpoint.address)
        async with connect(peer) as (control, _ends):
            await prepare_path_session(control, peer)
            control.send(Stop(RunEnd(Reason.STOPPED, "")))
            assert isinstance(await control.receive(), Finish)
        assert not log
        await events_of(SHORT, peer)
        await endpoint.drain(DEADLINE_S)
        assert [line.event for line in log if isinstance(line, LogEntry)] == ["client", "run_began", "run_ended"]
        assert isinstance(log[0], LogEntry)
        assert log[0].fields["hostname"] == socket.gethostname()
        totals = endpoint.get_status().totals
        assert (totals.clients, totals.probes, totals.runs) == (2, 1, {"completed": 1})
