"""Runs against stock iperf3 servers: real processes, real sockets, real workers."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.iperf3.near import run as iperf3_run
from linkgauge.engine.iperf3.near.run import open_iperf3_run
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import PeerBusy, PeerUnreachable, PlanError
from linkgauge.engine.model.events import Event, Opened, Sampled, SessionTotal, Totals, Warned
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings, SocketOptions
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.base_run import Run
from linkgauge.engine.near.connect import query_ends

from ...conftest import DEADLINE_S, RATE_BIT_S
from ...iperf3_peer import free_port, needs_iperf3, stock_server, stock_server_process

pytestmark = [needs_iperf3, pytest.mark.usefixtures("fork_server")]
Recorder = Callable[..., Any]
HOSTS = {4: "127.0.0.1", 6: "::1"}
SIZES = [(4, 6), *(pytest.param(*size, marks=pytest.mark.every) for size in ((1, 4), (1, 6), (4, 4)))]


def plan_of(direction: Direction = Direction.OUT, sessions: int = 1, **more: Any) -> Plan:
    """Return a plan of half a second at a rate that leaves the cores to other tests."""
    defaults = {"duration_ns": SECOND_NS // 2, "interval_ns": SECOND_NS // 10, "rate_bit_s": RATE_BIT_S}
    return Plan(Settings(direction, sessions), **{**defaults, **more})


def peer_at(port: int, host: str = HOSTS[4]) -> Peer:
    """Return the peer of a server on loopback."""
    return Peer.parse(f"iperf3://[{host}]:{port}" if ":" in host else f"iperf3://{host}:{port}")


def totals_of(events: list[Event]) -> dict[tuple[Direction, int], SessionTotal]:
    """Return the server's totals by session; there is one such event, before the last one."""
    found = [event for event in events if isinstance(event, Totals)]
    assert len(found) == 1
    assert found[0].end is End.FAR
    return {(total.direction, total.session): total for total in found[0].sessions}


def near_bytes(events: list[Event], flow: Direction, session: int, end: End = End.NEAR) -> int:
    """Return a session's bytes after the warm-up in the samples of an end."""
    return sum(
        part.bytes
        for event in events
        if isinstance(event, Sampled) and event.sample.end is end and not event.warmup
        for part in event.sample.sessions
        if (part.direction, part.session) == (flow, session)
    )


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize(("sessions", "version"), SIZES)
async def test_a_stock_server_carries_each_direction_and_its_results_agree_with_the_samples(
    record: Recorder, direction: Direction, sessions: int, version: int
) -> None:
    """Sessions have the numbers of their streams: both ends count the same for each."""
    host = HOSTS[version]
    async with stock_server(host) as port:
        recorded = await record(plan_of(direction, sessions), peer_at(port, host))
    assert recorded.end.reason is Reason.COMPLETED
    assert recorded.started.ip_version == version
    assert recorded.started.far.software == "iperf3"
    opened = {(e.facts.direction, e.facts.session) for e in recorded.events if isinstance(e, Opened)}
    totals = totals_of(recorded.events)
    assert set(totals) == opened
    assert len(opened) == sessions * len(direction.flows)
    for (flow, session), total in totals.items():
        counted = near_bytes(recorded.events, flow, session)
        assert counted > 0
        assert abs(total.bytes - counted) < 0.5 * counted + 1_000_000, (flow, session)
        assert total.span_ns > SECOND_NS // 4
        assert (total.retransmits is not None) is (flow is Direction.IN)
    far = [event.sample for event in recorded.samples if event.sample.end is End.FAR]
    assert all(sample.is_from_sender and sample.cores is None for sample in far)
    assert bool(far) is (Direction.OUT in direction.flows)
    for session in range(1, sessions + 1):
        sent = near_bytes(recorded.events, Direction.OUT, session)
        assert near_bytes(recorded.events, Direction.OUT, session, End.FAR) == sent


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize(("sessions", "version"), SIZES)
async def test_every_datagram_is_received_or_lost_by_the_counts_of_both_ends(
    record: Recorder, direction: Direction, sessions: int, version: int
) -> None:
    """Of each session, with its numbers: also those that were on their way at the end."""
    settings = Settings(direction, sessions, rate_bit_s=20_000_000, datagram_bytes=1_200)
    plan = Plan(settings, Workload.UDP, duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10, warmup_ns=0)
    host = HOSTS[version]
    async with stock_server(host) as port:
        recorded = await record(plan, peer_at(port, host))
    assert recorded.end.reason is Reason.COMPLETED
    totals = totals_of(recorded.events)
    assert len(totals) == sessions * len(direction.flows)
    parts = [part for event in recorded.samples for part in event.sample.datagrams]
    for (flow, session), total in totals.items():
        own = [part for part in parts if (part.direction, part.session) == (flow, session)]
        if flow is Direction.OUT:
            assert total.received is not None
            assert total.lost is not None
            assert total.received + total.lost == sum(part.sent or 0 for part in own) > 0
            assert total.bytes == 1_200 * total.received
        else:
            received, highest = (sum(getattr(part, name) or 0 for part in own) for name in ("received", "advanced"))
            assert total.sent is not None
            assert 0 < received <= highest <= total.sent
            assert total.sent - highest < 10  # nothing was lost at the end


@pytest.mark.every
@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
async def test_the_warmup_is_whole_seconds_and_in_neither_ends_result(
    record: Recorder, direction: Direction
) -> None:
    """A fraction is rounded, with a warning, and the server omits the same seconds."""
    plan = plan_of(direction, duration_ns=1_700_000_000, warmup_ns=400_000_000)
    async with stock_server() as port:
        recorded = await record(plan, peer_at(port))
    assert recorded.started.plan.warmup_ns == SECOND_NS
    assert [event.text for event in recorded.events if isinstance(event, Warned) and "whole seconds" in event.text]
    (total,) = totals_of(recorded.events).values()
    assert 0.4 * SECOND_NS < total.span_ns < 1.3 * SECOND_NS
    counted = near_bytes(recorded.events, direction, 1)
    assert abs(total.bytes - counted) < 0.5 * counted + 1_000_000


@pytest.mark.parametrize("direction", list(Direction))
async def test_a_number_of_bytes_ends_the_run_with_all_of_them(record: Recorder, direction: Direction) -> None:
    """Both ends count at least as many. Blocks are sent whole: servers since 3.16 do not count a part of one."""
    limit = 40 * 131_072 - 7
    plan = plan_of(direction, duration_ns=None, bytes_limit=limit, warmup_ns=0)
    async with stock_server() as port:
        recorded = await record(plan, peer_at(port))
    assert recorded.end.reason is Reason.COMPLETED
    for (flow, session), total in totals_of(recorded.events).items():
        assert near_bytes(recorded.events, flow, session) >= limit
        assert total.bytes >= limit
        if flow is Direction.OUT:
            assert total.bytes == near_bytes(recorded.events, flow, session) == 40 * 131_072


@pytest.mark.parametrize(
    ("number", "reason"),
    [(signal.SIGKILL, Reason.PEER_LOST), (signal.SIGINT, Reason.PEER_STOPPED)],
    ids=["killed", "interrupted"],
)
@pytest.mark.parametrize("direction", list(Direction))
async def test_the_end_of_a_server_is_reported_at_once(
    record: Recorder, direction: Direction, number: signal.Signals, reason: Reason
) -> None:
    """Not at the end of the test, and nothing is left behind."""
    plan = plan_of(direction, duration_ns=60 * SECOND_NS, warmup_ns=0)
    async with stock_server_process() as (port, process):

        def act(_run: Run, event: Event) -> None:
            if isinstance(event, Sampled) and event.sample.index == 1 and event.sample.end is End.NEAR:
                process.send_signal(number)

        recorded = await record(plan, peer_at(port), act)
    assert recorded.end.reason is reason, recorded.end
    assert not [event for event in recorded.events if isinstance(event, Totals)]


async def test_a_server_that_stands_still_is_lost_and_the_run_says_what_is_missing(
    record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its final count is unknown; a warning says that its results are missing."""
    monkeypatch.setattr(iperf3_run, "FINISH_DEADLINE_S", 0.3)
    async with stock_server_process() as (port, process):

        def act(_run: Run, event: Event) -> None:
            if isinstance(event, Sampled) and event.sample.index == 1 and event.sample.end is End.NEAR:
                process.send_signal(signal.SIGSTOP)

        recorded = await record(plan_of(), peer_at(port), act)
        process.send_signal(signal.SIGKILL)
    assert recorded.end.reason is Reason.PEER_LOST
    assert [event for event in recorded.events if isinstance(event, Warned) and "sent no results" in event.text]


async def test_a_busy_server_is_named_busy_with_what_to_do() -> None:
    """The second test of a stock server is refused, and the first one goes on."""
    long = plan_of(duration_ns=60 * SECOND_NS, warmup_ns=0)
    async with asyncio.timeout(DEADLINE_S), stock_server() as port, open_iperf3_run(long, peer_at(port)) as run:
        with pytest.raises(PeerBusy, match=r"busy.*linkgauge endpoint --iperf3"):
            async with open_iperf3_run(plan_of(), peer_at(port)):
                pass
        run.stop()
        events = [event async for event in run]
    assert totals_of(events)


async def test_nothing_that_listens_is_named_with_the_program_to_start() -> None:
    """It is not linkgauge that has to be started there."""
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(PeerUnreachable, match=r"start `iperf3 -s` there"):
            async with open_iperf3_run(plan_of(), peer_at(free_port(HOSTS[4]))):
                pass


async def test_a_change_of_settings_is_a_warning_and_changes_nothing(record: Recorder) -> None:
    """An iperf3 server cannot change a test."""

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.index == 1:
            run.change_settings(Settings(sessions=3))

    async with stock_server() as port:
        recorded = await record(plan_of(), peer_at(port), act)
    assert recorded.end.reason is Reason.COMPLETED
    assert [event for event in recorded.events if isinstance(event, Warned) and "cannot change" in event.text]
    assert {event.settings.sessions for event in recorded.samples} == {1}


async def test_the_person_stops_a_test_without_end_and_has_the_results(record: Recorder) -> None:
    """The server's results come all the same."""

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.index == 2:
            run.stop()

    async with stock_server() as port:
        recorded = await record(plan_of(duration_ns=None, warmup_ns=0), peer_at(port), act)
    assert recorded.end.reason is Reason.STOPPED
    assert totals_of(recorded.events)[Direction.OUT, 1].bytes > 0


async def test_options_of_sockets_reach_both_ends(record: Recorder) -> None:
    """This end's kernel grants window, MSS, congestion control and DSCP, and the server takes them."""
    options = SocketOptions(congestion="reno", mss_bytes=1_000, dscp=10, nodelay=True, source="127.0.0.1")
    plan = replace(plan_of(socket=options), settings=Settings(Direction.DUPLEX, window_bytes=65_536))
    async with stock_server() as port:
        recorded = await record(plan, peer_at(port))
    assert recorded.end.reason is Reason.COMPLETED
    for event in recorded.events:
        if isinstance(event, Opened):
            assert event.facts.window_granted_bytes == 65_536
            assert event.facts.congestion == "reno"
            assert event.facts.mss_bytes is not None
            assert event.facts.mss_bytes <= 1_000


async def test_a_plan_that_iperf3_cannot_carry_out_opens_nothing() -> None:
    """The error names the field, and the port is never connected to."""
    with pytest.raises(PlanError, match="workload"):
        async with open_iperf3_run(Plan(workload=Workload.RR), peer_at(9)):
            pass


async def test_a_query_touches_no_server() -> None:
    """A server would take a connection for a test: the route alone shows the interface of this end."""
    ends = await query_ends(peer_at(9))
    assert ends.near.nic is not None
    assert ends.near.nic.sort == "loopback"
    assert (ends.far.software, ends.far.nic, ends.far.cores) == ("iperf3", None, 0)


@pytest.mark.every
@pytest.mark.parametrize(
    ("rate", "sessions", "size"),
    [(None, 1, 131_072), (1_000_000_000, 1, 131_072), (64_000, 1, 800), (1_000_000, 8, 1_562), (1_000, 4, 64)],
)
def test_a_server_sends_small_blocks_at_a_low_rate(rate: int | None, sessions: int, size: int) -> None:
    """It sends whole blocks: one of 128 KiB would take 16 s at 64 kb/s."""
    assert iperf3_run.block_bytes_of(plan_of(sessions=sessions, rate_bit_s=rate)) == size
