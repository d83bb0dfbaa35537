"""A worker on an event loop of this process: its sessions, and its reports of them."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.host.event_loop import read_exactly
from linkgauge.engine.metering.shared_counters import ProbeHistogram, SharedCounters
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.plan import DATAGRAM_PROBE_SESSION, HANDSHAKE_PROBE_SESSION, Settings, SocketOptions
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.protocol.preamble import DATA_ACCEPTED
from linkgauge.engine.workers.ipc import (
    EVENTS,
    AdoptSession,
    ChangeSettings,
    Configure,
    ConnectionFailed,
    ConnectionLost,
    ConnectionOpened,
    OpenSession,
    PayloadStopped,
    ProbesStopped,
    StartPayload,
    StopPayload,
    StopProbes,
    WorkerChannel,
    WorkerEvent,
    WorkerReady,
)
from linkgauge.engine.workers.worker import Worker
from linkgauge.engine.workloads.session_handshake import ConnectTarget, Iperf3Format, SessionConfig, SessionSpec

from ..tcp_pair import pair
from ..waiting import until

DEADLINE_S = 20.0
CONFIGURE = Configure(SessionConfig(End.FAR, Workload.STREAM, SocketOptions()), 10**8, 65_536)
CRR = replace(CONFIGURE.sessions, workload=Workload.CRR)


class WorkerHost:
    """A worker and the other end of its channel, with the events that arrive there."""

    def __init__(self) -> None:
        self.counters = SharedCounters.create()
        near, far = socket.socketpair()
        self.events: list[WorkerEvent] = []
        self.channel = WorkerChannel[Any](near, EVENTS, lambda event, _fd: self.events.append(event), lambda: None)
        self.task = asyncio.create_task(Worker(far, self.counters, 0).serve())
        self.send = self.channel.send

    async def adopt(self, number: int, generation: int = 0) -> socket.socket:
        """Let the worker adopt a session that receives; return the sender's socket."""
        sender, receiver = pair()
        count = len(self.events)
        self.send(AdoptSession(SessionSpec(Direction.OUT, number, generation, None, "")), receiver.detach())
        await until(lambda: len(self.events) > count)
        assert sender.recv(10) == DATA_ACCEPTED
        return sender


@pytest.fixture
async def host() -> AsyncIterator[WorkerHost]:
    """Give a configured worker; it ends with its channel."""
    result = WorkerHost()
    result.send(CONFIGURE)
    yield result
    result.channel.close()
    async with asyncio.timeout(DEADLINE_S):
        await result.task
    result.counters.close()


async def test_a_worker_says_first_that_it_is_ready(host: WorkerHost) -> None:
    """The channel carries commands from then on."""
    await until(lambda: host.events)
    assert host.events == [WorkerReady()]


async def test_an_adopted_connection_is_counted_until_its_end(host: WorkerHost) -> None:
    """Its end is an event, as no command had asked for it."""
    await until(lambda: host.events)
    sender = await host.adopt(3)
    assert isinstance(host.events[-1], ConnectionOpened)
    host.send(StartPayload())
    with sender:
        sender.setblocking(True)
        sender.sendall(bytes(1_000))
        await until(lambda: (slot := host.counters.read(Direction.OUT, 3)) and slot.bytes == 1_000)
    await until(lambda: len(host.events) == 3)
    event = host.events[-1]
    assert isinstance(event, ConnectionLost)
    assert (event.direction, event.session, event.generation) == (Direction.OUT, 3, 0)


async def test_a_connection_without_its_descriptor_fails_with_the_remedy(host: WorkerHost) -> None:
    """The kernel drops descriptors beyond the limit of a process."""
    await until(lambda: host.events)
    host.send(AdoptSession(SessionSpec(Direction.OUT, 1, 7, None, "")))
    await until(lambda: len(host.events) == 2)
    event = host.events[-1]
    assert isinstance(event, ConnectionFailed)
    assert event.generation == 7
    assert "ulimit -n" in event.why


async def test_further_probes_begin_by_their_numbers_and_end_by_command(host: WorkerHost) -> None:
    """Whatever the settings. The probe of datagrams reports if nothing takes its hello."""
    await until(lambda: host.events)
    secret = "ab" * 32
    with socket.create_server(("127.0.0.1", 0)) as listener:  # nothing takes UDP on its port
        target = ConnectTarget.from_address("00" * 16, listener.getsockname())
        for session in (HANDSHAKE_PROBE_SESSION, DATAGRAM_PROBE_SESSION):
            host.send(OpenSession(SessionSpec(Direction.OUT, session, 0, None, secret), target))
        await until(lambda: len(host.events) == 2)
        failure = host.events[-1]
        assert isinstance(failure, ConnectionFailed)
        assert failure.session == DATAGRAM_PROBE_SESSION
        assert "nothing takes UDP on its port" in failure.why
        host.send(ChangeSettings(Settings(Direction.IN, 1), 1, 1))
        await until(lambda: any(host.counters.read_probe_histogram(ProbeHistogram.CONNECT)))
        host.send(StopProbes())
        await until(lambda: host.events[-1] == ProbesStopped())
        before = host.counters.read_probe_histogram(ProbeHistogram.CONNECT)
        host.send(StopProbes())
        await until(lambda: host.events[-2:] == [ProbesStopped(), ProbesStopped()])
        assert host.counters.read_probe_histogram(ProbeHistogram.CONNECT) == before


async def test_a_change_closes_older_sessions_that_it_does_not_have(host: WorkerHost) -> None:
    """Without an event: it was asked for. A session of newer settings stays open."""
    await until(lambda: host.events)
    host.send(StartPayload())
    with await host.adopt(1) as first, await host.adopt(2) as second, await host.adopt(3, generation=2) as newer:
        host.send(ChangeSettings(Settings(Direction.OUT, 1), 1, 0))
        await until(lambda: not (slot := host.counters.read(Direction.OUT, 2)) or not slot.is_open)
        for sock, is_open in ((first, True), (second, False), (newer, True)):
            number = {first: 1, second: 2, newer: 3}[sock]
            slot = host.counters.read(Direction.OUT, number)
            assert slot is not None
            assert slot.is_open is is_open
    assert sum(isinstance(event, ConnectionOpened) for event in host.events) == 3


@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
async def test_a_session_that_is_opened_again_and_again_is_opening_once(
    host: WorkerHost, direction: Direction
) -> None:
    """A client that leaves openings of crr unfinished would otherwise take a port of this host with each."""
    host.send(replace(CONFIGURE, sessions=CRR, request_bytes=64, response_bytes=64))
    await until(lambda: len(host.events) == 2)
    senders: list[socket.socket] = []
    ports: list[int] = []
    for generation in range(20):
        sender, receiver = pair()
        senders.append(sender)
        host.send(AdoptSession(SessionSpec(direction, 1, generation, None, "00" * 32)), receiver.detach())
        if generation % 3 == 2:  # the others may be replaced before they begin
            async with asyncio.timeout(DEADLINE_S):
                assert await read_exactly(sender, 1) == DATA_ACCEPTED
                if direction is Direction.OUT:
                    ports.append(int.from_bytes(await read_exactly(sender, 2)))
    *older, newest = senders
    for sender in older:
        with sender, contextlib.suppress(ConnectionError):
            async with asyncio.timeout(DEADLINE_S):
                while await asyncio.get_running_loop().sock_recv(sender, 100):
                    pass
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
    with newest:
        async with asyncio.timeout(DEADLINE_S):
            assert await read_exactly(newest, 1) == DATA_ACCEPTED
            if direction is Direction.OUT:
                socket.create_connection(("127.0.0.1", int.from_bytes(await read_exactly(newest, 2)))).close()
    assert len(host.events) == 2


@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
@pytest.mark.parametrize("sessions", [1, 2])
async def test_a_stream_of_iperf3_that_ends_after_the_payload_is_not_lost(
    host: WorkerHost, direction: Direction, sessions: int
) -> None:
    """The far end's sockets are closed before its results come: alone in a thread, or several on the loop."""
    host.send(replace(CONFIGURE, sessions=replace(CONFIGURE.sessions, iperf3=Iperf3Format())))
    await until(lambda: len(host.events) == 2)
    with contextlib.ExitStack() as stack:
        ends: list[socket.socket] = []
        for number in range(1, sessions + 1):
            ours, theirs = pair()
            stack.enter_context(theirs)
            ends.append(theirs)
            host.send(AdoptSession(SessionSpec(direction, number, 0, None, "00" * 37)), ours.detach())
        await until(lambda: len(host.events) == 2 + sessions)
        host.send(StartPayload())
        for number, theirs in enumerate(ends, 1):
            if direction is Direction.OUT:
                theirs.send(bytes(1_000))
            await until(lambda number=number: (slot := host.counters.read(direction, number)) and slot.bytes)
        host.send(StopPayload())
        await until(lambda: host.events[-1] == PayloadStopped())
        for theirs in ends:
            theirs.close()
        if direction is Direction.OUT:
            slots = range(1, sessions + 1)
            await until(lambda: not any((slot := host.counters.read(direction, n)) and slot.is_open for n in slots))
        host.send(StopPayload())
        await until(lambda: host.events.count(PayloadStopped()) == 2)
    assert not any(isinstance(event, ConnectionLost) for event in host.events)


async def test_a_sender_of_iperf3_sends_nothing_after_the_payload(host: WorkerHost) -> None:
    """But the block that it has begun, so that a client can read to the end."""
    host.send(replace(CONFIGURE, sessions=replace(CONFIGURE.sessions, iperf3=Iperf3Format())))
    await until(lambda: len(host.events) == 2)
    theirs, ours = pair(65_536)
    with theirs:
        host.send(AdoptSession(SessionSpec(Direction.IN, 1, 0, 65_536, "")), ours.detach())
        await until(lambda: len(host.events) == 3)
        host.send(StartPayload())
        await until(lambda: (slot := host.counters.read(Direction.IN, 1)) and slot.bytes)
        host.send(StopPayload())
        await until(lambda: host.events[-1] == PayloadStopped())
        theirs.settimeout(0.3)
        received = 0
        with contextlib.suppress(TimeoutError):
            while data := await asyncio.to_thread(theirs.recv, 1 << 20):
                received += len(data)
                assert received < 16 << 20  # two windows and a block
