"""Findings of a run in progress: stable enough to be read, and forgotten with a change."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import NicCounts
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Changed, Opened, Sampled, Warned
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.plan import SECOND_NS, Mode, Plan, Settings
from linkgauge.engine.model.texts.warning_text import WarningKind, WarningText
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.meter import Meter
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.diagnosis.live import EvidenceCollector, LiveDiagnosis, StableFindings

from ...engine.results.datagram_runs import draw_datagram_run
from ...engine.results.iperf3_runs import iperf3_run, reported, total
from .sampled_run import EXPECTED, QUARTER_NS, fed, feed, started


def test_shares_of_time_are_means_over_the_sessions() -> None:
    """Two sessions of 200 ms busy in 250 are busy for four fifths of the time."""
    gatherer = EvidenceCollector(Meter())
    feed(gatherer, started())
    feed(gatherer, Opened(SocketInfo(End.NEAR, Direction.OUT, 1, "cubic", 57_344, 1_448, True, True, True)))
    fed(gatherer, 0, 8)
    evidence = gatherer.period_evidence()
    assert evidence is not None
    (flow,) = evidence.flows
    assert (flow.busy, flow.rwnd_limited, flow.sndbuf_limited) == (0.8, 0.6, 0.0)
    assert (flow.bit_s, flow.expected_bit_s, evidence.bit_s) == (50e6, 1e8, 50e6)
    assert (flow.rtt_us, flow.min_rtt_us, flow.cwnd_bytes, flow.out_of_order) == (2_000, 500, 14_480, 32)
    assert flow.retransmitted is not None
    assert abs(flow.retransmitted - 1_448 / (781_250 + 1_448)) < 1e-9
    assert (flow.congestion, flow.send_window_bytes, flow.receive_window_bytes) == ("cubic", 57_344, None)
    assert evidence.near.cores[0].user == 0.4
    assert (evidence.near.busiest_worker, evidence.near.process) == (0.2, 0.36)
    assert evidence.far.counts == NicCounts(80, 160, 8, 16, 24)


def test_warm_up_and_too_short_a_time_give_no_evidence() -> None:
    """Less than half a second of both ends is too short."""
    gatherer = EvidenceCollector(Meter())
    assert gatherer.period_evidence() is gatherer.recent_evidence() is None
    feed(gatherer, started())
    fed(gatherer, 0, 4, warmup=True)
    fed(gatherer, 4, 5)
    assert gatherer.period_evidence() is gatherer.recent_evidence() is None
    fed(gatherer, 5, 6)
    assert gatherer.period_evidence() is not None


def test_a_change_just_before_the_end_leaves_the_period_before_it() -> None:
    """A moment under the new settings is not evidence yet; late samples are left out."""
    gatherer = EvidenceCollector(Meter())
    feed(gatherer, started())
    fed(gatherer, 0, 8)
    five = Settings(sessions=5)
    feed(gatherer, Changed(2 * SECOND_NS, five, Expectation()))
    fed(gatherer, 8, 9, five)
    fed(gatherer, 8, 12)
    evidence = gatherer.period_evidence()
    assert evidence is not None
    assert evidence.sessions == 1
    assert gatherer.recent_evidence() is None
    fed(gatherer, 12, 16, five)
    evidence = gatherer.period_evidence()
    assert evidence is not None
    assert (evidence.sessions, evidence.expected_bit_s) == (5, None)


def test_the_recent_past_is_three_seconds() -> None:
    """An earlier limit may not be the limit now."""
    watch = EvidenceCollector(Meter())
    feed(watch, started())
    fed(watch, 0, 40)
    fed(watch, 40, 52, rwnd_limited_us=0)
    recent, whole = watch.recent_evidence(), watch.period_evidence()
    assert recent is not None
    assert whole is not None
    assert recent.flows[0].rwnd_limited == 0
    assert (whole.flows[0].rwnd_limited or 0) > 0.4


@given(seed=st.integers(0, 2**32), direction=st.sampled_from(Direction))
def test_the_drain_is_left_out_of_the_recent_past(seed: int, direction: Direction) -> None:
    """Datagrams that were on their way at the end have no rate."""
    events, _ = draw_datagram_run(seed, direction, intervals=16)
    collectors = EvidenceCollector(Meter()), EvidenceCollector(Meter())
    for event in events:
        feed(collectors[0], event)
        if not (isinstance(event, Sampled) and event.sample.is_drain):
            feed(collectors[1], event)
    recent = collectors[1].recent_evidence()
    assert recent is not None
    assert collectors[0].recent_evidence() == recent


def test_a_rate_beyond_the_links_capacity_has_a_single_finding() -> None:
    """The preset is another link's; that is not the same as a run without a limit."""
    watch = LiveDiagnosis(Meter())
    bound = Expectation(out=ExpectedRate(10_000_000, "documented", "a table", most_bit_s=9_400_000))
    feed(watch, replace(started(), expectation=bound))
    fed(watch, 0, 8)
    (finding,) = watch.final_findings
    assert (finding.code, finding.share) == ("another-link", None)
    assert finding.evidence == "50 Mb/s arrived; such a link can carry at most 9.4 Mb/s"
    assert "check auto" in finding.remedy


def finding(code: Any, share: float = 1.0, evidence: str = "") -> Finding:
    """Return a finding of a code."""
    return Finding(code, share, 0.9, code, evidence, "do")


def test_the_first_finding_changes_only_after_two_seconds() -> None:
    """A flutter of a second does not change the reason; its numbers are always the newest."""
    steady = StableFindings()
    loss, slow = finding("loss"), finding("path-slow")
    assert steady.update(0, (loss,))[0].code == "loss"
    assert steady.update(1 * SECOND_NS, (slow, finding("loss", 0.4, "newer")))[0].evidence == "newer"
    assert steady.update(2 * SECOND_NS, (loss,))[0].code == "loss"
    for second in (3, 4):
        assert steady.update(second * SECOND_NS, (slow,))[0].code == "loss"
    assert steady.update(5 * SECOND_NS, (slow,))[0].code == "path-slow"


@given(
    st.lists(
        st.tuples(st.integers(1, 20), st.sampled_from(["loss", "path-slow", "core-saturated", "pacing"])),
        min_size=1,
        max_size=40,
    )
)
def test_no_sequence_of_findings_makes_the_first_one_flap(steps: list[tuple[int, str]]) -> None:
    """In any sequence a displayed finding stays for two seconds, and its successor was first."""
    steady = StableFindings()
    at_ns, changed_ns, since_ns, shown, rival = 0, -(2**62), 0, "", ""
    for tenths, code in steps:
        at_ns += tenths * SECOND_NS // 10
        if code != rival:
            rival, since_ns = code, at_ns
        displayed = steady.update(at_ns, (finding(code), finding("mss-small", 0.1)))[0].code
        if displayed != shown and shown:
            assert displayed == code
            assert at_ns - since_ns >= 2 * SECOND_NS
            assert at_ns - changed_ns >= 2 * SECOND_NS
        if displayed != shown:
            shown, changed_ns = displayed, at_ns


def test_findings_are_renewed_once_a_second_and_dropped_at_a_change() -> None:
    """While a run settles after a change, it has no findings."""
    watch = LiveDiagnosis(Meter())
    assert watch.current_findings == watch.final_findings == ()
    feed(watch, started())
    fed(watch, 0, 8)
    found = watch.current_findings
    assert found[0].share is not None
    fed(watch, 8, 10, rwnd_limited_us=0)
    assert watch.current_findings is found
    fed(watch, 10, 13, rwnd_limited_us=0)
    assert watch.current_findings is not found
    feed(watch, Changed(13 * QUARTER_NS, Settings(sessions=5), EXPECTED))
    fed(watch, 13, 18, Settings(sessions=5), warmup=True)
    assert watch.current_findings == ()
    assert watch.final_findings[0].share is not None


LIMITS: dict[str, dict[str, int]] = {
    "receive-window": {"rwnd_limited_us": 200_000},
    "loss": {"rwnd_limited_us": 0, "bytes_retrans": 60_000, "retransmits": 40},
    "sender-starved": {"rwnd_limited_us": 0, "busy_us": 60_000},
}


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(st.integers(1, 15), st.sampled_from(list(LIMITS)), st.sampled_from([False, False, False, True])),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 5),
)
def test_a_displayed_finding_stays_for_two_seconds_unless_settings_change(
    steps: list[tuple[int, str, bool]], reads_every: int
) -> None:
    """Even if the screen reads it often. After a change of settings the old findings are gone at once."""
    watch = LiveDiagnosis(Meter())
    feed(watch, started())
    now, index, shown, since = Settings(), 0, "", 0
    for quarters, limit, is_changed in steps:
        if is_changed:
            now = replace(now, sessions=now.sessions + 1)
            feed(watch, Changed(index * QUARTER_NS, now, EXPECTED))
            assert watch.current_findings == watch.current_windows == ()
            shown = ""
        for _ in range(quarters):
            fed(watch, index, index + 1, now, **LIMITS[limit])
            index += 1
            if index % reads_every:
                continue
            findings = watch.current_findings
            code = findings[0].code if findings else ""
            if code != shown:
                assert not shown or (index - since) * QUARTER_NS >= 2 * SECOND_NS
                shown, since = code, index


def test_the_plan_and_the_data_path_are_part_of_the_evidence() -> None:
    """Remedies depend on the mode, the sizes and the burst; ssh as the data path replaces all other causes."""
    collector = EvidenceCollector(Meter())
    plan = Plan(workload=Workload.FETCH, mode=Mode.SENDFILE, response_bytes=5_000)
    feed(collector, started(plan))
    fed(collector, 0, 8)
    evidence = collector.period_evidence()
    assert evidence is not None
    assert (evidence.mode, evidence.response_bytes, evidence.burst) == (Mode.SENDFILE, 5_000, 1)
    assert not evidence.is_data_through_ssh
    feed(collector, Warned(WarningText.DATA_THROUGH_SSH.value, WarningKind.DATA_THROUGH_SSH))
    evidence = collector.period_evidence()
    assert evidence is not None
    assert evidence.is_data_through_ssh


@pytest.mark.parametrize("kind", [None, WarningKind.OTHER])
def test_a_warning_that_the_other_end_words_like_one_of_this_end_is_no_evidence(kind: WarningKind | None) -> None:
    """Its text may be any: it would hide a cause, or accuse a program of this host."""
    collector = EvidenceCollector(Meter())
    feed(collector, started())
    fed(collector, 0, 8)
    texts = [WarningText.DATA_THROUGH_SSH.value, WarningText.OTHER_TRAFFIC.format(nic="eth0", facts="sshd to x")]
    for text in texts:
        feed(collector, Warned(text, kind))
    evidence = collector.period_evidence()
    assert evidence is not None
    assert not evidence.is_data_through_ssh
    assert evidence.other_traffic == ()
    feed(collector, Warned(texts[1], WarningKind.OTHER_TRAFFIC))
    evidence = collector.period_evidence()
    assert evidence is not None
    assert evidence.other_traffic == ("sshd to x",)


def test_a_run_without_a_target_rate_is_diagnosed_only_on_request() -> None:
    """It has no target, but a run without payload always has a fault."""
    silent, requested = LiveDiagnosis(Meter()), LiveDiagnosis(Meter(), without_target=True)
    for watch in (silent, requested):
        feed(watch, replace(started(), expectation=Expectation()))
        fed(watch, 0, 8)
    assert silent.current_findings == silent.final_findings == ()
    assert requested.current_findings
    assert requested.final_findings


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.UDP])
@pytest.mark.parametrize("direction", list(Direction))
def test_a_run_against_an_iperf3_is_diagnosed_while_it_runs_and_at_its_end(
    direction: Direction, workload: Workload
) -> None:
    """One end's samples are enough; before the results a requested rate is neither a loss nor a slow path."""
    meter = Meter()
    diagnosis = LiveDiagnosis(meter)
    parts = [total(flow, 1, 11_000_000, retransmits=0, received=11_000, lost=1_000) for flow in direction.flows]
    live: set[str] = set()
    for event in iperf3_run(direction, workload=workload, totals=reported(*parts, cpu_ns=3 * SECOND_NS)):
        meter.feed(event)
        if isinstance(event, Sampled):
            live |= {finding.code for finding in diagnosis.current_findings}
    assert live
    assert not live & {"no-payload", "core-saturated"}
    final = diagnosis.final_findings
    # The losses of a receiver do not explain a slow sender.
    is_far = direction is not Direction.OUT or workload is Workload.STREAM
    assert any(finding.code == "core-saturated" and finding.end is End.FAR for finding in final) is is_far
    if workload is Workload.UDP and direction is Direction.OUT:
        assert "lost on the path or in the remote host" in "".join(finding.text for finding in final)
