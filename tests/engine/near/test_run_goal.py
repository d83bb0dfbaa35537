"""Runs that end at their goal: a number of bytes that each receiver has counted, or a rate that was found."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.metering.shared_counters import WORDS_PER_SLOT as WORDS
from linkgauge.engine.metering.shared_counters import CounterField, SharedCounters, slot_index
from linkgauge.engine.model.counters.samples import DatagramSample, Sample, SessionSample
from linkgauge.engine.model.counters.session_counters import SEARCH_DONE
from linkgauge.engine.model.directions import Direction, End, sender_of
from linkgauge.engine.model.events import Event, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Mode, Plan, Settings
from linkgauge.engine.model.run_end import EndText, Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import Run
from linkgauge.engine.near.run_goal import RunGoal
from linkgauge.engine.results.meter import replay

Recorder = Callable[..., Any]
LIMIT = 1_000_000


@pytest.fixture
def counters() -> Iterator[SharedCounters]:
    """Return counters of sessions that have carried nothing yet."""
    made = SharedCounters.create()
    yield made
    made.close()


def set_bytes(counters: SharedCounters, direction: Direction, count: int) -> None:
    """Have the first session of a direction carry so many bytes."""
    counters.words[slot_index(direction, 1) * WORDS + CounterField.BYTES] = count


def sample(end: End, direction: Direction = Direction.OUT, count: int = 0, **more: Any) -> Sample:
    """Return a sample of an end with so many bytes more."""
    return replace(Sample(end, 0, SECOND_NS, SECOND_NS, (SessionSample(direction, 1, count),)), **more)


def is_over(goal: RunGoal, direction: Direction) -> bool:
    """Return whether a run in a direction is over, by a sample of the near end, which tells nothing new."""
    return goal.follow(sample(End.NEAR), Settings(direction)) is not None


def test_the_limit_is_each_directions_and_the_receiver_counts(counters: SharedCounters) -> None:
    """The bytes that the far kernel has acknowledged do not count before its receiver has read them."""
    goal = RunGoal(Plan(Settings(Direction.DUPLEX), bytes_limit=LIMIT), counters)
    set_bytes(counters, Direction.IN, LIMIT)
    set_bytes(counters, Direction.OUT, LIMIT)
    assert is_over(goal, Direction.IN)
    assert goal.follow(sample(End.FAR, count=LIMIT - 1), Settings(Direction.OUT)) is None
    assert not is_over(goal, Direction.DUPLEX)
    assert goal.follow(sample(End.FAR, count=1), Settings(Direction.DUPLEX)) is EndText.DURATION_UP


def test_a_direction_is_over_when_all_was_sent_and_nothing_more_comes(counters: SharedCounters) -> None:
    """A change of settings dropped some bytes between the two kernels, and the receiver never gets them."""
    goal = RunGoal(Plan(bytes_limit=LIMIT), counters)
    set_bytes(counters, Direction.OUT, LIMIT)
    for index in range(5):
        assert not is_over(goal, Direction.OUT)
        goal.follow(sample(End.FAR, count=0 if index else LIMIT // 2), Settings())
    assert is_over(goal, Direction.OUT)


def test_a_search_is_over_when_every_direction_has_its_rate(counters: SharedCounters) -> None:
    """Settings that search for nothing in between begin it anew."""
    plan = Plan(Settings(Direction.DUPLEX, rate_bit_s=10**9, searches_rate=True), Workload.UDP)
    goal, searching = RunGoal(plan, counters), plan.settings
    found = [(DatagramSample(flow, 1, search_phase=SEARCH_DONE),) for flow in Direction.DUPLEX.flows]
    assert goal.follow(sample(End.NEAR, datagrams=found[0]), searching) is None
    assert goal.follow(sample(End.NEAR, datagrams=found[0]), replace(searching, searches_rate=False)) is None
    assert goal.follow(sample(End.FAR, datagrams=found[1]), searching) is None
    assert goal.follow(sample(End.NEAR, datagrams=found[0]), searching) is EndText.SEARCH_DONE


def test_a_run_without_a_goal_never_reaches_it(counters: SharedCounters) -> None:
    """Even if it carries very much."""
    set_bytes(counters, Direction.IN, 1 << 50)
    assert not is_over(RunGoal(Plan(), counters), Direction.IN)


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
    """Its senders do not send more, even if the link could carry it, and its receivers do not count less."""
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


@pytest.mark.parametrize("direction", [Direction.OUT, pytest.param(Direction.IN, marks=pytest.mark.every)])
async def test_a_change_of_sessions_and_window_neither_stops_short_nor_hangs(
    far_end: Peer, record: Recorder, direction: Direction
) -> None:
    """The other connections carry the rest of the closed ones, without the bytes that were lost on their way."""
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
