"""Exit statuses: what an error, or the end of a test, says to the shell."""

from typing import Final

from ...engine.model.errors import InvalidKeyError, InvalidLimitError, LinkgaugeError, PlanError, UsageError
from ...engine.results.summary import Summary
from ...presets.verdict import Verdict

PASS: Final = 0
SHORT: Final = 1
USAGE_ERROR: Final = 2
INCOMPLETE: Final = 3


def error_exit_status(error: LinkgaugeError) -> int:
    """Return the exit status of an error: the command line is wrong, or the test could not be run."""
    from ...engine.model.errors import TlsError, UnknownPreset

    wrong = (PlanError, UnknownPreset, UsageError, InvalidKeyError, InvalidLimitError, TlsError)
    return USAGE_ERROR if isinstance(error, wrong) else INCOMPLETE


def verdict_exit_status(summary: Summary, verdict: Verdict) -> int:
    """Return the exit status of a test that was begun."""
    if not summary.end.reason.is_regular:
        return INCOMPLETE
    if verdict.word in {"short", "fail"}:
        return SHORT
    # Not one sample after the warm-up is no result, and a script must not take it for a good one.
    return PASS if summary.measured.total is not None else INCOMPLETE
