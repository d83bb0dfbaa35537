"""A run of the log, made again from its events: what came out of it, and what its instruments show.

No Textual here: the command line and the report read runs, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, get_args

from ...engine.model.errors import PlanError
from ...engine.model.events import Event, Expectation
from ...engine.model.peer import LOOPBACK, Peer
from ...engine.model.plan import MAX_SESSIONS, Plan
from ...engine.results.meter import Meter
from ...engine.results.run_log import RunRecord
from ...presets.catalog import Catalog
from ...presets.diagnosis.diagnose import findings_json, read_findings
from ...presets.diagnosis.live import LiveDiagnosis
from ...presets.expectation import find_expectation
from ...presets.preset import Preset
from ...presets.verdict import Verdict, VerdictCode, judge
from ..interfaces import History
from ..state.instrument_values import Phase
from ..state.live_readings import CockpitSnapshot, LiveReadings
from .run_session import DIAGNOSABLE_REASONS, Outcome, run_document

VERDICT_WORDS: Final[dict[str, VerdictCode]] = {word: word for word in get_args(VerdictCode)}


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was: its line of the log, its outcome, and the readings of its plot and sessions."""

    row: RunRecord
    outcome: Outcome
    readings: LiveReadings

    def snapshot(self, catalog: Catalog) -> CockpitSnapshot:
        """Return what the instruments show of it. They do not look at the preset, which may be gone by now."""
        started, summary = self.outcome.started, self.outcome.summary
        return CockpitSnapshot(
            phase=Phase.DONE,
            preset=_known(catalog, self.row.preset) or catalog.find("loopback"),
            plan=summary.plan,
            peer=_peer(self.row.peer),
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
        """Return what many sessions could reach, where the preset is still there to tell."""
        plan = self.outcome.summary.plan
        preset = _known(catalog, self.row.preset)
        settings = plan.settings.with_changes(sessions=MAX_SESSIONS)
        return Expectation() if preset is None else find_expectation(preset, settings, plan.workload)


class EventConsumer(Protocol):
    """Takes the events of a run, for a purpose of its own."""

    def feed(self, event: Event) -> object:
        """Take the next one."""
        ...


def load_stored_run(history: History, row: RunRecord, consumers: Sequence[EventConsumer] = ()) -> StoredRun:
    """Read a run; `watchers` see its events as well. Raises StoreError where it is damaged.

    The verdict that it was given then stands; its label and its note are those of now.
    """
    meter, board, why = Meter(), LiveReadings(Plan()), LiveDiagnosis()
    for event in history.events(row.run_id):
        meter.feed(event)
        board.feed(event)
        why.feed(event)
        for watcher in consumers:
            watcher.feed(event)
    meter.flush()
    summary = meter.summary()
    verdict = judge(summary)
    then = VERDICT_WORDS.get(row.verdict or "", verdict.word)
    if then != verdict.word:
        verdict = Verdict(then, f"{then.upper()}: by the pass mark of that time.")
    found = row.document or run_document(summary, verdict, row.run_id, row.preset or None)
    found = {**found, "label": row.label, "note": row.note, "group": row.group}
    findings = read_findings(found.get("why"))
    if not findings and summary.end.reason in DIAGNOSABLE_REASONS:  # it was kept before there were any
        findings = why.final_findings
        found["why"] = findings_json(findings)
    outcome = Outcome(row.run_id, row.preset or None, meter.started, summary, verdict, found, findings)
    return StoredRun(row, outcome, board)


def _known(catalog: Catalog, preset_id: str) -> Preset | None:
    return next((preset for preset in catalog.presets if preset.id == preset_id), None)


def _peer(text: str) -> Peer:
    try:
        return Peer.parse(text)
    except PlanError:
        return LOOPBACK
