"""Pollers: callbacks for ready descriptors, by an epoll or by the event loop."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from linkgauge.engine.workloads import poller as poller_module
from linkgauge.engine.workloads.poller import Poller, create_poller

DEADLINE_S = 10.0


@pytest.fixture(params=["epoll", "event loop"])
async def poller(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Poller]:
    """Give each kind of poller."""
    if request.param == "event loop":
        monkeypatch.delattr(poller_module.select, "epoll")
    result = create_poller()
    yield result
    result.close()


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give two connected sockets that do not block."""
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    with near, far:
        yield near, far


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition that callbacks of the loop make true."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - the poller has no event
            await asyncio.sleep(0.001)


async def test_a_descriptor_calls_back_as_long_as_it_is_ready(
    poller: Poller, sockets: tuple[socket.socket, socket.socket]
) -> None:
    """One byte at a time, until nothing is left."""
    near, far = sockets
    data: list[bytes] = []
    poller.watch(near.fileno(), lambda _events: data.append(near.recv(1)))
    far.sendall(b"abc")
    await until(lambda: len(data) == 3)
    assert b"".join(data) == b"abc"
    poller.unwatch(near.fileno())


async def test_a_second_watch_replaces_the_first(
    poller: Poller, sockets: tuple[socket.socket, socket.socket]
) -> None:
    """A session that waited for data waits for room from then on."""
    near, far = sockets
    reads: list[int] = []
    writes: list[int] = []

    def on_room(events: int) -> None:
        writes.append(events)
        poller.unwatch(near.fileno())

    poller.watch(near.fileno(), reads.append)
    poller.watch(near.fileno(), on_room, for_write=True)
    far.sendall(b"x")
    await until(lambda: writes)
    assert (len(writes), reads) == (1, [])


async def test_a_callback_may_unwatch_another_ready_descriptor(
    poller: Poller, sockets: tuple[socket.socket, socket.socket]
) -> None:
    """Both are ready at once; whichever comes first is the only one called."""
    calls: list[socket.socket] = []

    def call_once(sock: socket.socket) -> Callable[[int], None]:
        def on_ready(_events: int) -> None:
            calls.append(sock)
            for other in sockets:
                poller.unwatch(other.fileno())

        return on_ready

    for sock in sockets:
        sock.send(b"x")
    for sock in sockets:
        poller.watch(sock.fileno(), call_once(sock))
    await until(lambda: calls)
    await asyncio.sleep(0)
    assert len(calls) == 1
