"""Runs of a number of bytes: they end once each receiver has counted them."""

from collections.abc import Callable
from typing import Any

import pytest
from linkgauge.engine.metering.shared_counters import WORDS_PER_SLOT as WORDS
from linkgauge.engine.metering.shared_counters import CounterField, SharedCounters, slot_index
from linkgauge.engine.model.events import Event, Reason, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Direction, End, Mode, Plan, Settings, sender_of
from linkgauge.engine.model.samples import Sample, SessionSample
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import Run
from linkgauge.engine.near.run_goal import ByteLimit
from linkgauge.engine.results.meter import replay

Recorder = Callable[..., Any]
LIMIT = 1_000_000


def set_bytes(counters: SharedCounters, direction: Direction, count: int) -> None:
    """Have the first session of a direction carry so many bytes."""
    counters.words[slot_index(direction, 1) * WORDS + CounterField.BYTES] = count


def far_sample(direction: Direction, count: int, index: int = 0) -> Sample:
    """Return a sample of the far end with so many bytes more."""
    elapsed_ns = SECOND_NS * (index + 1)
    return Sample(End.FAR, index, elapsed_ns, SECOND_NS, (SessionSample(direction, 1, count),))


def test_the_limit_is_each_directions_and_the_receiver_counts() -> None:
    """What the far kernel has acknowledged does not count before its receiver has read it."""
    counters = SharedCounters.create()
    limit = ByteLimit(Plan(Settings(Direction.DUPLEX), bytes_limit=LIMIT), counters)
    set_bytes(counters, Direction.IN, LIMIT)
    assert limit.is_reached(Direction.IN)
    assert not limit.is_reached(Direction.DUPLEX)
    set_bytes(counters, Direction.OUT, LIMIT)
    limit.add_far_sample(far_sample(Direction.OUT, LIMIT - 1))
    assert not limit.is_reached(Direction.OUT)
    limit.add_far_sample(far_sample(Direction.OUT, 1, 1))
    assert limit.is_reached(Direction.DUPLEX)
    counters.close()


def test_a_direction_is_over_when_all_was_sent_and_nothing_more_comes() -> None:
    """A change of settings dropped some bytes between the two kernels, and the receiver never gets them."""
    counters = SharedCounters.create()
    limit = ByteLimit(Plan(bytes_limit=LIMIT), counters)
    set_bytes(counters, Direction.OUT, LIMIT)
    for index in range(5):
        assert not limit.is_reached(Direction.OUT)
        limit.add_far_sample(far_sample(Direction.OUT, 0 if index else LIMIT // 2, index))
    assert limit.is_reached(Direction.OUT)
    counters.close()


def test_a_run_without_a_limit_never_reaches_it() -> None:
    """However much it carries."""
    counters = SharedCounters.create()
    set_bytes(counters, Direction.IN, 1 << 50)
    assert not ByteLimit(Plan(), counters).is_reached(Direction.IN)
    counters.close()


CASES = [
    (Workload.STREAM, Direction.OUT, 1, None),
    (Workload.STREAM, Direction.IN, 1, Mode.SENDFILE),
    (Workload.STREAM, Direction.DUPLEX, 3, None),
    (Workload.STREAM, Direction.OUT, 5, Mode.SENDFILE),
    (Workload.RR, Direction.OUT, 1, None),
    (Workload.RR, Direction.DUPLEX, 3, None),
    (Workload.CRR, Direction.OUT, 1, None),
    (Workload.CRR, Direction.IN, 3, None),
    (Workload.FETCH, Direction.DUPLEX, 2, None),
]


@pytest.mark.parametrize(("workload", "direction", "sessions", "mode"), CASES)
async def test_a_run_of_a_number_of_bytes_carries_just_these(
    far_end: Peer, record: Recorder, workload: Workload, direction: Direction, sessions: int, mode: Mode | None
) -> None:
    """Neither its senders send more, whatever the link would carry, nor do its receivers count less."""
    count = 2 * LIMIT if not workload.is_bulk else 20 * LIMIT + 1
    response = {Workload.FETCH: 100_000}.get(workload)
    plan = Plan(
        Settings(direction, sessions), workload, None, mode=mode, bytes_limit=count, response_bytes=response
    )
    recorded = await record(plan, far_end)
    assert recorded.end.reason is Reason.COMPLETED
    assert not any(event.warmup for event in recorded.samples)
    summary = replay(recorded.events).summary()
    unit = plan.transaction_sizes[1] or 1
    for flow in direction.flows:
        measured = summary.measured[flow]
        assert measured is not None
        assert count <= measured.bytes < count + unit * sessions
        sent = [
            session.bytes
            for session in sessions_of(recorded, sender_of(flow, workload))
            if session.direction is flow
        ]
        assert sum(sent) <= measured.bytes + sessions * unit


@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
async def test_a_change_of_sessions_and_window_neither_stops_short_nor_hangs(
    far_end: Peer, record: Recorder, direction: Direction
) -> None:
    """What closed connections had not carried is carried by the others, and what got lost on its way is not."""
    count = 300 * LIMIT
    steps = [(4, None), (2, 1 << 20), (3, None)]

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.end is End.NEAR and steps:
            sessions, window = steps.pop(0)
            run.change_settings(Settings(direction, sessions, window))

    plan = Plan(
        Settings(direction),
        duration_ns=None,
        interval_ns=SECOND_NS // 20,
        bytes_limit=count,
        rate_bit_s=4_000_000_000,
    )
    recorded = await record(plan, far_end, act)
    assert recorded.end.reason is Reason.COMPLETED
    assert not steps
    receiver = sender_of(direction, Workload.STREAM).other
    received = sum(session.bytes for session in sessions_of(recorded, receiver))
    assert count * 3 // 4 < received < count + (64 << 20)


def sessions_of(recorded: Any, end: End) -> list[SessionSample]:
    """Return all samples of one end's sessions."""
    return [session for event in recorded.samples if event.sample.end is end for session in event.sample.sessions]
