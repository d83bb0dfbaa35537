"""Evidence of runs over a 1 Gb link, for tests of rules."""

import re
from dataclasses import fields, replace
from typing import Any

from linkgauge.engine.model.directions import Direction, End, PerDirection
from linkgauge.engine.model.host_info import NicInfo, TcpSysctls
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.responsiveness.result import Latency, LoadedLatency, Responsiveness
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import (
    CoreLoad,
    EndEvidence,
    Evidence,
    FlowEvidence,
    LinkEvidence,
    link_evidence,
)
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.wire import DEFAULT_VARIANT

NIC = NicInfo("eth0", "device", "ixgbe", 1_000_000_000, "full", 1_500, tso=True, gso=True, gro=True)
IDLE = (CoreLoad(0.05, 0.05, 0.0, 0.0), CoreLoad(0.1, 0.05, 0.05, 0.0), CoreLoad(0.1, 0.0, 0.0, 0.0))
FULL = (CoreLoad(0.2, 0.6, 0.19, 0.0), *IDLE[1:])
TCP = TcpSysctls(212_992, 212_992, 6_291_456, 4_194_304, window_scaling=True, timestamps=True, congestion="cubic")
LINK = link_evidence(load_catalog().find("gbe-fd-1500"), DEFAULT_VARIANT)
WANTED_BIT_S = 948e6
NUMBER = re.compile(r"(?<![\w-])\d")  # a digit in a name, as in eth0 or iperf3, is none


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
    """Return a run out over a 1 Gb link whose sender always had data, unless the arguments say otherwise."""
    of_run = {each.name for each in fields(Evidence)} - {each.name for each in fields(FlowEvidence)}
    defaults = {"workload": Workload.STREAM, "sessions": 1, "expected_bit_s": WANTED_BIT_S}
    whole: dict[str, Any] = defaults | {
        name: flow.pop(name) for name in [*flow] if name in of_run or name == "expected_bit_s"
    }
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
    single_flow = FlowEvidence(Direction.OUT, mbit_s * 1e6, whole["expected_bit_s"], **values | flow)
    return Evidence(
        direction=Direction.OUT,
        span_ns=5 * SECOND_NS,
        bit_s=mbit_s * 1e6,
        flows=(single_flow,),
        near=end(End.NEAR, **near or {}),
        far=end(End.FAR, **far or {}),
        link=link,
        **whole,
    )


def check_sentences(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings; each begins with a short sentence without a number, and its evidence has the numbers."""
    for finding in findings:
        assert len(finding.text.split()) <= 15, finding
        assert NUMBER.search(finding.text) is None, finding
        assert finding.text.endswith("."), finding
        assert ". " not in finding.text, finding
    return findings


def first(evidence: Evidence) -> Finding:
    """Return the first finding."""
    return check_sentences(diagnose(evidence))[0]


def unseen(evidence: Evidence, process: float | None = None) -> Evidence:
    """Return the same run against an iperf3 server: only the CPU time of its process is known."""
    far = EndEvidence(End.FAR, "db-02", "unknown", process=process)
    return replace(evidence, far=far, unseen_end=End.FAR)


def unseen_sender(mbit_s: float = 500.0, process: float | None = None, **flow: Any) -> Evidence:
    """Return a run in from an iperf3 server: of the sender's TCP only the retransmits are known."""
    names = ("busy", "rwnd_limited", "sndbuf_limited", "rtt_us", "min_rtt_us", "cwnd_bytes", "peer_window_bytes")
    evidence = run(mbit_s, **{**dict.fromkeys(names), "congestion": None, **flow})
    flows = tuple(replace(each, direction=Direction.IN) for each in evidence.flows)
    return unseen(replace(evidence, direction=Direction.IN, flows=flows), process)


def probed(
    evidence: Evidence, rise_ms: float | None, idle_ms: float = 1.0, handshake_ms: float | None = None
) -> Evidence:
    """Return a run beside whose load probes took longer, and new connections had a handshake of a length."""
    nothing = PerDirection(None, None, None)
    rise_ns = None if rise_ms is None else rise_ms * 1e6
    idle, handshake = (
        None if ms is None else Latency(40, ms * 1e6, round(ms * 1e6), round(ms * 1e6))
        for ms in (idle_ms, handshake_ms)
    )
    load = LoadedLatency(
        evidence.direction, 2, 0, 0, 0, nothing, None, rise_ns, None, None, nothing, None, handshake, None, None,
        (), None, is_steady=True,
    )  # fmt: skip
    return replace(evidence, responsiveness=Responsiveness("request", idle, (load,), rise_ns, None, None))
