"""The exit statuses of errors and of finished tests."""

from typing import Final

from ...engine.model.errors import (
    InvalidKeyError,
    InvalidLimitError,
    LinkgaugeError,
    PlanError,
    TlsError,
    UnknownPreset,
    UsageError,
)
from ...engine.results.summary import Summary
from ...presets.verdict import Verdict

PASS: Final = 0
SHORT: Final = 1
USAGE_ERROR: Final = 2
INCOMPLETE: Final = 3


def error_exit_status(error: LinkgaugeError) -> int:
    """Return USAGE_ERROR for a wrong command line, INCOMPLETE for any other error."""
    usage_errors = (PlanError, UnknownPreset, UsageError, InvalidKeyError, InvalidLimitError, TlsError)
    return USAGE_ERROR if isinstance(error, usage_errors) else INCOMPLETE


def verdict_exit_status(summary: Summary, verdict: Verdict) -> int:
    """Return the exit status of a test that started."""
    if not summary.end.reason.is_regular:
        return INCOMPLETE
    if verdict.word in {"short", "fail"}:
        return SHORT
    # Without a sample after the warm-up there is no result, and a script must not take that for a pass.
    return PASS if summary.measured.total is not None else INCOMPLETE
