"""The record of one run: its beginning and its end in the run log, its verdict, the reasons, and its document.

A run of this program and a run between two other hosts are recorded by the same rules.
"""

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

from ...engine.model.events import Ended, Event, Started
from ...engine.model.run_end import EndText, Reason, RunEnd
from ...engine.results.figure_codec import encode
from ...engine.results.meter import Meter
from ...engine.results.run_log import RunLog, new_run_id
from ...engine.results.run_result import RunResult
from ...engine.results.summary import Summary
from ...presets.diagnosis.evidence import link_evidence
from ...presets.diagnosis.finding import Finding, finding_figures
from ...presets.diagnosis.live import CeilingLookup, LiveDiagnosis, no_ceiling
from ...presets.verdict import Verdict, judge, limit_figures
from .run_spec import Judging, Record

_RANDOM: Final = random.Random()  # noqa: S311 (a name, not a secret; the kernel would be asked for each)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run: its `result`, the document of it, and what the result was made of."""

    started: Started | None
    summary: Summary
    verdict: Verdict
    findings: tuple[Finding, ...]
    result: RunResult
    document: dict[str, Any]

    @classmethod
    def of(
        cls, meter: Meter, verdict: Verdict, findings: tuple[Finding, ...] = (), *, run_id: str, **members: Any
    ) -> Self:
        """Return the outcome of a run that is over.

        Args:
            meter: What has measured it.
            verdict: The verdict.
            findings: Why it was not faster.
            run_id: Its id.
            members: Further members of its result, such as its names.
        """
        summary, started = meter.summary(), meter.started
        result = RunResult.of_run(
            summary,
            started,
            verdicts=[period.word for period in verdict.periods],
            run_id=run_id,
            verdict=verdict.word,
            findings=finding_figures(findings),
            **members,
        )
        return cls(started, summary, verdict, findings, result, encode(result))

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.result.run_id or ""

    @property
    def preset_id(self) -> str | None:
        """The id of the preset that it is judged by."""
        return self.result.preset


def new_id() -> str:
    """Return an id for a run that begins now."""
    return new_run_id(datetime.now(UTC), _RANDOM)


class RunRecorder:
    """Begins a run in the log and finishes it: with all its events at once, or after they went to log and meter.

    `run_id` is the run's new id. `outcome` is None until the run is finished.
    """

    def __init__(
        self,
        judging: Judging,
        ip_version: int | None,
        *,
        log: RunLog | None,
        peer: str,
        record: Record,
        ceiling: CeilingLookup = no_ceiling,
    ) -> None:
        """Begin the run in the run log.

        Args:
            judging: What the run is compared with; its preset is chosen.
            ip_version: The IP version of its connections; None if it is unknown.
            log: The run log to write to; None for a run that is not stored.
            peer: The far end, as text.
            record: Its names, and an id from `new_id`, or none for a new one.
            ceiling: Looks up the rate that this machine reaches on loopback.
        """
        preset = judging.chosen
        self.run_id = record.run_id or new_id()
        self.meter = Meter()
        self.diagnosis = LiveDiagnosis(
            self.meter,
            None if preset is None else link_evidence(preset, judging.variant.over_ip(ip_version)),
            pass_percent=judging.pass_percent,
            ceiling=ceiling,
            without_target=judging.why,
        )
        self.outcome: Outcome | None = None
        self._log, self._judging, self._record = log, judging, record
        if log is not None:
            log.begin(self.run_id, judging.preset_id or "", peer, record.label, record.group)
        _log.debug("run %s of %s against %s began", self.run_id, judging.preset_id, peer)

    def finish(self, further: Mapping[str, Any] | None = None) -> Outcome:
        """Summarize and judge the run, and finish it in the run log. Flush the meter before.

        Args:
            further: Members of the result beside those that every run has.
        """
        summary, judging = self.meter.summary(), self._judging
        verdict = judge(summary, pass_percent=judging.pass_percent, limit=judging.latency_limit)
        # A run that broke off did so for a reason that no finding names.
        findings = () if summary.end.reason.is_fault else self.diagnosis.final_findings
        self.outcome = Outcome.of(
            self.meter,
            verdict,
            findings,
            run_id=self.run_id,
            preset=judging.preset_id,
            label=self._record.label,
            group=self._record.group,
            latency_limit=limit_figures(judging.latency_limit),
            **(further or {}),
        )
        if self._log is not None:
            self._log.finish(self.run_id, verdict.word, self.outcome.document)
        _log.debug("run %s ended: %s, verdict %s", self.run_id, summary.end.reason, verdict.word)
        return self.outcome

    def record_whole(
        self, events: tuple[Event, ...], further: Mapping[str, Any] | None = None, texts: Sequence[str | None] = ()
    ) -> Outcome:
        """Record a run from all its events, and finish it; a run without an end counts as abandoned.

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
