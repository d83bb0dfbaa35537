"""The observer of an iperf3 client's test at an endpoint: its summary and diagnosis, as text or as JSON."""

import random
from datetime import UTC, datetime
from typing import Any, Final

from ....engine.model.events import Event
from ....engine.results.json_document import encode
from ....engine.results.meter import Meter
from ....engine.results.run_log import new_run_id
from ....engine.results.run_result import RunResult
from ....presets.diagnosis.finding import Finding, finding_figures
from ....presets.diagnosis.live import LiveDiagnosis
from ....presets.verdict import judge
from .server_output import server_output

_RANDOM: Final = random.SystemRandom()


class Iperf3Output:
    """Takes the events of one test, whose near end is the client, and prints the result.

    It has no expected rate: the server does not know the client's link.
    """

    def __init__(self) -> None:
        self._diagnosis = LiveDiagnosis(Meter(), without_target=True)
        self._meter = self._diagnosis.meter

    def feed(self, event: Event) -> None:
        """Take the next event."""
        self._meter.feed(event)

    def text(self) -> str:
        """Return the lines for the client's terminal; call it once, after the last event."""
        self._meter.flush()
        return server_output(self._meter.summary(), self._meter.started, self._findings)

    def document(self) -> dict[str, Any]:
        """Return the document of `--json`, with an id of its own; call it once, after the last event."""
        self._meter.flush()
        run_id = new_run_id(datetime.now(UTC), _RANDOM)
        summary, findings = self._meter.summary(), finding_figures(self._findings)
        verdict = judge(summary)
        words = [period.word for period in verdict.periods]
        result = RunResult.of_run(summary, verdicts=words, run_id=run_id, verdict=verdict.word, findings=findings)
        return encode(result)

    @property
    def _findings(self) -> tuple[Finding, ...]:
        reason = self._meter.summary().end.reason
        return () if reason.is_fault else self._diagnosis.final_findings
