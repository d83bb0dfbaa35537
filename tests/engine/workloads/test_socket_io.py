"""Callbacks for ready descriptors, by an epoll or by the event loop; and threads that own a socket."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from linkgauge.engine.workloads import socket_io
from linkgauge.engine.workloads.socket_io import Poller, SocketThread, create_poller, polling_receive

from ..waiting import until

DEADLINE_S = 10.0


@pytest.fixture(params=["epoll", "event loop"])
async def poller(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Poller]:
    """Give each kind of poller."""
    if request.param == "event loop":
        monkeypatch.delattr(socket_io.select, "epoll")
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


async def test_a_socket_comes_back_non_blocking(sockets: tuple[socket.socket, socket.socket]) -> None:
    """It is blocking in the thread only."""
    ours, theirs = sockets
    resumed = asyncio.Event()
    ours.setblocking(False)
    timeouts: list[float | None] = []

    def body() -> bool:
        timeouts.append(ours.gettimeout())
        return ours.recv(1) == b"x"

    SocketThread(ours, body, resumed.set, lambda _error: pytest.fail("the connection was not lost"))
    theirs.send(b"x")
    async with asyncio.timeout(DEADLINE_S):
        await resumed.wait()
    assert timeouts == [None]
    assert ours.gettimeout() == 0.0


@pytest.mark.parametrize("failure", [None, OSError(5, "a reason")])
async def test_the_end_of_a_connection_is_reported_with_its_error(
    sockets: tuple[socket.socket, socket.socket], failure: OSError | None
) -> None:
    """None for an orderly end."""
    ours, theirs = sockets
    lost: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()

    def body() -> bool:
        if failure is not None:
            raise failure
        return bool(ours.recv(1))

    SocketThread(ours, body, lambda: pytest.fail("the connection has ended"), lost.set_result)
    theirs.close()
    async with asyncio.timeout(DEADLINE_S):
        assert await lost is failure


async def test_a_stopped_thread_calls_neither_callback(sockets: tuple[socket.socket, socket.socket]) -> None:
    """It was blocked in recv(2), which shutdown(2) wakes."""
    ours, _theirs = sockets
    calls: list[str] = []
    ended: list[bool] = []

    def body() -> bool:
        ended.append(ours.recv(1) == b"")
        return False

    thread = SocketThread(ours, body, lambda: calls.append("resume"), lambda _error: calls.append("lost"))
    thread.stop()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert ended == [True]
    assert calls == []


def test_a_socket_that_is_polled_is_waited_for_in_the_end() -> None:
    """A message that is there, one that comes later than it polls, and the end of the connection."""
    near, far = socket.socketpair()
    buffer = memoryview(bytearray(10))
    with near, far:
        receive = polling_receive(near)
        far.send(b"now")
        assert receive(buffer) == 3
        sender = threading.Timer(0.05, lambda: far.send(b"later"))
        sender.start()
        assert receive(buffer) == 5
        sender.join()
        far.close()
        assert receive(buffer) == 0


def test_an_error_of_a_polled_socket_is_raised() -> None:
    """It ends the session as any error does."""
    near, far = socket.socketpair()
    with far:
        receive = polling_receive(near)
        near.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            receive(memoryview(bytearray(10)))
