"""Work that is carried out to its end, however often it is cancelled, and reads of an exact length."""

import asyncio
import socket

import pytest
from linkgauge.engine.host.event_loop import await_shielded, read_exactly


async def test_work_that_is_seen_through_ends_before_its_caller_is_cancelled() -> None:
    """Twice in a row, as a person in a hurry does it: the work still comes to its end, and then the caller."""
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


async def test_exactly_so_many_bytes_are_read() -> None:
    """What follows them stays in the socket; an end before them is an error."""
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
