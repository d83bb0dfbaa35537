"""The drain: it lasts as long as datagrams come, and no longer than its limit."""

import asyncio
import time

import pytest
from linkgauge.engine.metering import drain
from linkgauge.engine.metering.shared_counters import CounterField, SharedCounters


async def test_a_drain_waits_for_half_a_second_of_silence() -> None:
    """Each arrival prolongs it."""
    counters = SharedCounters.create()
    began = time.monotonic()
    task = asyncio.create_task(drain.await_drain(counters))
    for _ in range(6):
        await asyncio.sleep(0.1)
        counters.words[CounterField.BYTES] += 100
    await task
    assert time.monotonic() - began >= 0.5 + drain.QUIET_S
    counters.close()


async def test_a_drain_ends_even_if_payload_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue may hold more than the longest wait."""
    monkeypatch.setattr(drain, "MAX_DRAIN_S", 0.8)
    counters = SharedCounters.create()
    task = asyncio.create_task(drain.await_drain(counters))
    for _ in range(200):
        if task.done():
            break
        counters.words[CounterField.BYTES] += 1
        await asyncio.sleep(0.02)
    assert task.done()
    counters.close()
