"""Entries of a run log."""

import subprocess
import sys

from linkgauge.engine.model.counters.samples import Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Ended, Event, Sampled, Started
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.results.run_log import RunLog

TICK = SECOND_NS // 4
HOST = HostInfo("a", "Linux", 2, "linkgauge 0.1.0", "uvloop")
STARTED = Started("2026-11-21T01:15:30Z", "db-02:5820", HOST, HOST, Plan(), Expectation())
ENDED = Ended(RunEnd(Reason.COMPLETED, "the time is up"))


def sampled(index: int, bytes_: int = 1000, end: End = End.FAR) -> Sampled:
    """Return the sample of one session."""
    session = SessionSample(Direction.OUT, 1, bytes_)
    return Sampled(Sample(end, index, (index + 1) * TICK, TICK, (session,)), Settings(), False)


def write_run(log: RunLog, run_id: str, *events: Event, document: dict[str, object] | None = None) -> None:
    """Write a run, and its end if it has a document."""
    log.begin(run_id, "gbe-fd-1500", "db-02:5820")
    for event in events:
        log.append_event(run_id, event)
    if document is not None:
        log.finish(run_id, "pass", document)


def start_child(script: str, *arguments: object) -> "subprocess.Popen[str]":
    """Start a Python process with a script."""
    command = [sys.executable, "-c", script, *(str(argument) for argument in arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


DEADLINE_S = 20
