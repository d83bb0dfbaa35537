"""Exit statuses: what an error, or the end of a test, says to the shell."""

from typing import Final

from ...engine.model.access import KeyProblem
from ...engine.model.errors import LimitProblem, LinkgaugeError, PlanError, UsageProblem
from ...engine.results.summary import Summary
from ...presets.verdict import Verdict

PASS: Final = 0
SHORT: Final = 1
WRONG_COMMAND_LINE: Final = 2
NOT_RUN: Final = 3


def status_of(error: LinkgaugeError) -> int:
    """Return the exit status of an error: the command line is wrong, or the test could not be run."""
    from ...engine.model.errors import TlsProblem, UnknownPreset

    wrong = (PlanError, UnknownPreset, UsageProblem, KeyProblem, LimitProblem, TlsProblem)
    return WRONG_COMMAND_LINE if isinstance(error, wrong) else NOT_RUN


def status_of_test(summary: Summary, verdict: Verdict) -> int:
    """Return the exit status of a test that was begun."""
    if not summary.end.reason.is_regular:
        return NOT_RUN
    if verdict.word in {"short", "fail"}:
        return SHORT
    # Not one sample after the warm-up is no result, and a script must not take it for a good one.
    return PASS if summary.total is not None else NOT_RUN
