"""Exit statuses: a wrong command line, a test that could not be run, and a link that is short."""

import pytest
from linkgauge.engine.model.errors import (
    LinkgaugeError,
    PeerError,
    PlanError,
    RunLogError,
    UnknownPreset,
    UsageError,
)
from linkgauge.engine.model.events import Expectation, Reason, RunEnd
from linkgauge.engine.model.plan import SECOND_NS, PerDirection, Plan
from linkgauge.engine.results.summary import CpuSummary, Measurement, Summary, TcpSummary
from linkgauge.presets.verdict import Verdict, VerdictCode
from linkgauge.tui.cli.exit_status import error_exit_status, verdict_exit_status

RATE = Measurement(1_176_250_000, 10 * SECOND_NS)


def summary(out: Measurement | None, reason: Reason) -> Summary:
    """Return a summary of a run out."""
    cpu, tcp = CpuSummary(None, None, None, None), TcpSummary(None, None, None, None, None, None)
    return Summary(Plan(), PerDirection(out, None, out), Expectation(), (), cpu, cpu, tcp, (), RunEnd(reason, ""))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (PlanError("window", "1", "give more"), 2),
        (UnknownPreset("gbe", ()), 2),
        (UsageError("PEER"), 2),
        (PeerError("nobody answers"), 3),
        (RunLogError("damaged"), 3),
    ],
)
def test_what_a_person_can_correct_on_the_command_line_exits_2(error: LinkgaugeError, status: int) -> None:
    """Everything else is a test that could not be run."""
    assert error_exit_status(error) == status


@pytest.mark.parametrize(
    ("word", "reason", "total", "status"),
    [
        ("pass", Reason.COMPLETED, RATE, 0),
        ("none", Reason.COMPLETED, RATE, 0),
        ("none", Reason.STOPPED, RATE, 0),
        ("short", Reason.COMPLETED, RATE, 1),
        ("fail", Reason.COMPLETED, RATE, 1),
        ("none", Reason.COMPLETED, None, 3),
        ("none", Reason.INTERRUPTED, RATE, 3),
        ("none", Reason.PEER_LOST, RATE, 3),
        ("none", Reason.PEER_STOPPED, RATE, 3),
        ("none", Reason.WORKER_LOST, None, 3),
    ],
)
def test_the_exit_status_tells_a_bad_link_from_a_test_that_was_none(
    word: VerdictCode, reason: Reason, total: Measurement | None, status: int
) -> None:
    """0 pass or nothing to judge, 1 short or fail, 3 not run to its end or nothing measured."""
    assert verdict_exit_status(summary(total, reason), Verdict(word, "")) == status
