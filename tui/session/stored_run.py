"""Runs of the log: rebuilt from their events, compared with each other, and selected."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, get_args

from ...engine.model.errors import PlanError, RunLogError
from ...engine.model.events import (
    Changed,
    Ended,
    EndText,
    Expectation,
    Opened,
    Reason,
    RunEnd,
    Sampled,
)
from ...engine.model.peer import LOOPBACK, Peer
from ...engine.model.plan import MAX_SESSIONS, Plan
from ...engine.model.shell_commands import shell_command
from ...engine.results.comparison import Comparison, compare
from ...engine.results.json_document import encode
from ...engine.results.meter import Meter
from ...engine.results.run_log import RunLog, RunQuery, RunRecord
from ...engine.results.run_result import RunResult, SubjectFigures
from ...engine.results.sums.traces import PlotPoint
from ...presets.catalog import Catalog
from ...presets.diagnosis.finding import finding_figures, read_findings
from ...presets.diagnosis.live import LiveDiagnosis
from ...presets.expectation import find_expectation
from ...presets.preset import Preset
from ...presets.verdict import Verdict, VerdictCode, judge, read_limit
from ..readings.cockpit_snapshot import CockpitSnapshot
from ..readings.instrument_values import Phase
from ..readings.live_readings import LiveReadings
from ..words import numbers
from ..words.comparison import ComparisonRow, figure_rows, plan_rows
from ..words.run_list import RunLine, run_line
from .run_recorder import Outcome

VERDICT_WORDS: Final[dict[str, VerdictCode]] = {word: word for word in get_args(VerdictCode)}


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run of the log: its record, its outcome, and the readings of its plot and sessions."""

    row: RunRecord
    outcome: Outcome
    readings: LiveReadings

    def snapshot(self, catalog: Catalog) -> CockpitSnapshot:
        """Return the snapshot for the instruments; loopback stands in for a preset that is gone."""
        started, summary = self.outcome.started, self.outcome.summary
        return CockpitSnapshot(
            phase=Phase.RUNNING if self.row.is_running else Phase.DONE,
            preset=_find_preset(catalog, self.row.preset) or catalog.find("loopback"),
            plan=summary.plan,
            peer=_parse_peer(self.row.peer),
            near=None if started is None else started.near,
            far=None if started is None else started.far,
            readings=self.readings,
            summary=summary,
            verdict=self.outcome.verdict,
            expectation=summary.expectation,
            peak=self._peak(catalog),
            findings=self.outcome.findings,
        )

    def _peak(self, catalog: Catalog) -> Expectation:
        """Return the rate to expect of many sessions, if the preset still exists."""
        plan = self.outcome.summary.plan
        preset = _find_preset(catalog, self.row.preset)
        settings = plan.settings.with_changes(sessions=MAX_SESSIONS)
        if preset is None:
            return Expectation()
        started = self.outcome.started
        ip_version = None if started is None else started.ip_version
        return find_expectation(preset, settings, plan.workload, ip_version=ip_version)


def read_stored_run(history: RunLog, run_id: str) -> StoredRun:
    """Return the run of an id. Raises RunLogError if it is gone or damaged."""
    return load_stored_run(history, history.find(run_id))


def load_stored_run(history: RunLog, row: RunRecord) -> StoredRun:
    """Return a run of the log. Raises RunLogError if it is damaged.

    The verdict is the one of that time; label and note are the current ones.
    """
    meter = Meter(has_traces=True)
    readings, diagnosis = LiveReadings(Plan(), meter), LiveDiagnosis(meter)
    for event in history.events(row.run_id):
        if meter.started is None and isinstance(event, Sampled | Changed | Opened):
            remedy = shell_command("linkgauge", "runs", "delete", row.run_id)
            raise RunLogError(f"run {row.run_id} is damaged: its beginning is missing; `{remedy}` removes it")
        meter.feed(event)
        readings.log.feed(event)
    if row.is_running and not meter.has_ended:
        meter.feed(Ended(RunEnd(Reason.INTERRUPTED, EndText.STILL_RUNNING.value)))
    meter.flush()
    summary = meter.summary()
    stored = RunResult.of(row.document)
    verdict = judge(summary, limit=read_limit(stored.latency_limit))
    stored_word = VERDICT_WORDS.get(row.verdict or "", verdict.word)
    if stored_word != verdict.word:
        verdict = Verdict(stored_word, "by the pass mark of that run.")
    names = {"label": row.label, "note": row.note, "group": row.group}
    findings, why = read_findings(stored.findings), {}
    if not findings and not summary.end.reason.is_fault:  # stored by a version without findings
        findings = diagnosis.final_findings
        why = {"why": encode(finding_figures(findings))}
    outcome = Outcome.of(meter, verdict, findings, run_id=row.run_id, preset=row.preset or None, **names)
    if row.document:  # as it was stored, by whichever version
        document = {**encode(SubjectFigures.of(meter.started)), **row.document, **names, **why}
        outcome = replace(outcome, result=RunResult.of(document), document=document)
    return StoredRun(row, outcome, readings)


def _find_preset(catalog: Catalog, preset_id: str) -> Preset | None:
    return next((preset for preset in catalog.presets if preset.id == preset_id), None)


def _parse_peer(text: str) -> Peer:
    try:
        return Peer.parse(text)
    except PlanError:
        return LOOPBACK


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """A run against the first one: the settings that differ, then the figures."""

    line: RunLine
    plan_rows: tuple[ComparisonRow, ...]
    figure_rows: tuple[ComparisonRow, ...]


def compare_stored_runs(runs: Sequence[StoredRun]) -> list[ComparisonTable]:
    """Return a table for each run after the first, which it is compared with."""
    first = runs[0]
    return [_table(first, other, compare(first.outcome.summary, other.outcome.summary)) for other in runs[1:]]


def rate_points(run: StoredRun) -> list[PlotPoint]:
    """Return a run's rate over time, in the direction of each moment; that of duplex is the sum of both."""
    points = [
        point for period in run.readings.periods for point in period.points.get(period.settings.direction, [])
    ]
    return sorted(points, key=lambda point: point.at_s)


def _table(first: StoredRun, other: StoredRun, comparison: Comparison) -> ComparisonTable:
    first_line, other_line = run_line(first.row), run_line(other.row)
    rows = plan_rows(comparison)
    for name in ("peer", "preset"):
        before, after = getattr(first_line, name), getattr(other_line, name)
        if before != after:
            rows.append(ComparisonRow(name, before or numbers.UNKNOWN, after or numbers.UNKNOWN))
    return ComparisonTable(other_line, tuple(rows), tuple(figure_rows(comparison)))


def selected_runs(log: RunLog, earliest: datetime | None = None, host: str | None = None) -> Iterator[RunRecord]:
    """Yield runs, the oldest first, that began at `earliest` or later, and whose peer or remote host has a text.

    The text is a part of the peer, of its address or of its host's name, in upper or lower case. A run without a
    known start has none that is late enough.
    """
    for run in log.records(log.find_runs(RunQuery(is_descending=False))):
        if (earliest is None or _is_since(run, earliest)) and (host is None or _has_host(run, host.casefold())):
            yield run


def _is_since(run: RunRecord, earliest: datetime) -> bool:
    try:
        return run.started_utc is not None and datetime.fromisoformat(run.started_utc) >= earliest
    except (ValueError, TypeError):  # no time, or one without a zone
        return False


def _has_host(run: RunRecord, text: str) -> bool:
    subject = RunResult.of(run.document).subject
    names = (run.peer, subject.address, None if subject.far is None else subject.far.hostname)
    return any(text in str(name).casefold() for name in names if name is not None)
