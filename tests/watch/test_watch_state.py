"""The status of a peer follows from its events alone."""

from dataclasses import replace
from functools import reduce
from itertools import pairwise

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.watch.events import (
    CheckBegan,
    CheckEnded,
    CheckSkipped,
    ChecksMissed,
    CheckVerdict,
    Metric,
    PathChanged,
    Route,
    SkipReason,
    WatchEnded,
    WatchEvent,
    WatchNotice,
    WatchStarted,
)
from linkgauge.watch.watch_state import MAX_CHANGES, MAX_OF_A_DAY, PeerStatus, WatchState, advance

from .event_examples import NOON_S, changed, ended, probed

HOUR_S = 3_600.0
BEGAN = CheckBegan(NOON_S, "db-1", NOON_S, 0, "r1")


def after(*events: WatchEvent, status: PeerStatus | None = None) -> PeerStatus:
    """Return the status of db-1 after events."""
    return reduce(advance, events, status or PeerStatus("db-1"))


def test_events_of_another_peer_change_nothing() -> None:
    """Nor do notices."""
    status = PeerStatus("db-2")
    for event in (BEGAN, ended(), probed(), changed(), WatchNotice(NOON_S, "x", "db-2")):
        assert advance(status, event) is status


def test_a_test_runs_from_its_beginning_to_its_end() -> None:
    """It goes on after a reload. A restart ends a test that ran before it."""
    started = WatchStarted(NOON_S, ("db-1",))
    assert after(BEGAN).running_since_s == NOON_S
    assert after(BEGAN, ended()).running_since_s is None
    assert after(BEGAN, started).running_since_s == NOON_S
    state = WatchState({"db-1": after(BEGAN)})
    assert state.take_begun() == [BEGAN]
    state.apply(started)
    assert state.statuses["db-1"].running_since_s is None
    assert after(BEGAN, WatchEnded(NOON_S)).running_since_s is None


@pytest.mark.parametrize(
    ("second", "checks", "flaps"),
    [
        (CheckVerdict.GOOD, (1, 1, 0), 1),
        (CheckVerdict.BELOW, (0, 2, 0), 0),
        (CheckVerdict.FAILED, (0, 1, 1), 0),
    ],
)
def test_a_repetition_decides_and_is_a_flap_if_it_is_good(
    second: CheckVerdict, checks: tuple[int, int, int], flaps: int
) -> None:
    """Each test is counted, but a cycle only once in the day."""
    first, last = ended(CheckVerdict.BELOW, decides=False), ended(second, attempt=1)
    status = after(first)
    assert (status.last_check, status.last_attempt, status.day, status.checks) == (None, first, (), (0, 1, 0))
    status = after(last, status=status)
    assert (status.last_check, status.day) == (last, (last,))
    assert (status.checks, status.retests, status.flaps) == (checks, 1, flaps)


def test_a_skipped_test_is_known_until_the_next_one_ends() -> None:
    """The next start is not enough."""
    skipped = CheckSkipped(NOON_S, "db-1", NOON_S, SkipReason.BUSY)
    assert after(skipped, BEGAN).last_skip == skipped
    assert after(skipped, ended()).last_skip is None


def test_a_day_is_the_24_hours_before_the_newest_event() -> None:
    """Older events go, and so do events of a clock that was ahead."""
    status = after(*(ended(at_s=NOON_S + hour * HOUR_S) for hour in range(30)))
    assert [(event.at_s - NOON_S) / HOUR_S for event in status.day] == list(range(5, 30))
    ahead = after(probed(NOON_S + 90 * 86_400), probed(NOON_S))
    assert [event.at_s for event in ahead.probes] == [NOON_S]


def test_a_day_of_very_many_probes_keeps_one_each_half_minute() -> None:
    """The newest of each, so that a screen never has more than it can draw."""
    status = after(*(probed(NOON_S + count * 5) for count in range(12_000)))
    assert len(status.probes) <= 2 * MAX_OF_A_DAY
    assert status.probes[-1].at_s == NOON_S + 11_999 * 5
    times = [probe.at_s for probe in status.probes]
    assert times == sorted(times)
    assert max(later - earlier for earlier, later in pairwise(times)) <= 30


def test_a_repetition_that_is_skipped_leaves_the_last_test_to_count() -> None:
    """Otherwise an older, better result would stand. A skipped test of another cycle changes nothing."""
    below = ended(CheckVerdict.BELOW, decides=False)
    skipped = CheckSkipped(NOON_S + 5, "db-1", NOON_S, SkipReason.BUSY)
    status = after(ended(at_s=NOON_S - HOUR_S), below, skipped)
    assert status.last_check is not None
    assert (status.last_check.result.verdict, status.last_check.decides) == (CheckVerdict.BELOW, True)
    assert len(status.day) == 2
    good = after(ended(), CheckSkipped(NOON_S + HOUR_S, "db-1", NOON_S + HOUR_S, SkipReason.BUSY))
    assert len(good.day) == 1


def test_changes_are_counted_though_only_the_newest_are_kept() -> None:
    """A counter of metrics must not fall, even at a restart."""
    status = after(*(changed(NOON_S + number) for number in range(MAX_CHANGES + 50)))
    assert len(status.changes) == MAX_CHANGES
    assert status.changes[-1] == changed(NOON_S + MAX_CHANGES + 49)
    assert status.change_counts == {(Metric.GOODPUT_BIT_S, True): MAX_CHANGES + 50}


def test_missed_tests_are_counted() -> None:
    """Without those of other peers."""
    missed = ChecksMissed(NOON_S, "db-1", NOON_S - 60, NOON_S - 30, 2)
    assert after(missed, missed, replace(missed, peer="db-2")).missed == 4


def test_a_changed_path_is_found_once_also_after_a_restart() -> None:
    """The journal has the tests and the change; a repeated test has a route as well."""

    def traced(at_s: float, router: str, *, decides: bool = True) -> CheckEnded:
        end = ended(at_s=at_s, decides=decides)
        routes = (Route(Direction.OUT, ((router,), ("192.0.2.9",))),)
        return replace(end, result=replace(end.result, routes=routes))

    first, second = traced(NOON_S, "192.0.2.1"), traced(NOON_S + 60, "192.0.2.2", decides=False)
    state = WatchState()
    assert state.find_changes(first) == []
    state.apply(first)
    (change,) = state.find_changes(second)
    assert isinstance(change, PathChanged)
    assert (change.before.hops[0], change.after.hops[0]) == (("192.0.2.1",), ("192.0.2.2",))
    for event in (second, change):
        state.apply(event)
    assert state.statuses["db-1"].path_changes == {Direction.OUT: (change, 1)}
    again = WatchState()
    for event in (first, second, change):
        again.recall(event)
    assert again.statuses == state.statuses
    assert again.find_changes(traced(NOON_S + 120, "192.0.2.1")) == []
    assert len(again.find_changes(traced(NOON_S + 180, "192.0.2.3"))) == 1
