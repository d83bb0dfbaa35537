"""Due times depend on names and clocks alone, and every peer gets its tests."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.watch.schedule import (
    LONGEST_WAIT_S,
    DueTimes,
    check_times,
    probe_times,
    wait_s,
)
from linkgauge.watch.watch_plan import Timing, WatchedPeer

NOW_S = 1_763_812_800.0
HOUR_S = 3_600.0
NAMES = st.text(min_size=1, max_size=8)
PERIODS = st.integers(1, 400 * 86_400).map(lambda seconds: seconds * SECOND_NS)
JITTERS = st.floats(0, 0.5)
TIMES = st.floats(0, 4e9)
DUE_TIMES = st.builds(DueTimes, NAMES, PERIODS, JITTERS)


@given(DUE_TIMES, TIMES)
def test_due_times_grow_by_a_period_give_or_take_the_jitter(times: DueTimes, now_s: float) -> None:
    """Each period has one: the newest that has passed and the next one are neighbours."""
    period_s = times.period_ns / SECOND_NS
    newest_s, following_s = times.newest_s(now_s), times.following_s(now_s)
    assert newest_s <= now_s < following_s
    assert times.newest_s(following_s) == following_s
    assert times.following_s(newest_s) == following_s
    assert abs(following_s - newest_s - period_s) <= 2 * times.jitter * period_s + 1e-5


@given(DUE_TIMES, TIMES, st.floats(0, 1))
def test_a_restart_computes_the_same_due_time(times: DueTimes, now_s: float, share: float) -> None:
    """At any time in the period."""
    due_s = times.next_due_s(times.newest_s(now_s), now_s)
    later_s = now_s + share * (due_s - now_s) * 0.999
    again = replace(times)
    assert again.next_due_s(again.newest_s(now_s), later_s) == due_s


@given(DUE_TIMES, TIMES, st.integers(1, 1_000))
def test_of_due_times_that_were_missed_only_the_newest_is_caught_up(
    times: DueTimes, last_s: float, periods: int
) -> None:
    """Then the next one is in the future."""
    now_s = last_s + periods * 2 * times.period_ns / SECOND_NS
    due_s = times.next_due_s(last_s, now_s)
    assert due_s == times.newest_s(now_s)
    assert times.next_due_s(due_s, now_s) > now_s


def test_a_new_peer_is_due_at_once() -> None:
    """So the user sees a test after the start of a watch."""
    assert DueTimes("check a", 86_400 * SECOND_NS, 0.1).next_due_s(None, NOW_S) <= NOW_S


@given(DUE_TIMES, TIMES, st.lists(st.floats(-1e6, 1e6), max_size=20))
def test_a_clock_that_is_set_causes_neither_a_burst_nor_a_long_silence(
    times: DueTimes, start_s: float, steps: list[float]
) -> None:
    """At most one test is due for each step, and the next is at most a period later than it would be."""
    period_s = times.period_ns / SECOND_NS
    now_s, last_s = start_s + 1e8, None
    for step_s in [0.0, *steps]:
        now_s += step_s
        due_s = times.next_due_s(last_s, now_s)
        if due_s <= now_s:
            last_s = due_s
        again_s = times.next_due_s(last_s, now_s)
        assert now_s < again_s
        assert again_s - now_s <= (2 + 2 * times.jitter) * period_s + 1e-5


@given(DUE_TIMES, TIMES, st.floats(-1e6, 1e6))
def test_a_watch_goes_on_within_two_periods_after_its_clock_was_set(
    times: DueTimes, start_s: float, step_s: float
) -> None:
    """Also if the clock was set back by many periods: then the last cycle stays in the future for long."""
    now_s = start_s + 1e8
    last_s = times.newest_s(now_s)
    now_s += step_s
    waited_s = 0.0
    while (due_s := times.next_due_s(last_s, now_s)) > now_s:
        waited_s += due_s - now_s
        now_s = due_s
        assert waited_s <= (2 + 2 * times.jitter) * times.period_ns / SECOND_NS + 1e-5
    assert times.next_due_s(due_s, now_s) > now_s


@given(DUE_TIMES, TIMES, st.floats(0, 1))
def test_a_small_step_back_does_not_repeat_a_cycle(times: DueTimes, now_s: float, share: float) -> None:
    """A time server makes such steps."""
    last_s = times.newest_s(now_s + 1e8)
    assert times.next_due_s(last_s, last_s - share * times.period_ns / SECOND_NS) > last_s


@given(DUE_TIMES, TIMES, st.floats(0, 30), st.booleans())
def test_the_due_times_between_two_times_are_counted(
    times: DueTimes, first_s: float, periods: float, are_due: bool
) -> None:
    """Both times are exclusive, whether a test is due then or not."""
    last_s = first_s + periods * times.period_ns / SECOND_NS
    if are_due:
        first_s, last_s = times.newest_s(first_s), times.newest_s(last_s)
    between: list[float] = []
    due_s = times.following_s(first_s)
    while due_s < last_s:
        between.append(due_s)
        due_s = times.following_s(due_s)
    expected = (between[0], between[-1], len(between)) if between else None
    assert times.between(first_s, last_s) == expected


def test_peers_of_one_plan_are_spread_over_the_period() -> None:
    """Otherwise all would wait for one interface at the same time."""
    shares = sorted(
        DueTimes(f"check peer-{i}", 3_600 * SECOND_NS, 0.0).newest_s(NOW_S) % HOUR_S for i in range(200)
    )
    assert shares[0] < HOUR_S / 10
    assert shares[-1] > HOUR_S * 0.9
    assert all(50 < sum(low <= share < low + HOUR_S / 2 for share in shares) < 150 for low in (0, HOUR_S / 2))


def test_tests_and_probes_of_a_peer_have_separate_times() -> None:
    """From its timing."""
    peer = WatchedPeer("a", LOOPBACK, Plan(duration_ns=SECOND_NS), timing=Timing(3_600 * SECOND_NS, 60 * SECOND_NS))
    probes = probe_times(peer)
    assert probes is not None
    assert (check_times(peer).period_ns, probes.period_ns) == (3_600 * SECOND_NS, 60 * SECOND_NS)
    assert check_times(peer).name != probes.name
    assert probe_times(replace(peer, timing=Timing(probe_every_ns=None))) is None


def test_the_clock_is_read_again_soon_however_far_the_due_time_is() -> None:
    """It may be set meanwhile."""
    assert wait_s(NOW_S + 86_400, NOW_S) == LONGEST_WAIT_S
    assert wait_s(NOW_S + 2, NOW_S) == 2
    assert wait_s(NOW_S - 5, NOW_S) == 0
