"""The verdicts of a watch and of runs."""

from typing import get_args

import pytest
from linkgauge.presets.verdict import VerdictCode
from linkgauge.watch.events import CheckResult, CheckVerdict


@pytest.mark.parametrize("word", get_args(VerdictCode))
def test_a_run_with_a_result_keeps_its_word(word: VerdictCode) -> None:
    """A rate that nothing is expected of is good, and passes."""
    percent = {"pass": 99.0, "short": 50.0, "fail": 49.9, "none": None}[word]
    result = CheckResult(CheckVerdict.of_run(word), percent=percent)
    assert (result.word, result.is_judged) == (("pass", False) if word == "none" else (word, True))


@pytest.mark.parametrize(
    ("verdict", "percent", "word"),
    [(CheckVerdict.FAILED, 99.0, "none"), (CheckVerdict.BELOW, None, "short"), (CheckVerdict.GOOD, 10.0, "pass")],
)
def test_the_verdict_decides_before_the_percentage(
    verdict: CheckVerdict, percent: float | None, word: VerdictCode
) -> None:
    """The percentage only tells short from fail."""
    assert CheckResult(verdict, percent=percent).word == word
