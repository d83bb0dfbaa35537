"""What the screen of a watch shows, as values."""

from dataclasses import replace

import pytest
from linkgauge.tui.watch.last_day import DAY_S
from linkgauge.tui.watch.watch_view import (
    PeerState,
    WatchEventLines,
    WatchView,
    current_levels,
    newest_failures,
    state_of,
    watch_view,
)
from linkgauge.watch.events import CheckBegan, CheckResult, Metric, ProbeEnded, WatchStarted
from linkgauge.watch.watch_state import PeerStatus

from ..example_watch import (
    GIB,
    NOW_S,
    ScriptedWatch,
    below,
    ended,
    failed,
    good,
    plan,
    probe,
    status,
)


def view_of(watch: ScriptedWatch, now_s: float = NOW_S) -> WatchView:
    """Return a watch as it is shown."""
    return watch_view(watch.plan, watch.statuses, watch.use, now_s)


def test_a_peer_has_a_row_from_the_beginning() -> None:
    """Without any result, and even without a status."""
    watch = ScriptedWatch(3, is_new=True)
    del watch.statuses["db-03"]
    view = view_of(watch)
    assert [row.name for row in view.rows] == ["db-01", "db-02", "db-03"]
    assert {row.state for row in view.rows} == {PeerState.WAITING}
    assert view.rows[0].bit_s is None
    assert view.rows[0].latency_s is None
    assert view.next_row is view.rows[0]
    assert view.testing == ()


def test_a_row_has_the_last_test_and_the_last_probe() -> None:
    """A lost probe is lost, whatever the last latency was."""
    view = view_of(ScriptedWatch(3))
    assert [row.state for row in view.rows] == [PeerState.PASS, PeerState.SHORT, PeerState.NO_RESULT]
    assert view.rows[0].latency_s == pytest.approx(412e-6, rel=0.05)
    assert view.rows[2].latency_s is None
    assert [row.is_probe_lost for row in view.rows] == [False, False, True]
    assert view.counts == {PeerState.PASS: 1, PeerState.SHORT: 1, PeerState.NO_RESULT: 1}
    assert view.budget_bytes == 30 * GIB


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (None, PeerState.WAITING),
        (good(), PeerState.PASS),
        (replace(good(), percent=None), PeerState.MEASURED),
        (below(), PeerState.SHORT),
        (below(49.9), PeerState.FAIL),
        (replace(below(), percent=None), PeerState.SHORT),
        (failed(), PeerState.NO_RESULT),
    ],
)
def test_a_state_has_the_words_of_runs(result: CheckResult | None, state: PeerState) -> None:
    """Under half of the expected rate is FAIL."""
    assert state_of(result) is state


def test_the_data_of_an_earlier_month_does_not_count() -> None:
    """A peer that was not tested since has used nothing."""
    watch = ScriptedWatch(1)
    assert view_of(watch).rows[0].month_bytes == view_of(watch).month_bytes == watch.used["db-01"]
    later = view_of(watch, NOW_S + 30 * DAY_S)
    assert later.rows[0].month_bytes == later.month_bytes == 0


def test_used_up_data_is_told_by_the_skipped_test_or_by_the_sum() -> None:
    """The skipped test counts although a little is left."""
    watch = ScriptedWatch(2)
    watch.use_up("db-01")
    watch.used["db-02"] = 10 * GIB
    assert [row.is_over_budget for row in view_of(watch).rows] == [True, True]


def test_levels_are_those_since_the_last_change() -> None:
    """The median of each metric that was measured; latency by the probes."""
    levels = dict(current_levels(status("db-02", 2)))
    assert levels[Metric.GOODPUT_BIT_S].median == pytest.approx(0.6 * 941e6, rel=0.02)
    assert levels[Metric.GOODPUT_BIT_S].count == 6
    assert levels[Metric.GOODPUT_BIT_S].why == "path-slow"
    assert levels[Metric.LATENCY_S].count == 21
    assert Metric.LOSS not in levels
    assert current_levels(PeerStatus("new")) == ()


def test_the_newest_failures_are_tests_and_probes() -> None:
    """The newest first, and not too many."""
    known = status("db-03", 3)
    failures = newest_failures(known, 2)
    assert isinstance(failures[0], ProbeEnded)
    assert len(failures) == 2
    assert len(newest_failures(known, 9)) == 3


def test_the_list_of_events_leaves_out_routine() -> None:
    """Not the beginning of tests, nor probes that answer. A lost probe once, and its next answer."""
    lines, watch = WatchEventLines(), plan(1)
    lost = ProbeEnded(NOW_S, "db-01", failed("no answer"))
    for event in (
        WatchStarted(NOW_S, ("db-01",)),
        CheckBegan(NOW_S, "db-01", NOW_S, 0, "x"),
        ended("db-01", NOW_S, good()),
        probe("db-01", NOW_S),
        lost,
        lost,
        probe("db-01", NOW_S),
        probe("db-01", NOW_S),
    ):
        lines.add_event(event, watch)
    texts = [line.text.replace("\u00a0", " ") for line in lines.lines]
    assert texts == [
        "watching 1 peer",
        "db-01: ✓ PASS: 937 Mb/s, 99.6 % of expected",
        "db-01: probe: no answer",
        "db-01: probe: 412 µs",
    ]
    assert lines.written == 4
