"""One run from its plan to its verdict: engine, expectation, run log and CSV, joined.

The run log is fed first, the CSV second, and only then does an event reach the caller: what a person has
seen is kept. Trouble with keeping never ends a run; it becomes a notice.
"""

import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from ...engine.model.errors import RunLogError
from ...engine.model.events import Ended, Event, Reason, RunEnd, Sampled, Started
from ...engine.model.peer import Peer
from ...engine.model.plan import Direction, Mode, Plan, Settings
from ...engine.near.connect import FarEnd
from ...engine.near.far_end import open_far_end
from ...engine.near.run import Run, no_expectation, open_run
from ...engine.results.ceiling import Ceiling, load_ceiling
from ...engine.results.confidence import PrecisionTarget
from ...engine.results.csv_export import CsvWriter
from ...engine.results.json_document import build_document
from ...engine.results.meter import Interval, Meter
from ...engine.results.run_log import RunLog, new_run_id
from ...engine.results.summary import Summary
from ...presets.diagnosis.collect import CeilingLookup, no_ceiling
from ...presets.diagnosis.diagnose import findings_json
from ...presets.diagnosis.evidence import link_evidence
from ...presets.diagnosis.finding import Finding
from ...presets.diagnosis.live import LiveDiagnosis
from ...presets.expectation import find_expectation
from ...presets.preset import Preset
from ...presets.verdict import DEFAULT_PASS_PERCENT, Verdict, judge
from ...presets.wire import DEFAULT_VARIANT, Variant
from .config import data_dir
from .credentials import with_access
from .csv_file import open_csv

_CHANCE: Final = random.SystemRandom()
# A run that broke off has a reason of its own for what it did not carry.
DIAGNOSABLE_REASONS: Final = {Reason.COMPLETED, Reason.STOPPED, Reason.INTERRUPTED}


def open_run_log(tell: Callable[[str], None]) -> RunLog | None:
    """Return the run log of this machine; where it cannot be used, tell why, and return None."""
    try:
        return RunLog.open(data_dir())
    except (RunLogError, OSError) as error:
        tell(f"this run is not kept: {error}")
        return None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out of a run: everything that a summary on screen or a program needs."""

    run_id: str
    preset_id: str | None
    started: Started | None
    summary: Summary
    verdict: Verdict
    document: dict[str, Any]
    findings: tuple[Finding, ...] = ()


@asynccontextmanager
async def open_run_session(
    plan: Plan,
    preset: Preset | None,
    peer: Peer,
    *,
    log: RunLog | None,
    csv: Path | None = None,
    pass_percent: float = DEFAULT_PASS_PERCENT,
    far_end: FarEnd | None = None,
    notices: Sequence[str] = (),
    variant: Variant = DEFAULT_VARIANT,
    label: str | None = None,
    group: str | None = None,
    target_ci_percent: float | None = None,
) -> AsyncGenerator["RunSession"]:
    """Give a run that has started; the far end is brought up for it where the peer is `loopback` or `ssh://…`.

    Unless the caller has it up already: `embedded`. `notices` are what there is to say from the beginning,
    `variant` the options that the preset's link is had with. `label` is a person's name for the
    run, `group` what a series of runs has in common. With `until_percent` it ends when the mean is known that
    well, or its duration is up.

    Raises PlanError for a CSV file that cannot be written, before anything is connected; PeerError or
    WorkerError where the run cannot be. However the block is left, the run log has the run's end.
    """
    async with AsyncExitStack() as stack:
        writer = None if csv is None else stack.enter_context(open_csv(csv))
        ceiling = None if plan.workload.is_transactional else load_ceiling(data_dir())
        plan = _in_the_fastest_mode(plan, ceiling)
        far_end = far_end or await stack.enter_async_context(open_far_end(with_access(peer)))
        expect = (
            no_expectation
            if preset is None or not plan.has_documented_transactions
            else partial(find_expectation, preset, workload=plan.workload, variant=variant)
        )
        run = await stack.enter_async_context(open_run(plan, far_end, expectation_for=expect))
        conducted = RunSession(
            run,
            preset,
            peer,
            log=log,
            writer=writer,
            pass_percent=pass_percent,
            notices=notices,
            label=label,
            group=group,
            target_ci_percent=target_ci_percent,
            diagnosis=LiveDiagnosis(
                None if preset is None else link_evidence(preset, variant),
                pass_percent=pass_percent,
                ceiling=no_ceiling if peer.is_loopback else _ceiling_of(plan, ceiling),
            ),
        )
        try:
            yield conducted
            await conducted.drain()
        finally:
            conducted.abandon()


def _in_the_fastest_mode(plan: Plan, ceiling: Ceiling | None) -> Plan:
    """Return a plan that names its mode, where none was asked for and this machine's ceiling tells which is faster.

    That is what this machine sends by; the other one may be another, so payload that it sends is copied.
    """
    if ceiling is None or plan.mode is not None or plan.settings.direction is not Direction.OUT:
        return plan
    return replace(plan, mode=ceiling.fastest_mode(plan.settings.sessions))


def _ceiling_of(plan: Plan, ceiling: Ceiling | None) -> CeilingLookup:
    """Return what this machine does with no link at all, where that was measured: it bounds one direction."""
    if ceiling is None:
        return no_ceiling

    def bit_s(settings: Settings) -> int | None:
        found = ceiling.rate(plan.mode or Mode.COPY, settings.sessions)
        return None if found is None or settings.direction is Direction.DUPLEX else found.bit_s

    return bit_s


class RunSession:
    """A run that goes on. Iterate over it once; it gives every event, `Started` first and `Ended` last.

    `intervals` are those that the latest event completed, `why` knows what limits, `notices` are what a person
    should know of how the run is kept. `outcome` is there once `Ended` has been given, or the block has been left.
    """

    def __init__(
        self,
        run: Run,
        preset: Preset | None,
        peer: Peer,
        *,
        log: RunLog | None,
        writer: CsvWriter | None,
        pass_percent: float = DEFAULT_PASS_PERCENT,
        notices: Sequence[str] = (),
        label: str | None = None,
        group: str | None = None,
        target_ci_percent: float | None = None,
        diagnosis: LiveDiagnosis | None = None,
    ) -> None:
        self.run_id = new_run_id(datetime.now(UTC), _CHANCE)
        self._pass_percent = pass_percent
        self.meter = Meter()
        self.diagnosis = diagnosis or LiveDiagnosis(pass_percent=pass_percent)
        self.intervals: list[Interval] = []
        self.outcome: Outcome | None = None
        self._run = run
        self._events = aiter(run)
        self._preset_id = None if preset is None else preset.id
        self._label, self._group = label, group
        self._precision = None if target_ci_percent is None else PrecisionTarget(target_ci_percent)
        self._is_sure = False
        self._log = log
        self._writer = writer
        self._stopped: RunEnd | None = None
        self._notices = list(notices)
        self._earlier_problem = None if log is None else log.problem
        if log is not None:
            named = str(peer) if not peer.is_loopback else peer.host
            log.begin(self.run_id, self._preset_id or "", named, label, group)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        """Return the next event, kept already."""
        event = await anext(self._events)
        self._take(event)
        return event

    @property
    def notices(self) -> list[str]:
        """What a person should know of how the run is kept, in the order in which it happened."""
        problem = None if self._log is None else self._log.problem
        return [*self._notices, *([] if problem is None or problem is self._earlier_problem else [problem])]

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._run.settings

    def change_settings(self, settings: Settings) -> None:
        """Change direction, sessions or window while the run goes on."""
        self._run.change(settings)

    def set_pass_mark(self, pass_percent: float) -> None:
        """Judge the run by another mark at its end."""
        self._pass_percent = self.diagnosis.pass_percent = pass_percent

    def stop(self, reason: Reason = Reason.STOPPED, detail: str = "") -> None:
        """End the run in order; its last events are still to come."""
        self._stopped = self._stopped or RunEnd(reason, detail)
        self._run.stop(reason, detail)

    async def drain(self) -> None:
        """End the run if it still goes on, and take in what it has left to say."""
        if self.outcome is None:
            self.stop()
            async for _event in self:
                pass

    def abandon(self) -> None:
        """Close a run that nobody waits for any more; one that has ended stays as it is."""
        if self.outcome is None:
            self._take(Ended(self._stopped or RunEnd(Reason.FAILED, "the run was abandoned at the near end")))

    def _take(self, event: Event) -> None:
        if self._log is not None:
            self._log.add(self.run_id, event)
        self.intervals = self.meter.feed(event)
        self.diagnosis.feed(event)
        self._write_rows()
        if isinstance(event, Sampled) and not event.warmup:
            self._look_how_sure()
        if isinstance(event, Ended):
            self._finish()

    def _look_how_sure(self) -> None:
        """End the run when its mean is known as well as was asked for."""
        if self._precision is None or self._is_sure or not self._precision.is_reached(self.meter.rate_estimate()):
            return
        self._is_sure = True
        self.stop(Reason.COMPLETED, f"the mean is known within {self._precision.percent:g} %")

    def _until_ci(self, summary: Summary) -> dict[str, Any]:
        """Return what became of the precision that was asked for; where it was not reached, that is said too."""
        if self._precision is None:
            return {}
        if not self._is_sure and summary.end.reason is Reason.COMPLETED:
            self._notices.append(
                f"the mean is not known within {self._precision.percent:g} % yet: give --max-seconds more time"
            )
        return {"until_ci": {"percent": self._precision.percent, "is_reached": self._is_sure}}

    def _finish(self) -> None:
        """Sum up, judge, and close the run in the log; what was not told by then is not waited for."""
        self.intervals = self.meter.flush()
        self._write_rows()
        summary = self.meter.summary()
        verdict = judge(summary, pass_percent=self._pass_percent)
        findings = self.diagnosis.final_findings if summary.end.reason in DIAGNOSABLE_REASONS else ()
        found = run_document(
            summary, verdict, self.run_id, self._preset_id, self._label, self._group, findings=findings
        )
        found |= self._until_ci(summary)
        if self._log is not None:
            self._log.finish(self.run_id, verdict.word, found)
        started = self.meter.started
        self.outcome = Outcome(self.run_id, self._preset_id, started, summary, verdict, found, findings)

    def _write_rows(self) -> None:
        if self._writer is None:
            return
        try:
            self._writer.write(self.meter, self.intervals, run_id=self.run_id, preset=self._preset_id or "")
        except RunLogError as error:
            self._writer = None
            self._notices.append(f"{error}; `linkgauge runs export {self.run_id}` gives all rows")


def run_document(
    summary: Summary,
    verdict: Verdict,
    run_id: str,
    preset_id: str | None,
    label: str | None = None,
    group: str | None = None,
    *,
    findings: tuple[Finding, ...] = (),
) -> dict[str, Any]:
    """Return the JSON document of a run; without a preset its `preset` is null. A new run has no note yet."""
    found = build_document(summary, run_id=run_id, preset=preset_id or "", verdict=verdict.word)
    why = findings_json(findings)
    return {**found, "preset": preset_id, "label": label, "note": None, "group": group, "why": why}
