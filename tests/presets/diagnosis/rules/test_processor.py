"""Full cores, missing offloads, and transactions that wait for a core."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.plan import End, Mode
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import (
    CoreLoad,
    link_evidence,
)
from linkgauge.presets.wire import DEFAULT_VARIANT

from ..evidence_cases import FULL, IDLE, NIC, first, run


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
    assert "ms of CPU time per MiB" in first(one_host).evidence


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
    assert finding.text.startswith("CPU core 0 is saturated: both ends")
    assert finding.remedy.startswith(remedy)
    elsewhere = first(replace(evidence, workload=Workload.RR))
    assert "--mode" not in elsewhere.remedy


@pytest.mark.parametrize(
    ("sessions", "busiest_worker", "workload", "is_one_session"),
    [
        (1, 0.97, Workload.STREAM, True),
        (1, 0.2, Workload.STREAM, False),
        (5, 0.2, Workload.STREAM, False),
        (5, 0.97, Workload.STREAM, False),
        (3, 0.3, Workload.FETCH, False),
        (1, 0.97, Workload.FETCH, True),
    ],
)
def test_one_session_is_named_only_if_its_worker_fills_the_core(
    sessions: int, busiest_worker: float, workload: Workload, *, is_one_session: bool
) -> None:
    """Idle workers, or several of them, show that the core is full of something else."""
    full = (CoreLoad(0.02, 0.2, 0.75, 0.0), *IDLE[1:])
    both = {"cores": full, "busiest_worker": busiest_worker, "process": 0.5}
    finding = first(run(500, busy=0.3, near=both, far=both, sessions=sessions, workload=workload))
    assert finding.code == "core-saturated"
    assert ("one session can use one core" in finding.text) is is_one_session


def test_the_encryption_of_ssh_is_the_limit_of_a_run_through_ssh() -> None:
    """The ssh processes are the test's own data path, so nobody is told to end them."""
    busy = {"cores": (CoreLoad(0.7, 0.29, 0.0, 0.0), CoreLoad(0.6, 0.2, 0.0, 0.0)), "busiest_worker": 0.2}
    (finding,) = diagnose(run(300, busy=0.4, near=busy, far=busy, is_data_through_ssh=True))
    assert finding.code == "ssh-data-path"
    assert "ssh carries and encrypts the payload" in finding.text
    assert "end them" not in finding.remedy
    assert "without --via-ssh" in finding.remedy
    assert (finding.share, finding.confidence) == (1.0, 0.9)


@pytest.mark.parametrize("is_sender", [True, False])
@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.FETCH, Workload.RR])
@pytest.mark.parametrize("mode", list(Mode))
def test_a_full_core_suggests_only_a_mode_that_the_run_takes_and_does_not_have(
    mode: Mode, workload: Workload, *, is_sender: bool
) -> None:
    """Sendfile saves the sender's copy, discard the receiver's; rr has no modes."""
    is_near = is_sender is (workload is Workload.STREAM)
    cores = {"near" if is_near else "far": {"cores": FULL[:2], "busiest_worker": 0.97}}
    held = {"busy": 0.3} if is_sender else {"rwnd_limited": 0.8}
    finding = first(run(300, **held, **cores, mode=mode, workload=workload, sessions=4))
    assert finding.code == "core-saturated"
    modes = [each for each in Mode if f"--mode {each}" in finding.remedy]
    expected = {
        (Mode.COPY, True): [Mode.SENDFILE],
        (Mode.COPY, False): [Mode.DISCARD],
        (Mode.SENDFILE, False): [Mode.DISCARD],
    }
    assert modes == ([] if workload is Workload.RR else expected.get((mode, is_sender), []))
