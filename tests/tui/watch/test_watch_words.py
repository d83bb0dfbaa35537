"""A watch in words: its events as sentences, its figures as text."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.workload import Workload
from linkgauge.tui.watch.watch_words import (
    at_words,
    budget_words,
    change_parts,
    event_tone,
    event_words,
    every_words,
    level_words,
    metric_value,
    metric_values,
    next_words,
    plan_words,
    result_words,
    until_words,
    verdict_words,
)
from linkgauge.watch.events import (
    ChangeFound,
    CheckBegan,
    CheckEnded,
    CheckResult,
    CheckSkipped,
    ChecksMissed,
    CheckVerdict,
    Level,
    Metric,
    PathChanged,
    ProbeEnded,
    Route,
    SkipReason,
    WatchEnded,
    WatchEvent,
    WatchNotice,
    WatchStarted,
)
from linkgauge.watch.watch_plan import Timing, WatchedPeer, WatchPlan
from linkgauge.watch.watch_state import PeerStatus

NOW_S = 1_795_442_700.0  # 2026-11-23 14:05 UTC
GIB = 1 << 30
NAME = "db-02"
PLAN = WatchPlan("office", (WatchedPeer(NAME, Peer("db-02.lan"), Plan(duration_ns=SECOND_NS)),))
GOOD = CheckResult(CheckVerdict.GOOD, 1, ((Metric.GOODPUT_BIT_S, 94.1e6),), 99.7, "at-expected")
SHORT = CheckResult(CheckVerdict.BELOW, 1, ((Metric.GOODPUT_BIT_S, 56.3e6),), 59.6, "path-slow")
REROUTED = PathChanged(
    NOW_S,
    NAME,
    *(Route(Direction.OUT, ((), (router,), ("192.0.2.9",))) for router in ("192.0.2.1", "192.0.2.2")),
)
BROKEN = CheckResult(CheckVerdict.FAILED, detail="db-02 refused the connection")
FELL = ChangeFound(
    NOW_S + 600,
    NAME,
    Metric.GOODPUT_BIT_S,
    NOW_S,
    Level(94.1e6, 94.0e6, 94.2e6, 24, "at-expected"),
    Level(56.3e6, 56.0e6, 56.6e6, 3, "path-slow"),
    is_worse=True,
)


def ended(result: CheckResult, attempt: int = 0, *, decides: bool = True) -> CheckEnded:
    """Return the end of a test."""
    return CheckEnded(NOW_S, NAME, NOW_S - 10, attempt, result, decides)


@pytest.mark.parametrize(
    ("event", "tone", "words"),
    [
        (WatchStarted(NOW_S, ("a", "b", "c")), "plain", "watching 3 peers"),
        (CheckBegan(NOW_S, NAME, NOW_S, 0, "x"), "plain", "db-02: test begins"),
        (CheckBegan(NOW_S, NAME, NOW_S, 2, "x"), "plain", "db-02: test begins, repetition 2"),
        (ended(GOOD), "good", "db-02: ✓ PASS: 94.1 Mb/s, 99.7 % of expected"),
        (
            ended(SHORT, decides=False),
            "warning",
            (
                "db-02: ▼ SHORT: 56.3 Mb/s, 59.6 % of expected; path slower than its line; "
                "it is repeated before it counts"
            ),
        ),
        (ended(GOOD, 1), "good", "db-02: ✓ PASS, repetition 1: 94.1 Mb/s, 99.7 % of expected"),
        (ended(BROKEN), "bad", "db-02: ! no result: db-02 refused the connection"),
        (
            CheckSkipped(NOW_S, NAME, NOW_S, SkipReason.BUDGET),
            "warning",
            "db-02: test skipped: it would exceed this month's data budget",
        ),
        (
            ChecksMissed(NOW_S, NAME, NOW_S - 7_200, NOW_S - 3_600, 2),
            "warning",
            (
                "db-02: 2 tests missed, due from 12:05 to 13:05: "
                "the watch did not run then, or an earlier test took too long"
            ),
        ),
        (
            ProbeEnded(NOW_S, NAME, CheckResult(CheckVerdict.GOOD, 1, ((Metric.LATENCY_S, 0.000412),))),
            "plain",
            "db-02: probe: 412 µs",
        ),
        (ProbeEnded(NOW_S, NAME, BROKEN), "bad", "db-02: probe: db-02 refused the connection"),
        (
            FELL,
            "change",
            (
                "db-02: rate fell from 94.1 to 56.3 Mb/s (95 %: 56.0 to 56.6) at 14:05; "
                "before: at the link's rate; after: path slower than its line"
            ),
        ),
        (REROUTED, "change", "db-02: path out changed at hop 2: 192.0.2.1 before, 192.0.2.2 now"),
        (
            replace(REROUTED, after=Route(Direction.IN, (("192.0.2.8",), ("192.0.2.9",)))),
            "change",
            (
                "db-02: path in changed at hop 2 from the remote end: 192.0.2.1 before, 192.0.2.9 now; "
                "2 hops, 3 before"
            ),
        ),
        (
            replace(REROUTED, after=Route(Direction.OUT, ((), ()))),
            "change",
            "db-02: path out changed: 2 hops, 3 before",
        ),
        (WatchNotice(NOW_S, "the file\nwas read again"), "warning", "the file was read again"),
        (WatchNotice(NOW_S, "not sent", NAME), "warning", "db-02: not sent"),
        (WatchEnded(NOW_S), "plain", "the watch has ended"),
    ],
)
def test_each_event_is_a_sentence_with_a_tone(event: WatchEvent, tone: str, words: str) -> None:
    """The command prints it, and the screen lists it."""
    assert event_words(event, PLAN).replace("\u00a0", " ") == words
    assert event_tone(event) == tone


def test_the_rate_of_transactions_is_one_of_transactions() -> None:
    """By the plan of the peer."""
    rr = WatchPlan("rr", (WatchedPeer(NAME, Peer("x"), Plan(workload=Workload.RR, duration_ns=SECOND_NS)),))
    result = CheckResult(CheckVerdict.GOOD, 1, ((Metric.GOODPUT_BIT_S, 17_714.0),))
    words = event_words(ended(result), rr).replace("\u00a0", " ")
    assert words == "db-02: • measured: 17 714 trans/s"


def test_a_change_in_parts_has_both_levels_and_how_they_are_known() -> None:
    """A change that more than doubles is a factor; from nothing there is no share."""
    parts = change_parts(FELL, NOW_S)
    assert parts.headline.replace("\u00a0", " ") == "rate fell at 14:05, by 40 %"
    assert parts.before.replace("\u00a0", " ") == "94.1 Mb/s (95 %: 94.0 to 94.2), 24 tests: at the link's rate"
    assert parts.after.replace("\u00a0", " ").endswith("3 tests: path slower than its line")
    rose = ChangeFound(
        NOW_S,
        NAME,
        Metric.LATENCY_S,
        NOW_S - 90_000,
        Level(0.001, None, None, 9),
        Level(0.021, None, None, 1),
        is_worse=True,
    )
    parts = change_parts(rose, NOW_S)
    assert parts.headline == "latency rose at 11-22 13:05, to 21x"
    assert parts.after.replace("\u00a0", " ") == "21.0 ms, 1 probe"
    nothing = ChangeFound(
        NOW_S, NAME, Metric.LOSS, NOW_S, Level(0.0, None, None, 9), Level(0.02, None, None, 3), is_worse=True
    )
    assert change_parts(nothing, NOW_S).headline == "loss rose at 14:05"


def test_the_next_test_is_due_in_some_time_or_runs() -> None:
    """Or its time is unknown."""
    assert next_words(PeerStatus(NAME), NOW_S) == "–"
    assert next_words(PeerStatus(NAME, next_check_s=NOW_S + 720), NOW_S).replace("\u00a0", " ") == "in 12 min"
    assert next_words(PeerStatus(NAME, next_check_s=NOW_S - 1), NOW_S) == "due now"
    assert next_words(PeerStatus(NAME, running_since_s=NOW_S - 4), NOW_S) == "testing 00:04"


def test_a_plan_says_where_the_peer_is_and_how_often_it_is_tested() -> None:
    """And how often it is probed, if it is."""
    peer = PLAN.peers[0]
    assert plan_words(peer).replace("\u00a0", " ") == "db-02.lan:5820, test every 1 h, probe every 1 min"
    assert "probe" not in plan_words(replace(peer, timing=Timing(probe_every_ns=None)))


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        (Metric.GOODPUT_BIT_S, 94.13e6, "94.1 Mb/s"),
        (Metric.GOODPUT_BIT_S, 9.389e9, "9 389 Mb/s"),
        (Metric.GOODPUT_BIT_S, 23.41e9, "23.4 Gb/s"),
        (Metric.LATENCY_S, 412e-6, "412 µs"),
        (Metric.LATENCY_S, 0.02163, "21.6 ms"),
        (Metric.LOSS, 0.0, "0 %"),
        (Metric.LOSS, 0.00012, "0.012 %"),
        (Metric.RETRANSMITS, 340.0, "340 a GB"),
        (Metric.LATENCY_S, None, "–"),
    ],
)
def test_a_value_has_three_digits_and_its_unit(metric: Metric, value: float | None, text: str) -> None:
    """Unknown is a dash, and a measured 0 is 0."""
    assert metric_value(metric, value).replace("\u00a0", " ") == text


def test_values_beside_each_other_have_one_unit() -> None:
    """The unit of the largest, so that they can be compared."""
    assert metric_values(Metric.LATENCY_S, (0.0004, 0.012)) == (["0.400", "12.0"], "ms")
    assert metric_values(Metric.GOODPUT_BIT_S, (8_000.0,), is_transactions=True) == (["8\u00a0000"], "trans/s")


def test_a_level_has_its_interval_if_there_is_one() -> None:
    """A level of few values has none."""
    level = Level(56.3e6, 56.0e6, 56.6e6, 3)
    assert level_words(Metric.GOODPUT_BIT_S, level).replace("\u00a0", " ") == "56.3 Mb/s (95 %: 56.0 to 56.6)"
    assert level_words(Metric.LOSS, Level(0.01, None, None, 1)).replace("\u00a0", " ") == "1.00 %"


def result(verdict: CheckVerdict, percent: float | None = None, detail: str | None = None) -> CheckResult:
    """Return the result of a test."""
    figures = () if verdict is CheckVerdict.FAILED else ((Metric.GOODPUT_BIT_S, 94.1e6),)
    return CheckResult(verdict, 1, figures, percent, detail=detail)


@pytest.mark.parametrize(
    ("value", "verdict", "words"),
    [
        (result(CheckVerdict.GOOD, 99.7), "✓ PASS", "94.1 Mb/s, 99.7 % of expected"),
        (result(CheckVerdict.GOOD), "• measured", "94.1 Mb/s"),
        (result(CheckVerdict.BELOW, 60.0), "▼ SHORT", "94.1 Mb/s, 60.0 % of expected"),
        (result(CheckVerdict.BELOW, 49.0), "✗ FAIL", "94.1 Mb/s, 49.0 % of expected"),
        (result(CheckVerdict.FAILED, detail="db-02 refused\x07"), "! no result", "db-02 refused"),
        (result(CheckVerdict.FAILED), "! no result", "no result"),
        (CheckResult(CheckVerdict.GOOD), "• measured", "no figures"),
    ],
)
def test_a_result_is_said_in_the_words_of_runs(value: CheckResult, verdict: str, words: str) -> None:
    """The history uses the same words."""
    assert verdict_words(value) == verdict
    assert result_words(value).replace("\u00a0", " ") == words


def test_a_time_has_its_date_unless_it_is_of_today() -> None:
    """In UTC, as the list of runs."""
    assert at_words(NOW_S, NOW_S + 60) == "14:05"
    assert at_words(NOW_S - 86_400, NOW_S) == "11-22 14:05"


@pytest.mark.parametrize(
    ("left_s", "text"),
    [
        (-5, "now"),
        (0.5, "now"),
        (45.9, "45 s"),
        (720, "12 min"),
        (5_999, "99 min"),
        (6_000, "1 h"),
        (200_000, "2 d"),
    ],
)
def test_the_time_until_a_test_has_one_unit(left_s: float, text: str) -> None:
    """The largest that says enough."""
    assert until_words(NOW_S + left_s, NOW_S).replace("\u00a0", " ") == text


def test_unknown_times_are_a_dash_and_periods_have_words() -> None:
    """The time is unknown before the first plan."""
    assert until_words(None, NOW_S) == "–"
    assert every_words(5_400 * SECOND_NS).replace("\u00a0", " ") == "1 h 30 min"


def test_a_budget_says_what_is_used_and_of_how_much() -> None:
    """Without a budget, only what was used."""
    assert budget_words(GIB, 10 * GIB).replace("\u00a0", " ") == "1.00 GiB of 10.0 GiB"
    assert budget_words(0, None).replace("\u00a0", " ") == "0 B"
