"""A thread that owns a socket: how it returns the socket, and how it ends."""

import asyncio
import socket
from collections.abc import Iterator

import pytest
from linkgauge.engine.workloads.thread_io import SocketThread

DEADLINE_S = 10.0


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give a connected pair."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


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
