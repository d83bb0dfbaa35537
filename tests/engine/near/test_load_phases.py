"""The phases of a responsiveness test: made-up series of rate and latency, and real runs over loopback."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.model.counters.latency_histogram import bucket_of
from linkgauge.engine.model.counters.samples import (
    DatagramProbeSample,
    LatencyCounts,
    ProbeSample,
    Sample,
    SessionSample,
)
from linkgauge.engine.model.directions import Direction, End, sender_of
from linkgauge.engine.model.errors import PeerError, PeerRefused, PlanError
from linkgauge.engine.model.events import Changed, Event, Sampled
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, ResponsivenessTest, Settings
from linkgauge.engine.model.run_end import EndText, Reason
from linkgauge.engine.near.load_phases import MAX_PHASE_NS, MAX_PHASES_NS, MIN_PHASE_NS, LoadPhases
from linkgauge.engine.near.run import Run

from .older_end import older_end

Recorder = Callable[..., Any]
MS: Final = 1_000_000
INTERVAL_NS: Final = 200 * MS
PLAN: Final = Plan(
    Settings(Direction.OUT, sessions=8),
    duration_ns=23 * SECOND_NS,
    interval_ns=INTERVAL_NS,
    probe=True,
    responsiveness=ResponsivenessTest.PHASES,
)
RATE: Final = 2_500_000  # bytes in an interval: 100 Mb/s
NO_LATENCY: Final = LatencyCounts(Direction.OUT, (), ())


class Step(NamedTuple):
    """An interval: how many bytes each direction carries, the latency of its requests, and how long it is late."""

    carried: int = RATE
    latency_ns: int | None = 2 * MS
    late_ns: int = 0


class Phase(NamedTuple):
    """A phase as a script went through it."""

    direction: Direction
    began_ns: int
    ended_ns: int
    sessions: int


def counts_of(latency_ns: int | None) -> LatencyCounts:
    """Return the counts of an interval whose latency never changes."""
    if latency_ns is None:
        return NO_LATENCY
    count = max(1, INTERVAL_NS // max(latency_ns, 10 * MS))
    return LatencyCounts(Direction.OUT, (bucket_of(latency_ns),), (count,))


def sample_of(step: Step, index: int, elapsed_ns: int, interval_ns: int, *, has_datagrams: bool = False) -> Sample:
    """Return the near end's sample of an interval; without datagrams its latency is that of requests."""
    sessions = tuple(SessionSample(flow, 1, step.carried) for flow in (Direction.OUT, Direction.IN))
    counts = counts_of(step.latency_ns)
    datagrams = DatagramProbeSample(20, 20, counts, NO_LATENCY, NO_LATENCY) if has_datagrams else None
    probe = ProbeSample(NO_LATENCY if has_datagrams else counts, interval_ns, datagrams=datagrams)
    return Sample(End.NEAR, index, elapsed_ns, interval_ns, sessions, probe=probe)


def idle_of(answered: int) -> ProbeSample:
    """Return an idle link on which some of 100 datagrams were answered."""
    return ProbeSample(
        NO_LATENCY, SECOND_NS, datagrams=DatagramProbeSample(100, answered, NO_LATENCY, NO_LATENCY, NO_LATENCY)
    )


def follow(steps: Iterator[Step], plan: Plan = PLAN, *, has_datagrams: bool = False) -> list[Phase]:
    """Follow a script with a series of intervals to its end, and return its phases."""
    script = LoadPhases(plan, idle_of(100 if has_datagrams else 0))
    phases: list[Phase] = []
    settings, began_ns, elapsed_ns = plan.settings, 0, 0
    for index in range(10_000):
        step = next(steps)
        interval_ns = INTERVAL_NS + step.late_ns
        elapsed_ns += interval_ns
        changed = script.follow(sample_of(step, index, elapsed_ns, interval_ns, has_datagrams=has_datagrams))
        if script.is_over or (changed is not None and changed.direction is not settings.direction):
            phases.append(Phase(settings.direction, began_ns, elapsed_ns, settings.sessions))
            began_ns = elapsed_ns
        if script.is_over:
            assert changed is None
            return phases
        settings = changed or settings
    raise AssertionError("the script does not end")


def rising(per_second_ns: int, most_ns: int) -> Iterator[Step]:
    """Yield a queue that fills for as long as it is loaded, up to its size."""
    for tick in itertools.count(1):
        yield Step(latency_ns=min(most_ns, tick * per_second_ns // 5 + MS))


def test_a_steady_link_takes_the_minimum_time() -> None:
    """Each direction alone, then both: three times the minimum, up to the next sample."""
    phases = follow(itertools.repeat(Step()))
    assert [phase.direction for phase in phases] == list(Direction)
    assert [phase.ended_ns - phase.began_ns for phase in phases] == [3_600 * MS] * 3
    assert {phase.sessions for phase in phases} == {8}


def test_a_phase_waits_while_its_queue_fills_and_no_longer() -> None:
    """A queue of 250 ms that fills at 46 ms a second is full after 5.4 s; 1.5 s later that is known."""
    first = follow(rising(46 * MS, 250 * MS), has_datagrams=True)[0]
    assert 6 * SECOND_NS < first.ended_ns < 8 * SECOND_NS
    assert (
        follow(rising(46 * MS, SECOND_NS))[0].ended_ns == MAX_PHASE_NS[Direction.OUT] // INTERVAL_NS * INTERVAL_NS
    )


def test_a_queue_left_by_a_phase_does_not_count_for_the_next() -> None:
    """Otherwise a shorter queue in the other direction would never seem to rise."""

    def steps() -> Iterator[Step]:
        yield from itertools.repeat(Step(latency_ns=400 * MS), 18)
        yield from (Step(latency_ns=ns * MS) for ns in (380, 200, 80))
        yield from rising(40 * MS, 200 * MS)

    second = follow(steps(), has_datagrams=True)[1]
    assert second.ended_ns - second.began_ns > 5 * SECOND_NS


def test_sessions_are_added_while_the_rate_varies_up_to_twice_as_many() -> None:
    """Once a second, from 2.5 s on; every phase begins with the plan's number."""
    steps = (Step(carried=rate) for rate in itertools.cycle((RATE, 4 * RATE, 2 * RATE, 8 * RATE, 3 * RATE)))
    script = LoadPhases(PLAN, None)
    seen: list[tuple[int, Direction, int]] = []
    for index, step in zip(range(64), steps, strict=False):
        changed = script.follow(sample_of(step, index, (index + 1) * INTERVAL_NS, INTERVAL_NS))
        if changed is not None:
            seen.append(((index + 1) * INTERVAL_NS // MS, changed.direction, changed.sessions))
    assert seen == [
        (2_600, Direction.OUT, 12),
        (3_600, Direction.OUT, 16),
        (8_800, Direction.IN, 8),
        (11_400, Direction.IN, 12),
        (12_400, Direction.IN, 16),
    ]


@pytest.mark.parametrize("carried", [0, 1])
def test_a_direction_that_carries_nothing_ends_with_its_time(carried: int) -> None:
    """It is not steady, and more sessions would not help."""
    phases = follow(itertools.repeat(Step(carried=carried * RATE, latency_ns=None)))
    for phase in phases:
        longest = MAX_PHASE_NS[phase.direction] - INTERVAL_NS // 2
        assert (phase.ended_ns - phase.began_ns >= longest) is (carried == 0)
        assert phase.sessions == 8
    assert len(phases) == 3


def test_a_probe_without_answers_is_not_steady_latency() -> None:
    """Its answer may take longer than a phase."""
    steps = itertools.chain(itertools.repeat(Step(), 8), itertools.repeat(Step(latency_ns=None)))
    assert follow(steps)[0].ended_ns >= MAX_PHASE_NS[Direction.OUT] - INTERVAL_NS


def test_datagrams_tell_latency_if_they_are_answered_and_requests_otherwise() -> None:
    """A host that answers few of them would seem to have no latency."""
    for answered, ended_ms in ((100, 3_600), (89, 8_800)):
        script = LoadPhases(PLAN, idle_of(answered))
        index = 0
        while True:
            step = Step(latency_ns=(index + 1) * 20 * MS)
            sample = sample_of(step, index, (index + 1) * INTERVAL_NS, INTERVAL_NS)
            datagrams = DatagramProbeSample(20, 20, counts_of(MS), NO_LATENCY, NO_LATENCY)
            assert sample.probe is not None
            sample = replace(sample, probe=replace(sample.probe, datagrams=datagrams))
            if script.follow(sample):
                break
            index += 1
        assert sample.elapsed_ns == ended_ms * MS


def test_one_phase_loads_the_plans_own_direction_alone() -> None:
    """With a direction of its own, a test is over when that one is."""
    for direction in Direction:
        settings = Settings(direction, sessions=4)
        plan = replace(PLAN, settings=settings, responsiveness=ResponsivenessTest.ONE_PHASE)
        assert follow(itertools.repeat(Step()), plan) == [Phase(direction, 0, 3_600 * MS, 4)]


def test_a_machine_that_stood_still_leaves_later_phases_out() -> None:
    """It neither measures them for less than their minimum time, nor makes the user wait longer than promised."""
    steps = itertools.chain([Step(late_ns=16 * SECOND_NS)], itertools.repeat(Step()))
    assert [phase.direction for phase in follow(steps)] == [Direction.OUT, Direction.IN]


STEPS: Final = st.lists(
    st.builds(
        Step,
        st.one_of(st.just(0), st.integers(0, 1 << 40), st.just(RATE)),
        st.one_of(st.none(), st.integers(1, 30 * SECOND_NS), st.just(2 * MS)),
        st.one_of(st.just(0), st.integers(-190 * MS, 50 * MS), st.integers(0, 25 * SECOND_NS)),
    ),
    min_size=1,
    max_size=60,
)


@given(STEPS, st.booleans(), st.sampled_from([1, 3, 8, 128]))
def test_every_series_ends_within_its_bounds(steps: list[Step], has_datagrams: bool, sessions: int) -> None:
    """A phase keeps its minimum and its maximum time, but for the sample that ends it."""
    plan = replace(PLAN, settings=Settings(Direction.OUT, sessions))
    phases = follow(itertools.cycle(steps), plan, has_datagrams=has_datagrams)
    latest_ns = INTERVAL_NS + max(step.late_ns for step in steps)
    assert [phase.direction for phase in phases] == list(Direction)[: len(phases)]
    for phase in phases:
        assert MIN_PHASE_NS <= phase.ended_ns - phase.began_ns < MAX_PHASE_NS[phase.direction] + latest_ns
        assert sessions <= phase.sessions <= min(2 * sessions, 128)
    assert phases[-1].ended_ns < MAX_PHASES_NS + latest_ns
    if len(phases) < 3:
        assert phases[-1].ended_ns + MIN_PHASE_NS > MAX_PHASES_NS


@given(STEPS)
def test_a_script_that_is_over_changes_nothing_more(steps: list[Step]) -> None:
    """Even if more samples come."""
    script, elapsed_ns = LoadPhases(PLAN, None), 0
    for index, step in enumerate(itertools.chain(itertools.repeat(Step(), 54), steps)):
        was_over = script.is_over
        elapsed_ns += INTERVAL_NS + step.late_ns
        changed = script.follow(sample_of(step, index, elapsed_ns, INTERVAL_NS + step.late_ns))
        if was_over:
            assert changed is None
            assert script.is_over
    assert script.is_over


def test_a_plan_names_the_directions_of_its_phases() -> None:
    """A run without phases has none; one with all begins with out, and takes samples often enough."""
    assert PLAN.load_directions == tuple(Direction)
    assert PLAN.widest_settings == Settings(Direction.DUPLEX, 16)
    assert Plan().load_directions == ()
    alongside = replace(PLAN, responsiveness=ResponsivenessTest.ALONGSIDE)
    assert (alongside.load_directions, alongside.widest_settings) == ((), PLAN.settings)
    with pytest.raises(PlanError, match="interval"):
        replace(PLAN, interval_ns=SECOND_NS // 2)
    with pytest.raises(PlanError, match="direction"):
        replace(PLAN, settings=Settings(Direction.IN))


QUICK: Final = replace(PLAN, settings=Settings(Direction.OUT, sessions=2), rate_bit_s=50_000_000)


@pytest.mark.every
@pytest.mark.timeout(90)
async def test_a_run_goes_through_its_phases_and_ends_by_itself(far_end: Peer, record: Recorder) -> None:
    """Its settings change as those of any run do: each direction carries payload in its own phases alone."""
    recorded = await record(QUICK, far_end, deadline_s=60)
    changes = [event.settings.direction for event in recorded.events if isinstance(event, Changed)]
    assert [phase for phase, _ in itertools.groupby([Direction.OUT, *changes])] == list(Direction)
    assert (recorded.end.reason, recorded.end.detail) == (Reason.COMPLETED, EndText.DURATION_UP)
    for direction in Direction:
        for flow in Direction.DUPLEX.flows:
            receiver = sender_of(flow, QUICK.workload).other
            measured = [
                sum(session.bytes for session in event.sample.sessions if session.direction is flow)
                for event in recorded.samples
                if event.settings.direction is direction and event.sample.end is receiver and not event.warmup
            ]
            assert (sum(measured) > 0) is (flow in direction.flows), (direction, flow)


@pytest.mark.every
async def test_the_user_stops_a_test_in_the_middle_of_a_phase_and_changes_none(
    far_end: Peer, record: Recorder
) -> None:
    """Other settings have no effect: the phases are the settings."""

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.end is End.NEAR:
            if event.sample.index == 2:
                run.change_settings(Settings(Direction.IN, sessions=5))
            if event.sample.index == 6:
                run.stop()

    recorded = await record(QUICK, far_end, act)
    assert not [event for event in recorded.events if isinstance(event, Changed)]
    assert recorded.end.reason is Reason.STOPPED


@pytest.mark.every
async def test_a_far_end_that_goes_away_ends_the_test_as_any_other(endpoint: Endpoint, record: Recorder) -> None:
    """Its phases do not hide that."""
    closing: list[asyncio.Task[None]] = []

    def act(_run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.index >= 2 and not closing:
            closing.append(asyncio.create_task(endpoint.__aexit__()))

    recorded = await record(QUICK, Peer(*endpoint.address), act)
    await asyncio.gather(*closing)
    assert recorded.end.reason is Reason.PEER_STOPPED


async def test_an_endpoint_that_allows_too_few_sessions_says_so_before_the_test(
    endpoint: Endpoint, record: Recorder
) -> None:
    """Not in the middle of it, when the script asks for more."""
    endpoint.admission.limits = Limits(sessions=3)
    with pytest.raises(PeerRefused, match="4 sessions are too many"):
        await record(QUICK, Peer(*endpoint.address))


async def test_an_end_without_such_tests_is_told_by_its_version(record: Recorder) -> None:
    """It closes the connection when it reads the plan."""
    async with older_end() as peer:
        with pytest.raises(PeerError, match="may be older than tests of latency under load: install the same"):
            await record(QUICK, peer)
