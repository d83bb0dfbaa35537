"""The reasons of slow runs: recorded ones, and every rule on values of its own."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import NicCounts
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.host_info import TcpSysctls
from linkgauge.engine.model.plan import SECOND_NS, Dialect, Mode
from linkgauge.engine.model.serialization import decode
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import (
    CoreLoad,
    Evidence,
    HoldShares,
    LinkEvidence,
    link_evidence,
)
from linkgauge.presets.diagnosis.finding import (
    MIN_CONFIDENCE,
    FindingCode,
    finding_figures,
    read_findings,
)
from linkgauge.presets.wire import DEFAULT_VARIANT

from .claims import check_advice, check_claims, plausible_evidence
from .evidence_cases import (
    FULL,
    IDLE,
    LINK,
    NIC,
    TCP,
    WANTED_BIT_S,
    check_sentences,
    end,
    first,
    run,
    unseen,
    unseen_sender,
)

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.toml"))
# `make grid ARGS="--record …"` adds a line for each case.
RECORDED = [
    json.loads(line)
    for path in sorted((Path(__file__).parent / "scenarios" / "grid").glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]


CAUSES: Final[list[tuple[dict[str, Any], dict[str, Any], str]]] = [
    ({"retransmitted": 0.02, "retransmits": 900}, {}, "loss"),
    ({"retransmitted": 0.4, "retransmits": 9_000, "mbit_s": 20}, {}, "retransmission-storm"),
    ({"needless": 900, "mbit_s": 100}, {}, "reordering"),
    (
        {"retransmitted": 0.02, "retransmits": 900},
        {"far": {"counts": NicCounts(1, 1, 700, 0, 0)}},
        "nic-errors",
    ),
    ({"retransmitted": 0.02, "retransmits": 900}, {"far": {"counts": NicCounts(1, 1, 0, 700, 0)}}, "nic-drops"),
    (
        {"retransmitted": 0.02, "retransmits": 900, "cwnd_bytes": 66_000, "intervals": 20, "rate_spread": 0.02},
        {},
        "policer",
    ),
    ({"pacing_bit_s": 510_000_000}, {}, "pacing"),
    ({"congestion": "bbr", "pacing_bit_s": 510_000_000}, {}, "path-slow"),
    ({"cwnd_bytes": 60_000}, {}, "congestion-window"),
    ({"rtt_us": 9_000}, {}, "path-slow"),
    ({"mbit_s": 800, "mss_bytes": 400}, {}, "mss-small"),
    ({"mbit_s": 800, "mss_bytes": 400}, {"far": {"nic": replace(NIC, mtu_bytes=452)}}, "mtu-mismatch"),
    ({}, {"far": {"nic": replace(NIC, line_rate_bit_s=500_000_000)}}, "nic-speed"),
    ({}, {"far": {"nic": replace(NIC, duplex="half")}}, "duplex-mismatch"),
    (
        {},
        {"near": {"nic": replace(NIC, duplex="half")}, "far": {"nic": replace(NIC, duplex="half")}},
        "half-duplex",
    ),
    ({}, {"near": {"counts": NicCounts(0, 600_000_000, 0, 0, 0)}}, "other-traffic"),
    ({"busy": 0.5}, {}, "sender-starved"),
    ({"busy": 0.5}, {"near": {"cores": (CoreLoad(0.2, 0.3, 0.1, 0.4),)}}, "steal"),
    ({"sndbuf_limited": 0.6}, {}, "send-buffer"),
    ({"ceiling_bit_s": 520_000_000}, {}, "tester-limited"),
    ({"rate_bit_s": 500_000_000}, {}, "rate-limited"),
    (
        {"mbit_s": 95, "window_scaling": False, "rwnd_limited": 0.9, "min_rtt_us": 5_000, "rtt_us": 5_100},
        {},
        "window-scaling-off",
    ),
    (
        {"mss_bytes": 1_400},
        {"near": {"nic": replace(NIC, tso=False), "cores": FULL, "busiest_worker": 0.95}},
        "core-saturated",
    ),
]
# These findings describe the set-up of a host or a link, which outlasts the run.
SETTINGS: Final = {
    *("window-below-bdp", "window-clamped", "window-scaling-off", "mss-small", "mtu-mismatch", "nic-speed"),
    *("half-duplex", "duplex-mismatch", "timestamps-on", "timestamps-off", "offloads-off", "another-link"),
    *("sessions-few", "nic-errors", "nic-drops"),
}
PRESENT: Final = re.compile(
    r"Running|\b((?<!Mb/s )is|are|has|stops|takes?|waits|pauses|arrives?|carries|limits)\b"
    r"|\b(leaves|needs|shares?|paces|grants|builds|drops|exceeds|stays)\b"
)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_recorded_run_is_explained_by_the_fault_of_its_link(path: Path) -> None:
    """Each was recorded in a lab whose link was spoilt on purpose, or left alone."""
    scenario = tomllib.loads(path.read_text(encoding="utf-8"))
    findings = diagnose(decode(Evidence, scenario["evidence"]))
    assert findings[0].code == scenario["wanted"]
    if scenario["wanted"] == "at-expected":
        assert len(findings) == 1
    else:
        assert (findings[0].share or 0) >= 0.5
        assert findings[0].remedy
    assert read_findings(finding_figures(findings)) != ()


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["title"])
def test_a_recorded_case_of_the_grid_is_explained_by_its_cause(case: dict[str, Any]) -> None:
    """At the right end, if the cause is at one; and the findings agree with the numbers."""
    evidence = decode(Evidence, case["evidence"])
    findings = diagnose(evidence)
    assert findings[0].code in case["wanted"]
    assert case["at"] in {None, findings[0].end}
    assert findings[0].text.startswith("Packets filled one CPU core") is ("filters" in case["title"])
    check_claims(evidence, findings)
    check_advice(evidence, findings)


def mirrored(evidence: Evidence) -> Evidence:
    """Return a run whose other end sends: each end has the other end's measurements."""
    near, far = replace(evidence.far, end=End.NEAR), replace(evidence.near, end=End.FAR)
    back = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT, Direction.DUPLEX: Direction.DUPLEX}
    flows = tuple(replace(flow, direction=back[flow.direction]) for flow in evidence.flows)
    cores = {"near_cores": evidence.far_cores, "far_cores": evidence.near_cores}
    return replace(evidence, direction=back[evidence.direction], flows=flows, near=near, far=far, **cores)


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.RR, Workload.CRR, Workload.FETCH], ids=str)
@pytest.mark.parametrize("is_mirrored", [False, True], ids=["as recorded", "mirrored"])
def test_recorded_cases_keep_the_rules_of_findings_with_every_workload(
    workload: Workload, *, is_mirrored: bool
) -> None:
    """Shares add up to at most 1, claims hold, and remedies name only what the run takes and does not have.

    Each finding begins with a short sentence without a number.
    """
    scenarios = [tomllib.loads(path.read_text(encoding="utf-8")) for path in SCENARIOS]
    for case in [*RECORDED, *scenarios]:
        evidence = decode(Evidence, case["evidence"])
        evidence = mirrored(evidence) if is_mirrored else evidence
        size = 65_536 if workload.is_transactional else 0
        modes = [mode for mode in Mode if mode.is_for_datagrams is workload.is_datagram]
        for mode in modes if workload.is_bulk else (Mode.COPY,):
            other = replace(evidence, workload=workload, response_bytes=size, mode=mode)
            findings = diagnose(other)
            check_claims(other, findings)
            check_advice(other, findings)
            check_sentences(findings)
            assert sum(each_finding.share or 0.0 for each_finding in findings) <= 1.001, findings


@pytest.mark.parametrize("case", [case for case in RECORDED if case["at"] is not None], ids=lambda c: c["title"])
def test_a_mirrored_case_names_the_other_end(case: dict[str, Any]) -> None:
    """No rule prefers one end."""
    evidence = decode(Evidence, case["evidence"])
    assert diagnose(evidence)[0].end is End(case["at"])
    assert diagnose(mirrored(evidence))[0].end is End(case["at"]).other


def test_a_run_at_its_expected_rate_has_a_single_finding() -> None:
    """It names the next limit, if a core is nearly full."""
    (finding,) = diagnose(run(930, near={"cores": FULL}))
    assert (finding.code, finding.share) == ("at-expected", None)
    assert "98.1 % of 948 Mb/s" in finding.evidence
    assert "next limit at the local end: core 0 is 99 % busy" in finding.evidence


@pytest.mark.parametrize(("flow", "ends", "code"), CAUSES)
def test_each_cause_yields_its_own_finding(flow: dict[str, Any], ends: dict[str, Any], code: str) -> None:
    """On a link of 1 Gb that carries half of it; offloads matter from more packets on than it has."""
    assert first(run(**flow, **ends)).code == code


@pytest.mark.parametrize(
    ("flow", "ends", "code"),
    [
        *CAUSES,
        ({"mbit_s": 930}, {"near": {"cores": FULL}}, "at-expected"),
        ({"mbit_s": 0}, {}, "no-payload"),
        ({"workload": Workload.RR}, {}, "round-trip"),
        ({"workload": Workload.FETCH, "response_bytes": 4_000, "rtt_us": 900, "min_rtt_us": 500}, {}, "round-trip"),
        ({"rwnd_limited": 0.6}, {}, "receive-window"),
        ({"busy": 0.5}, {"near": {"waiting": 0.4, "throttled": 0.4}}, "cpu-quota"),
        ({}, {"near": {"waiting": 0.6, "busiest_worker": 0.3, "cores": FULL}}, "core-saturated"),
    ],
)
def test_after_the_end_findings_are_in_the_past_tense(
    flow: dict[str, Any], ends: dict[str, Any], code: str
) -> None:
    """The settings of a link or a kernel remain; the limits of the run are over."""
    active = run(**flow, **ends)
    before, after = (diagnose(replace(active, has_ended=has_ended)) for has_ended in (False, True))
    assert after[0].code == code
    assert [finding.code for finding in before] == [finding.code for finding in after]
    for finding in after:
        if finding.code not in SETTINGS:
            assert not PRESENT.search(f"{finding.text} {finding.evidence}"), finding


@pytest.mark.parametrize("ceiling_bit_s", [499_000_000, 400_000_000, 1])
def test_a_ceiling_below_the_measured_rate_is_not_quoted(ceiling_bit_s: int) -> None:
    """It was measured with other settings or long ago: 58 543 of 49 391 Mb/s explains nothing."""
    findings = diagnose(run(ceiling_bit_s=ceiling_bit_s))
    assert "tester-limited" not in [finding.code for finding in findings]


@pytest.mark.parametrize(
    ("sent_bytes", "seconds"),
    [
        (80_000 * 5 // 8, None),  # the far end's samples take 28 kb/s of the link
        (93_000 * 8 // 8, 8),  # an end that is told late to stop counts for longer
    ],
)
def test_a_slow_link_carries_its_own_control_connection_and_no_other_traffic(
    sent_bytes: int, seconds: int | None
) -> None:
    """The interface's counts are compared over their own time."""
    nic = replace(NIC, name="wan0", line_rate_bit_s=None)
    counts_ns = None if seconds is None else seconds * SECOND_NS
    ends = {"nic": nic, "counts": NicCounts(0, sent_bytes, 0, 0, 0), "counts_ns": counts_ns}
    evidence = run(0.05, expected_bit_s=121_500, near=ends, cwnd_bytes=14_480, retransmitted=0.2)
    assert "other-traffic" not in [finding.code for finding in diagnose(evidence)]
    loud = replace(evidence.near, counts=NicCounts(0, 20 * sent_bytes, 0, 0, 0))
    assert "other-traffic" in [finding.code for finding in diagnose(replace(evidence, near=loud))]


def test_sessions_without_payload_point_to_packets_that_are_too_large() -> None:
    """The remedy finds out how large they may be."""
    finding = first(run(0, retransmits=12, near={"nic": replace(NIC, mtu_bytes=9_000)}))
    assert finding.code == "no-payload"
    assert (
        finding.remedy
        == "ping -M do -s 1472 PEER finds the largest packet; at the local end: ip link set eth0 mtu 1500"
    )


def test_sessions_without_payload_or_retransmits_have_lost_nothing() -> None:
    """A smaller MTU would change nothing."""
    finding = first(run(0, retransmits=0))
    assert finding.text == "No payload has arrived, and none was lost."
    assert finding.evidence == "0 retransmits: the test is too short for its rate or for the path"
    assert finding.remedy == "test for longer: linkgauge … --seconds 60"


def test_findings_without_an_expected_rate_have_no_share() -> None:
    """On loopback a full core limits all the same."""
    lo = replace(NIC, name="lo", sort="loopback", line_rate_bit_s=None, mtu_bytes=65_536)
    full = {"cores": FULL, "busiest_worker": 0.99, "nic": lo}
    findings = diagnose(run(40_000, expected_bit_s=None, link=LinkEvidence("none"), near=full, far={"nic": lo}))
    assert findings[0].code == "core-saturated"
    assert all(each_finding.share is None for each_finding in findings)


@pytest.mark.parametrize("workload", [Workload.RR, Workload.CRR])
def test_transactions_wait_for_round_trips_if_no_core_is_full(workload: Workload) -> None:
    """They mostly have nothing to send; a full core comes before that."""
    evidence = replace(run(5, expected_bit_s=10e6, busy=0.01), workload=workload)
    assert [each_finding.code for each_finding in diagnose(evidence)] == ["round-trip"]
    full = replace(evidence.far, cores=FULL, busiest_worker=0.97)
    findings = diagnose(replace(evidence, far=full))
    assert findings[0].code == "core-saturated"
    assert not any("no core is full" in each_finding.evidence for each_finding in findings)


def fetched(response_bytes: int, rtt_us: int, sessions: int) -> Evidence:
    """Return the evidence of a fetch over an ideal link of 948 Mb/s."""
    whole_bits = sessions * response_bytes * 8
    bit_s = whole_bits / max(whole_bits / WANTED_BIT_S, rtt_us / 1e6 + response_bytes * 8 / WANTED_BIT_S)
    busy = min(1.0, bit_s / WANTED_BIT_S)
    return run(
        bit_s / 1e6,
        workload=Workload.FETCH,
        sessions=sessions,
        response_bytes=response_bytes,
        rtt_us=rtt_us,
        min_rtt_us=rtt_us,
        busy=busy,
        cwnd_bytes=100_000_000,
    )


@given(
    sessions=st.sampled_from([1, 3, 10]),
    rtt_us=st.sampled_from([50, 1_000, 30_000, 200_000]),
    response_bytes=st.sampled_from([1_000, 64_000, 1_000_000, 20_000_000, 500_000_000]),
)
def test_a_fetch_is_limited_by_round_trips_only_if_they_take_its_time(
    response_bytes: int, rtt_us: int, sessions: int
) -> None:
    """A request costs one round trip, which is nothing beside a long response."""
    evidence = fetched(response_bytes, rtt_us, sessions)
    finding = first(evidence)
    if evidence.bit_s >= 0.95 * WANTED_BIT_S:
        assert finding.code == "at-expected"
    else:
        assert finding.code == "round-trip"
        assert (finding.share or 0) > 0.8
        assert "--sessions" in finding.remedy
        assert "--burst" not in finding.remedy
    fast = replace(evidence, flows=(replace(evidence.flows[0], rtt_us=1, min_rtt_us=1),))
    assert response_bytes < 64_000 or first(fast).code != "round-trip"


def test_a_fast_fetch_without_an_expected_rate_is_not_limited_by_round_trips() -> None:
    """40 Gb/s over loopback: responses of 20 MB take 4 ms each, a round trip 50 microseconds."""
    lo = replace(NIC, name="lo", sort="loopback", line_rate_bit_s=None, mtu_bytes=65_536)
    ends = {"near": {"nic": lo}, "far": {"nic": lo, "cores": FULL, "busiest_worker": 0.97}}
    rates = {"expected_bit_s": None, "rtt_us": 60, "min_rtt_us": 50, "busy": 0.5}
    findings = diagnose(
        run(40_000, **rates, **ends, workload=Workload.FETCH, response_bytes=20_000_000, link=LinkEvidence("none"))
    )
    assert findings[0].code == "core-saturated"
    assert all(finding.code != "round-trip" for finding in findings)


@pytest.mark.parametrize(
    ("ceiling_bit_s", "is_limit"), [(510e6, True), (600e6, True), (700e6, False), (450e6, False)]
)
def test_a_ceiling_limits_only_a_rate_just_below_it(ceiling_bit_s: float, *, is_limit: bool) -> None:
    """A rate above the ceiling shows that the ceiling is out of date."""
    codes = [finding.code for finding in diagnose(run(500, ceiling_bit_s=int(ceiling_bit_s), rtt_us=9_000))]
    assert ("tester-limited" in codes) is is_limit


@pytest.mark.parametrize("cores", [IDLE, FULL], ids=["idle", "full"])
def test_the_evidence_of_an_unexplained_run_says_whether_a_core_is_full(cores: tuple[CoreLoad, ...]) -> None:
    """Other processes may fill a core for which TCP did not wait: then the evidence has its load."""
    loopback = link_evidence(load_catalog().find("loopback"), DEFAULT_VARIANT)
    evidence = run(20_000, expected_bit_s=None, link=loopback, near={"cores": cores}, far={"cores": cores})
    finding = first(replace(evidence, far=replace(evidence.far, hostname=evidence.near.hostname)))
    assert finding.code == "unexplained"
    assert ("no core is full" in finding.evidence) is (cores is IDLE)
    assert "no sign of a window, loss or queue limit; local core " in finding.evidence


def test_a_run_without_any_signs_is_unexplained() -> None:
    """Without TCP's clocks and with idle cores there is no reason to name."""
    unknown = dict.fromkeys(("busy", "rwnd_limited", "sndbuf_limited", "rtt_us", "min_rtt_us", "timestamps"))
    link = replace(LINK, payload_bytes=None)
    assert first(run(expected_bit_s=None, link=link, **unknown)).code in {"path-slow", "unexplained"}


def test_a_duplex_run_is_explained_by_its_slow_direction() -> None:
    """A duplex run that is slow one way only is explained by that way."""
    evidence = run(950, expected_bit_s=1_900e6)
    good = replace(evidence.flows[0], bit_s=930e6, expected_bit_s=950e6, rtt_us=9_000)
    bad = replace(good, direction=Direction.IN, bit_s=20e6, rtt_us=1_050, retransmitted=0.03, retransmits=900)
    findings = diagnose(replace(evidence, direction=Direction.DUPLEX, bit_s=950e6, flows=(good, bad)))
    assert findings[0].code == "loss"
    assert (findings[0].share or 0) > 0.9


SHARES = st.none() | st.floats(0, 1)
COUNTS = st.none() | st.integers(0, 2**62)


@given(
    evidence=st.builds(
        run,
        st.floats(0, 1_000),
        **dict.fromkeys(("busy", "rwnd_limited", "low_window", "sndbuf_limited", "retransmitted"), SHARES),
        **dict.fromkeys(("rtt_us", "min_rtt_us", "cwnd_bytes", "mss_bytes", "pacing_bit_s", "retransmits"), COUNTS),
        **dict.fromkeys(("peer_window_bytes", "delivery_bit_s"), COUNTS),
        intervals=st.integers(0, 2**40),
        rate_spread=st.none() | st.floats(0, 100),
        timestamps=st.none() | st.booleans(),
        window_scaling=st.none() | st.booleans(),
        congestion=st.sampled_from([None, "bbr", "cubic"]),
        sessions=st.integers(1, 128),
        window_bytes=st.none() | st.integers(2_048, 1 << 30),
        send_window_bytes=st.none() | st.integers(1_024, 1 << 30),
        link=st.sampled_from([None, LINK, LinkEvidence("none")]),
        expected_bit_s=st.sampled_from([None, 1.0, WANTED_BIT_S]),
        ceiling_bit_s=st.none() | st.integers(1, 10**10),
        workload=st.sampled_from([Workload.STREAM, Workload.RR, Workload.CRR, Workload.FETCH]),
        mode=st.sampled_from([mode for mode in Mode if not mode.is_for_datagrams]),
        response_bytes=st.integers(0, 2**30),
        burst=st.integers(1, 1_024),
        is_data_through_ssh=st.booleans(),
        near=st.fixed_dictionaries(
            {
                "cores": st.sampled_from([(), IDLE, FULL]),
                "nic": st.sampled_from([None, NIC, replace(NIC, tso=False, mtu_bytes=576)]),
                "tcp": st.sampled_from([None, TCP, TcpSysctls()]),
                "counts": st.sampled_from([None, NicCounts(2**40, 2**40, 20, 20, 20)]),
                "busiest_worker": SHARES,
            }
        ),
    )
)
def test_any_evidence_has_findings_with_sensible_shares(evidence: Evidence) -> None:
    """Never an exception; shares from 0 to 1, in their order, and together at most 1."""
    findings = check_sentences(diagnose(evidence))
    assert findings
    ranks = [each_finding.rank for each_finding in findings]
    assert ranks == sorted(ranks, reverse=True)
    assert all(
        each_finding.code in get_args(FindingCode)
        and 0 < each_finding.confidence <= 1
        and each_finding.text
        and each_finding.remedy
        for each_finding in findings
    )
    shares = [
        each_finding.share
        for each_finding in findings
        if each_finding.share is not None and each_finding.code != "sessions-few"
    ]
    assert all(0 <= share <= 1 for share in shares)
    assert sum(shares) <= 1.001
    stored = read_findings(finding_figures(findings))
    assert [(each_finding.code, each_finding.text, each_finding.evidence) for each_finding in stored] == [
        (each_finding.code, each_finding.text, each_finding.evidence) for each_finding in findings
    ]
    check_advice(evidence, findings)
    check_claims(evidence, findings)


@given(plausible_evidence())
def test_no_finding_contradicts_its_evidence_or_offers_what_the_run_has(evidence: Evidence) -> None:
    """Runs whose numbers belong together. Below a confidence of 0.5 no cause is named."""
    findings = diagnose(evidence)
    check_claims(evidence, findings)
    check_advice(evidence, findings)
    assert all(
        each_finding.code == "unexplained" for each_finding in findings if each_finding.confidence < MIN_CONFIDENCE
    )
    shares = [each_finding.share for each_finding in findings if each_finding.share is not None]
    assert sum(shares) <= 1.001


@pytest.mark.parametrize("process", [None, 0.3])
def test_an_iperf3_as_sender_is_not_a_slow_path(process: float | None) -> None:
    """Its windows, round trips and queues are unknown: their absence is not a sign."""
    (finding,) = diagnose(unseen_sender(process=process))
    assert finding.code == "unexplained"
    assert "the remote host is not seen through iperf3" in finding.evidence
    assert "no core" not in finding.evidence
    assert "linkgauge endpoint" in finding.remedy


def test_an_iperf3_that_used_all_of_its_core_is_the_limit_in_either_direction() -> None:
    """It has one thread up to 3.15; one that used less than its core is not the limit."""
    for evidence in (unseen_sender(process=0.98), unseen(run(busy=1.0, rwnd_limited=0.6), 0.98)):
        finding = first(evidence)
        assert (finding.code, finding.end) == ("core-saturated", End.FAR)
        assert finding.text == "The remote iperf3 uses all of its core."
    many = replace(unseen_sender(process=2.0), sessions=4)
    assert [each.code for each in diagnose(many)] == ["unexplained"]
    assert first(replace(many, far=replace(many.far, process=3.9))).code == "core-saturated"


def test_limits_of_the_near_end_are_found_without_a_view_of_the_far_one() -> None:
    """A core of the local receiver, losses that the iperf3 counts, a queue that the local sender sees."""
    busy = {"cores": FULL, "busiest_worker": 0.97, "waiting": 0.0}
    assert first(replace(unseen_sender(), near=end(End.NEAR, **busy))).code == "core-saturated"
    lost = unseen_sender(200.0, retransmits=20_000, retransmitted=0.05)
    assert first(lost).code == "loss"
    assert first(unseen(run(500.0, rtt_us=5_000, min_rtt_us=1_000))).code == "path-slow"


def test_losses_before_an_unseen_sender_show_at_the_receiver() -> None:
    """Its packets arrive out of order; a few do so on any path, and a rate as expected has no cause."""
    unknown: dict[str, Any] = {"retransmits": None, "retransmitted": None}
    lost = first(unseen_sender(200.0, out_of_order=2_000, **unknown))
    assert (lost.code, lost.end) == ("loss", None)
    assert "2.3 % of the packets arrived out of order" in lost.evidence
    assert first(unseen_sender(200.0, out_of_order=200, **unknown)).code == "unexplained"


def test_a_constant_window_of_a_browser_is_too_small_and_not_read_slowly() -> None:
    """Its first window may have any size; one that gets smaller again and again shows a slow reader."""
    holds = HoldShares(20, window=0.97)
    full = {"rtt_us": 20_000, "min_rtt_us": 19_900, "rwnd_limited": 0.98, "peer_window_bytes": 42_112}
    values = {"cwnd_bytes": 9_000_000, "unacked_bytes": 40_140, "window_growth": 1.0, "holds": holds}
    evidence = replace(unseen(run(16.0, **full, **values)), dialect=Dialect.BROWSER)
    finding = first(evidence)
    assert finding.code == "window-below-bdp"
    assert "not seen through a browser" in finding.evidence
    assert "tcp_rmem" in finding.remedy
    slow = replace(unseen(run(16.0, **full, **values, low_window=0.5)), dialect=Dialect.BROWSER)
    assert first(slow).code == "receive-window"


def test_a_browser_whose_window_has_no_room_for_a_segment_reads_slowly() -> None:
    """Also if it had no room from the first sample on; what to do is possible on a phone."""
    full = {"rtt_us": 30_000, "min_rtt_us": 800, "rwnd_limited": 0.78, "peer_window_bytes": 1_024}
    finding = first(replace(unseen(run(16.0, cwnd_bytes=900_000, **full)), dialect=Dialect.BROWSER))
    assert finding.code == "receive-window"
    assert "reading too slowly" in finding.text
    assert "tabs" in finding.remedy
    whole = replace(
        unseen(run(16.0, cwnd_bytes=900_000, **{**full, "peer_window_bytes": 2_048})), dialect=Dialect.BROWSER
    )
    assert "too slowly" not in first(whole).text


def test_a_window_of_an_iperf3_that_stops_the_sender_is_not_called_a_slow_reader() -> None:
    """Its kernel's limit is unknown. Only a window that gets smaller shows a slow reader."""
    # Of the 1 050 000 bytes that the peer advertises, 1 000 000 are in flight all the time.
    full = {"rtt_us": 16_000, "min_rtt_us": 15_900, "rwnd_limited": 0.9, "peer_window_bytes": 1_050_000}
    finding = first(unseen(run(500.0, cwnd_bytes=9_000_000, **full)))
    assert finding.code == "receive-window"
    assert "reading" not in finding.text
    late = first(unseen(run(500.0, cwnd_bytes=9_000_000, low_window=0.5, **full)))
    assert "too slowly" in late.text
