"""Runs of a number of bytes: they end once each receiver has counted them."""

from collections.abc import Callable
from typing import Any

import pytest
from linkgauge.engine.metering.shared_counters import WORDS_PER_SLOT as WORDS
from linkgauge.engine.metering.shared_counters import CounterField, SharedCounters, slot_index
from linkgauge.engine.model.events import Reason
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Direction, End, Plan, Settings, sender_of
from linkgauge.engine.model.samples import Sample, SessionSample
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.byte_limit import ByteLimit

Recorder = Callable[..., Any]
LIMIT = 1_000_000


def set_bytes(counters: SharedCounters, direction: Direction, count: int) -> None:
    """Have the first session of a direction carry so many bytes."""
    counters.words[slot_index(direction, 1) * WORDS + CounterField.BYTES] = count


def far_sample(direction: Direction, count: int) -> Sample:
    """Return a sample of the far end that received so many bytes."""
    return Sample(End.FAR, 0, SECOND_NS, SECOND_NS, (SessionSample(direction, 1, count),))


def test_the_limit_is_each_directions_and_the_receiver_counts() -> None:
    """Bytes that the far kernel has and its receiver had not read at its last sample do not count."""
    counters = SharedCounters.create()
    limit = ByteLimit(Plan(Settings(Direction.DUPLEX), bytes_limit=LIMIT), counters)
    set_bytes(counters, Direction.IN, LIMIT)
    assert limit.is_reached(Direction.IN)
    assert not limit.is_reached(Direction.DUPLEX)
    set_bytes(counters, Direction.OUT, LIMIT // 2)
    limit.add_far_sample(far_sample(Direction.OUT, LIMIT // 4))
    set_bytes(counters, Direction.OUT, LIMIT)
    assert not limit.is_reached(Direction.OUT)
    set_bytes(counters, Direction.OUT, LIMIT * 5 // 4)
    assert limit.is_reached(Direction.DUPLEX)
    counters.close()


def test_a_run_without_a_limit_never_reaches_it() -> None:
    """However much it carries."""
    counters = SharedCounters.create()
    set_bytes(counters, Direction.IN, 1 << 50)
    assert not ByteLimit(Plan(), counters).is_reached(Direction.IN)
    counters.close()


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.FETCH])
@pytest.mark.parametrize("direction", list(Direction))
async def test_a_run_of_a_number_of_bytes_ends_by_itself_when_each_receiver_has_them(
    far_end: Peer, record: Recorder, workload: Workload, direction: Direction
) -> None:
    """It has no duration, and all of it is measured."""
    count = 20 * LIMIT
    plan = Plan(Settings(direction), workload, duration_ns=None, interval_ns=SECOND_NS // 10, bytes_limit=count)
    recorded = await record(plan, far_end)
    assert recorded.end.reason is Reason.COMPLETED
    assert not any(event.warmup for event in recorded.samples)
    for flow in direction.flows:
        receiver = sender_of(flow, workload).other
        sessions = [one for e in recorded.samples if e.sample.end is receiver for one in e.sample.sessions]
        received = sum(one.bytes for one in sessions if one.direction is flow)
        # A far receiver takes its last sample as it hears of the end, and its kernel has the rest.
        assert received >= (count if receiver is End.NEAR and workload is Workload.STREAM else count // 2)
