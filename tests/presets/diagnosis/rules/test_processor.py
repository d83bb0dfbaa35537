"""Full cores, missing offloads, and transactions that wait for a core."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.plan import End
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import (
    link_evidence,
)
from linkgauge.presets.wire import DEFAULT_VARIANT

from ..evidence_cases import FULL, NIC, first, run


def test_a_full_core_with_idle_ones_beside_it_suggests_more_sessions() -> None:
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


def test_missing_offloads_limit_a_fast_link() -> None:
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


def test_a_core_full_of_segmented_packets_points_to_the_offloads_of_the_sender() -> None:
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


@pytest.mark.parametrize(
    ("sessions", "remedy"), [(1, "linkgauge … --sessions 3, for all"), (9, "a faster machine")]
)
def test_a_full_core_of_one_host_limits_transactions(sessions: int, remedy: str) -> None:
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
