"""Full cores, missing offloads, and transactions that wait for a core."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.plan import Mode
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import CoreLoad, Evidence, link_evidence
from linkgauge.presets.wire import DEFAULT_VARIANT

from ..evidence_cases import FULL, IDLE, NIC, first, run


def test_a_full_core_with_idle_ones_beside_it_suggests_more_sessions() -> None:
    """One worker fills one core while others idle: more sessions are the way out."""
    findings = diagnose(run(700, near={"cores": FULL, "busiest_worker": 0.97, "process": 1.0}))
    assert [each_finding.code for each_finding in findings][:2] == ["core-saturated", "sessions-few"]
    assert findings[0].end is End.NEAR
    assert "user 20, system 60, softirq 19" in findings[0].evidence
    assert findings[1].remedy == "linkgauge … --sessions 3 --workers 3"


def test_a_receiver_that_does_not_read_is_not_a_window_that_is_too_small() -> None:
    """The window closes, and its own core is full."""
    finding = first(run(300, rwnd_limited=0.6, far={"cores": FULL, "busiest_worker": 0.96}))
    assert (finding.code, finding.end) == ("core-saturated", End.FAR)


def test_missing_offloads_limit_a_fast_link() -> None:
    """At 10 Gb/s single packets fill a core."""
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
    assert "µs of CPU time per MiB" in first(one_host).evidence


@pytest.mark.parametrize(
    ("sessions", "remedy"), [(1, "linkgauge … --sessions 3, for all"), (9, "a faster machine")]
)
def test_a_full_core_of_one_host_limits_transactions(sessions: int, remedy: str) -> None:
    """More sessions use more cores, if there are any; a mode of streams does not help."""
    both = {"cores": FULL, "process": 0.5, "busiest_worker": 0.5}
    evidence = run(500, busy=0.1, near=both, far=both, sessions=sessions, expected_bit_s=None)
    there = replace(evidence.far, hostname=evidence.near.hostname)
    finding = first(replace(evidence, workload=Workload.RR, far=there))
    assert finding.code == "core-saturated"
    assert finding.text.startswith("A CPU core is saturated: both ends")
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
    """The ssh processes are the test's own data path, so the remedy does not end them."""
    busy = {"cores": (CoreLoad(0.7, 0.29, 0.0, 0.0), CoreLoad(0.6, 0.2, 0.0, 0.0)), "busiest_worker": 0.2}
    (finding,) = diagnose(run(300, busy=0.4, near=busy, far=busy, is_data_through_ssh=True))
    assert finding.code == "ssh-data-path"
    assert "ssh carries and encrypts the payload" in finding.text
    assert "end them" not in finding.remedy
    assert "without --via-ssh" in finding.remedy
    assert (finding.share, finding.confidence) == (1.0, 0.9)


@pytest.mark.parametrize("is_sender", [True, False])
@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.FETCH, Workload.RR])
@pytest.mark.parametrize("mode", [mode for mode in Mode if not mode.is_for_datagrams])
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


BUSY = tuple(CoreLoad(0.7, 0.25, 0.03, 0.0) for _ in range(2))
STOLEN = tuple(CoreLoad(0.2, 0.25, 0.03, 0.5) for _ in range(2))


def on_one_host(evidence: Evidence) -> Evidence:
    """Return the evidence of the same run between two ends of one machine."""
    return replace(evidence, far=replace(evidence.far, hostname=evidence.near.hostname))


@pytest.mark.parametrize("is_one_host", [True, False])
@pytest.mark.parametrize("is_sender", [True, False])
@pytest.mark.parametrize("waiting", [0.3, 0.7])
def test_a_competitor_is_named_at_the_end_whose_worker_waits(
    waiting: float, *, is_sender: bool, is_one_host: bool
) -> None:
    """Both ends of one machine have the same cores, all of them full; only one of their workers waits for one."""
    held = {"cores": BUSY, "busiest_worker": 0.2, "process": 0.2, "waiting": waiting}
    free = {"cores": BUSY if is_one_host else IDLE, "busiest_worker": 0.3, "process": 0.3, "waiting": 0.03}
    ends = {"near": held, "far": free} if is_sender else {"near": free, "far": held}
    stopped = {"busy": 0.6} if is_sender else {"rwnd_limited": 0.4}
    evidence = run(500, **stopped, **ends)
    finding = first(on_one_host(evidence) if is_one_host else evidence)
    assert (finding.code, finding.end) == ("core-saturated", End.NEAR if is_sender else End.FAR)
    assert finding.text.startswith("Other processes take the core")
    assert finding.remedy.endswith("end them, or test at a time when a core is idle")


@pytest.mark.parametrize("cores", [None, ((0,), (1,)), ((0,), (0, 1))], ids=["any", "apart", "shared"])
@pytest.mark.parametrize("is_one_host", [False, True])
@pytest.mark.parametrize(("near", "far"), [(0.5, 0.45), (0.45, 0.5), (0.3, 0.3)])
def test_competitors_of_both_ends_are_one_cause_if_the_ends_share_their_cores(
    near: float, far: float, *, is_one_host: bool, cores: tuple[tuple[int, ...], tuple[int, ...]] | None
) -> None:
    """TCP waits for the sender, but either of two slow workers may be the cause; the longer wait is first."""
    ends = ({"cores": BUSY, "busiest_worker": 0.2, "process": 0.2, "waiting": waiting} for waiting in (near, far))
    evidence = run(500, busy=0.6, **dict(zip(("near", "far"), ends, strict=True)))
    evidence = on_one_host(evidence) if is_one_host else evidence
    if cores is not None:
        evidence = replace(evidence, near_cores=cores[0], far_cores=cores[1])
    findings = diagnose(evidence)
    assert 0.95 <= sum(each_finding.share or 0 for each_finding in findings) <= 1.001
    if is_one_host and (cores is None or 0 in cores[1]):
        assert [(each_finding.code, each_finding.end) for each_finding in findings] == [("core-saturated", None)]
        assert findings[0].text == "Other processes take the cores of this machine, which both ends share."
        assert findings[0].evidence.startswith("the remote end: core" if far > near else "the local end: core")
        return
    assert [each_finding.code for each_finding in findings] == ["core-saturated", "core-saturated"]
    assert [each_finding.end for each_finding in findings] == (
        [End.FAR, End.NEAR] if far > near else [End.NEAR, End.FAR]
    )
    if cores is not None and cores[1] == (1,):
        named = {each_finding.end: each_finding.evidence.split(" is ")[0] for each_finding in findings}
        assert named == {End.NEAR: "core 0", End.FAR: "core 1"}


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.FETCH])
@pytest.mark.parametrize(
    ("load", "code", "phrase"),
    [
        ({"busiest_worker": 0.97, "process": 1.0, "waiting": 0.02}, "core-saturated", "its cores are the limit"),
        ({"busiest_worker": 0.2, "process": 0.2, "waiting": 0.1, "cores": STOLEN}, "steal", "The hypervisor"),
    ],
)
def test_one_machine_has_one_finding_about_its_cores(
    load: dict[str, Any], code: str, phrase: str, workload: Workload
) -> None:
    """In both directions at a time, each end sends and receives."""
    both = {"cores": BUSY} | load
    evidence = run(400, busy=0.6, rwnd_limited=0.2, near=both, far=both, workload=workload, response_bytes=10**9)
    (flow,) = evidence.flows
    back = replace(flow, direction=Direction.IN)
    duplex = replace(evidence, direction=Direction.DUPLEX, bit_s=800e6, expected_bit_s=1_896e6, flows=(flow, back))
    for each in (evidence, duplex):
        findings = [each_finding for each_finding in diagnose(on_one_host(each)) if each_finding.code == code]
        assert len(findings) == 1
        assert (findings[0].end is None) is (
            len({each_finding.end for each_finding in diagnose(each) if each_finding.code == code}) == 2
        )
        assert phrase in findings[0].text or findings[0].end is not None
        assert sum(each_finding.share or 0 for each_finding in diagnose(on_one_host(each))) <= 1.001


@pytest.mark.parametrize("is_one_host", [False, True])
@pytest.mark.parametrize("is_sender", [False, True])
@pytest.mark.parametrize(("waiting", "user"), [(0.02, 0.0), (0.5, 0.0), (0.5, 0.1)])
def test_a_core_full_of_packets_is_told_from_a_full_worker_and_from_competitors(
    waiting: float, user: float, *, is_sender: bool, is_one_host: bool
) -> None:
    """The worker waits for the core on which the kernel handles packets; other processes have the other core."""
    packets = (CoreLoad(0.5, 0.2, 0.05, 0.0), CoreLoad(user, 0.05, 0.85, 0.0))
    held = {"cores": packets, "busiest_worker": 0.2, "process": 0.2, "waiting": waiting}
    other = {"cores": packets if is_one_host else IDLE, "busiest_worker": 0.3, "process": 0.3, "waiting": 0.02}
    ends = {"near": held, "far": other} if is_sender else {"near": other, "far": held}
    evidence = run(500, busy=0.95, rwnd_limited=0.1, **ends)
    evidence = on_one_host(evidence) if is_one_host else evidence
    finding = first(evidence)
    assert finding.code == "core-saturated"
    where, core = (End.NEAR, "of the local end") if is_sender else (End.FAR, "of the remote end")
    if is_one_host:
        where, core = None, ", which both ends share"
    assert (finding.end, finding.text) == (where, f"Packets fill one CPU core {core}.".replace(" ,", ","))
    assert "the kernel handles all of them on core 1; " in finding.evidence
    assert "other processes" not in finding.text.lower()
    apart = replace(evidence, near_cores=(0,), far_cores=(1,))
    assert first(apart).end is (End.FAR if is_one_host else where)
    worker = {**held, "busiest_worker": 0.95}
    full = run(500, busy=0.95, rwnd_limited=0.1, **ends | {"near" if is_sender else "far": worker})
    assert "one session can use one core" in first(full).text
    (silent,) = diagnose(run(940, busy=0.95, **ends))
    assert silent.code == "at-expected"


def test_a_worker_that_sleeps_is_not_held_up_by_a_full_core_beside_it() -> None:
    """A reader that another program stops leaves the window shut; the core does not matter."""
    asleep = {"cores": BUSY, "busiest_worker": 0.05, "process": 0.05, "waiting": 0.02}
    codes = {
        each_finding.code
        for each_finding in diagnose(on_one_host(run(300, rwnd_limited=0.6, near=asleep, far=asleep)))
    }
    assert "core-saturated" not in codes
    starved = first(on_one_host(run(300, busy=0.3, near=asleep, far=asleep)))
    assert (starved.code, starved.end) == ("sender-starved", End.NEAR)
    assert "CPU" not in starved.text
    assert "no core is full" not in starved.evidence
    assert "cpu.max" not in starved.remedy


@pytest.mark.parametrize("is_sender", [True, False])
@pytest.mark.parametrize(("mbit_s", "throttled"), [(500, 0.5), (100, 0.9), (500, 1.0)])
def test_a_quota_is_told_from_a_competitor_by_the_time_for_which_it_stops_the_end(
    mbit_s: int, throttled: float, *, is_sender: bool
) -> None:
    """The cores are idle meanwhile, or busy with others; a worker that a quota stops waits in both cases."""
    stopped = {"busy": 1 - throttled} if is_sender else {"rwnd_limited": throttled}
    for cores in (IDLE, BUSY):
        held = {
            "cores": cores,
            "busiest_worker": 1 - throttled,
            "process": 1 - throttled,
            "waiting": throttled,
            "throttled": throttled,
        }
        free = {"cores": cores, "waiting": 0.02}
        ends = {"near": held, "far": free} if is_sender else {"near": free, "far": held}
        finding = first(on_one_host(run(mbit_s, **stopped, **ends)))
        assert (finding.code, finding.end) == ("cpu-quota", End.NEAR if is_sender else End.FAR)
        assert (finding.share or 0) > 0.9
        assert "cpu.max" in finding.remedy


@pytest.mark.parametrize(
    ("stolen", "waiting", "code"), [(0.2, 0.5, "core-saturated"), (0.5, 0.2, "steal"), (0.5, None, "steal")]
)
def test_stolen_time_is_named_only_if_it_explains_more_than_the_competitors(
    stolen: float, waiting: float | None, code: str
) -> None:
    """Other guests of a crowded host are there most of the time."""
    cores = (CoreLoad(0.2, 0.75 - stolen, 0.05, stolen), CoreLoad(0.5, 0.1, 0.0, 0.0))
    busy = {"cores": cores, "busiest_worker": 0.2, "process": 0.2 if waiting else 0.6, "waiting": waiting}
    findings = diagnose(run(400, busy=0.4, near=busy))
    assert findings[0].code == code
    assert code == "steal" or all(each_finding.code != "steal" for each_finding in findings)


@pytest.mark.parametrize(
    ("sessions", "workers", "cores", "remedy"),
    [
        (8, 1, None, "linkgauge … --workers 3"),
        (2, 1, None, "linkgauge … --workers 2"),
        (8, 1, (0,), "linkgauge … without --cores, or with more than 1 core"),
        (1, None, (0,), "linkgauge … without --cores, or with more than 1 core"),
        (1, None, None, "linkgauge … --sessions 2 --workers 2"),
    ],
)
def test_a_full_worker_gets_the_workers_and_cores_that_the_run_does_not_have(
    sessions: int, workers: int | None, cores: tuple[int, ...] | None, remedy: str
) -> None:
    """One worker for many sessions is not a limit of the machine."""
    full = {"cores": FULL, "busiest_worker": 0.97, "process": 1.0, "waiting": 0.02}
    evidence = run(300, busy=0.7, near=full, sessions=sessions)
    finding = first(replace(evidence, workers=workers, near_cores=cores))
    assert (finding.code, finding.end) == ("core-saturated", End.NEAR)
    assert finding.remedy == remedy


LOADS = st.builds(lambda *parts: CoreLoad(*(each / max(1.0, sum(parts)) for each in parts)), *[st.floats(0, 1)] * 4)
ENDS = st.fixed_dictionaries(
    {
        "cores": st.lists(LOADS, max_size=4).map(tuple),
        "busiest_worker": st.none() | st.floats(0, 1),
        "process": st.none() | st.floats(0, 4),
        "waiting": st.none() | st.floats(0, 1),
        "throttled": st.none() | st.floats(0, 1),
    }
)


@given(
    near=ENDS,
    far=ENDS,
    busy=st.none() | st.floats(0, 1),
    rwnd_limited=st.floats(0, 1),
    sessions=st.integers(1, 20),
    workload=st.sampled_from([Workload.STREAM, Workload.RR, Workload.FETCH]),
    is_one_host=st.booleans(),
    workers=st.none() | st.integers(1, 20),
)
def test_no_text_about_a_processor_contradicts_its_evidence(
    near: dict[str, Any], far: dict[str, Any], *, is_one_host: bool, workers: int | None, **flow: Any
) -> None:
    """Findings about an end's cores, quota and workers agree with the measurements there."""
    evidence = replace(run(300, near=near, far=far, response_bytes=10**6, **flow), workers=workers)
    for finding in diagnose(on_one_host(evidence) if is_one_host else evidence):
        if finding.end is None:
            continue
        there = evidence.of_end(finding.end)
        hottest = max((core.busy for core in there.cores), default=0.0)
        crowded_out = (there.waiting or 0.0) - min(there.waiting or 0.0, there.throttled or 0.0)
        if finding.code == "cpu-quota":
            assert (there.throttled or 0) >= 0.1 or "while one was idle" in finding.evidence
            assert there.waiting is None or there.waiting >= 0.1
        if finding.code == "steal":
            stolen = max(core.steal for core in there.cores)
            assert there.waiting is None or stolen > there.waiting
        if finding.code == "core-saturated":
            assert hottest >= 0.9 or "is saturated" not in finding.text
            assert (there.busiest_worker or 0) >= 0.85 or "can use one core" not in finding.text
            takes_core = finding.text.startswith("Other processes take")
            assert not takes_core or (crowded_out >= 0.1 and "other processes used 0.0" not in finding.evidence)
        assert hottest < 0.9 or "no core is full" not in finding.evidence
        assert workers is None or f"--workers {workers}" not in finding.remedy.split(" --sessions")[0]


def test_a_worker_that_waits_beside_an_idle_core_has_a_quota() -> None:
    """Its cgroup may not be known: it was moved there while it ran. A full core explains a wait as well."""
    idle = (CoreLoad(0.03, 0.01, 0.0, 0.0), CoreLoad(0.3, 0.1, 0.0, 0.0))
    (finding,) = [each for each in diagnose(run(100, far={"waiting": 0.98, "cores": idle})) if each.end is End.FAR]
    assert (finding.code, finding.confidence) == ("cpu-quota", 0.75)
    assert "waited 98 % of the time for a core, while one was idle" in finding.evidence
    full = diagnose(run(100, far={"waiting": 0.98, "cores": FULL}))
    assert "cpu-quota" not in {each.code for each in full}
