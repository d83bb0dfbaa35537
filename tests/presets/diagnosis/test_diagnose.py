"""Why it is not faster: recorded runs, and every rule on values of its own."""

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.host_info import NicInfo, TcpSysctls
from linkgauge.engine.model.plan import SECOND_NS, Direction, End
from linkgauge.engine.model.samples import NicCounts
from linkgauge.engine.model.serialization import decode
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.diagnosis.diagnose import diagnose, findings_json, read_findings
from linkgauge.presets.diagnosis.evidence import (
    CoreLoad,
    EndEvidence,
    Evidence,
    FlowEvidence,
    LinkEvidence,
    link_evidence,
)
from linkgauge.presets.diagnosis.finding import FINDING_CODES, Finding
from linkgauge.presets.wire import DEFAULT_VARIANT, Variant

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.toml"))
NIC = NicInfo("eth0", "device", "ixgbe", 1_000_000_000, "full", 1_500, tso=True, gso=True, gro=True)
IDLE = (CoreLoad(0.05, 0.05, 0.0, 0.0), CoreLoad(0.1, 0.05, 0.05, 0.0), CoreLoad(0.1, 0.0, 0.0, 0.0))
FULL = (CoreLoad(0.2, 0.6, 0.19, 0.0), *IDLE[1:])
TCP = TcpSysctls(212_992, 212_992, 6_291_456, 4_194_304, window_scaling=True, timestamps=True, congestion="cubic")
LINK = link_evidence(load_catalog().find("gbe-fd-1500"), DEFAULT_VARIANT)
WANTED_BIT_S = 948e6


def end(of: End, **more: Any) -> EndEvidence:
    """Return an end with three idle cores."""
    values = {"cores": IDLE, "busiest_worker": 0.1, "process": 0.1, "nic": NIC, "tcp": TCP} | more
    return EndEvidence(of, f"host-{of}", "Linux 6.12", **values)


def run(
    mbit_s: float = 500.0,
    *,
    near: dict[str, Any] | None = None,
    far: dict[str, Any] | None = None,
    link: LinkEvidence | None = LINK,
    **flow: Any,
) -> Evidence:
    """Return a run out over a 1 Gb link whose sender always had something to send, unless told otherwise."""
    whole = {"sessions": 1, "window_bytes": None, "ceiling_bit_s": None, "expected_bit_s": WANTED_BIT_S}
    told = {name: flow.pop(name, default) for name, default in whole.items()}
    values: dict[str, Any] = {
        "busy": 1.0,
        "rwnd_limited": 0.0,
        "sndbuf_limited": 0.0,
        "retransmits": 0,
        "retransmitted": 0.0,
        "rtt_us": 1_050,
        "min_rtt_us": 1_000,
        "cwnd_bytes": 1_000_000,
        "mss_bytes": 1_448,
        "peer_window_bytes": 3_000_000,
        "congestion": "cubic",
        "timestamps": True,
        "window_scaling": True,
    }
    one = FlowEvidence(Direction.OUT, mbit_s * 1e6, told["expected_bit_s"], **values | flow)
    return Evidence(
        workload=Workload.STREAM,
        direction=Direction.OUT,
        span_ns=5 * SECOND_NS,
        bit_s=mbit_s * 1e6,
        flows=(one,),
        near=end(End.NEAR, **near or {}),
        far=end(End.FAR, **far or {}),
        link=link,
        **told,
    )


def first(evidence: Evidence) -> Finding:
    """Return the first finding."""
    return diagnose(evidence)[0]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_recorded_run_is_explained_by_what_was_done_to_its_link(path: Path) -> None:
    """Each was recorded in a lab whose link was spoilt on purpose, or left alone."""
    scenario = tomllib.loads(path.read_text(encoding="utf-8"))
    findings = diagnose(decode(Evidence, scenario["evidence"]))
    assert findings[0].code == scenario["wanted"]
    if scenario["wanted"] == "at-expected":
        assert len(findings) == 1
    else:
        assert (findings[0].share or 0) >= 0.5
        assert findings[0].remedy
    assert read_findings(json.loads(json.dumps(findings_json(findings)))) != ()


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("window-below-bdp", "--window 512K"),
        ("window-clamped", "at the near end: sysctl -w net.ipv4.tcp_rmem='4096 131072 1048576'"),
        ("window-scaling-off", "at the near end: sysctl -w net.ipv4.tcp_window_scaling=1"),
        ("loss", "ip -s -s link show"),
        ("path-slow", "tc -s qdisc show dev near0"),
        ("mtu-mismatch", "at the far end: ip link set far0 mtu 1500"),
        ("core-saturated", "ps -eo pid,psr,pcpu,comm"),
        ("offloads-off", "at the near end: ethtool -K near0 tso on gso on gro on"),
    ],
)
def test_a_recorded_runs_remedy_is_what_undoes_it(name: str, remedy: str) -> None:
    """What a person is told to type is the reverse of what was done."""
    scenario = tomllib.loads((Path(__file__).parent / "scenarios" / f"{name}.toml").read_text(encoding="utf-8"))
    assert remedy in first(decode(Evidence, scenario["evidence"])).remedy


def test_a_link_at_its_expected_rate_has_one_finding_that_says_so() -> None:
    """And what would limit next, where a core is nearly full."""
    (finding,) = diagnose(run(930, near={"cores": FULL}))
    assert (finding.code, finding.share) == ("at-expected", None)
    assert "98.1 % of 948 Mb/s" in finding.evidence
    assert "next limit at the near end: core 0 is 99 % busy" in finding.evidence


def test_what_a_link_lacks_beside_a_full_core_of_its_own_is_the_cores() -> None:
    """One worker fills one core while others idle: more sessions are the way out."""
    findings = diagnose(run(700, near={"cores": FULL, "busiest_worker": 0.97, "process": 1.0}))
    assert [one.code for one in findings][:2] == ["core-saturated", "sessions-few"]
    assert findings[0].end is End.NEAR
    assert "user 20, system 60, softirq 19" in findings[0].evidence
    assert findings[1].remedy == "linkgauge … --sessions 3 --workers 3"


def test_a_receiver_that_does_not_read_is_not_a_window_that_is_too_small() -> None:
    """The window closes, and its own core is full."""
    finding = first(run(300, rwnd_limited=0.6, far={"cores": FULL, "busiest_worker": 0.96}))
    assert (finding.code, finding.end) == ("core-saturated", End.FAR)


def test_a_receiver_without_a_full_core_is_still_told() -> None:
    """With less confidence."""
    finding = first(run(300, rwnd_limited=0.6))
    assert (finding.code, finding.end) == ("receive-window", End.FAR)
    assert finding.confidence <= 0.5


def test_a_window_that_the_kernel_did_not_grant_names_its_sysctl_and_its_value() -> None:
    """The remedy asks for what was asked for, or what is needed, whichever is more."""
    finding = first(
        run(
            150,
            rwnd_limited=0.8,
            min_rtt_us=10_000,
            rtt_us=10_500,
            window_bytes=4_194_304,
            send_window_bytes=4_194_304,
            receive_window_bytes=212_992,
        )
    )
    assert (finding.code, finding.end) == ("window-clamped", End.FAR)
    assert "net.core.rmem_max there is 212 992 bytes" in finding.evidence
    assert finding.remedy == "at the far end: sysctl -w net.core.rmem_max=4194304"


def test_a_larger_window_is_asked_for_after_the_kernel_lets_it() -> None:
    """Both steps are in the remedy, in order."""
    finding = first(
        run(
            45,
            sndbuf_limited=0.9,
            min_rtt_us=10_000,
            rtt_us=10_500,
            window_bytes=57_344,
            send_window_bytes=57_344,
            receive_window_bytes=57_344,
        )
    )
    assert finding.code == "window-below-bdp"
    assert finding.remedy.startswith("linkgauge … --window 2M, or --window auto; first at the near end: sysctl -w")


@pytest.mark.parametrize(
    ("system", "remedy"),
    [
        ("Darwin 23.1.0", "at the far end: sysctl -w net.inet.tcp.autorcvbufmax=4194304"),
        ("FreeBSD 14.0", "at the far end: sysctl -w net.inet.tcp.recvbuf_max=4194304"),
        ("AIX 7", "at the far end: let TCP grow its buffers to 4194304 bytes"),
    ],
)
def test_a_remedy_is_a_command_of_the_ends_own_system(system: str, remedy: str) -> None:
    """Nobody is told to type what does not exist there."""
    evidence = run(150, rwnd_limited=0.8, min_rtt_us=10_000, rtt_us=10_500)
    small = replace(evidence.far, system=system, tcp=TcpSysctls(tcp_rmem_max_bytes=262_144))
    assert first(replace(evidence, far=small)).remedy == remedy


@pytest.mark.parametrize(
    ("flow", "ends", "code"),
    [
        ({"retransmitted": 0.02, "retransmits": 900}, {}, "loss"),
        (
            {"retransmitted": 0.02, "retransmits": 900},
            {"far": {"counts": NicCounts(1, 1, 700, 0, 0)}},
            "nic-errors",
        ),
        ({"retransmitted": 0.02, "retransmits": 900}, {"far": {"counts": NicCounts(1, 1, 0, 700, 0)}}, "nic-drops"),
        ({"congestion": "bbr", "pacing_bit_s": 510_000_000}, {}, "pacing"),
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
        (
            {"window_scaling": False, "rwnd_limited": 0.9, "min_rtt_us": 5_000, "rtt_us": 5_100},
            {},
            "window-scaling-off",
        ),
        (
            {"mss_bytes": 1_400},
            {"near": {"nic": replace(NIC, tso=False), "cores": FULL, "busiest_worker": 0.95}},
            "core-saturated",
        ),
    ],
)
def test_each_cause_is_told_by_its_own_signs(flow: dict[str, Any], ends: dict[str, Any], code: str) -> None:
    """On a link of 1 Gb that carries half of it; offloads matter from more packets on than it has."""
    assert first(run(**flow, **ends)).code == code


def test_offloads_that_are_off_are_the_reason_where_packets_are_many() -> None:
    """At 10 Gb/s a core is full of single packets."""
    nic = replace(NIC, tso=False, line_rate_bit_s=10_000_000_000)
    link = link_evidence(load_catalog().find("10gbe-1500"), DEFAULT_VARIANT)
    evidence = run(
        4_000,
        expected_bit_s=9.4e9,
        cwnd_bytes=9_000_000,
        link=link,
        near={"nic": nic, "cores": FULL, "busiest_worker": 0.95},
        far={"nic": nic},
    )
    assert first(evidence).code == "offloads-off"


def test_a_core_that_is_full_of_anothers_cut_packets_is_that_ends_offloads() -> None:
    """On one host a receiver's core has the sender's packets one by one, and its cores are the sender's."""
    link = link_evidence(load_catalog().find("10gbe-1500"), DEFAULT_VARIANT)
    cut, whole = (
        NicInfo(name, "virtual", "veth", tso=on, gso=on) for name, on in (("near0", False), ("far0", True))
    )
    evidence = run(
        4_000,
        expected_bit_s=9.4e9,
        rwnd_limited=0.6,
        cwnd_bytes=9_000_000,
        link=link,
        near={"nic": cut},
        far={"nic": whole, "cores": FULL, "busiest_worker": 0.95},
    )
    assert (first(evidence).code, first(evidence).end) == ("core-saturated", End.FAR)
    one_host = replace(evidence, far=replace(evidence.far, hostname=evidence.near.hostname))
    assert (first(one_host).code, first(one_host).end) == ("offloads-off", End.NEAR)
    assert "each MiB costs linkgauge there" in first(one_host).evidence


def test_timestamps_that_the_preset_has_and_the_sessions_do_not_are_told() -> None:
    """Behind what explains more."""
    link = replace(LINK, timestamps=True, payload_bytes=1_448)
    codes = [one.code for one in diagnose(run(link=link, timestamps=False, rtt_us=9_000))]
    assert codes == ["path-slow", "timestamps-off"]


def test_headers_that_the_preset_does_not_have_explain_the_last_percent() -> None:
    """12 bytes of 1460 are what misses the mark here."""
    finding = first(replace(run(940, rtt_us=9_000), pass_percent=100.0))
    assert finding.code == "timestamps-on"
    assert (finding.share or 0) > 0.9


def test_a_broken_nic_does_not_hide_behind_a_full_queue() -> None:
    """A path whose queue overflows now and then is slow, and not lossy."""
    finding = first(run(retransmitted=0.0005, retransmits=30, rtt_us=30_000))
    assert finding.code == "path-slow"
    assert "--direction in" in finding.evidence


def test_no_payload_at_all_is_a_matter_of_packets_that_are_too_large() -> None:
    """The remedy finds out how large they may be."""
    finding = first(run(0, near={"nic": replace(NIC, mtu_bytes=9_000)}))
    assert finding.code == "no-payload"
    assert (
        finding.remedy
        == "ping -M do -s 1472 PEER tells the largest packet; at the near end: ip link set eth0 mtu 1500"
    )


def test_where_nothing_is_expected_findings_have_no_share() -> None:
    """On loopback a full core limits all the same."""
    lo = replace(NIC, name="lo", sort="loopback", line_rate_bit_s=None, mtu_bytes=65_536)
    full = {"cores": FULL, "busiest_worker": 0.99, "nic": lo}
    findings = diagnose(run(40_000, expected_bit_s=None, link=LinkEvidence("none"), near=full, far={"nic": lo}))
    assert findings[0].code == "core-saturated"
    assert all(one.share is None for one in findings)


@pytest.mark.parametrize("workload", [Workload.RR, Workload.CRR, Workload.FETCH])
def test_transactions_wait_for_round_trips_where_no_core_is_full(workload: Workload) -> None:
    """Having nothing to send is what they mostly do; a full core comes before it."""
    evidence = replace(run(5, expected_bit_s=10e6, busy=0.01), workload=workload)
    assert [one.code for one in diagnose(evidence)] == ["round-trip"]
    full = replace(evidence.far, cores=FULL, busiest_worker=0.97)
    findings = diagnose(replace(evidence, far=full))
    assert findings[0].code == "core-saturated"
    assert not any("no core is full" in one.evidence for one in findings)


@pytest.mark.parametrize("cores", [IDLE, FULL], ids=["idle", "full"])
def test_no_core_is_called_full_that_is_not_and_none_idle_that_is_full(cores: tuple[CoreLoad, ...]) -> None:
    """Other processes may fill one, of which TCP did not wait: then it is told how full, and not that none is."""
    loopback = link_evidence(load_catalog().find("loopback"), DEFAULT_VARIANT)
    evidence = run(20_000, expected_bit_s=None, link=loopback, near={"cores": cores}, far={"cores": cores})
    finding = first(replace(evidence, far=replace(evidence.far, hostname=evidence.near.hostname)))
    assert finding.code == "unexplained"
    assert ("no core is full" in finding.evidence) is (cores is IDLE)
    assert "no window, loss or queue shows; core " in finding.evidence.replace("core is full and no ", "")


def test_nothing_to_see_is_said() -> None:
    """Without TCP's own account and with idle cores there is no reason to give."""
    unknown = dict.fromkeys(("busy", "rwnd_limited", "sndbuf_limited", "rtt_us", "min_rtt_us", "timestamps"))
    link = replace(LINK, payload_bytes=None)
    assert first(run(expected_bit_s=None, link=link, **unknown)).code in {"path-slow", "unexplained"}


def test_both_directions_count_by_what_each_lacks() -> None:
    """A duplex run that is slow one way only is explained by that way."""
    evidence = run(950, expected_bit_s=1_900e6)
    good = replace(evidence.flows[0], bit_s=930e6, expected_bit_s=950e6, rtt_us=9_000)
    bad = replace(good, direction=Direction.IN, bit_s=20e6, rtt_us=1_050, retransmitted=0.03, retransmits=900)
    findings = diagnose(replace(evidence, direction=Direction.DUPLEX, bit_s=950e6, flows=(good, bad)))
    assert findings[0].code == "loss"
    assert (findings[0].share or 0) > 0.9


def test_a_links_options_are_part_of_what_should_be_there() -> None:
    """Another line rate, MTU or timestamps change what a packet carries."""
    preset = load_catalog().find("gbe-fd-1500")
    found = link_evidence(preset, Variant(timestamps=True, line_rate_bit_s=2_500_000_000, mtu_bytes=9_000))
    assert (found.line_rate_bit_s, found.mtu_bytes, found.timestamps) == (2_500_000_000, 9_000, True)
    assert (found.payload_bytes, found.wire_bytes) == (8_948, 9_038)
    assert link_evidence(load_catalog().find("loopback"), DEFAULT_VARIANT).payload_bytes is None


SHARES = st.none() | st.floats(0, 1)
COUNTS = st.none() | st.integers(0, 2**62)


@given(
    evidence=st.builds(
        run,
        st.floats(0, 1_000),
        **dict.fromkeys(("busy", "rwnd_limited", "sndbuf_limited", "retransmitted"), SHARES),
        **dict.fromkeys(("rtt_us", "min_rtt_us", "cwnd_bytes", "mss_bytes", "pacing_bit_s", "retransmits"), COUNTS),
        timestamps=st.none() | st.booleans(),
        window_scaling=st.none() | st.booleans(),
        congestion=st.sampled_from([None, "bbr", "cubic"]),
        sessions=st.integers(1, 128),
        window_bytes=st.none() | st.integers(2_048, 1 << 30),
        send_window_bytes=st.none() | st.integers(1_024, 1 << 30),
        link=st.sampled_from([None, LINK, LinkEvidence("none")]),
        expected_bit_s=st.sampled_from([None, 1.0, WANTED_BIT_S]),
        ceiling_bit_s=st.none() | st.integers(1, 10**10),
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
def test_whatever_was_measured_has_findings_whose_shares_make_sense(evidence: Evidence) -> None:
    """Never an exception; shares from 0 to 1, in order of what they explain, together no more than all."""
    findings = diagnose(evidence)
    assert findings
    ranks = [one.rank for one in findings]
    assert ranks == sorted(ranks, reverse=True)
    assert all(
        one.code in FINDING_CODES and 0 < one.confidence <= 1 and one.text and one.remedy for one in findings
    )
    shares = [one.share for one in findings if one.share is not None and one.code != "sessions-few"]
    assert all(0 <= share <= 1 for share in shares)
    assert sum(shares) <= 1.001
    kept = read_findings(json.loads(json.dumps(findings_json(findings), allow_nan=False)))
    assert [one.code for one in kept] == [one.code for one in findings]


@pytest.mark.parametrize("damaged", [None, {}, "x", [1], [{"code": "no-such"}], [{"code": "loss"}]])
def test_findings_that_were_kept_damaged_are_none(damaged: object) -> None:
    """The run log is a file, and files get changed."""
    assert read_findings(damaged) == ()


@pytest.mark.parametrize(
    ("sessions", "remedy"), [(1, "linkgauge … --sessions 3, for all"), (9, "a faster machine")]
)
def test_a_full_core_that_both_ends_share_is_all_that_transactions_take(sessions: int, remedy: str) -> None:
    """More sessions use more cores, as long as there are any; no mode of a stream is any help."""
    both = {"cores": FULL, "process": 0.5, "busiest_worker": 0.5}
    evidence = run(500, busy=0.1, near=both, far=both, sessions=sessions, expected_bit_s=None)
    there = replace(evidence.far, hostname=evidence.near.hostname)
    finding = first(replace(evidence, workload=Workload.RR, far=there))
    assert finding.code == "core-saturated"
    assert finding.text.startswith("Core 0 is full: between two ends of one host")
    assert finding.remedy.startswith(remedy)
    elsewhere = first(replace(evidence, workload=Workload.RR))
    assert "--mode" not in elsewhere.remedy
