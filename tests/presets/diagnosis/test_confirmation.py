"""Confirmations: the second test that follows a finding, and its verdict."""

from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.plan import SECOND_NS, Plan, ResponsivenessTest, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.confidence import Estimate
from linkgauge.engine.results.summary import CpuSummary, Measurement, Summary, TcpSummary
from linkgauge.presets.diagnosis.confirmation import (
    Confirmation,
    Experiment,
    Sign,
    confirmation_document,
    failed_confirmation,
    find_experiments,
    judge_experiment,
    nothing_to_confirm,
)
from linkgauge.presets.diagnosis.finding import Finding, FindingCode
from linkgauge.presets.diagnosis.trial import Trial

CPU = CpuSummary(None, None, None, None)
PLAN = Plan(duration_ns=5 * SECOND_NS)
LINE = ExpectedRate(100_000_000, "computed", "the wire model")
WINDOW, RATE = Trial(window_bytes=1 << 19), Trial(rate_bit_s=7_600_000)
MORE, ALONE = Trial(sessions=4), Trial(direction=Direction.OUT)
FASTER_CONTROL, SLOWER_CONTROL = Trial(congestion="bbr"), Trial(congestion="cubic")


def finding(code: FindingCode, trial: Trial | None = None) -> Finding:
    """Return a finding that explains the whole gap."""
    return Finding(code, 1.0, 0.9, "…", "…", "…", trial=trial)


def result(mbit_s: float | None, *, plan: Plan = PLAN, **more: Any) -> Summary:
    """Return a run out; its rate varies by some Mb/s, and a percentage of its payload was sent again."""
    measured = None
    if mbit_s is not None:
        error = more.get("error", 0.01) * 1e6
        estimate = Estimate(mbit_s * 1e6, error, 10.0, 16)
        measured = Measurement(round(mbit_s * 1e6 / 2), 4 * SECOND_NS, estimate=estimate)
    lost = more.get("lost")
    tcp = TcpSummary(None, None, None, None, None, None, efficiency_percent=None if lost is None else 100 - lost)
    end = more.get("end", RunEnd(Reason.COMPLETED, "its time was up"))
    expected = Expectation(out=LINE if more.get("is_expected", True) else None)
    return Summary(plan, PerDirection(measured, None, measured), expected, (), CPU, CPU, tcp, (), end)


def judged(sign: Sign, trial: Trial, before: Summary, after: Summary) -> Confirmation:
    """Return the verdict of a second run."""
    after = replace(after, plan=trial.apply_to(after.plan))
    confirmation = judge_experiment(Experiment(finding("loss", trial), trial, sign), before, after, "second")
    assert confirmation.run_id == "second"
    return replace(confirmation, text=confirmation.text.replace("\u00a0", " "))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (finding("window-below-bdp", WINDOW), [(WINDOW, "faster")]),
        (finding("policer", RATE), [(RATE, "no-loss")]),
        (finding("loss", FASTER_CONTROL), [(FASTER_CONTROL, "faster"), (MORE, "follows")]),
        (finding("loss", SLOWER_CONTROL), [(MORE, "follows")]),
        (finding("pacing", SLOWER_CONTROL), [(SLOWER_CONTROL, "faster")]),
        (finding("window-clamped"), [(MORE, "follows")]),
        (finding("window-scaling-off"), [(MORE, "follows")]),
        (finding("path-slow"), [(MORE, "same")]),
        (finding("path-slow", ALONE), [(ALONE, "alone")]),
        (finding("acks-queued", ALONE), [(ALONE, "alone")]),
        (finding("unexplained", ALONE), [(ALONE, "alone")]),
        (finding("receive-window"), []),
        (finding("nic-errors"), []),
        (finding("unexplained"), []),
    ],
)
def test_the_first_finding_has_its_experiment(found: Finding, expected: list[tuple[Trial, Sign]]) -> None:
    """Its own option comes first; more sessions confirm a limit of each session."""
    experiments = list(find_experiments((found, finding("steal")), PLAN))
    assert [(each.trial, each.sign) for each in experiments] == expected


def test_a_number_of_sessions_tells_only_of_payload_over_tcp() -> None:
    """Not of small transactions, of datagrams, or of a test with phases; and not at the limit of sessions."""
    found = (finding("path-slow"),)
    for workload in (Workload.RR, Workload.UDP):
        assert not list(find_experiments(found, replace(PLAN, workload=workload)))
    phases = Plan(probe=True, responsiveness=ResponsivenessTest.PHASES)
    assert not list(find_experiments((finding("window-below-bdp", WINDOW),), phases))
    assert not list(find_experiments(found, replace(PLAN, settings=Settings(sessions=128))))
    assert next(find_experiments(found, replace(PLAN, settings=Settings(sessions=4)))).trial == Trial(sessions=8)


def test_a_line_before_the_test_says_what_changes_and_how_long_it_takes() -> None:
    """The duration is the first test's, unless the trial changes it."""
    window = Experiment(finding("window-below-bdp", WINDOW), WINDOW, "faster")
    assert window.announce(PLAN) == "confirming: --window 512K, 5 s"
    assert window.announce(Plan(duration_ns=None, bytes_limit=10**6)) == "confirming: --window 512K"
    longer = Trial(duration_ns=60 * SECOND_NS, warmup_ns=10 * SECOND_NS)
    text = Experiment(finding("congestion-window", longer), longer, "faster").announce(PLAN)
    assert text == "confirming: --seconds 60 --warmup 10, 60 s"


@pytest.mark.parametrize(
    ("sign", "trial", "rates", "is_confirmed", "text"),
    [
        ("faster", WINDOW, (20, 94), True, "94 Mb/s instead of 20 Mb/s, 94.0 % of expected: confirmed"),
        ("faster", WINDOW, (20, 20.1), False, "20.1 Mb/s: no difference, so that is not the limit"),
        ("faster", WINDOW, (5, 8), False, "8 Mb/s instead of 5 Mb/s, 8.0 % of expected: little of what is missing"),
        (
            "faster",
            WINDOW,
            (20, 10),
            False,
            "10 Mb/s instead of 20 Mb/s, 10.0 % of expected: slower, so that is not",
        ),
        (
            "follows",
            MORE,
            (20, 80),
            True,
            "80 Mb/s instead of 20 Mb/s, 80.0 % of expected: the rate follows the ses",
        ),
        (
            "follows",
            MORE,
            (40, 99),
            True,
            "99 Mb/s instead of 40 Mb/s, 99.0 % of expected: the rate follows the ses",
        ),
        (
            "follows",
            MORE,
            (20, 40),
            False,
            "40 Mb/s instead of 20 Mb/s, 40.0 % of expected: the rate does not follow",
        ),
        ("follows", MORE, (20, 20), False, "20 Mb/s: no difference, so that is not the limit"),
        ("same", MORE, (56, 56.5), True, "56.5 Mb/s: more sessions carry no more: confirmed"),
        (
            "same",
            MORE,
            (56, 46),
            True,
            "46 Mb/s instead of 56 Mb/s, 46.0 % of expected: more sessions carry no more",
        ),
        (
            "same",
            MORE,
            (20, 80),
            False,
            "80 Mb/s instead of 20 Mb/s, 80.0 % of expected: more sessions carry more, so",
        ),
        ("same", MORE, (5, 8), False, "8 Mb/s instead of 5 Mb/s, 8.0 % of expected: more sessions carry more, so"),
    ],
)
def test_two_rates_confirm_a_finding_or_not(
    sign: Sign, trial: Trial, rates: tuple[float, float], is_confirmed: bool, text: str
) -> None:
    """A tenth of the missing rate counts; for sessions half of the rate that they would carry alone."""
    confirmation = judged(sign, trial, result(rates[0]), result(rates[1]))
    assert confirmation.is_confirmed is is_confirmed
    assert confirmation.text.startswith(f"with {trial}: {text}")


@pytest.mark.parametrize(
    ("code", "mbit_s", "is_confirmed", "words"),
    [
        ("acks-queued", 97, True, "confirmed"),
        (
            "acks-queued",
            70,
            False,
            "alone it carries little of what was missing, so the other direction is not the limit",
        ),
        (
            "acks-queued",
            59,
            False,
            "alone it carries little of what was missing, so the other direction is not the limit",
        ),
        ("acks-queued", 80, None, "the rate varies too much to tell; test longer"),
        ("path-slow", 75, True, "confirmed"),
        ("path-slow", 97, False, "alone it carries what was missing, so the path is not the limit"),
        ("unexplained", 97, None, "alone it carries what was missing"),
        ("unexplained", 61, None, "alone it carries little of what was missing"),
    ],
)
def test_a_direction_alone_is_compared_with_itself(
    code: FindingCode, mbit_s: float, is_confirmed: bool | None, words: str
) -> None:
    """The other direction's rate, the sum of both, and the variation of its own rate do not matter."""
    both = replace(PLAN, settings=Settings(direction=Direction.DUPLEX))
    first = result(60, plan=both, error=20)
    faster, total = result(95).measured.out, result(155).measured.out
    first = replace(first, measured=PerDirection(first.measured.out, faster, total), expectation=Expectation())
    experiment = Experiment(finding(code, ALONE), ALONE, "alone")
    confirmation = judge_experiment(experiment, first, result(mbit_s, plan=ALONE.apply_to(both)), "second")
    assert confirmation.is_confirmed is is_confirmed
    rates = f"{mbit_s} Mb/s instead of 60 Mb/s, {mbit_s}.0 % of expected"
    assert confirmation.text.replace("\u00a0", " ") == f"with --direction out: {rates}: {words}"


def test_rates_that_vary_more_than_they_differ_tell_nothing() -> None:
    """Neither confirmed nor refuted: their intervals overlap."""
    confirmation = judged("faster", WINDOW, result(20, error=5), result(32, error=5))
    assert confirmation.is_confirmed is None
    assert confirmation.text.endswith("the rates vary too much to tell; test longer")


def test_a_rise_that_is_too_small_in_any_case_tells_with_any_error() -> None:
    """Neither end of its interval is a tenth of the missing rate."""
    confirmation = judged("faster", WINDOW, result(24.8, error=1.0), result(28.2, error=1.0))
    assert confirmation.is_confirmed is False
    assert confirmation.text.endswith("little of what is missing, so that is not the limit")


@pytest.mark.parametrize(
    ("workload", "trial", "text"),
    [
        (
            Workload.FETCH,
            Trial(response_bytes=1 << 23),
            "with --response 8M: 94 Mb/s instead of 20 Mb/s: confirmed",
        ),
        (Workload.RR, MORE, "with --sessions 4: 940 transactions/s instead of 200 transactions/s: confirmed"),
    ],
)
def test_transactions_are_counted_unless_their_payload_is_what_counts(
    workload: Workload, trial: Trial, text: str
) -> None:
    """There are fewer large responses in a second than small ones."""

    def transactions(mbit_s: float) -> Summary:
        summary = result(mbit_s, plan=replace(PLAN, workload=workload), is_expected=False)
        assert summary.measured.out is not None
        counted = replace(summary.measured.out, transactions=round(mbit_s * 40))
        return replace(summary, measured=PerDirection(counted, None, counted))

    assert judged("faster", trial, transactions(20), transactions(94)).text == text


def test_without_an_expected_rate_a_tenth_of_the_rate_counts() -> None:
    """The text has no share either."""
    first, second = result(20, is_expected=False), result(23, is_expected=False)
    confirmation = judged("faster", WINDOW, first, second)
    assert (confirmation.is_confirmed, confirmation.percent) == (True, None)
    assert confirmation.text == "with --window 512K: 23 Mb/s instead of 20 Mb/s: confirmed"


@pytest.mark.parametrize(
    ("losses", "is_confirmed", "text"),
    [
        ((2.6, 0.0), True, "with --rate 7600K: 0 % lost instead of 2.6 %: confirmed"),
        ((2.6, 2.2), False, "with --rate 7600K: 2.2 % lost, 2.6 % before: losses go on below that rate, so that"),
        ((2.6, None), None, "with --rate 7600K: the losses are unknown"),
    ],
)
def test_a_rate_below_a_policers_ends_its_losses(
    losses: tuple[float | None, float | None], is_confirmed: bool | None, text: str
) -> None:
    """The rate itself is lower, and does not matter."""
    confirmation = judged("no-loss", RATE, result(8, lost=losses[0]), result(7.6, lost=losses[1]))
    assert confirmation.is_confirmed is is_confirmed
    assert confirmation.text.startswith(text)


def test_a_limit_that_is_lifted_reads_as_such() -> None:
    """There is no option for it."""
    trial = Trial(without_rate=True)
    confirmation = judged("faster", trial, result(20), result(94))
    assert confirmation.text == "without --rate: 94 Mb/s instead of 20 Mb/s, 94.0 % of expected: confirmed"


@pytest.mark.parametrize(
    ("second", "text"),
    [
        (result(50, end=RunEnd(Reason.INTERRUPTED, "interrupted by Ctrl-C")), "interrupted by Ctrl-C"),
        (result(None, end=RunEnd(Reason.PEER_LOST, "the far end vanished.")), "the far end vanished"),
        (result(None), "nothing was measured"),
    ],
)
def test_a_second_test_without_a_result_confirms_nothing(second: Summary, text: str) -> None:
    """Its line says why."""
    confirmation = judged("faster", WINDOW, result(20), second)
    assert confirmation.is_confirmed is None
    assert confirmation.text == f"with --window 512K: {text}; nothing is confirmed"


@pytest.mark.parametrize(
    ("findings", "is_whole", "reason"),
    [
        ((finding("nic-errors"),), True, "no option of a test shows whether this is the limit"),
        ((finding("at-expected"),), True, "the run is at its expected rate"),
        ((finding("unexplained"),), True, "no limit was found"),
        ((), True, "no limit was found"),
        ((finding("window-below-bdp", WINDOW),), False, "the test did not finish"),
    ],
)
def test_without_an_experiment_a_line_says_why(findings: tuple[Finding, ...], is_whole: bool, reason: str) -> None:
    """So that the user does not wait for a second test."""
    assert nothing_to_confirm(findings, is_whole=is_whole).text == f"nothing to confirm: {reason}"


def test_programs_get_the_option_both_rates_and_the_answer() -> None:
    """Also if there was no second test, or none that could be carried out."""
    assert confirmation_document(judged("faster", WINDOW, result(20, lost=0), result(94, lost=0.5))) == {
        "code": "loss",
        "option": "--window 512K",
        "run_id": "second",
        "confirmed": True,
        "mbit_s_before": 20.0,
        "mbit_s": 94.0,
        "percent_of_expected": 94.0,
        "lost_percent_before": 0.0,
        "lost_percent": 0.5,
        "text": "with --window 512K: 94 Mb/s instead of 20 Mb/s, 94.0 % of expected: confirmed",
    }
    nothing = confirmation_document(nothing_to_confirm((), is_whole=True))
    assert nothing.pop("text") == "nothing to confirm: no limit was found"
    assert set(nothing.values()) == {None}
    experiment = Experiment(finding("loss"), FASTER_CONTROL, "faster")
    failed = confirmation_document(failed_confirmation(experiment, "this kernel has no bbr"))
    assert (failed["option"], failed["confirmed"]) == ("--congestion bbr", None)
    assert failed["text"] == "with --congestion bbr: this kernel has no bbr; nothing is confirmed"
