"""Live diagnosis: the findings of the last seconds of a run in progress, stable enough to be read.

Pure: time is that of the samples. Findings are made once a second. A new first finding replaces the displayed one
only after it has been the first for two seconds, so that the reason does not flicker.
"""

from typing import Final

from ...engine.model.events import Event, Sampled
from ...engine.model.plan import SECOND_NS
from .collect import CeilingLookup, EvidenceCollector, no_ceiling
from .diagnose import diagnose
from .evidence import LinkEvidence
from .finding import Finding

_INTERVAL_NS: Final = SECOND_NS
_MIN_RIVAL_NS: Final = 2 * SECOND_NS


class StableFindings:
    """Findings whose first one changes only if another stays the first for two seconds."""

    def __init__(self) -> None:
        self.findings: tuple[Finding, ...] = ()
        self._rival: tuple[str, str] | None = None
        self._since_ns = 0

    def update(self, at_ns: int, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Return the findings to display, after those of one more moment. Their numbers are always the newest."""
        first = _key(findings)
        if first == _key(self.findings) or not self.findings:
            self.findings, self._rival = findings, None
        elif first != self._rival:
            self._rival, self._since_ns = first, at_ns
            self.findings = self._refresh(findings)
        elif at_ns - self._since_ns >= _MIN_RIVAL_NS:
            self.findings, self._rival = findings, None
        else:
            self.findings = self._refresh(findings)
        return self.findings

    def _refresh(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Return the displayed findings, the first with its newest numbers if it is still among the new ones."""
        newest = {(finding.code, finding.end): finding for finding in findings}
        first = self.findings[0]
        return (newest.get((first.code, first.end), first), *self.findings[1:])


class LiveDiagnosis:
    """The diagnosis of one run. You must feed it every event, in order.

    `current_findings` are for the screen, `final_findings` for the run log. `link` is the expected link, `ceiling`
    returns this machine's rate over loopback.
    """

    def __init__(
        self, link: LinkEvidence | None = None, *, pass_percent: float = 95.0, ceiling: CeilingLookup = no_ceiling
    ) -> None:
        self._collector = EvidenceCollector(link, pass_percent=pass_percent, ceiling=ceiling)
        self._stable = StableFindings()
        self._elapsed_ns = 0
        self._diagnosed_ns: int | None = None

    def feed(self, event: Event) -> None:
        """Handle the next event."""
        self._collector.feed(event)
        if isinstance(event, Sampled):
            self._elapsed_ns = max(self._elapsed_ns, event.sample.elapsed_ns)

    @property
    def pass_percent(self) -> float:
        """The pass mark: a run that reaches it needs no explanation."""
        return self._collector.pass_percent

    @pass_percent.setter
    def pass_percent(self, percent: float) -> None:
        self._collector.pass_percent = percent

    @property
    def current_findings(self) -> tuple[Finding, ...]:
        """The findings of the last seconds; none during warm-up or just after a change of settings."""
        if self._diagnosed_ns is not None and self._elapsed_ns - self._diagnosed_ns < _INTERVAL_NS:
            return self._stable.findings
        evidence = self._collector.recent_evidence()
        if evidence is None:
            self._stable, self._diagnosed_ns = StableFindings(), None
            return ()
        self._diagnosed_ns = self._elapsed_ns
        return self._stable.update(self._elapsed_ns, diagnose(evidence))

    @property
    def final_findings(self) -> tuple[Finding, ...]:
        """The findings of the run's last period that was measured for long enough."""
        evidence = self._collector.period_evidence()
        return () if evidence is None else diagnose(evidence)


def _key(findings: tuple[Finding, ...]) -> tuple[str, str] | None:
    return (findings[0].code, findings[0].end or "") if findings else None
