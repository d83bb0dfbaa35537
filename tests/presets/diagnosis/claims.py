"""The claims of findings, computed a second time from the numbers, and the options of their remedies."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from hypothesis import strategies as st
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.host_info import TcpSysctls
from linkgauge.engine.model.plan import SECOND_NS, Mode, Plan, Settings, SocketOptions
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.diagnosis.evidence import Evidence, FlowEvidence
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.diagnosis.trial import Trial
from linkgauge.tui.words import parsing

from .evidence_cases import FULL, IDLE, LINK, NIC, TCP, run

OPTION: Final = re.compile(r"--([a-z]+) (auto|in|out|sendfile|discard|copy|cubic|bbr|\d\w*)")
# Options whose value the user chooses, or that do not change the measurement.
FREE: Final = {"warmup", "via", "data", "cores"}


# Options that a remedy names beside its trial's. Each raises PlanError for a value that the run refuses.
SET_OPTION: Final[dict[str, Callable[[Plan, str], Plan]]] = {
    "sessions": lambda plan, value: Trial(sessions=int(value)).apply_to(plan),
    "window": lambda plan, _: Trial(window_auto=True).apply_to(plan),
    "direction": lambda plan, value: replace(plan, settings=plan.settings.with_changes(direction=Direction(value))),
    "congestion": lambda plan, value: Trial(congestion=value).apply_to(plan),
    "seconds": lambda plan, value: Trial(duration_ns=int(value) * SECOND_NS).apply_to(plan),
    "burst": lambda plan, value: Trial(burst=int(value)).apply_to(plan),
    "mode": lambda plan, value: Trial(mode=Mode(value)).apply_to(plan),
    "rate": lambda plan, value: Trial(rate_bit_s=parsing.rate_bit_s(value)).apply_to(plan),
}


def check_advice(evidence: Evidence, findings: tuple[Finding, ...]) -> None:
    """Check that remedies name only options that the run's plan takes and does not have."""
    workload = evidence.workload
    plan = Plan(
        Settings(evidence.direction, evidence.sessions, evidence.window_bytes),
        workload,
        duration_ns=evidence.span_ns,
        mode=evidence.mode if workload.is_bulk else None,
        burst=evidence.burst if workload.allows_burst else 1,
        socket=SocketOptions(congestion=evidence.flows[0].congestion),
    )
    for finding in findings:
        words = str(finding.trial or "")
        assert words in finding.remedy, finding
        assert finding.trial is None or finding.trial.without_rate or finding.trial.apply_to(plan) != plan, finding
        for name, value in OPTION.findall(finding.remedy.replace(words, "")):
            if name not in FREE:
                assert SET_OPTION[name](plan, value) != plan, finding
            assert name != "sessions" or int(value) > evidence.sessions, finding


def _any(test: Callable[[Evidence, FlowEvidence], bool]) -> Callable[[Evidence], bool]:
    return lambda evidence: any(flow.bit_s > 0 and test(evidence, flow) for flow in evidence.flows)


def _in_flight(evidence: Evidence, flow: FlowEvidence) -> float:
    return flow.bit_s / 8 * (flow.rtt_us or 0) / 1e6 / evidence.sessions


def _queue_us(flow: FlowEvidence) -> int:
    return 0 if flow.rtt_us is None or flow.min_rtt_us is None else flow.rtt_us - flow.min_rtt_us


def _by_mathis(evidence: Evidence, flow: FlowEvidence) -> float:
    """Return the highest rate with this loss by chance: MSS / RTT x sqrt(3/2 / loss) for each session."""
    loss, rtt_us = flow.retransmitted or 1.0, flow.rtt_us or 1
    return (flow.mss_bytes or 0) * 8e6 / rtt_us * (1.5 / loss) ** 0.5 * evidence.sessions


def _is_no_core_full(evidence: Evidence, end: End | None) -> bool:
    ends = (evidence.near, evidence.far) if end is None else (evidence.of_end(end),)
    return all(core.busy < 0.9 for each in ends for core in each.cores)


# By code: the conditions of such a finding in its direction.
CLAIMS: Final[dict[str, Callable[[Evidence], bool]]] = {
    "pacing": _any(lambda all_, flow: 0 < (flow.pacing_bit_s or 0) * all_.sessions <= 1.1 * flow.bit_s),
    "congestion-window": _any(lambda all_, flow: _in_flight(all_, flow) >= 0.7 * (flow.cwnd_bytes or 0)),
    "receive-window": _any(lambda _, flow: bool(flow.rwnd_limited) or (flow.low_window or 0) >= 0.1),
    "send-buffer": _any(lambda _, flow: bool(flow.sndbuf_limited)),
    "sender-starved": _any(lambda _, flow: flow.busy is not None and flow.busy < 1),
    "loss": _any(lambda _, flow: (flow.retransmitted or 0) >= 0.0003),
    "policer": _any(
        lambda all_, flow: (
            (flow.retransmitted or 0) >= 0.0003
            and (
                (flow.rate_spread or 0) * ((flow.retransmits or 0) / flow.intervals) ** 0.5 <= 0.17
                or flow.bit_s >= _by_mathis(all_, flow)
            )
        )
    ),
    "window-below-bdp": lambda evidence: evidence.window_bytes is not None,
    "window-scaling-off": _any(lambda _, flow: flow.window_scaling is False),
    "timestamps-on": _any(lambda _, flow: bool(flow.timestamps)),
    "rate-limited": lambda evidence: evidence.rate_bit_s is not None,
    "tester-limited": lambda evidence: evidence.bit_s <= (evidence.ceiling_bit_s or 0),
    "no-payload": lambda evidence: evidence.bit_s <= 0,
}

# By a phrase of the text or of the evidence.
PHRASES: Final[dict[str, Callable[[Evidence], bool]]] = {
    "its window stops the sender": _any(lambda _, flow: (flow.rwnd_limited or 0) >= 0.05),
    "below its largest size": _any(lambda _, flow: (flow.low_window or 0) >= 0.1),
    "no queue builds": _any(lambda _, flow: _queue_us(flow) < max(1_000, flow.min_rtt_us or 0)),
    "; a queue b": _any(lambda _, flow: _queue_us(flow) >= (flow.min_rtt_us or 0)),
    "a small queue b": _any(lambda _, flow: _queue_us(flow) >= 1_000),
    "no sign of a window, loss": _any(
        lambda _, flow: (flow.retransmitted or 0) < 0.003 and (flow.rwnd_limited or 0) < 0.5
    ),
    "smaller than bandwidth x delay": _any(
        lambda _, flow: (flow.expected_bit_s or 2 * flow.bit_s) > flow.bit_s and bool(flow.rtt_us)
    ),
}


def check_claims(evidence: Evidence, findings: tuple[Finding, ...]) -> None:
    """Check the findings against the numbers."""
    for finding in findings:
        claim = CLAIMS.get(finding.code)
        assert claim is None or claim(evidence), finding
        assert not re.search("no core (is|was) full", finding.evidence) or _is_no_core_full(
            evidence, finding.end
        ), finding
        for phrase, holds in PHRASES.items():
            assert phrase not in f"{finding.text} {finding.evidence}" or holds(evidence), finding


@st.composite
def plausible_evidence(draw: st.DrawFn) -> Evidence:
    """Draw a run whose numbers belong together: windows and paces near the bytes in flight, clocks that add up."""
    mbit_s = draw(st.floats(1, 940))
    sessions = draw(st.sampled_from([1, 2, 5, 64, 128]))
    rtt_us = draw(st.sampled_from([60, 800, 12_000, 80_000]))
    in_flight = mbit_s / 8 * rtt_us / sessions
    sizes = st.sampled_from([0.3, 0.65, 0.9, 1.0, 1.25, 2.0, 5.0]).map(
        lambda part: max(3_000, int(in_flight * part))
    )
    busy = draw(st.sampled_from([0.1, 0.6, 0.95, 1.0]))
    waits = [draw(st.sampled_from([0.0, 0.0, 0.1, 0.6])) * busy, draw(st.sampled_from([0.0, 0.0, 0.4])) * busy]
    workload = draw(st.sampled_from([Workload.STREAM, Workload.STREAM, Workload.FETCH, Workload.RR]))
    loss = draw(st.sampled_from([0.0, 0.0, 0.0005, 0.02]))
    window = draw(st.none() | sizes)
    ends = st.fixed_dictionaries(
        {
            "cores": st.sampled_from([IDLE, IDLE, FULL]),
            "busiest_worker": st.sampled_from([0.02, 0.5, 0.97]),
            "waiting": st.sampled_from([None, 0.01, 0.3, 0.9]),
            "tcp": st.sampled_from([TCP, TcpSysctls()])
            | sizes.map(lambda most: replace(TCP, tcp_wmem_max_bytes=most)),
            "nic": st.sampled_from([NIC, replace(NIC, line_rate_bit_s=100_000_000), replace(NIC, tso=False)]),
        }
    )
    return run(
        mbit_s,
        near=draw(ends),
        far=draw(ends),
        sessions=sessions,
        workload=workload,
        mode=draw(st.sampled_from([mode for mode in Mode if not mode.is_for_datagrams])),
        response_bytes=draw(st.sampled_from([1_000, 10**6, 10**9])) if workload.is_transactional else 0,
        burst=draw(st.sampled_from([1, 7, 1_024])) if workload.allows_burst else 1,
        expected_bit_s=draw(st.sampled_from([None, 948e6, 948e6])),
        ceiling_bit_s=draw(st.sampled_from([None, None, None, int(mbit_s * 1.1e6)])),
        link=draw(st.sampled_from([LINK, LINK, None])),
        busy=busy,
        rwnd_limited=waits[0],
        sndbuf_limited=waits[1],
        retransmitted=loss,
        retransmits=int(loss * 10_000),
        rtt_us=rtt_us,
        min_rtt_us=int(rtt_us * draw(st.sampled_from([0.01, 0.5, 0.93, 0.99]))),
        cwnd_bytes=draw(sizes),
        peer_window_bytes=draw(sizes),
        low_window=draw(st.sampled_from([None, 0.0, 0.0, 0.08, 0.3])),
        pacing_bit_s=int(mbit_s * 1e6 / sessions * draw(st.sampled_from([0.99, 1.05, 1.2, 2.0]))),
        delivery_bit_s=int(mbit_s * 1e6 / sessions * draw(st.sampled_from([0.8, 1.0, 2.0]))),
        window_bytes=window,
        send_window_bytes=window,
        receive_window_bytes=window,
        timestamps=draw(st.booleans()),
        window_scaling=draw(st.sampled_from([True, True, False])),
        congestion=draw(st.sampled_from(["cubic", "bbr", "reno"])),
        intervals=draw(st.sampled_from([0, 7, 16])),
        rate_spread=draw(st.sampled_from([None, 0.0, 0.01, 0.3])),
    )
