"""A run of the log, rebuilt from its events: its outcome, and the readings of its instruments.

The command line and the reports use this too, so it imports no Textual.
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
from ...presets.diagnosis.finding import findings_json, read_findings
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
    """A run of the log: its record, its outcome, and the readings of its plot and sessions."""

    row: RunRecord
    outcome: Outcome
    readings: LiveReadings

    def snapshot(self, catalog: Catalog) -> CockpitSnapshot:
        """Return the snapshot for the instruments; loopback stands in for a preset that is gone."""
        started, summary = self.outcome.started, self.outcome.summary
        return CockpitSnapshot(
            phase=Phase.DONE,
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
        return Expectation() if preset is None else find_expectation(preset, settings, plan.workload)


class EventConsumer(Protocol):
    """Consumer of a run's events. `feed` is called with each of them, in order."""

    def feed(self, event: Event) -> object:
        """Handle the next event."""
        ...


def load_stored_run(history: History, row: RunRecord, consumers: Sequence[EventConsumer] = ()) -> StoredRun:
    """Return a run of the log, and feed its events to `consumers` as well. Raises RunLogError if it is damaged.

    The verdict is the one of that time; label and note are the current ones.
    """
    meter, readings, diagnosis = Meter(), LiveReadings(Plan()), LiveDiagnosis()
    for event in history.events(row.run_id):
        for consumer in (meter, readings, diagnosis, *consumers):
            consumer.feed(event)
    meter.flush()
    summary = meter.summary()
    verdict = judge(summary)
    stored_word = VERDICT_WORDS.get(row.verdict or "", verdict.word)
    if stored_word != verdict.word:
        verdict = Verdict(stored_word, f"{stored_word.upper()}: by the pass mark of that time.")
    document = row.document or run_document(summary, verdict, row.run_id, row.preset or None)
    document = {**document, "label": row.label, "note": row.note, "group": row.group}
    findings = read_findings(document.get("why"))
    if not findings and summary.end.reason in DIAGNOSABLE_REASONS:  # stored by a version without findings
        findings = diagnosis.final_findings
        document["why"] = findings_json(findings)
    outcome = Outcome(row.run_id, row.preset or None, meter.started, summary, verdict, document, findings)
    return StoredRun(row, outcome, readings)


def _find_preset(catalog: Catalog, preset_id: str) -> Preset | None:
    return next((preset for preset in catalog.presets if preset.id == preset_id), None)


def _parse_peer(text: str) -> Peer:
    try:
        return Peer.parse(text)
    except PlanError:
        return LOOPBACK
