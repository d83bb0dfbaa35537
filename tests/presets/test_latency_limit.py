"""Limits of latency under load: as a run's document keeps them, and as runs are judged by them."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.events import Expectation, ExpectedRate, Reason, RunEnd
from linkgauge.engine.model.plan import Direction, ResponsivenessTest
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.responsiveness.result import Grade
from linkgauge.engine.results.run_result import RunResult
from linkgauge.engine.results.summary import Summary
from linkgauge.presets.latency_limit import LatencyLimit, limit_figures, read_limit
from linkgauge.presets.verdict import judge

from ..engine.results.responsiveness_runs import MS, Link, steady

LINE = ExpectedRate(94_900_000, "documented", "table 1")


def summary(link: Link, reason: Reason = Reason.COMPLETED) -> Summary:
    """Return the results of a run whose directions were loaded in turn."""
    return replace(replay(link.events()).summary(), end=RunEnd(reason, "finished"))


def alongside(out_ms: float, expected: ExpectedRate = LINE) -> Summary:
    """Return the results of a check out, beside which latency was measured."""
    whole = summary(Link(steady(out_ms, 0), phases=(Direction.OUT,)))
    plan = replace(whole.plan, responsiveness=ResponsivenessTest.ALONGSIDE)
    return replace(whole, plan=plan, expectation=Expectation(out=expected))


@pytest.mark.parametrize("limit", [LatencyLimit(30 * MS), LatencyLimit(None, "A+"), LatencyLimit(500_000, "D")])
def test_a_document_keeps_a_limit(limit: LatencyLimit) -> None:
    """So that history judges a run as it was judged at its end."""
    assert read_limit(limit_figures(limit)) == limit


@pytest.mark.parametrize(
    "value",
    [None, {}, [], "30", {"max_rise_ms": "30"}, {"max_rise_ms": True}, {"max_rise_ms": -1}, {"worst_grade": "G"}],
)
def test_a_damaged_document_has_no_limit(value: object) -> None:
    """A file may be edited by hand."""
    assert read_limit(RunResult.of({"latency_limit": value}).latency_limit) is None


def test_without_a_limit_a_test_of_phases_has_no_verdict_and_says_what_was_measured() -> None:
    """Its rates have no mean that means anything."""
    verdict = judge(summary(Link(steady(23, 1))))
    assert verdict.word == "none"
    assert verdict.text == (
        "NO VERDICT: no limit for the latency under load. Measured: out 94.1 Mb/s, latency +23.1 ms; "
        "in 94.1 Mb/s, latency +1 ms; both ways 188.2 Mb/s, latency +24.1 ms."
    )


@pytest.mark.parametrize(
    ("out_ms", "in_ms", "limit", "word"),
    [
        (23, 1, LatencyLimit(30 * MS), "pass"),
        (23, 1, LatencyLimit(20 * MS), "fail"),
        (1, 23, LatencyLimit(20 * MS), "fail"),
        (0, 0, LatencyLimit(0), "pass"),
        (23, 1, LatencyLimit(None, "A"), "pass"),
        (23, 1, LatencyLimit(None, "A+"), "fail"),
        (23, 1, LatencyLimit(30 * MS, "A+"), "fail"),
        (23, 1, LatencyLimit(20 * MS, "F"), "fail"),
        (900, 900, LatencyLimit(None, "F"), "pass"),
    ],
)
def test_each_direction_must_stay_within_the_rise_and_their_mean_within_the_grade(
    out_ms: float, in_ms: float, limit: LatencyLimit, word: str
) -> None:
    """Both limits, if there are two. Both directions at once have two queues, and are not judged."""
    assert judge(summary(Link(steady(out_ms, in_ms))), limit=limit).word == word


def test_the_text_has_the_rises_and_the_limits() -> None:
    """Why it failed, in numbers."""
    assert judge(summary(Link(steady(23, 1))), limit=LatencyLimit(20 * MS, "B")).text == (
        "FAIL: latency rose by 23.1 ms with load out and 1 ms with load in; "
        "the limit is 20 ms and its grade is A, B or better passes."
    )


@pytest.mark.parametrize(
    ("out_ms", "bit_s", "word"),
    [(10, 94_900_000, "pass"), (50, 94_900_000, "fail"), (10, 150_000_000, "short"), (50, 150_000_000, "fail")],
)
def test_a_check_is_judged_by_rate_and_by_latency(out_ms: float, bit_s: int, word: str) -> None:
    """The worse one is the word, and the text has both."""
    verdict = judge(alongside(out_ms, replace(LINE, bit_s=bit_s)), limit=LatencyLimit(30 * MS))
    assert verdict.word == word
    assert verdict.text.startswith(f"{word.upper()}: out 94.1 Mb/s is ")
    assert "with load out; the limit is 30 ms." in verdict.text
    assert verdict.percent == pytest.approx(100 * 94.1e6 / bit_s, rel=1e-3)


def test_a_check_without_a_limit_is_judged_by_its_rate() -> None:
    """As every run."""
    assert judge(alongside(500)).word == "pass"


def test_without_an_expected_rate_the_latency_decides() -> None:
    """There is nothing else."""
    whole = replace(alongside(10), expectation=Expectation())
    assert judge(whole, limit=LatencyLimit(30 * MS)).word == "pass"
    assert judge(whole, limit=LatencyLimit(None, "A+")).word == "fail"


@pytest.mark.parametrize("limit", [LatencyLimit(30 * MS), LatencyLimit(None, "C")])
def test_what_was_not_measured_passes_no_limit(limit: LatencyLimit) -> None:
    """A probe that was lost, or a run that measured no latency at all."""
    whole = alongside(10)
    assert whole.responsiveness is not None
    loads = tuple(replace(load, rise_ns=None) for load in whole.responsiveness.loads)
    unknown = replace(whole.responsiveness, loads=loads, rise_ns=None, grade=None)
    for responsiveness in (None, unknown):
        verdict = judge(replace(whole, responsiveness=responsiveness), limit=limit)
        assert verdict.word == "none"
        assert "under load was not measured" in verdict.text


@pytest.mark.parametrize("limit_ms", [30, 5])
def test_a_test_that_was_stopped_has_no_verdict(limit_ms: int) -> None:
    """The directions that are missing may be worse; what was measured is stated."""
    cut = summary(Link(steady(10, 0), phases=(Direction.OUT,)), Reason.STOPPED)
    verdict = judge(cut, limit=LatencyLimit(limit_ms * MS))
    assert verdict.word == "none"
    assert " of at most " in verdict.text
    assert "latency +1" in verdict.text


@pytest.mark.parametrize("grade", ["A+", "B"])
def test_a_run_that_broke_off_is_not_judged(grade: Grade) -> None:
    """What it measured until then is no result."""
    whole = summary(Link(steady(120, 0)), Reason.PEER_LOST)
    verdict = judge(whole, limit=LatencyLimit(None, grade))
    assert verdict.word == "none"
    assert "out 94.1 Mb/s, latency +1" in verdict.text
