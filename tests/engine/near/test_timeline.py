"""Which settings a sample belongs to, and which samples are still settling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.events import Changed, Expectation, ExpectedRate
from linkgauge.engine.model.plan import SECOND_NS, Direction, End, Plan, Settings
from linkgauge.engine.model.samples import Sample
from linkgauge.engine.near.timeline import Timeline

FIRST = Settings(Direction.OUT, 1)
SECOND = Settings(Direction.IN, 2)
THIRD = Settings(Direction.DUPLEX, 3)


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
    line.change(5 * SECOND_NS, SECOND)
    return line


def test_a_change_is_an_event_with_its_time_and_the_new_expected_rate() -> None:
    """The settings in force are the new ones at once."""
    line = Timeline(Plan(FIRST), expect)
    assert line.settings == FIRST
    assert line.change(7, SECOND) == Changed(7, SECOND, expect(SECOND))
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
    """Samples that come late are stamped as if they had come in time."""
    stamped = timeline().stamp(sample(start_s, end_s))
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
    line.change(SECOND_NS // 2, SECOND)
    line.change(SECOND_NS * 5 // 4, THIRD)
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
    """Whatever was changed and when: a sample outside all warm-ups lies under one setting only."""
    line = Timeline(Plan(FIRST, duration_ns=None, warmup_ns=settle), expect)
    at, times = 0, [0]
    for number, gap in enumerate(gaps, start=2):
        at += gap
        times.append(at)
        line.change(at, Settings(sessions=number))
    stamped = line.stamp(Sample(End.NEAR, 0, start + length, length, ()))
    in_force = sum(1 for time in times if time < start + length)
    assert stamped.settings.sessions == in_force
    overlaps = any(time < start + length and start < time + settle for time in times)
    holds_a_change = any(start < time < start + length for time in times[1:])
    assert stamped.warmup == (overlaps or holds_a_change)
