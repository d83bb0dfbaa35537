"""The verdict: its word, and the sentence that carries the numbers."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.plan import SECOND_NS, Plan, ResponsivenessTest, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.responsiveness.grade import Grade
from linkgauge.engine.results.run_result import RunResult
from linkgauge.engine.results.summary import CpuSummary, Measurement, Period, Summary, TcpSummary
from linkgauge.presets.verdict import AcceptanceLimits, LatencyLimit, judge, limit_figures, read_limit

from ..engine.results.iperf3_runs import iperf3_run, reported, total
from ..engine.results.responsiveness_runs import MS, Link, steady

CPU = CpuSummary(None, None, None, None)
GIGABIT = ExpectedRate(948_000_000, "documented", "AIX table 1")
TOTAL = ExpectedRate(1_936_000_000, "documented", "AIX table 2")


def rate(bit_s: float) -> Measurement:
    """Return a measurement of eight seconds."""
    return Measurement(round(bit_s), 8 * SECOND_NS)


def run(expectation: Expectation, reason: Reason = Reason.COMPLETED, **measured: Any) -> Summary:
    """Return a run that measured this and expected that."""
    rates = PerDirection(measured.get("out"), measured.get("in_"), measured.get("total"))
    end = RunEnd(reason, "its time was up" if reason is Reason.COMPLETED else "the far end vanished")
    tcp = TcpSummary(None, None, None, None, None, None)
    rest: dict[str, Any] = {"periods": (), "near_cpu": CPU, "far_cpu": CPU, "tcp": tcp, "warnings": ()}
    return Summary(Plan(), rates, expectation=expectation, end=end, **rest)


def test_a_run_at_its_rate_passes_with_the_numbers_and_their_source() -> None:
    """The measured rate, the expected rate, and its source."""
    verdict = judge(run(Expectation(out=GIGABIT), out=rate(941.2e6)))
    assert verdict.word == "pass"
    assert verdict.text == "PASS: out 941.2 Mb/s is 99.3 % of 948 Mb/s (documented: AIX table 1)."


@pytest.mark.parametrize(
    ("percent", "word"),
    [(100.0, "pass"), (95.0, "pass"), (94.99, "short"), (50.0, "short"), (49.99, "fail"), (0.001, "fail")],
)
def test_the_word_follows_the_percentage(percent: float, word: str) -> None:
    """95 passes, under it is short, under half of it fails."""
    assert judge(run(Expectation(in_=GIGABIT), in_=rate(9.48e6 * percent))).word == word


def test_a_percentage_just_under_the_mark_does_not_read_as_the_mark() -> None:
    """94.96 % is cut to 94.9 %, beside a pass mark of 95 %."""
    text = judge(run(Expectation(in_=GIGABIT), in_=rate(9.48e6 * 94.96))).text
    assert text == ("SHORT: in 900.2 Mb/s is 94.9 % of 948 Mb/s (documented: AIX table 1); the pass mark is 95 %.")


def test_the_pass_mark_can_be_chosen() -> None:
    """The same run, two marks, one of them under half."""
    summary = run(Expectation(out=GIGABIT), out=rate(9.48e6 * 45))
    assert [judge(summary, pass_percent=mark).word for mark in (45, 45.1)] == ["pass", "fail"]


@pytest.mark.parametrize("mark", [0, -1, 100.1, 10**400, float("nan"), float("inf")])
def test_a_pass_mark_that_means_nothing_is_refused(mark: float) -> None:
    """0 would pass anything, more than 100 nothing that a link can do."""
    with pytest.raises(PlanError, match="pass mark"):
        judge(run(Expectation()), pass_percent=mark)


def test_a_duplex_run_is_judged_by_its_total() -> None:
    """One direction may be the slower, so long as both together are not."""
    summary = run(Expectation(total=TOTAL), out=rate(990e6), in_=rate(910e6), total=rate(1900e6))
    assert judge(summary).text == (
        "PASS: duplex total 1\u00a0900 Mb/s is 98.1 % of 1\u00a0936 Mb/s (documented: AIX table 2)."
    )


def test_the_worst_of_several_rates_gives_the_word() -> None:
    """If several are expected, the text has each of them."""
    verdict = judge(run(Expectation(out=GIGABIT, in_=GIGABIT), out=rate(940e6), in_=rate(700e6)))
    assert verdict.word == "short"
    assert verdict.text.startswith("SHORT: out 940 Mb/s is 99.2 %")
    assert "in 700 Mb/s is 73.8 %" in verdict.text
    half = judge(run(Expectation(out=GIGABIT, in_=GIGABIT), out=rate(940e6)))
    assert (half.word, half.text.endswith(" in was not measured after the warm-up.")) == ("none", True)


def test_a_run_without_a_target_rate_still_states_its_rate() -> None:
    """Loopback has no verdict and a figure."""
    verdict = judge(run(Expectation(), out=rate(46.04e9)))
    assert verdict.word == "none"
    assert verdict.text == "NO VERDICT: no expected rate. Measured: out 46.04 Gb/s."


@pytest.mark.parametrize("expectation", [Expectation(), Expectation(out=GIGABIT)])
def test_no_payload_at_all_fails_whatever_was_expected(expectation: Expectation) -> None:
    """0 is measured: the link is dead."""
    assert judge(run(expectation, out=rate(0))).word == "fail"


def test_a_run_stopped_in_its_warm_up_has_no_verdict() -> None:
    """Nothing measured is unknown, and not 0."""
    verdict = judge(run(Expectation(out=GIGABIT), Reason.STOPPED))
    assert verdict.word == "none"
    assert verdict.text == "NO VERDICT: stopped after 0.0 of 10 s. Nothing was measured."


@pytest.mark.parametrize("reason", [Reason.STOPPED, Reason.INTERRUPTED])
@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (Plan(duration_ns=30 * SECOND_NS), "stopped after 2.0 of 30 s"),
        (
            Plan(bytes_limit=10**9, duration_ns=None),
            "stopped after 2.0 s, before 1\xa0000\xa0000\xa0000 bytes were through",
        ),
        (Plan(bytes_limit=10**9, duration_ns=60 * SECOND_NS), "stopped after 2.0 of at most 60 s"),
    ],
)
def test_a_run_that_the_user_ends_before_its_time_has_no_verdict(reason: Reason, plan: Plan, text: str) -> None:
    """By a key or by a signal: two good seconds say nothing of the other 28."""
    summary = replace(run(Expectation(out=GIGABIT), reason, out=rate(941.2e6)), plan=plan, elapsed_ns=2_020_000_000)
    assert judge(summary).text == f"NO VERDICT: {text}. Measured: out 941.2 Mb/s."


@pytest.mark.parametrize("reason", [Reason.STOPPED, Reason.INTERRUPTED])
def test_a_run_without_a_duration_is_judged_when_the_user_ends_it(reason: Reason) -> None:
    """It has no other end."""
    summary = replace(
        run(Expectation(out=GIGABIT), reason, out=rate(941.2e6)),
        plan=Plan(duration_ns=None),
        elapsed_ns=2 * SECOND_NS,
    )
    assert judge(summary).word == "pass"


@pytest.mark.parametrize("reason", [r for r in Reason if r.is_fault])
def test_an_incomplete_run_states_its_rate_without_a_verdict(reason: Reason) -> None:
    """Its measurements may show the fault that ended it."""
    verdict = judge(run(Expectation(out=GIGABIT), reason, out=rate(94.15e6)))
    assert verdict.word == "none"
    assert verdict.text == ("NO VERDICT: the run did not finish: the far end vanished. Measured: out 94.15 Mb/s.")


def test_a_slip_in_the_source_is_named_with_the_rate() -> None:
    """The user sees that the verdict does not use the printed number."""
    peak = ExpectedRate(1_862_270_976, "documented", "AIX table 2 (peak, by its MB/s; the printed Mb is an error)")
    assert "is an error)" in judge(run(Expectation(total=peak), out=rate(1e9), in_=rate(1e9), total=rate(2e9))).text


def test_a_rate_beyond_the_links_capacity_has_no_verdict() -> None:
    """Loopback under a preset of 100 Mb/s: the expected rate is for another link."""
    line = ExpectedRate(94_149_090, "documented", "AIX table 1", most_bit_s=94_928_000)
    verdict = judge(run(Expectation(out=line), out=rate(11.35e9)))
    assert verdict.word == "none"
    assert "more than the 94.93 Mb/s that such a link can carry" in verdict.text
    assert "choose another preset, or auto" in verdict.text
    assert judge(run(Expectation(out=line), out=rate(98e6))).word == "pass"


def test_a_rate_well_above_the_expected_one_casts_doubt_on_the_preset() -> None:
    """Loopback judged as Gigabit Ethernet passes, and may be the wrong preset."""
    assert "another link" in judge(run(Expectation(out=GIGABIT), out=rate(46e9))).text


def test_transactions_are_judged_by_transactions() -> None:
    """The bytes of a run with other sizes would say something else; the numbers and their unit are told."""
    expected = ExpectedRate(800_000, "documented", "z/VM table 4", 100.0)
    measured = Measurement(1, 8 * SECOND_NS, 776)
    verdict = judge(run(Expectation(out=expected), out=measured, total=measured))
    assert verdict.word == "pass"
    assert "out 97 transactions/s is 97.0 % of 100 transactions/s (documented: z/VM table 4)" in verdict.text


def test_transactions_without_a_target_rate_state_both_rates() -> None:
    """Transactions first, the payload of their answers behind."""
    measured = Measurement(8_000_000, 8 * SECOND_NS, 80_000)
    assert "out 10\u00a0000 transactions/s (8 Mb/s)" in judge(run(Expectation(), out=measured, total=measured)).text


def test_a_run_of_several_settings_has_a_verdict_for_each_period_and_none_for_the_mix() -> None:
    """The mean of two settings is in no document; a period without a measurement has no verdict."""
    periods = (
        Period(Settings(), Expectation(out=GIGABIT), PerDirection(rate(940e6), None, rate(940e6))),
        Period(
            Settings(Direction.DUPLEX),
            Expectation(total=TOTAL),
            PerDirection(rate(600e6), rate(600e6), rate(1200e6)),
        ),
        Period(Settings(sessions=2), Expectation(out=GIGABIT), PerDirection(None, None, None)),
    )
    summary = replace(run(Expectation(), out=rate(770e6), total=rate(1070e6)), periods=periods)
    verdict = judge(summary)
    assert verdict.word == "none"
    assert "each period has its own verdict" in verdict.text
    assert [period.word for period in verdict.periods] == ["pass", "short", "none"]
    assert [period.percent and round(period.percent, 1) for period in verdict.periods] == [99.2, 62.0, None]


def test_a_change_too_late_to_be_measured_leaves_no_verdict_for_what_was_before() -> None:
    """A test of 10 s whose link went down after a change at 9 s does not pass."""
    periods = (
        Period(Settings(), Expectation(out=GIGABIT), PerDirection(rate(940e6), None, rate(940e6))),
        Period(Settings(sessions=2), Expectation(out=GIGABIT), PerDirection(None, None, None)),
    )
    verdict = judge(replace(run(Expectation(out=GIGABIT), out=rate(940e6), total=rate(940e6)), periods=periods))
    assert verdict.word == "none"
    assert [period.word for period in verdict.periods] == ["pass", "none"]


def test_datagrams_that_nobody_reported_as_received_pass_no_mark() -> None:
    """An iperf3 server that ends without results has said nothing about losses; TCP's bytes were acknowledged."""
    without = replay(iperf3_run(Direction.OUT, sessions=3, workload=Workload.UDP)).summary()
    verdict = judge(without)
    assert (verdict.word, verdict.percent) == ("none", None)
    assert "how much of it arrived was not reported" in verdict.text
    parts = [total(Direction.OUT, n, 12_000_000, received=12_000, lost=0) for n in (1, 2, 3)]
    complete = iperf3_run(Direction.OUT, sessions=3, workload=Workload.UDP, totals=reported(*parts))
    assert judge(replay(complete).summary()).percent == pytest.approx(96)
    assert judge(replay(iperf3_run(Direction.OUT, sessions=3)).summary()).percent == pytest.approx(96)


# Latency under load.

LINE = ExpectedRate(94_900_000, "documented", "table 1")


def run_in_phases(link: Link, reason: Reason = Reason.COMPLETED) -> Summary:
    """Return the results of a run whose directions were loaded in turn."""
    return replace(replay(link.events()).summary(), end=RunEnd(reason, "finished"))


def alongside(out_ms: float, expected: ExpectedRate = LINE) -> Summary:
    """Return the results of a check out, beside which latency was measured."""
    whole = run_in_phases(Link(steady(out_ms, 0), phases=(Direction.OUT,)))
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
    verdict = judge(run_in_phases(Link(steady(23, 1))))
    assert verdict.word == "none"
    assert verdict.text == (
        "NO VERDICT: set a limit for the latency under load, with --max-rise or --grade. "
        "Measured: out 94.1 Mb/s, latency +23.1 ms; in 94.1 Mb/s, latency +1 ms; both ways 188.2 Mb/s, "
        "latency +24.1 ms."
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
    assert judge(run_in_phases(Link(steady(out_ms, in_ms))), limit=limit).word == word


def test_the_text_has_the_rises_and_the_limits() -> None:
    """Why it failed, in numbers."""
    assert judge(run_in_phases(Link(steady(23, 1))), limit=LatencyLimit(20 * MS, "B")).text == (
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
    assert " Latency rose by " in verdict.text
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
    cut = run_in_phases(Link(steady(10, 0), phases=(Direction.OUT,)), Reason.STOPPED)
    verdict = judge(cut, limit=LatencyLimit(limit_ms * MS))
    assert verdict.word == "none"
    assert " of at most " in verdict.text
    assert "latency +1" in verdict.text


@pytest.mark.parametrize("grade", ["A+", "B"])
def test_a_run_that_broke_off_is_not_judged(grade: Grade) -> None:
    """Its measurements are not a result."""
    whole = run_in_phases(Link(steady(120, 0)), Reason.PEER_LOST)
    verdict = judge(whole, limit=LatencyLimit(None, grade))
    assert verdict.word == "none"
    assert "out 94.1 Mb/s, latency +1" in verdict.text


@given(
    value=st.none() | st.floats(0, 1),
    most=st.none() | st.floats(0, 1),
)
def test_a_figure_is_either_within_a_limit_or_breaks_it_or_is_unknown(
    value: float | None, most: float | None
) -> None:
    """At the limit is within it. Without a limit nothing is asked for."""
    rise_ns, most_ns = (None if each is None else round(each * 10**9) for each in (value, most))
    check = AcceptanceLimits(max_loss=most, max_rise_ns=most_ns).check(bit_s=None, loss=value, rise_ns=rise_ns)
    is_beyond = most is not None and value is not None and value > most
    assert ("max-loss" in check.broken, "max-loss" in check.unknown) == (
        is_beyond,
        most is not None and value is None,
    )
    assert ("max-rise" in check.unknown) == ("max-loss" in check.unknown)
    rate = AcceptanceLimits(min_rate_bit_s=10**6)
    assert [bool(rate.check(bit_s=bit_s, loss=None, rise_ns=None).broken) for bit_s in (999_999, 1e6)] == [
        True,
        False,
    ]
