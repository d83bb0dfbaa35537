"""The findings of a run while it goes on: of the last seconds, and steady enough to be read.

Pure: time is the run's own. Findings are made anew once a second. Another first finding has to stay the first for a
while before it takes the place of the one that is shown: a reason that changes with every flutter is none.
"""

from typing import Final

from ...engine.model.events import Event, Sampled
from ...engine.model.plan import SECOND_NS
from .collect import CeilingLookup, EvidenceCollector, no_ceiling
from .diagnose import diagnose
from .evidence import LinkEvidence
from .finding import Finding

_EVERY_NS: Final = SECOND_NS
_HELD_NS: Final = 2 * SECOND_NS  # how long another first finding has to be the first


class StableFindings:
    """Shows findings, and others only once they have stayed."""

    def __init__(self) -> None:
        self.findings: tuple[Finding, ...] = ()
        self._rival: tuple[str, str] | None = None
        self._since_ns = 0

    def update(self, at_ns: int, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Take the findings of a moment in; return those to show. The numbers are always the newest."""
        first = _key(findings)
        if first == _key(self.findings) or not self.findings:
            self.findings, self._rival = findings, None
        elif first != self._rival:
            self._rival, self._since_ns = first, at_ns
            self.findings = self._kept(findings)
        elif at_ns - self._since_ns >= _HELD_NS:
            self.findings, self._rival = findings, None
        else:
            self.findings = self._kept(findings)
        return self.findings

    def _kept(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Return the first finding as it stands, with its newest numbers where it is still among them."""
        newest = {(one.code, one.end): one for one in findings}
        first = self.findings[0]
        return (newest.get((first.code, first.end), first), *self.findings[1:])


class LiveDiagnosis:
    """Takes a run's events in order; `now` is for the screen, `whole` for what is kept.

    `link` is what should have been there, `ceiling` what this machine does with no link at all.
    """

    def __init__(
        self, link: LinkEvidence | None = None, *, pass_percent: float = 95.0, ceiling: CeilingLookup = no_ceiling
    ) -> None:
        self._gatherer = EvidenceCollector(link, pass_percent=pass_percent, ceiling=ceiling)
        self._steady = StableFindings()
        self._at_ns = 0
        self._looked_ns: int | None = None

    def feed(self, event: Event) -> None:
        """Take the next event in."""
        self._gatherer.feed(event)
        if isinstance(event, Sampled):
            self._at_ns = max(self._at_ns, event.sample.elapsed_ns)

    @property
    def pass_percent(self) -> float:
        """From what share of the expected rate on there is nothing to explain."""
        return self._gatherer.pass_percent

    @pass_percent.setter
    def pass_percent(self, percent: float) -> None:
        self._gatherer.pass_percent = percent

    @property
    def current_findings(self) -> tuple[Finding, ...]:
        """The findings of the last seconds; none while a run warms up or has just been changed."""
        if self._looked_ns is not None and self._at_ns - self._looked_ns < _EVERY_NS:
            return self._steady.findings
        evidence = self._gatherer.recent_evidence()
        if evidence is None:
            self._steady, self._looked_ns = StableFindings(), None
            return ()
        self._looked_ns = self._at_ns
        return self._steady.update(self._at_ns, diagnose(evidence))

    @property
    def final_findings(self) -> tuple[Finding, ...]:
        """The findings of the run's last stretch that was measured long enough."""
        evidence = self._gatherer.period_evidence()
        return () if evidence is None else diagnose(evidence)


def _key(findings: tuple[Finding, ...]) -> tuple[str, str] | None:
    return (findings[0].code, findings[0].end or "") if findings else None
