"""Figures of a watch as text."""

import pytest
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.tui.watch.watch_figures import (
    at_words,
    budget_words,
    every_words,
    level_words,
    metric_value,
    metric_values,
    result_words,
    until_words,
    verdict_words,
)
from linkgauge.watch.events import CheckResult, CheckVerdict, Level, Metric

NOW_S = 1_795_442_700.0  # 2026-11-23 14:05 UTC
GIB = 1 << 30


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
    """Unknown is a dash, and measured nothing is 0."""
    assert metric_value(metric, value).replace("\u00a0", " ") == text


def test_values_beside_each_other_have_one_unit() -> None:
    """That of the largest: numbers that are to be compared."""
    assert metric_values(Metric.LATENCY_S, (0.0004, 0.012)) == (["0.400", "12.0"], "ms")
    assert metric_values(Metric.GOODPUT_BIT_S, (8_000.0,), is_transactions=True) == (["8\u00a0000"], "trans/s")


def test_a_level_has_its_interval_where_there_is_one() -> None:
    """With few values there is none."""
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
    """So that the history does not say it otherwise."""
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
    """A peer that was never planned yet."""
    assert until_words(None, NOW_S) == "–"
    assert every_words(5_400 * SECOND_NS).replace("\u00a0", " ") == "1 h 30 min"


def test_a_budget_says_what_is_used_and_of_how_much() -> None:
    """Without a budget, only what was used."""
    assert budget_words(GIB, 10 * GIB).replace("\u00a0", " ") == "1.00 GiB of 10.0 GiB"
    assert budget_words(0, None).replace("\u00a0", " ") == "0 B"
