"""Findings: the ones that explain something, and their order."""

import pytest
from linkgauge.engine.results.run_result import RunResult
from linkgauge.presets.diagnosis.finding import Finding, rank_findings, read_findings


def finding(share: float | None, confidence: float, weight: float = 0.0) -> Finding:
    """Return a finding that explains a share of the gap."""
    return Finding("loss", share, confidence, "Packets are lost.", "2 %", "change the cable", weight=weight)


def test_the_finding_that_explains_most_with_most_confidence_is_first() -> None:
    """A sure half comes before an unsure whole."""
    sure, unsure = finding(0.5, 0.9), finding(1.0, 0.3)
    assert rank_findings([unsure, sure]) == (sure, unsure)


def test_a_finding_that_explains_hardly_anything_is_dropped() -> None:
    """Neither a small share of the gap nor a wild guess is one."""
    assert rank_findings([finding(0.05, 1.0), finding(1.0, 0.05)]) == ()


def test_findings_without_an_expected_rate_are_ranked_by_their_time() -> None:
    """The weight stands in for the share, and only then."""
    short, long = finding(None, 0.9, weight=0.2), finding(None, 0.9, weight=0.8)
    assert rank_findings([short, long]) == (long, short)
    assert finding(0.5, 1.0, weight=0.9).rank == 0.5


@pytest.mark.parametrize("damaged", [None, {}, "x", [1], [{"code": "no-such"}], [{"code": "loss"}]])
def test_damaged_findings_of_a_run_log_read_as_none(damaged: object) -> None:
    """The run log is a file, and files get changed."""
    assert read_findings(RunResult.of({"why": damaged}).findings) == ()
