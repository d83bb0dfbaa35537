"""Calls that block, off the loop, and given up without being waited for."""

import asyncio
import threading

import pytest
from linkgauge.engine.host.blocking_calls import call_in_thread

DEADLINE_S = 20.0


async def test_what_a_call_returns_or_raises_comes_back() -> None:
    """From another thread than the loop's."""
    async with asyncio.timeout(DEADLINE_S):
        assert await call_in_thread(threading.get_ident, name="call") != threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            await call_in_thread(lambda: 1 // 0, name="call")


async def test_a_call_past_its_deadline_is_abandoned_and_may_finish_later() -> None:
    """What it comes to then is nobody's."""
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
