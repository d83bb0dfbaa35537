"""Which settings a sample belongs to, and which samples are still settling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.events import Changed, Warned
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.texts.warning_text import WarningKind, WarningText
from linkgauge.engine.near.run_events import RunEvents, Timeline
from linkgauge.engine.near.warmup_detection import MIN_SETTLED_INTERVALS

from ..results.log_entries import STARTED

FIRST = Settings(Direction.OUT, 1)
SECOND = Settings(Direction.IN, 2)
THIRD = Settings(Direction.DUPLEX, 3)
TICK = SECOND_NS // 4


def expect(settings: Settings) -> Expectation:
    """Expect a rate that tells which settings it was asked for."""
    return Expectation(out=ExpectedRate(settings.sessions, "computed", "test"))


def sample(start_s: float, end_s: float) -> Sample:
    """Return a sample of an interval."""
    start_ns, end_ns = int(start_s * SECOND_NS), int(end_s * SECOND_NS)
    return Sample(End.FAR, 0, end_ns, end_ns - start_ns, ())


def timeline(warmup_s: float = 1.0) -> Timeline:
    """Return a timeline of a run with this warm-up, and a change after 5 seconds."""
    line = Timeline(Plan(FIRST, warmup_ns=int(warmup_s * SECOND_NS)), expect)
    line.change_settings(5 * SECOND_NS, SECOND)
    return line


def test_a_change_is_an_event_with_its_time_and_the_new_expected_rate() -> None:
    """The settings in force are the new ones at once."""
    line = Timeline(Plan(FIRST), expect)
    assert line.settings == FIRST
    assert line.change_settings(7, SECOND) == Changed(7, SECOND, expect(SECOND))
    assert line.settings == SECOND


@pytest.mark.parametrize(
    ("start_s", "end_s", "settings", "warmup"),
    [
        (0.0, 0.5, FIRST, True),
        (0.75, 1.25, FIRST, True),  # a part of it was settling
        (1.0, 1.5, FIRST, False),
        (4.5, 5.0, FIRST, False),  # ends as the change comes
        (4.75, 5.25, SECOND, True),  # the change falls into it
        (5.0, 5.5, SECOND, True),
        (5.75, 6.25, SECOND, True),
        (6.0, 6.5, SECOND, False),
    ],
)
def test_a_sample_is_stamped_by_where_it_lies(
    start_s: float, end_s: float, settings: Settings, warmup: bool
) -> None:
    """Samples that come late are stamped as if they had come in time, whatever came before them."""
    line = timeline()
    line.stamp(sample(0.0, 0.25))
    stamped = line.stamp(sample(start_s, end_s))
    assert (stamped.settings, stamped.warmup) == (settings, warmup)


@pytest.mark.parametrize(("start_s", "end_s", "warmup"), [(0.0, 0.5, False), (4.75, 5.25, True), (5.0, 5.5, False)])
def test_without_a_warm_up_only_a_sample_with_a_change_in_it_is_left_out(
    start_s: float, end_s: float, warmup: bool
) -> None:
    """It belongs to neither setting."""
    assert timeline(0.0).stamp(sample(start_s, end_s)).warmup is warmup


def test_a_change_during_a_warm_up_starts_it_anew() -> None:
    """Settling begins again with each change."""
    line = Timeline(Plan(FIRST, warmup_ns=SECOND_NS), expect)
    line.change_settings(SECOND_NS // 2, SECOND)
    line.change_settings(SECOND_NS * 5 // 4, THIRD)
    assert line.stamp(sample(1.0, 1.2)).settings == SECOND
    assert line.stamp(sample(1.0, 1.2)).warmup
    assert line.stamp(sample(2.0, 2.4)).warmup
    assert line.stamp(sample(2.25, 2.5)).settings == THIRD
    assert not line.stamp(sample(2.25, 2.5)).warmup


@given(
    st.lists(st.integers(1, 50), max_size=6),
    st.integers(0, 60),
    st.integers(1, 20),
    st.integers(0, 8),
)
def test_no_measured_sample_overlaps_a_change_or_its_warm_up(
    gaps: list[int], start: int, length: int, settle: int
) -> None:
    """For any changes at any time: a sample outside all warm-ups belongs to one setting only."""
    line = Timeline(Plan(FIRST, duration_ns=None, warmup_ns=settle), expect)
    at, times = 0, [0]
    for number, gap in enumerate(gaps, start=2):
        at += gap
        times.append(at)
        line.change_settings(at, Settings(sessions=number))
    stamped = line.stamp(Sample(End.NEAR, 0, start + length, length, ()))
    in_force = sum(1 for time in times if time < start + length)
    assert stamped.settings.sessions == in_force
    overlaps = any(time < start + length and start < time + settle for time in times)
    holds_a_change = any(start < time < start + length for time in times[1:])
    assert stamped.warmup == (overlaps or holds_a_change)


def indexed_sample(end: End, index: int, bytes_: int, flow: Direction = Direction.OUT) -> Sample:
    """Return a sample of the interval of that index."""
    return Sample(end, index, (index + 1) * TICK, TICK, (SessionSample(flow, 1, bytes_),))


def test_samples_are_warm_up_until_the_receivers_rate_has_settled() -> None:
    """The sender's samples follow the receiver's."""
    line = Timeline(Plan(warmup_auto=True, duration_ns=20 * SECOND_NS), lambda _settings: Expectation())
    stamped: list[bool] = []
    for index in range(30):
        rate = min(index, 8) * 1_000_000
        line.stamp(indexed_sample(End.NEAR, index, 5_000_000))
        stamped.append(line.stamp(indexed_sample(End.FAR, index, rate)).warmup)
    measured = stamped.index(False)
    assert 8 + MIN_SETTLED_INTERVALS - 2 <= measured <= 8 + 2 * MIN_SETTLED_INTERVALS
    assert not any(stamped[measured:])
    assert line.take_warnings() == []


def test_a_change_settles_anew_and_both_directions_must() -> None:
    """Each period finds its own warm-up."""
    line = Timeline(Plan(warmup_auto=True, duration_ns=40 * SECOND_NS), lambda _settings: Expectation())
    for index in range(20):
        line.stamp(indexed_sample(End.FAR, index, 1_000_000))
    line.change_settings(20 * TICK, Settings(Direction.DUPLEX))
    stamped: list[bool] = []
    for index in range(20, 60):
        line.stamp(indexed_sample(End.FAR, index, 1_000_000, Direction.OUT))
        came = line.stamp(indexed_sample(End.NEAR, index, min(index - 20, 10) * 1_000_000, Direction.IN))
        stamped.append(came.warmup)
    assert 10 + MIN_SETTLED_INTERVALS - 2 <= stamped.index(False) <= 10 + 2 * MIN_SETTLED_INTERVALS


async def test_a_rate_that_never_settles_is_measured_after_half_of_the_run_with_a_warning() -> None:
    """One warning, however long the run is, right after the sample that ends the warm-up."""
    plan = Plan(warmup_auto=True, duration_ns=10 * SECOND_NS)
    events = RunEvents(Timeline(plan, expect))
    events.warn("early")
    (early,) = events.start(STARTED)
    events.put(early)
    stamped = [events.add_sample(indexed_sample(End.FAR, index, 1_000 * index)) for index in range(40)]
    events.close()
    assert [event.warmup for event in stamped] == [True] * 20 + [False] * 20
    warning = Warned(WarningText.RATE_UNSETTLED.format(seconds=5.0), WarningKind.OTHER)
    assert [event async for event in events] == [
        STARTED,
        Warned("early", WarningKind.OTHER),
        *stamped[:20],
        warning,
        *stamped[20:],
    ]


def test_a_warm_up_is_either_fixed_or_automatic() -> None:
    """An endless run waits half a minute at most."""
    with pytest.raises(PlanError, match="warm-up"):
        Plan(warmup_auto=True, warmup_ns=SECOND_NS)
    assert Plan(warmup_auto=True, duration_ns=None).effective_warmup_ns == 30 * SECOND_NS
