"""Runs of datagrams between two real ends: settings that change while it runs, and what is counted meanwhile."""

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from typing import Any, Final
from unittest.mock import AsyncMock

import pytest
from linkgauge.engine.control import handshake
from linkgauge.engine.control.connection import ControlConnection
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import Changed, Event, Sampled, Warned
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.texts.warning_text import WarningText
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import Run
from linkgauge.engine.protocol.messages import Open
from linkgauge.engine.results.meter import replay

from ..tcp_pair import only_linux

pytestmark = [only_linux, pytest.mark.usefixtures("fork_server")]
Recorder = Callable[..., Any]
SIZE: Final = 1_000
RATE_BIT_S: Final = 4_000_000
CHANGES: Final[dict[str, dict[str, Any]]] = {
    "rate": {"rate_bit_s": 2 * RATE_BIT_S},
    "size": {"datagram_bytes": 300},
    "size of the path": {"datagram_bytes": "auto"},
    "more sessions": {"sessions": 3},
    "fewer sessions": {"sessions": 1},
    "direction": {"direction": Direction.IN},
    "both directions": {"direction": Direction.DUPLEX},
    "all": {"direction": Direction.DUPLEX, "sessions": 3, "rate_bit_s": RATE_BIT_S // 2, "datagram_bytes": 100},
}
ALWAYS: Final = {"all", "fewer sessions"}


def plan_of(direction: Direction = Direction.OUT, sessions: int = 2, seconds: float = 1.0) -> Plan:
    """Return a plan of slow datagrams that samples ten times a second."""
    settings = Settings(direction, sessions, rate_bit_s=RATE_BIT_S, datagram_bytes=SIZE)
    return Plan(
        settings,
        Workload.UDP,
        duration_ns=round(seconds * SECOND_NS),
        interval_ns=SECOND_NS // 10,
        warmup_ns=SECOND_NS // 10,
    )


def at_work(events: list[Event], settings: Settings) -> dict[tuple[Direction, int], tuple[int, int]]:
    """Return the size and the rate of each session that sent and whose datagrams arrived under some settings."""
    sent: dict[tuple[Direction, int], tuple[int, int]] = {}
    arrived: set[tuple[Direction, int]] = set()
    for event in events:
        if isinstance(event, Sampled) and event.settings == settings and not event.warmup:
            for counts in event.sample.datagrams:
                key = counts.direction, counts.session
                if counts.sent and counts.datagram_bytes and counts.rate_bit_s is not None:
                    sent[key] = counts.datagram_bytes, counts.rate_bit_s
                if counts.received:
                    arrived.add(key)
    return {key: value for key, value in sent.items() if key in arrived}


@pytest.mark.every
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.every) for name in CHANGES]
)
async def test_a_change_is_in_force_at_both_ends_and_loses_nothing(
    far_end: Peer, record: Recorder, name: str
) -> None:
    """Rate, size, sessions and direction, alone and together: datagrams that a change cut off are not lost."""

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.index == 3 and run.settings == plan.settings:
            run.change_settings(run.settings.with_changes(**CHANGES[name]))

    plan = plan_of()
    recorded = await record(plan, far_end, act)
    assert recorded.end.reason is Reason.COMPLETED
    (changed,) = [event.settings for event in recorded.events if isinstance(event, Changed)]
    assert changed == plan.settings.with_changes(**CHANGES[name])
    for settings in (plan.settings, changed):
        sessions = at_work(recorded.events, settings)
        assert set(sessions) == {
            (flow, number) for flow in settings.direction.flows for number in range(1, settings.sessions + 1)
        }
        sizes = {size for size, _ in sessions.values()}
        assert len(sizes) == 1
        assert settings.datagram_bytes is None or sizes == {settings.datagram_bytes}
        assert settings.rate_bit_s is not None
        assert {rate for _, rate in sessions.values()} == {settings.rate_bit_s // settings.sessions}
    summary = replay(recorded.events).summary()
    for flow in changed.direction.flows:
        measured = summary.measured[flow]
        assert measured is not None
        assert measured.datagrams is not None
        assert (measured.datagrams.lost, measured.datagrams.duplicates) == (0, 0)


async def test_groups_of_one_size_are_not_cut_up_by_the_next_one(far_end: Peer, record: Recorder) -> None:
    """Sizes that change twenty times a second: no session is lost, and each datagram that arrives is whole."""
    sizes = cycle((64, None))

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled):
            run.change_settings(replace(run.settings, datagram_bytes=next(sizes)))

    settings = Settings(Direction.DUPLEX, 4, rate_bit_s=200_000_000)
    plan = Plan(settings, Workload.UDP, duration_ns=2 * SECOND_NS, warmup_ns=0, interval_ns=SECOND_NS // 20)
    recorded = await record(plan, far_end, act)
    assert recorded.end.reason is Reason.COMPLETED, recorded.end


async def test_the_rate_changes_from_a_number_to_the_receivers_to_none_and_back(
    far_end: Peer, record: Recorder
) -> None:
    """All in one run, both ways: each is in force, and only a flood may lose anything."""
    rates: list[Any] = ["max", "flood", "max", RATE_BIT_S]

    def act(run: Run, event: Event) -> None:
        if rates and isinstance(event, Sampled) and event.sample.index % 4 == 3 and event.settings == run.settings:
            run.change_settings(run.settings.with_changes(rate_bit_s=rates.pop(0)))

    recorded = await record(plan_of(Direction.DUPLEX, seconds=3), far_end, act)
    assert recorded.end.reason is Reason.COMPLETED
    assert not rates
    received: dict[Settings, int] = {}
    for event in recorded.samples:
        arrived = sum(counts.received or 0 for counts in event.sample.datagrams)
        received[event.settings] = received.get(event.settings, 0) + arrived
    assert len(received) == 3
    assert min(received.values()) > 0
    for direction in Direction.DUPLEX.flows:
        last = at_work(recorded.events, plan_of(Direction.DUPLEX).settings)
        assert {rate for (flow, _), (_, rate) in last.items() if flow is direction} == {RATE_BIT_S // 2}


@pytest.mark.every
@pytest.mark.parametrize("rate", ["max", "flood"])
async def test_an_endpoint_of_an_earlier_version_is_told_of_no_flood(
    far_end: Peer, record: Recorder, monkeypatch: pytest.MonkeyPatch, rate: Any
) -> None:
    """It would not understand it, and sends so anyway; the run says what that means for the receiver's rate."""
    earlier = HostInfo("web-07", "Linux", 2, "linkgauge 0.9.0 (buffers) (others) (waits)", "uvloop")
    monkeypatch.setattr(handshake, "describe_host", AsyncMock(return_value=earlier))
    sent: list[Settings] = []
    try_send = ControlConnection.try_send

    def note(connection: ControlConnection, message: Any) -> bool:
        if isinstance(message, Open):
            sent.append(message.plan.settings)
        return try_send(connection, message)

    monkeypatch.setattr(ControlConnection, "try_send", note)
    plan = plan_of(seconds=0.6)
    plan = replace(plan, settings=plan.settings.with_changes(rate_bit_s=rate))
    recorded = await record(plan, far_end)
    assert recorded.end.reason is Reason.COMPLETED
    assert [settings.floods for settings in sent] == [False]
    warnings = [event.text for event in recorded.events if isinstance(event, Warned)]
    assert (WarningText.SENDS_REGARDLESS.value in warnings) is (rate == "max")


@pytest.mark.parametrize(
    ("address", "direction"),
    [
        ("127.0.0.1", Direction.DUPLEX),
        pytest.param("::1", Direction.OUT, marks=pytest.mark.every),
        pytest.param("::1", Direction.IN, marks=pytest.mark.every),
    ],
)
async def test_the_end_of_a_run_leaves_no_datagram_uncounted(
    record: Recorder, address: str, direction: Direction
) -> None:
    """Every datagram that was sent has arrived: the run waits for the drain."""
    async with Endpoint(listen(address, 0)) as endpoint:
        recorded = await record(plan_of(direction, seconds=0.6), Peer(*endpoint.address))
    assert recorded.end.reason is Reason.COMPLETED
    for flow in direction.flows:
        parts = [
            counts for event in recorded.samples for counts in event.sample.datagrams if counts.direction is flow
        ]
        sent = sum(counts.sent or 0 for counts in parts)
        assert sent > 0
        assert sent == sum(counts.advanced or 0 for counts in parts)
        assert sent == sum(counts.received or 0 for counts in parts)
