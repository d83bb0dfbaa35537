"""The observer, on real connections of this host."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, suppress

import pytest
from linkgauge.engine.host.sockets.sock_diag import SockDiag
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.observe.observation import Observation, Status
from linkgauge.observe.observer import Observer, observe
from linkgauge.observe.request import ObserveRequest, parse_target
from linkgauge.presets.catalog import load_catalog

from ..engine.tcp_pair import only_linux
from .small_transfer import PAYLOAD, carry_payload

pytestmark = only_linux

DEADLINE_S = 30.0


@pytest.fixture
def transfer() -> Iterator[int]:
    """Yield the port of the receiver of a small transfer."""
    with carry_payload() as port:
        yield port


def look(observer: Observer, observations: int = 1) -> Observation:
    """Return the last of so many observations."""
    deadline = time.monotonic() + DEADLINE_S
    found: list[Observation] = []
    while len(found) < observations and time.monotonic() < deadline:
        observation = observer.step()
        found += [] if observation is None else [observation]
        time.sleep(0.1)
    return found[-1]


def request(text: str | None, **more: int) -> ObserveRequest:
    """Return a request for observations of half a second."""
    return ObserveRequest(
        None if text is None else parse_target(text), interval_ns=SECOND_NS // 2, **{"top": 20, **more}
    )


def test_both_ends_of_a_transfer_on_this_host_are_shown_with_their_process(transfer: int) -> None:
    """The sender lacks data, as the kernel's clocks tell; the receiver takes all."""
    with closing(Observer(request(f":{transfer}"), load_catalog())) as observer:
        observation = look(observer, 4)
    rows = {row.direction: row for row in observation.connections}
    assert set(rows) == {Direction.OUT, Direction.IN}
    sender = rows[Direction.OUT]
    assert sender.key.remote.port == transfer
    assert sender.owner is not None
    assert sender.owner.pid == os.getpid()
    assert (sender.status, sender.findings) == (Status.APP_LIMITED, ())
    assert sender.bit_s == pytest.approx(rows[Direction.IN].bit_s, rel=0.5)
    assert sender.out.sample is not None
    assert sender.out.sample.rtt_us is not None
    assert (sender.expected, observation.totals.sockets) == (None, 2)


def test_connections_within_an_interval_are_counted() -> None:
    """No dump had them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with closing(Observer(request(f":{port}"), load_catalog())) as observer:
            assert observer.step() is None
            for _ in range(5):
                with socket.create_connection(server.getsockname()) as client, server.accept()[0]:
                    client.sendall(PAYLOAD)
            observation = look(observer, 2)
            later = look(observer)
    assert {observation.totals.short_lived, later.totals.short_lived} >= {0}
    assert observation.connections == ()


def test_a_target_shows_idle_connections_and_all_others_only_moving_ones(transfer: int) -> None:
    """Who names a peer wants to see its connection, even if nothing moves."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(server.getsockname()), server.accept()[0]:
            with closing(Observer(request(f":{port}"), load_catalog())) as observer:
                named = look(observer, 2)
            with closing(Observer(request(None, top=50), load_catalog())) as observer:
                all_ = look(observer, 3)
    assert {row.status for row in named.connections} == {Status.IDLE}
    assert len(named.connections) == 2
    ports = {row.key.local.port for row in all_.connections}
    assert transfer in ports
    assert port not in ports


def test_a_receiver_that_has_stopped_reading_is_named() -> None:
    """Its window is closed, and the sender's bytes wait."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(server.getsockname()) as client, server.accept()[0]:
            client.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    client.send(PAYLOAD)
            with closing(Observer(request(f":{port}"), load_catalog())) as observer:
                observation = look(observer, 4)
    row = next(row for row in observation.connections if row.key.remote.port == port)
    assert (row.status, row.findings[0].code) == (Status.LIMITED, "receive-window")
    assert "bytes wait" in row.findings[0].evidence


def test_observations_come_in_an_event_loop_until_they_are_closed(transfer: int) -> None:
    """The kernel is asked in a thread."""

    async def take() -> list[Observation]:
        found: list[Observation] = []
        async for observation in observe(request(f":{transfer}"), load_catalog()):
            found.append(observation)
            if len(found) == 2:
                break
        return found

    first, second = asyncio.run(take())
    assert second.elapsed_ns > first.elapsed_ns
    assert first.started_utc == second.started_utc


def test_the_first_observation_has_the_traffic_of_its_interfaces(transfer: int) -> None:
    """A full interface would be called a slow path without it."""
    with closing(Observer(request(f":{transfer}"), load_catalog())) as observer:
        observation = look(observer)
    assert [each.name for each in observation.interfaces] == ["lo"]


def test_closing_waits_for_a_step_that_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancelled task leaves its step in a thread; after the end a step reads nothing."""
    observer = Observer(request(None), load_catalog())
    has_begun, outcome = threading.Event(), Future[Observation | None]()
    run_step = observer._step

    def slow_step(now_ns: int) -> Observation | None:
        has_begun.set()
        time.sleep(0.1)
        return run_step(now_ns)

    def run() -> None:
        try:
            outcome.set_result(observer.step())
        except OSError as error:
            outcome.set_exception(error)

    monkeypatch.setattr(observer, "_step", slow_step)
    thread = threading.Thread(target=run)
    thread.start()
    has_begun.wait()
    observer.close()
    thread.join()
    assert outcome.result() is None  # an OSError if its sockets were closed under it
    assert observer.step() is None


def test_a_udp_socket_that_drops_is_shown() -> None:
    """Its receiver reads nothing, and its buffer is small."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        receiver.bind(("127.0.0.1", 0))
        with closing(Observer(request(f":{receiver.getsockname()[1]}"), load_catalog())) as observer:
            look(observer)
            for _ in range(50):
                sender.sendto(PAYLOAD[:1_000], receiver.getsockname())
            observation = look(observer)
    (row,) = observation.datagrams
    assert row.dropped > 0
    assert row.receive_queue_bytes > 0
    assert row.owner is not None
    assert row.owner.pid == os.getpid()


async def test_an_observer_that_is_cancelled_while_it_opens_leaves_no_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its thread goes on: what it opens after the end is closed as well."""
    has_begun, may_go_on = threading.Event(), threading.Event()
    opened: list[SockDiag] = []

    class SlowDiag(SockDiag):
        def __init__(self, bytecode: bytes = b"") -> None:
            has_begun.set()
            may_go_on.wait(DEADLINE_S)
            super().__init__(bytecode)
            opened.append(self)

    monkeypatch.setattr("linkgauge.observe.observer.SockDiag", SlowDiag)
    task = asyncio.ensure_future(anext(observe(request(None), load_catalog())))
    await asyncio.to_thread(has_begun.wait, DEADLINE_S)
    task.cancel()
    asyncio.get_running_loop().call_later(0.05, may_go_on.set)
    with suppress(asyncio.CancelledError):
        await task
    assert [each._socket.fileno() for each in opened] == [-1]
