"""Runs of the log: rebuilt from their events, and compared with each other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, get_args

from ...engine.model.errors import PlanError
from ...engine.model.events import Started
from ...engine.model.expected_rate import Expectation
from ...engine.model.peer import LOOPBACK, Peer
from ...engine.model.plan import MAX_SESSIONS, Dialect, Plan
from ...engine.results.comparison import compare
from ...engine.results.figure_codec import encode
from ...engine.results.path.path_document import names_of_routers
from ...engine.results.run_log import RunLog, RunRecord
from ...engine.results.run_result import RunResult, SubjectFigures
from ...engine.results.sums.traces import PlotPoint
from ...presets.catalog import Catalog
from ...presets.diagnosis.evidence import LinkEvidence, link_evidence
from ...presets.diagnosis.finding import finding_figures, read_findings
from ...presets.expectation import find_expectation
from ...presets.preset import Preset
from ...presets.verdict import Verdict, VerdictCode, judge, observed_verdict, read_limit
from ...presets.wire import DEFAULT_VARIANT
from ..readings.cockpit_snapshot import CockpitSnapshot, Phase
from ..readings.live_readings import LiveReadings
from ..words.comparison import LETTERS, changed_settings, comparison_table, identity_differences
from ..words.table import Table
from .run_recorder import Outcome
from .run_replay import RunReplay

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
            preset=_shown_preset(catalog, self.row),
            plan=summary.plan,
            peer=_parse_peer(self.row.peer),
            near=None if started is None else started.near,
            far=None if started is None else started.far,
            readings=self.readings,
            summary=summary,
            verdict=self.outcome.verdict,
            expectation=summary.expectation,
            peak=_peak(catalog, self.row, summary.plan, started),
            findings=self.outcome.findings,
        )


def moment_snapshot(replay: RunReplay, catalog: Catalog) -> CockpitSnapshot:
    """Return the snapshot of a run in the middle of its replay, as the cockpit had it."""
    started, readings, diagnosis = replay.meter.started, replay.readings, replay.diagnosis
    plan = readings.plan
    return CockpitSnapshot(
        phase=Phase.RUNNING,
        preset=_shown_preset(catalog, replay.row),
        plan=plan,
        peer=_parse_peer(replay.row.peer),
        near=None if started is None else started.near,
        far=None if started is None else started.far,
        readings=readings,
        interim_summary=replay.meter.summary(),
        expectation=replay.meter.expectation_for(readings.settings),
        peak=_peak(catalog, replay.row, plan, started),
        findings=diagnosis.current_findings,
        windows=diagnosis.current_windows,
    )


def link_of(catalog: Catalog, row: RunRecord) -> LinkEvidence | None:
    """Return the nominal link of a run's preset; None without one, or if it is gone."""
    preset = _find_preset(catalog, row.preset)
    return None if preset is None else link_evidence(preset, DEFAULT_VARIANT)


def _peak(catalog: Catalog, row: RunRecord, plan: Plan, started: Started | None) -> Expectation:
    """Return the rate to expect of many sessions, if the preset still exists."""
    preset = _find_preset(catalog, row.preset)
    if preset is None:
        return Expectation()
    settings = plan.settings.with_changes(sessions=MAX_SESSIONS)
    ip_version = None if started is None else started.ip_version
    return find_expectation(preset, settings, plan.workload, ip_version=ip_version)


def read_stored_run(history: RunLog, run_id: str) -> StoredRun:
    """Return the run of an id. Raises RunLogError if it is gone or damaged."""
    return load_stored_run(history, history.find(run_id))


def load_stored_run(history: RunLog, row: RunRecord) -> StoredRun:
    """Return a run of the log. Raises RunLogError if it is damaged.

    The verdict is the one of that time; label and note are the current ones.
    """
    replay = RunReplay(history, row)
    replay.go_to_end()
    return stored_run(replay)


def stored_run(replay: RunReplay) -> StoredRun:
    """Return the run that a replay has gone through to its end. Raises RunLogError if its document is damaged."""
    row, meter, readings, diagnosis = replay.row, replay.meter, replay.readings, replay.diagnosis
    stored = RunResult.of(row.document)
    meter.router_names = {} if stored.path is None else names_of_routers(stored.path)
    summary = meter.summary()
    verdict = judge(summary, limit=read_limit(stored.latency_limit))
    stored_word = VERDICT_WORDS.get(row.verdict or "", verdict.word)
    if stored_word != verdict.word:
        verdict = Verdict(stored_word, "by the pass mark of that run.")
    names = {"label": row.label, "note": row.note, "group": row.group}
    if stored.observed is not None:
        verdict = observed_verdict(stored.observed.reason)
    findings, why = read_findings(stored.findings), {}
    is_old = not findings and summary.dialect is not Dialect.OBSERVED  # stored by a version without findings
    if is_old and not summary.end.reason.is_fault:
        findings = diagnosis.final_findings
        why = {"why": encode(finding_figures(findings))}
    outcome = Outcome.of(meter, verdict, findings, run_id=row.run_id, preset=row.preset or None, **names)
    if row.document:  # as it was stored, by whichever version
        document = {**encode(SubjectFigures.of(meter.started)), **row.document, **names, **why}
        outcome = replace(outcome, result=RunResult.of(document), document=document)
    return StoredRun(row, outcome, readings)


def _find_preset(catalog: Catalog, preset_id: str) -> Preset | None:
    return next((preset for preset in catalog.presets if preset.id == preset_id), None)


def _shown_preset(catalog: Catalog, row: RunRecord) -> Preset:
    """Return the preset of a run; loopback stands in for one that is gone."""
    return _find_preset(catalog, row.preset) or catalog.find("loopback")


def _parse_peer(text: str) -> Peer:
    try:
        return Peer.parse(text)
    except PlanError:
        return LOOPBACK


def compare_stored_runs(runs: Sequence[StoredRun]) -> list[Table]:
    """Return a table for each run after the first, which it is compared with; runs are named by letters."""
    first, *others = runs
    tables: list[Table] = []
    for letter, other in zip(LETTERS[1:], others, strict=False):
        comparison = compare(first.outcome.summary, other.outcome.summary)
        settings = [*changed_settings(comparison), *identity_differences(first.row, other.row)]
        tables.append(comparison_table(comparison, settings, ("A", letter), f"{letter} compared with A"))
    return tables


def rate_points(run: StoredRun) -> list[PlotPoint]:
    """Return a run's rate over time, in the direction of each moment; for duplex, the sum of both."""
    points = [
        point for period in run.readings.periods for point in period.points.get(period.settings.direction, [])
    ]
    return sorted(points, key=lambda point: point.at_s)
