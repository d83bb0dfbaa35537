"""Work that is carried out to its end, however often it is cancelled, reads of an exact length, blocking calls."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading

import pytest
from linkgauge.engine.host.event_loop import (
    await_shielded,
    call_in_thread,
    connect_socket,
    read_exactly,
    wait_until_readable,
)


async def test_work_that_is_seen_through_ends_before_its_caller_is_cancelled() -> None:
    """Twice in a row, as an impatient user does: the work still comes to its end, and then the caller."""
    begun, may_end, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await may_end.wait()
        done.set()

    async with asyncio.timeout(10):
        caller = asyncio.create_task(await_shielded(work()))
        await begun.wait()
        for _ in range(2):
            caller.cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not caller.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await caller
    assert done.is_set()


async def test_work_that_is_seen_through_gives_what_it_returns_or_raises() -> None:
    """Without a cancellation it is as if it had been awaited."""

    async def work(error: Exception | None) -> int:
        if error is not None:
            raise error
        return 5

    assert await await_shielded(work(None)) == 5
    with pytest.raises(OSError, match="gone"):
        await await_shielded(work(OSError("gone")))


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
async def test_a_wait_for_data_leaves_the_data_and_the_socket_as_they_are(kind: socket.SocketKind) -> None:
    """A wait that is given up leaves no reader behind: another one works, and the loop reads the data then."""
    near, far = socket.socketpair(socket.AF_UNIX, kind)
    with near, far:
        far.setblocking(False)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await wait_until_readable(far)
        async with asyncio.timeout(10):
            waiting = asyncio.create_task(wait_until_readable(far))
            await asyncio.sleep(0)
            assert not waiting.done()
            near.send(b"abc")
            await waiting
            await wait_until_readable(far)
            assert await asyncio.get_running_loop().sock_recv(far, 10) == b"abc"


async def test_exactly_so_many_bytes_are_read() -> None:
    """The bytes after them stay in the socket; an end before them is an error."""
    near, far = socket.socketpair()
    with near, far:
        far.setblocking(False)
        near.sendall(b"abc")
        reading = asyncio.create_task(read_exactly(far, 5))
        await asyncio.sleep(0)
        near.sendall(b"defg")
        assert await reading == b"abcde"
        assert far.recv(10) == b"fg"
        near.close()
        with pytest.raises(EOFError, match="0 of 1"):
            await read_exactly(far, 1)


@pytest.mark.parametrize(("address", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
async def test_a_socket_connects_to_the_very_address(address: str, family: int) -> None:
    """A port that nothing listens on is refused, and a cancelled attempt leaves no watcher behind."""
    with socket.create_server((address, 0), family=family) as server, socket.socket(family) as sock:
        sock.setblocking(False)
        await connect_socket(sock, server.getsockname())
        assert sock.getpeername() == server.getsockname()
        closed = server.getsockname()
    with socket.socket(family) as sock:
        sock.setblocking(False)
        with pytest.raises(ConnectionRefusedError):
            await connect_socket(sock, closed)
    with socket.socket(family) as full, socket.socket(family) as first, socket.socket(family) as second:
        full.bind((address, 0))
        full.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        with socket.socket(family) as sock:
            sock.setblocking(False)
            connecting = asyncio.create_task(connect_socket(sock, full.getsockname()))
            await asyncio.sleep(0)
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
            assert not asyncio.get_running_loop().remove_writer(sock.fileno())


DEADLINE_S = 20.0


async def test_what_a_call_returns_or_raises_comes_back() -> None:
    """From another thread than the loop's."""
    async with asyncio.timeout(DEADLINE_S):
        assert await call_in_thread(threading.get_ident, name="call") != threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            await call_in_thread(lambda: 1 // 0, name="call")


async def test_a_call_past_its_deadline_is_abandoned_and_may_finish_later() -> None:
    """Its result is dropped."""
    release, has_ended = threading.Event(), threading.Event()

    def call() -> None:
        release.wait(DEADLINE_S)
        has_ended.set()

    with pytest.raises(TimeoutError):
        await call_in_thread(call, name="call", deadline_s=0.05)
    release.set()
    async with asyncio.timeout(DEADLINE_S):
        assert await call_in_thread(lambda: has_ended.wait(DEADLINE_S), name="wait")


def test_a_call_that_outlives_its_loop_harms_nobody() -> None:
    """The process may end as well: the thread is a daemon."""
    release = threading.Event()

    async def give_up() -> list[threading.Thread]:
        with pytest.raises(TimeoutError):
            await call_in_thread(lambda: release.wait(DEADLINE_S), name="outlives", deadline_s=0.05)
        return [thread for thread in threading.enumerate() if thread.name == "outlives"]

    (thread,) = asyncio.run(give_up())
    assert thread.daemon
    release.set()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


@pytest.mark.parametrize("most", [8, *(pytest.param(most, marks=pytest.mark.every) for most in (10, 12))])
@pytest.mark.parametrize("command", [["run", "127.0.0.1:1"], ["endpoint", "--open", "--port", "0"]])
def test_a_command_without_descriptors_for_its_loop_says_so_and_ends(most: int, command: list[str]) -> None:
    """It says so in one line; uvloop by itself would hang at its end."""
    limited = ["prlimit", f"--nofile={most}", sys.executable, "-P", "-m", "linkgauge", *command]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == "linkgauge: too many open files: raise ulimit -n"
    assert "Traceback" not in done.stderr
