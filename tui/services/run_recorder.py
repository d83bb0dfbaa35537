"""The record of one run: its events into the run log, its verdict, the reasons for it, and its document.

Who has the events gives them, one by one as they happen or all at once: a run that this program carries out, and
one that two other hosts have carried out, are recorded by the same rules.
"""

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from ...engine.model.events import Ended, EndText, Event, Reason, RunEnd, Started
from ...engine.results.json_document import build_document, subject_document
from ...engine.results.meter import Interval, Meter
from ...engine.results.run_log import RunLog, new_run_id
from ...engine.results.summary import Summary
from ...presets.diagnosis.finding import Finding, findings_json
from ...presets.diagnosis.live import LiveDiagnosis
from ...presets.latency_limit import LatencyLimit, limit_document
from ...presets.verdict import Verdict, judge

_RANDOM: Final = random.Random()  # noqa: S311 (a name, not a secret; the kernel would be asked for each)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run: everything that a summary for a person or for a program needs."""

    run_id: str
    preset_id: str | None
    started: Started | None
    summary: Summary
    verdict: Verdict
    document: dict[str, Any]
    findings: tuple[Finding, ...] = ()


def new_id() -> str:
    """Return an id for a run that begins now."""
    return new_run_id(datetime.now(UTC), _RANDOM)


class RunRecorder:
    """Records one run. Feed it every event in order, then call `finish` once.

    `run_id` is the run's new id. `outcome` is None until the run is finished.
    """

    def __init__(
        self,
        diagnosis: LiveDiagnosis,
        *,
        log: RunLog | None,
        preset_id: str | None,
        peer: str,
        label: str | None = None,
        group: str | None = None,
        latency_limit: LatencyLimit | None = None,
        run_id: str | None = None,
    ) -> None:
        """Begin the run in the run log.

        Args:
            diagnosis: The diagnosis, with the meter to feed; the verdict has its pass mark.
            log: The run log to write to; None for a run that is not stored.
            preset_id: The id of the preset that the run is judged by; None without one.
            peer: The far end, as text.
            label: The user's name for the run.
            group: The name of its series of runs.
            latency_limit: What the latency under load may be; None without a limit.
            run_id: An id from `new_id`; None for a new one.
        """
        self.run_id = run_id or new_id()
        self.diagnosis = diagnosis
        self.outcome: Outcome | None = None
        self._log = log
        self._preset_id = preset_id
        self._label, self._group = label, group
        self._latency_limit = latency_limit
        if log is not None:
            log.begin(self.run_id, preset_id or "", peer, label, group)
        _log.debug("run %s of %s against %s began", self.run_id, preset_id, peer)

    @property
    def meter(self) -> Meter:
        """The meter of the run."""
        return self.diagnosis.meter

    def add(self, event: Event) -> list[Interval]:
        """Store an event, and pass it to the meter; return the intervals that it completed."""
        if self._log is not None:
            self._log.add(self.run_id, event)
        return self.meter.feed(event)

    def finish(self, further: dict[str, Any] | None = None) -> Outcome:
        """Summarize and judge the run, and finish it in the run log. Flush the meter before.

        Args:
            further: Members for the document beside those that every run has.
        """
        summary = self.meter.summary()
        verdict = judge(summary, pass_percent=self.diagnosis.pass_percent, limit=self._latency_limit)
        # A run that broke off did so for a reason that no finding names.
        findings = () if summary.end.reason.is_fault else self.diagnosis.final_findings
        document = run_document(
            summary,
            verdict,
            self.run_id,
            self._preset_id,
            self._label,
            self._group,
            findings=findings,
            started=self.meter.started,
        )
        document |= further or {}
        if self._latency_limit is not None:
            document["latency_limit"] = limit_document(self._latency_limit)
        if self._log is not None:
            self._log.finish(self.run_id, verdict.word, document)
        started = self.meter.started
        self.outcome = Outcome(self.run_id, self._preset_id, started, summary, verdict, document, findings)
        _log.debug("run %s ended: %s, verdict %s", self.run_id, summary.end.reason, verdict.word)
        return self.outcome

    def record_whole(
        self, events: tuple[Event, ...], further: dict[str, Any] | None = None, texts: Sequence[str | None] = ()
    ) -> Outcome:
        """Record a run whose events are all there, and finish it; one without its end counts as abandoned.

        `texts` are as `RunLog.add_all` takes them.
        """
        if not events or not isinstance(events[-1], Ended):
            events = (*events, Ended(RunEnd(Reason.FAILED, EndText.RUN_ABANDONED.value)))
        if self._log is not None:
            self._log.add_all(self.run_id, events, texts)
        for event in events:
            self.meter.feed(event)
        self.meter.flush()
        return self.finish(further)


def run_document(
    summary: Summary,
    verdict: Verdict,
    run_id: str,
    preset_id: str | None,
    label: str | None = None,
    group: str | None = None,
    *,
    findings: tuple[Finding, ...] = (),
    started: Started | None = None,
) -> dict[str, Any]:
    """Return the JSON document of a run.

    Args:
        summary: The measurements.
        verdict: The verdict on them.
        run_id: The run's id.
        preset_id: The preset's id; null in the document if there is none.
        label: The user's name for the run.
        group: The name of its series of runs.
        findings: The reasons why it was not faster.
        started: Its first event; None if it did not start.
    """
    document = build_document(
        summary,
        run_id=run_id,
        preset=preset_id or "",
        verdict=verdict.word,
        period_verdicts=[period.word for period in verdict.periods],
    )
    why = findings_json(findings)
    names = {"preset": preset_id, "label": label, "note": None, "group": group}
    return {**document, **names, "why": why, **subject_document(started)}
