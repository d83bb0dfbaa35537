"""A run between two real ends on loopback: real sockets, real worker processes."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.far.run import FarRun
from linkgauge.engine.host import description
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import PeerError, PeerRefused, PeerUnreachable, PlanError
from linkgauge.engine.model.events import Changed, Ended, Event, Opened, Sampled, Warned
from linkgauge.engine.model.host_info import READS
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Mode, Plan, Settings, SocketOptions, format_size
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near import run as run_module
from linkgauge.engine.near.connect import connect, query_host_info
from linkgauge.engine.near.run import EndpointRun, Run, no_expectation, open_run
from linkgauge.engine.protocol.messages import Open
from linkgauge.engine.protocol.preamble import DataHello
from linkgauge.engine.workers.fork_client import ForkServerLease

from ..child_processes import workers_of
from ..conftest import DEADLINE_S, RATE_BIT_S

pytestmark = pytest.mark.usefixtures("fork_server")

Recorder = Callable[..., Any]
SS = shutil.which("ss")
LARGEST_BUFFER = int(Path("/proc/sys/net/core/rmem_max").read_text(encoding="ascii"))


def plan_of(direction: Direction = Direction.OUT, sessions: int = 1, seconds: float = 0.6, **more: Any) -> Plan:
    """Return a short plan that samples ten times a second, at a rate that leaves the cores to other tests."""
    window = more.pop("window_bytes", None)
    settings = Settings(direction, sessions, window)
    more = {
        "duration_ns": int(seconds * SECOND_NS),
        "interval_ns": SECOND_NS // 10,
        "rate_bit_s": RATE_BIT_S,
    } | more
    return Plan(settings, **more)


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("sessions", [pytest.param(1, marks=pytest.mark.every), 3])
async def test_a_run_measures_each_direction_at_its_receiver(
    record_once: Recorder, direction: Direction, sessions: int
) -> None:
    """Both ends report, bytes arrive in every flow and session, and the run ends because its time is up."""
    recorded = await record_once(plan_of(direction, sessions))
    assert recorded.end.reason is Reason.COMPLETED
    assert {event.sample.end for event in recorded.samples} == {End.NEAR, End.FAR}
    for flow in direction.flows:
        receiver = End.FAR if flow is Direction.OUT else End.NEAR
        for session in range(1, sessions + 1):
            got = sum(
                session_sample.bytes
                for event in recorded.samples
                if event.sample.end is receiver
                for session_sample in event.sample.sessions
                if session_sample.direction is flow and session_sample.session == session
            )
            assert got > 0, (flow, session)


async def test_the_sender_sees_acknowledged_bytes_close_to_what_was_received(record_once: Recorder) -> None:
    """Bytes at the sender are those the other kernel acknowledged, not those handed to its own."""
    recorded = await record_once(plan_of(seconds=1.0))

    def total(end: End) -> int:
        return sum(s.bytes for e in recorded.samples if e.sample.end is end for s in e.sample.sessions)

    assert 0.5 < total(End.NEAR) / total(End.FAR) < 1.5


async def test_samples_carry_cpu_and_tcp_of_the_end_that_knows(record_once: Recorder) -> None:
    """The sender reports round trips, window and retransmits, and both ends their cores; no end invents numbers."""
    recorded = await record_once(plan_of(seconds=1.0))
    last_near = [e.sample for e in recorded.samples if e.sample.end is End.NEAR][-2]
    last_far = [e.sample for e in recorded.samples if e.sample.end is End.FAR][-2]
    assert last_near.cores is not None
    assert len(last_near.cores) == os.cpu_count()
    assert last_near.process_cpu_ns is not None
    (sender,), (receiver,) = last_near.sessions, last_far.sessions
    assert sender.rtt_us
    assert sender.cwnd_bytes
    assert sender.mss_bytes
    assert sender.retransmits is not None
    assert receiver.rtt_us is None
    assert receiver.retransmits is None


@pytest.mark.every
async def test_sessions_are_added_and_taken_away_while_it_runs(far_end: Peer, record: Recorder) -> None:
    """Each change takes effect without ending the run, and samples say under which settings they were taken."""

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.end is End.FAR:
            if event.sample.index >= 10 and run.settings.sessions == 1:
                run.change_settings(run.settings.with_changes(sessions=5))
            if event.sample.index >= 20 and run.settings.sessions == 5:
                run.change_settings(run.settings.with_changes(sessions=2))

    recorded = await record(plan_of(seconds=3.4, warmup_ns=SECOND_NS // 2), far_end, act)
    assert recorded.end.reason is Reason.COMPLETED
    assert [e.settings.sessions for e in recorded.events if isinstance(e, Changed)] == [5, 2]
    seen = [
        (e.settings.sessions, len(e.sample.sessions))
        for e in recorded.samples
        if e.sample.end is End.FAR and not e.warmup
    ]
    assert set(seen) == {(1, 1), (5, 5), (2, 2)}


async def test_a_new_window_reopens_the_sessions_and_is_read_back(far_end: Peer, record: Recorder) -> None:
    """After a change of window both ends say what was granted, and payload goes on."""

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.index >= 3 and run.settings.window_bytes is None:
            run.change_settings(run.settings.with_changes(window_bytes=65_536))

    recorded = await record(plan_of(sessions=2, seconds=1.2), far_end, act)
    assert recorded.end.reason is Reason.COMPLETED
    granted = [
        (e.facts.end, e.facts.session, e.facts.window_granted_bytes)
        for e in recorded.events
        if isinstance(e, Opened) and e.facts.window_granted_bytes is not None
    ]
    assert sorted(granted) == [(end, number, 65_536) for end in sorted(End) for number in (1, 2)]
    after = [e for e in recorded.samples if e.sample.end is End.FAR and e.settings.window_bytes and not e.warmup]
    assert sum(s.bytes for e in after for s in e.sample.sessions) > 0


@pytest.mark.every
async def test_the_direction_changes_while_it_runs(far_end: Peer, record: Recorder) -> None:
    """Out becomes duplex: the new flow carries payload, the run goes on."""

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.index >= 3:
            run.change_settings(run.settings.with_changes(direction=Direction.DUPLEX))

    recorded = await record(plan_of(seconds=1.2), far_end, act)
    assert recorded.end.reason is Reason.COMPLETED
    assert any(s.direction is Direction.IN and s.bytes for e in recorded.samples for s in e.sample.sessions)


async def test_many_quick_changes_leave_the_sessions_of_the_last_change(far_end: Peer, record: Recorder) -> None:
    """A user who holds a key down gets the last settings, and no lost session."""
    steps = [7, 2, 9, 1, 4]

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.index >= 1 and run.settings.sessions == 1:
            for sessions in steps:
                run.change_settings(run.settings.with_changes(sessions=sessions))
            run.change_settings(run.settings.with_changes(window_bytes=131_072))
            run.change_settings(run.settings.with_changes(window_bytes=65_536, sessions=3))

    recorded = await record(plan_of(seconds=1.2, rate_bit_s=None), far_end, act)
    assert recorded.end.reason is Reason.COMPLETED
    last = [e.sample for e in recorded.samples if e.sample.end is End.FAR][-1]
    assert [s.session for s in last.sessions if s.bytes] == [1, 2, 3]


async def test_a_window_that_is_granted_only_in_part_is_a_warning(far_end: Peer, record: Recorder) -> None:
    """The text names the end, both sizes, and the sysctl that limits it; once for each buffer."""
    limit = LARGEST_BUFFER
    recorded = await record(plan_of(sessions=3, window_bytes=limit * 2), far_end)
    warnings = [e.text for e in recorded.events if isinstance(e, Warned)]
    assert len([w for w in warnings if "rmem_max" in w]) == 1
    assert f"grants {format_size(limit)} of the requested {format_size(limit * 2)}" in "".join(warnings)
    assert len(warnings) == len(set(warnings))


async def test_the_user_stops_a_run_without_duration(far_end: Peer, record: Recorder) -> None:
    """It lasts until then, and has all samples up to that time."""

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.index >= 4:
            run.stop()

    endless = plan_of(duration_ns=None)
    recorded = await record(endless, far_end, act)
    assert recorded.end.reason is Reason.STOPPED
    assert max(e.sample.index for e in recorded.samples) >= 4


async def test_the_far_end_stops_a_run_and_says_so(endpoint: Endpoint, record: Recorder) -> None:
    """An endpoint that shuts down ends its runs with a reason, and the near end repeats it."""
    closing: list[asyncio.Task[None]] = []

    def act(_run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.index >= 2 and not closing:
            closing.append(asyncio.create_task(endpoint.__aexit__()))

    recorded = await record(plan_of(seconds=10), Peer(*endpoint.address), act)
    assert recorded.end.reason is Reason.PEER_STOPPED
    assert "shutting down" in recorded.end.detail
    await asyncio.wait_for(closing[0], 10)


@pytest.mark.parametrize("which", [0, 1])
async def test_a_worker_that_is_killed_ends_the_run_with_its_reason(
    far_end: Peer, record: Recorder, which: int
) -> None:
    """Near or far: the run ends, says that a worker process was killed, and leaves nothing behind."""
    killed: list[int] = []

    def act(_run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.index >= 2 and not killed:
            killed.append(sorted(workers_of(os.getpid()))[which])
            os.kill(killed[0], signal.SIGKILL)

    recorded = await record(plan_of(seconds=10), far_end, act)
    assert recorded.end.reason is Reason.WORKER_LOST
    assert "killed by signal 9" in recorded.end.detail
    await _until_no_workers()


async def test_a_consumer_that_leaves_early_leaves_nothing_behind(far_end: Peer) -> None:
    """Leaving the block in the middle of a run ends it in order."""
    async with asyncio.timeout(20):
        async with open_run(plan_of(seconds=10), far_end) as run:
            async for event in run:
                if isinstance(event, Sampled):
                    break
        await _until_no_workers()


async def test_a_cancelled_consumer_leaves_nothing_behind(far_end: Peer) -> None:
    """Cancelling the task that iterates ends workers and sockets at once."""
    running = asyncio.Event()

    async def consume() -> None:
        async with open_run(plan_of(Direction.DUPLEX, 4, seconds=10), far_end) as run:
            async for event in run:
                if isinstance(event, Sampled):
                    running.set()

    async with asyncio.timeout(20):
        task = asyncio.create_task(consume())
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await _until_no_workers()


async def test_a_session_that_is_lost_as_the_payload_begins_ends_even_a_short_run(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss may arrive before the run samples; a run shorter than the wait for a cause is not completed."""
    attach, connections = FarRun.attach_connection, list[socket.socket]()

    async def attach_and_copy(run: FarRun, sock: socket.socket, hello: DataHello) -> None:
        connections.append(sock.dup())
        await attach(run, sock, hello)

    monkeypatch.setattr(FarRun, "attach_connection", attach_and_copy)
    plan, peer = plan_of(Direction.IN, seconds=0.5, probe=False), Peer(*endpoint.address)
    async with asyncio.timeout(DEADLINE_S), ForkServerLease(), connect(peer) as (control, ends):
        run = EndpointRun(plan, peer, control, ends, no_expectation, None)
        control.send(Open(plan))
        async with run.pool:
            await run.prepare()
            connections[0].shutdown(socket.SHUT_RDWR)
            connections[0].close()
            while not run._failure:  # noqa: ASYNC110 - it is the worker that tells
                await asyncio.sleep(0.01)
            driving = asyncio.create_task(run.drive())
            last = [event async for event in run][-1]
            await driving
    assert isinstance(last, Ended)
    assert last.end.reason is Reason.SESSION_LOST


async def _until_no_workers() -> None:
    while workers_of(os.getpid()):  # noqa: ASYNC110 - only looking tells of another process
        await asyncio.sleep(0.02)


async def test_a_congestion_control_that_the_far_end_lacks_is_refused_with_those_that_it_has(
    far_end: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A near end that has it asks for it, and the kernel's refusal there names the host and its list."""
    monkeypatch.setattr(run_module, "check_options", lambda _options: None)
    async with asyncio.timeout(20):
        with pytest.raises(PeerUnreachable, match=r"nosuch is not available; that host has .*reno"):
            async with open_run(plan_of(socket=SocketOptions(congestion="nosuch")), far_end):
                pass
        await _until_no_workers()


@pytest.mark.every
async def test_128_duplex_sessions_all_carry_payload(far_end: Peer, record: Recorder) -> None:
    """The largest run there is: 256 connections, each with bytes."""
    recorded = await record(plan_of(Direction.DUPLEX, 128, seconds=2.0, rate_bit_s=8 * RATE_BIT_S), far_end)
    assert recorded.end.reason is Reason.COMPLETED
    carried = {(s.direction, s.session) for e in recorded.samples for s in e.sample.sessions if s.bytes}
    assert len(carried) == 256


async def test_a_probe_names_the_answering_host(far_end: Peer) -> None:
    """A greeting without a run tells the far end's facts, and costs it nothing."""
    async with asyncio.timeout(10):
        facts = await query_host_info(far_end)
    assert facts.software.startswith("linkgauge ")
    assert facts.cores == os.cpu_count()


async def test_a_far_end_without_room_declines_with_its_reason(endpoint: Endpoint, monkeypatch: Any) -> None:
    """If the far end cannot make its counters, the near end gets the reason, and the endpoint goes on."""
    from linkgauge.engine.metering.shared_counters import SharedCounters

    real = SharedCounters.create
    calls: list[int] = []

    def create() -> SharedCounters:
        calls.append(1)
        if len(calls) == 2:  # the near end's are made first
            raise OSError(12, "Cannot allocate memory")
        return real()

    monkeypatch.setattr(SharedCounters, "create", create)
    peer = Peer(*endpoint.address)
    async with asyncio.timeout(20):
        with pytest.raises(PeerError, match="cannot allocate memory"):
            async with open_run(plan_of(), peer):
                pass
        assert (await query_host_info(peer)).hostname


@pytest.mark.parametrize("mode", [mode for mode in Mode if not mode.is_for_datagrams])
async def test_each_mode_moves_payload_and_says_which_it_was(far_end: Peer, record: Recorder, mode: Mode) -> None:
    """Copy, sendfile and discard all carry payload, at full speed, and the facts of both ends name the mode."""
    plan = plan_of(Direction.DUPLEX, seconds=0.5, mode=mode, block_bytes=131_072, rate_bit_s=None)
    recorded = await record(plan, far_end)
    assert recorded.end.reason is Reason.COMPLETED
    assert {e.facts.mode for e in recorded.events if isinstance(e, Opened)} == {mode}
    carried = {s.direction for e in recorded.samples for s in e.sample.sessions if s.bytes}
    assert carried == {Direction.OUT, Direction.IN}


async def test_socket_options_reach_both_ends(far_end: Peer, record: Recorder) -> None:
    """Both kernels report the small MSS, and accept marks and bindings."""
    options = SocketOptions("reno", mss_bytes=1_000, dscp=10, nodelay=True, source="127.0.0.1", device="lo")
    recorded = await record(plan_of(Direction.DUPLEX, socket=options), far_end)
    assert recorded.end.reason is Reason.COMPLETED
    opened = [e.facts for e in recorded.events if isinstance(e, Opened)]
    assert {facts.congestion for facts in opened} == {"reno"}
    assert all(facts.mss_bytes and facts.mss_bytes <= 1_000 for facts in opened)


async def test_a_source_that_is_not_an_address_of_this_host_is_refused(far_end: Peer) -> None:
    """The error names the addresses of this host, and nothing remains of the run."""
    async with asyncio.timeout(20):
        with pytest.raises(PlanError, match="this machine has no such address; it has 127"):
            async with open_run(plan_of(socket=SocketOptions(source="198.51.100.1")), far_end):
                pass
        await _until_no_workers()


async def test_pinned_workers_share_the_sessions(far_end: Peer, record: Recorder) -> None:
    """Two workers at each end, both on core 0: all sessions carry payload."""
    plan = plan_of(sessions=4, workers=2, near_cores=(0,), far_cores=(0, 0))
    recorded = await record(plan, far_end)
    assert {s.session for e in recorded.samples for s in e.sample.sessions if s.bytes} == {1, 2, 3, 4}


@pytest.mark.every
@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
async def test_sessions_share_the_rate_of_their_direction_and_a_change_shares_it_anew(
    far_end: Peer, record: Recorder, direction: Direction
) -> None:
    """Each sender's kernel has its share, before and after more sessions come."""
    rate = 80_000_000

    def add_sessions(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.index == 3:
            run.change_settings(Settings(direction, 4))

    plan = plan_of(direction, 2, seconds=1.5, rate_bit_s=rate)
    recorded = await record(plan, far_end, add_sessions)
    assert recorded.end.reason is Reason.COMPLETED
    sender = End.NEAR if direction is Direction.OUT else End.FAR
    samples = [event for event in recorded.samples if event.sample.end is sender]
    for sessions, event in ((2, samples[1]), (4, samples[-1])):
        paced = [session_sample.pacing_bit_s for session_sample in event.sample.sessions]
        assert len(paced) == sessions
        assert all(value is not None and value <= rate // sessions * 1.25 for value in paced), paced
    received = sum(
        session_sample.bytes
        for e in recorded.samples
        if e.sample.end is sender.other
        for session_sample in e.sample.sessions
    )
    assert 0 < received * 8 < 2 * 1.5 * rate


@pytest.mark.every
@pytest.mark.parametrize(
    ("workload", "rate", "sessions", "direction"),
    [
        (Workload.STREAM, 64_000, 1, Direction.OUT),
        (Workload.STREAM, 1_000_000, 8, Direction.IN),
        (Workload.FETCH, 64_000, 2, Direction.OUT),
    ],
)
async def test_every_session_of_a_low_rate_carries_payload_in_every_interval(
    far_end: Peer, record: Recorder, workload: Workload, rate: int, sessions: int, direction: Direction
) -> None:
    """Packets as large as loopback's would leave most intervals without payload."""
    plan = plan_of(direction, sessions, seconds=1.0, rate_bit_s=rate, workload=workload)
    recorded = await record(plan, far_end)
    receiver = End.FAR if direction is Direction.OUT else End.NEAR
    samples = [event.sample for event in recorded.samples if event.sample.end is receiver][1:-1]
    assert len(samples) >= 6
    carried = [part.bytes for sample in samples for part in sample.sessions]
    assert carried.count(0) <= len(carried) // 10, carried  # a busy host may be late
    assert 0 < 8 * sum(carried) < 1.5 * rate


async def test_data_connections_have_the_local_ports_of_the_plan_and_keep_them_when_they_reopen(
    far_end: Peer, record: Recorder
) -> None:
    """The first session has the first port; a new window opens every connection again."""
    first = unused_ports(2)
    seen: list[set[int]] = []

    def change_window(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.end is End.NEAR and event.sample.index in {1, 8}:
            seen.append(connected_ports(first, first + 4))
            run.change_settings(Settings(sessions=2, window_bytes=65_536))

    recorded = await record(plan_of(sessions=2, seconds=1.2, client_port=first), far_end, change_window)
    assert recorded.end.reason is Reason.COMPLETED
    assert seen == [{first, first + 1}, {first, first + 1}]


def unused_ports(count: int) -> int:
    """Return the first of some ports in a row below those that the kernel gives out, which may be in TIME_WAIT."""
    for first in range(20_000, 30_000, count):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError("no ports are unused")


def connected_ports(first: int, last: int) -> set[int]:
    """Return the local ports in a range of this host's connections; the kernel selects them, even among many."""
    if SS is None:
        pytest.skip("this machine has no ss")
    condition = ["state", "established", "sport", ">=", f":{first}", "and", "sport", "<=", f":{last}"]
    rows = subprocess.run([SS, "-Htn", *condition], capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    return {int(row.split()[2].rpartition(":")[2]) for row in rows.stdout.splitlines()}


async def test_a_core_that_either_end_lacks_is_an_error_before_the_run(far_end: Peer) -> None:
    """The near end's by its own plan, the far end's by a refusal."""
    with pytest.raises(PlanError, match="cores 1000 is invalid; this machine has core"):
        async with open_run(plan_of(near_cores=(0, 1_000)), far_end):
            raise AssertionError("the run must not start")
    with pytest.raises(PeerRefused, match="--far-cores 1000 is invalid; the remote host has core"):
        async with open_run(plan_of(far_cores=(1_000,)), far_end):
            raise AssertionError("the run must not start")


async def test_an_endpoint_of_an_earlier_version_does_not_poll_and_that_is_said(
    record: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would refuse the plan with a word that nobody understands."""
    monkeypatch.setattr(description, "READS", READS.removeprefix(" (polls)"))
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
        with pytest.raises(PeerError, match=r"which does not poll; update .* or leave --busy-poll out"):
            await record(Plan(workload=Workload.RR, busy_poll=True), Peer(*endpoint.address))
        monkeypatch.undo()
