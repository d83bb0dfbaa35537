"""Live diagnosis: a run's events become evidence, and evidence becomes findings.

Pure: time is that of the samples. Warm-up is excluded, as everywhere. The sums over a period are those of the
run's meter, so that the findings and the summary count the same samples. Findings are made once a second. Another
finding takes the first place only after it has been the strongest for two seconds, so that the displayed reason
does not flicker.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, get_args

from ...engine.model.events import Changed, Event, Sampled, Started, Warned
from ...engine.model.plan import SECOND_NS, Direction, End, Mode, Settings, sender_of
from ...engine.model.samples import CoreTimes
from ...engine.protocol.path_probe import PathMtu
from ...engine.results.meter import Meter
from ...engine.results.run_totals import PeriodSum
from ...engine.results.sums.sample_sum import SampleSum
from ...engine.results.sums.send_holds import Hold, SendHolds
from ...engine.results.udp.datagram_sums import DatagramSum
from ...engine.results.udp.loss_location import LossCauses
from .bounds import FlowWindows, flow_windows
from .diagnose import diagnose, diagnose_untargeted
from .evidence import (
    CoreLoad,
    DatagramEvidence,
    EndEvidence,
    Evidence,
    FlowEvidence,
    HoldShares,
    LinkEvidence,
)
from .finding import Finding
from .path_mtu import PATH_MTU_SYMPTOMS, name_path_mtu

# CPU counters move in steps of 10 ms, and TCP's values once per round trip: a share of less time is noise.
MIN_SPAN_NS: Final = SECOND_NS // 2
_INTERVAL_NS: Final = SECOND_NS
_THROUGH_SSH: Final = "through ssh:"  # how WarningText.DATA_THROUGH_SSH begins
_MIN_RIVAL_NS: Final = 2 * SECOND_NS


_Key = tuple[str, str, str]
CeilingLookup = Callable[[Settings], int | None]
"""Returns the rate that this machine reaches on loopback under some settings; None if unknown."""


def no_ceiling(_settings: Settings) -> None:
    """Return None: the machine's ceiling is unknown."""


class EvidenceCollector:
    """Turns the sums of a run's meter into evidence for the rules.

    You must feed the meter first, and then this collector, with every event in order. `link` describes the nominal
    link; `ceiling` looks up the rate that this machine reaches on loopback.
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
        self.pass_percent = pass_percent
        self._ceiling = ceiling
        self._is_data_through_ssh = False

    def feed(self, event: Event) -> None:
        """Process the run's next event."""
        if isinstance(event, Warned) and event.text.startswith(_THROUGH_SSH):
            self._is_data_through_ssh = True

    def period_evidence(self) -> Evidence | None:
        """Return the evidence of an ended run's last period that lasted long enough; None if none did."""
        started = self.meter.started
        for period in reversed(self.meter.periods):
            if started is not None and _is_long_enough(started, period.sums, period.settings):
                return replace(self._evidence(started, period, period.sums), has_ended=True)
        return None

    def recent_evidence(self) -> Evidence | None:
        """Return the evidence of the last seconds under the current settings; None if they are too short."""
        started = self.meter.started
        if started is None:
            return None
        now = self.meter.periods[-1]
        sums = self.meter.recent.sum_measured(started.plan.workload, now.settings.direction.flows)
        return self._evidence(started, now, sums) if _is_long_enough(started, sums, now.settings) else None

    def _evidence(self, started: Started, period: PeriodSum, sums: SampleSum) -> Evidence:
        plan, settings = started.plan, period.settings
        flows = settings.direction.flows
        rate = period.expectation[settings.direction]
        rate = None if rate is None or rate.bit_s <= 0 else rate
        expected_bit_s = None if rate is None else float(rate.bit_s)
        parts = tuple(
            self._flow(
                sums,
                flow,
                None if expected_bit_s is None else expected_bit_s / len(flows),
                is_unseen=sender_of(flow, sums.workload) is started.unseen_end,
            )
            for flow in flows
        )
        bit_s = sum(part.bit_s for part in parts)
        return Evidence(
            workload=plan.workload,
            direction=settings.direction,
            sessions=settings.sessions,
            window_bytes=settings.window_bytes,
            span_ns=_measured_ns(sums, settings),
            bit_s=bit_s,
            flows=parts,
            near=_end_evidence(started, sums, End.NEAR),
            far=_end_evidence(started, sums, End.FAR),
            expected_bit_s=expected_bit_s,
            pass_percent=self.pass_percent,
            link=self._link,
            ceiling_bit_s=self._ceiling(settings),
            beyond_bit_s=rate.most_bit_s if rate is not None and rate.is_exceeded_by(bit_s) else None,
            mode=plan.mode or self.meter.sockets.mode(plan.workload) or Mode.COPY,
            response_bytes=plan.transaction_sizes[1],
            burst=plan.burst,
            rate_bit_s=plan.rate_bit_s,
            is_data_through_ssh=self._is_data_through_ssh,
            workers=plan.workers,
            near_cores=plan.near_cores,
            far_cores=plan.far_cores,
            unseen_end=started.unseen_end,
            test=plan.responsiveness,
            responsiveness=self.meter.responsiveness,
            others=sums.ends[End.FAR].others_summary,
        )

    def _flow(
        self, sums: SampleSum, flow: Direction, expected_bit_s: float | None, *, is_unseen: bool
    ) -> FlowEvidence:
        """Return the evidence of a direction, whose sender may be an iperf3 that shows nothing of its TCP."""
        received, sent = sums.received[flow], sums.sent[flow]
        sending_end = sender_of(flow, sums.workload)
        sender = self.meter.sockets.first(sending_end, flow)
        receiver = self.meter.sockets.first(sending_end.other, flow)
        mss_bytes = sent.median("mss_bytes")
        if mss_bytes is None and is_unseen and receiver is not None:
            mss_bytes = receiver.mss_bytes  # both ends have agreed on about the same
        return FlowEvidence(
            direction=flow,
            bit_s=received.bit_s or 0.0,
            expected_bit_s=expected_bit_s,
            busy=sent.time_share("busy_us"),
            rwnd_limited=sent.time_share("rwnd_limited_us"),
            sndbuf_limited=sent.time_share("sndbuf_limited_us"),
            retransmits=sent.retransmits,
            retransmitted=sent.retransmitted_share(mss_bytes),
            rtt_us=sent.carrying_rtts.median or sent.median("rtt_us"),
            min_rtt_us=sent.min_rtt_us,
            cwnd_bytes=sent.median("cwnd_bytes"),
            mss_bytes=mss_bytes,
            pacing_bit_s=sent.median("pacing_bit_s"),
            delivery_bit_s=sent.median("delivery_bit_s"),
            peer_window_bytes=sent.median("peer_window_bytes"),
            low_window=sent.low_window_share,
            out_of_order=received.out_of_order,
            congestion=sender.congestion if sender else None,
            timestamps=sender.timestamps if sender else None,
            window_scaling=sender.window_scaling if sender else None,
            send_window_bytes=sender.window_granted_bytes if sender else None,
            receive_window_bytes=receiver.window_granted_bytes if receiver else None,
            datagrams=_datagram_evidence(received.datagrams, flow, is_from_sender=received.is_from_sender),
            intervals=received.intervals,
            rate_spread=received.rate_spread,
            holds=_hold_shares(sent.holds),
            joint_spread=received.joint_spread,
            upper_bit_s=received.upper_bit_s,
            low_rtt_us=sent.carrying_rtts.quantile(0.25),
            lossy=sent.losses.lossy_share,
            loss_dispersion=sent.losses.dispersion,
            quiet=sent.losses.quiet_share,
            max_pacing_bit_s=sent.median("max_pacing_bit_s"),
            unacked_bytes=sent.median("unacked_bytes"),
            window_growth=sent.window_growth,
            least_window_bytes=sent.least_window_bytes,
            send_buffer_bytes=sent.median("send_buffer_bytes"),
            receive_buffer_bytes=received.mean_buffer_bytes,
            unread=received.unread_share,
        )


def _hold_shares(holds: SendHolds) -> HoldShares | None:
    """Return what held a sender back; None if its kernel does not tell."""
    if not holds.samples:
        return None
    window, buffer, congestion, pace, empty = map(holds.share, get_args(Hold))
    return HoldShares(holds.samples, window, buffer, congestion, pace, empty)


def _datagram_evidence(
    sums: DatagramSum | None, flow: Direction, *, is_from_sender: bool
) -> DatagramEvidence | None:
    """Return the evidence of a direction's datagrams; None for TCP, and where no receiver has reported any.

    Of a receiver that reports at the end only, there is what was sent until then, and no loss.
    """
    whole = None if sums is None else sums.summary
    if sums is not None and whole is not None and is_from_sender:
        size, asked_bit_s = whole.datagram_bytes, whole.asked_bit_s
        return DatagramEvidence(
            whole.sent or 0, 0, LossCauses(), datagram_bytes=size, skipped=whole.skipped, asked_bit_s=asked_bit_s
        )
    if sums is None or whole is None or whole.lost is None:
        return None
    pattern, period_ns = sums.loss_pattern(flow)
    return DatagramEvidence(
        sent=whole.lost + (whole.received or 0),
        lost=whole.lost,
        causes=sums.loss_causes(flow),
        bursts=whole.bursts,
        longest_burst=whole.longest_burst,
        pattern=pattern,
        period_ns=period_ns,
        datagram_bytes=whole.datagram_bytes,
        skipped=whole.skipped,
        asked_bit_s=whole.asked_bit_s,
        buffer_bytes=sums.smallest_buffer_bytes,
    )


def _measured_ns(sums: SampleSum, settings: Settings) -> int:
    """Return the shortest time that a receiver measured."""
    return min(sums.received[flow].span_ns for flow in settings.direction.flows)


def _is_long_enough(started: Started, sums: SampleSum, settings: Settings) -> bool:
    """Return whether both ends, or the one that has samples, measured long enough for a finding."""
    seen = [usage for end, usage in sums.ends.items() if end is not started.unseen_end]
    spans_ns = [_measured_ns(sums, settings), *(end.span_ns for end in seen)]
    return min(spans_ns) >= MIN_SPAN_NS


def _end_evidence(started: Started, sums: SampleSum, end: End) -> EndEvidence:
    host = started.near if end is End.NEAR else started.far
    usage = sums.ends[end]
    return EndEvidence(
        end=end,
        hostname=host.hostname,
        system=host.system,
        cores=tuple(_core_load(core) for core in usage.cores or ()),
        busiest_worker=usage.worker_share,
        process=usage.process_share,
        waiting=usage.wait_share,
        throttled=usage.quota_share,
        nic=host.nic,
        counts=usage.nic,
        counts_ns=usage.span_ns,
        tcp=host.tcp,
    )


def _core_load(core: CoreTimes) -> CoreLoad:
    whole_ns = max(1, core.busy_ns + core.idle_ns)
    return CoreLoad(*(ns / whole_ns for ns in (core.user_ns, core.system_ns, core.softirq_ns, core.steal_ns)))


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


class LiveDiagnosis:
    """The diagnosis of one run. You must feed its meter first, and then it, with every event in order.

    `current_findings` are for the screen, `final_findings` for the run log. `link` is the expected link, `ceiling`
    returns this machine's rate over loopback. A run without an expected rate has findings only with
    `without_target`, or if no payload arrives.
    """

    def __init__(
        self,
        meter: Meter,
        link: LinkEvidence | None = None,
        *,
        pass_percent: float = 95.0,
        ceiling: CeilingLookup = no_ceiling,
        without_target: bool = False,
    ) -> None:
        self._collector = EvidenceCollector(meter, link, pass_percent=pass_percent, ceiling=ceiling)
        self._without_target = without_target
        self.path_mtu: PathMtu | None = None  # measured after the run
        self._stable = StableFindings()
        self._windows: tuple[FlowWindows, ...] = ()
        self._elapsed_ns = 0
        self._diagnosed_ns: int | None = None

    def feed(self, event: Event) -> None:
        """Handle the next event."""
        self._collector.feed(event)
        if isinstance(event, Changed):
            self._forget()
        if isinstance(event, Sampled):
            self._elapsed_ns = max(self._elapsed_ns, event.sample.elapsed_ns)

    def _forget(self) -> None:
        """Drop the findings and their history: those of other settings say nothing about these."""
        self._stable, self._diagnosed_ns, self._windows = StableFindings(), None, ()

    @property
    def meter(self) -> Meter:
        """The meter whose sums it reads."""
        return self._collector.meter

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
            self._forget()
            return ()
        self._diagnosed_ns, self._windows = self._elapsed_ns, flow_windows(evidence)
        return self._stable.update(self._elapsed_ns, self._diagnose(evidence))

    @property
    def current_windows(self) -> tuple[FlowWindows, ...]:
        """The windows behind `current_findings`, which must be read first."""
        return self._windows

    @property
    def final_windows(self) -> tuple[FlowWindows, ...]:
        """The windows behind `final_findings`."""
        evidence = self._collector.period_evidence()
        return () if evidence is None else flow_windows(evidence)

    @property
    def final_findings(self) -> tuple[Finding, ...]:
        """The findings of the run's last period that was measured for long enough."""
        evidence = self._collector.period_evidence()
        if evidence is None:
            return ()
        findings = self._diagnose(evidence)
        return findings if self.path_mtu is None else name_path_mtu(findings, self.path_mtu, evidence)

    @property
    def suspects_path_mtu(self) -> bool:
        """Whether the MTU of the path may be the cause of a final finding."""
        return any(finding.code in PATH_MTU_SYMPTOMS for finding in self.final_findings)

    def _diagnose(self, evidence: Evidence) -> tuple[Finding, ...]:
        has_target = evidence.expected_bit_s is not None or evidence.bit_s <= 0
        if has_target or self._without_target or evidence.is_latency_test:
            return diagnose(evidence)
        return diagnose_untargeted(evidence)


def _key(findings: tuple[Finding, ...]) -> _Key | None:
    return _key_of(findings[0]) if findings else None


def _key_of(finding: Finding) -> _Key:
    return finding.code, finding.end or "", finding.direction or ""
