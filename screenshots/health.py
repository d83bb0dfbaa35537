"""Whether a run is fit for a picture: a quiet machine, no standstill, and a finding that the scene makes."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

from collections.abc import Collection, Iterable
from typing import Final

from linkgauge.engine.model.counters.samples import CoreTimes
from linkgauge.engine.model.events import Event, Sampled
from linkgauge.engine.results.meter import Meter
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.session.stored_run import load_stored_run

MOST_STOLEN: Final = 0.02
MOST_BUSY: Final = 0.9


class RunHealth:
    """What the picture of one run would show besides its subject. Feed it every event of the run."""

    def __init__(self) -> None:
        self._meter = Meter()
        self._cores: list[CoreTimes] = []
        self._still: list[float] = []

    def feed(self, event: Event) -> None:
        """Take in the next event."""
        if isinstance(event, Sampled):
            self._cores += event.sample.cores or ()
        for interval in self._meter.feed(event):
            for flow in interval.flows:
                received = interval.receiver_sample(flow)
                if received is not None and not received.warmup and not interval.received_bytes(flow):
                    self._still.append(received.sample.elapsed_ns / 1e9)

    def problems(self) -> list[str]:
        """Return why the run is not fit for a picture, in sentences; empty if it is."""
        sentences: list[str] = []
        stolen, busy = share_of(self._cores, "steal_ns"), share_of(self._cores, "busy_ns")
        if stolen > MOST_STOLEN:
            sentences.append(
                f"{100 * stolen:.1f} % of the cores' time was stolen, more than {100 * MOST_STOLEN:.0f} %"
            )
        if busy > MOST_BUSY:
            sentences.append(f"the cores were {100 * busy:.0f} % busy, more than {100 * MOST_BUSY:.0f} %")
        if self._still:
            times = ", ".join(f"{elapsed_s:.2f} s" for elapsed_s in self._still[:3])
            sentences.append(f"nothing was received in {len(self._still)} intervals (at {times})")
        return sentences


def find_problems(log: RunLog, known_runs: Collection[str], findings: Collection[str] | None) -> list[str]:
    """Return why the new runs of a scene are not fit for pictures; empty if they are.

    Args:
        log: the run log that the scene has written to.
        known_runs: the ids of runs that were there before the scene.
        findings: the codes that may come first in a run; None accepts every finding.
    """
    sentences: list[str] = []
    for row in log.list_runs():
        if row.run_id in known_runs:
            continue
        health = RunHealth()
        for event in log.events(row.run_id):
            health.feed(event)
        first = next(iter(load_stored_run(log, row).outcome.findings), None)
        problems = health.problems()
        if findings is not None and first is not None and first.code not in findings:
            problems.append(f"the finding is {first.code}, which the scene does not make: {first.text}")
        sentences += [f"run {row.run_id}: {problem}" for problem in problems]
    return sentences


def share_of(cores: Iterable[CoreTimes], kind: str) -> float:
    """Return the share of the cores' time that one kind took, such as `steal_ns`."""
    times = list(cores)
    return sum(getattr(core, kind) for core in times) / max(1, sum(core.busy_ns + core.idle_ns for core in times))
