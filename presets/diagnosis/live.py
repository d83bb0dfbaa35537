"""Live diagnosis: a run's events become evidence, and evidence becomes findings.

Pure: time is that of the samples. Warm-up is excluded, as everywhere. The sums over a period are those of the
run's meter, so that the findings and the summary count the same samples. Findings are made once a second. Another
finding takes the first place only after it has been the strongest for two seconds, so that the displayed reason
does not flicker.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from ...engine.model.expected_rate import ExpectedRate
from ...engine.model.plan import SECOND_NS, Settings
from ...engine.model.texts.warning_text import WarningKind
from ...engine.protocol.path_probe import PathMtu
from ...engine.results.meter import Meter
from ...engine.results.run_totals import PeriodSum
from ...engine.results.sums.sample_sum import SampleSum
from .diagnose import diagnose, diagnose_untargeted
from .evidence import (
    Evidence,
    FlowEvidence,
    LinkEvidence,
    read_evidence,
)
from .finding import Finding
from .path_mtu import PATH_MTU_SYMPTOMS, name_path_mtu
from .period_sums import PeriodSums
from .window_bounds import FlowWindows, flow_windows

# CPU counters move in steps of 10 ms, and TCP's values once per round trip: a share of a shorter time is noise.
MIN_SPAN_NS: Final = SECOND_NS // 2
_INTERVAL_NS: Final = SECOND_NS
_MIN_RIVAL_NS: Final = 2 * SECOND_NS


_Key = tuple[str, str, str]
CeilingLookup = Callable[[Settings], int | None]
"""Returns the rate that this machine reaches on loopback under some settings; None if unknown."""


def no_ceiling(_settings: Settings) -> None:
    """Return None: the machine's ceiling is unknown."""


ObservedDiagnosis = Callable[[Evidence], tuple[Finding, ...]]
"""Returns the findings of a connection of another program, in whose words no test is the remedy."""


def no_findings(_evidence: Evidence) -> tuple[Finding, ...]:
    """Return no findings."""
    return ()


class EvidenceCollector:
    """Turns the sums of a run's meter into evidence for the rules.

    `link` describes the nominal link; `ceiling` looks up the rate that this machine reaches on loopback.
    """

    def __init__(
        self,
        meter: Meter,
        link: LinkEvidence | None = None,
        *,
        pass_percent: float = 95.0,
        ceiling: CeilingLookup = no_ceiling,
    ) -> None:
        self.meter = meter
        self._link = link
        self.pass_percent = pass_percent  # a run that reaches it needs no explanation
        self._ceiling = ceiling

    def period_evidence(self) -> Evidence | None:
        """Return the evidence of an ended run's last period that lasted long enough; None if none did."""
        for period in reversed(self.meter.periods):
            sums = self._sums(period, period.sums)
            if sums is not None:
                return replace(self._evidence(period, sums), has_ended=True)
        return None

    def recent_evidence(self) -> Evidence | None:
        """Return the evidence of the last seconds under the current settings; None if they are too short."""
        if self.meter.started is None:
            return None
        now = self.meter.periods[-1]
        flows = now.settings.direction.flows
        sums = self._sums(now, self.meter.recent.sum_measured(self.meter.started.plan.workload, flows))
        return None if sums is None else self._evidence(now, sums)

    def _sums(self, period: PeriodSum, sums: SampleSum) -> PeriodSums | None:
        """Return the sums over a period or a part of it; None if that is too short for a finding."""
        started = self.meter.started
        if started is None:
            return None
        meter = self.meter
        whole = PeriodSums(
            started,
            period.settings,
            sums,
            meter.sockets,
            meter.responsiveness,
            is_data_through_ssh=bool(meter.warnings.of_kind(WarningKind.DATA_THROUGH_SSH)),
            other_traffic=tuple(
                text.partition(": ")[2] for text in meter.warnings.of_kind(WarningKind.OTHER_TRAFFIC)
            ),
        )
        return whole if is_long_enough(whole) else None

    def _evidence(self, period: PeriodSum, sums: PeriodSums) -> Evidence:
        return make_evidence(
            sums,
            period.expectation[sums.settings.direction],
            link=self._link,
            pass_percent=self.pass_percent,
            ceiling_bit_s=self._ceiling(sums.settings),
        )


def make_evidence(
    sums: PeriodSums, rate: ExpectedRate | None, *, link: LinkEvidence | None, **given: Any
) -> Evidence:
    """Return the evidence of sums, with the rate to expect of their settings and what is `given` of its fields."""
    flows = sums.settings.direction.flows
    rate = None if rate is None or rate.bit_s <= 0 else rate
    expected_bit_s = None if rate is None else float(rate.bit_s)
    part_bit_s = None if expected_bit_s is None else expected_bit_s / len(flows)
    parts = tuple(read_evidence(FlowEvidence, sums.flow(flow), expected_bit_s=part_bit_s) for flow in flows)
    bit_s = sum(part.bit_s for part in parts)
    return read_evidence(
        Evidence,
        sums,
        bit_s=bit_s,
        flows=parts,
        expected_bit_s=expected_bit_s,
        link=link,
        beyond_bit_s=rate.most_bit_s if rate is not None and rate.is_exceeded_by(bit_s) else None,
        **given,
    )


def is_long_enough(of: PeriodSums) -> bool:
    """Return whether both ends, or the one that has samples, measured long enough for a finding."""
    seen = [usage for end, usage in of.sums.ends.items() if end is not of.started.unseen_end]
    return min(of.measured_ns, *(end.span_ns for end in seen)) >= MIN_SPAN_NS


class StableFindings:
    """Findings whose first one changes only if another stays the first for two seconds."""

    def __init__(self) -> None:
        self.findings: tuple[Finding, ...] = ()
        self._rival: _Key | None = None
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
        newest = {_key_of(finding): finding for finding in findings}
        first = self.findings[0]
        return (newest.get(_key_of(first), first), *self.findings[1:])


class LiveDiagnosis(EvidenceCollector):
    """The diagnosis of one run, by the sums of its meter.

    `current_findings` are for the screen, `final_findings` for the run log. `link` is the expected link, `ceiling`
    returns this machine's rate over loopback. `of_observed` diagnoses a connection of another program. A
    run without an expected rate has findings only with `without_target`, or if no payload arrives.
    """

    def __init__(
        self,
        meter: Meter,
        link: LinkEvidence | None = None,
        *,
        pass_percent: float = 95.0,
        ceiling: CeilingLookup = no_ceiling,
        without_target: bool = False,
        of_observed: ObservedDiagnosis = no_findings,
    ) -> None:
        super().__init__(meter, link, pass_percent=pass_percent, ceiling=ceiling)
        self._of_observed = of_observed
        self._without_target = without_target
        self.path_mtu: PathMtu | None = None  # measured after the run
        self._stable = StableFindings()
        self._windows: tuple[FlowWindows, ...] = ()
        self._diagnosed_ns: int | None = None
        self._changes = 0  # of settings, when the findings were last read

    def _forget(self) -> None:
        """Drop the findings and their history: they are of other settings."""
        self._stable, self._diagnosed_ns, self._windows = StableFindings(), None, ()

    @property
    def current_findings(self) -> tuple[Finding, ...]:
        """The findings of the last seconds; none during warm-up or just after a change of settings."""
        elapsed_ns, changes = self.meter.elapsed_ns, len(self.meter.traces.periods)
        if changes != self._changes:
            self._forget()
            self._changes = changes
        if self._diagnosed_ns is not None and elapsed_ns - self._diagnosed_ns < _INTERVAL_NS:
            return self._stable.findings
        evidence = self.recent_evidence()
        if evidence is None:
            self._forget()
            return ()
        self._diagnosed_ns, self._windows = elapsed_ns, flow_windows(evidence)
        return self._stable.update(elapsed_ns, self._diagnose(evidence))

    @property
    def current_windows(self) -> tuple[FlowWindows, ...]:
        """The windows behind `current_findings`, which must be read first."""
        return self._windows

    @property
    def final_windows(self) -> tuple[FlowWindows, ...]:
        """The windows behind `final_findings`."""
        evidence = self.period_evidence()
        return () if evidence is None else flow_windows(evidence)

    @property
    def final_findings(self) -> tuple[Finding, ...]:
        """The findings of the run's last period that was measured for long enough."""
        evidence = self.period_evidence()
        if evidence is None:
            return ()
        findings = self._diagnose(evidence)
        return findings if self.path_mtu is None else name_path_mtu(findings, self.path_mtu, evidence)

    @property
    def suspects_path_mtu(self) -> bool:
        """Whether the MTU of the path may be the cause of a final finding."""
        return any(finding.code in PATH_MTU_SYMPTOMS for finding in self.final_findings)

    def _diagnose(self, evidence: Evidence) -> tuple[Finding, ...]:
        if evidence.is_observed:
            return self._of_observed(evidence)
        has_target = evidence.expected_bit_s is not None or evidence.bit_s <= 0
        if has_target or self._without_target or evidence.is_latency_test:
            return diagnose(evidence)
        return diagnose_untargeted(evidence)


def _key(findings: tuple[Finding, ...]) -> _Key | None:
    return _key_of(findings[0]) if findings else None


def _key_of(finding: Finding) -> _Key:
    return finding.code, finding.end or "", finding.direction or ""
