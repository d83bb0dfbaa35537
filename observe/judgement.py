"""The result for a connection of another program: its status, the reason in a sentence, and findings.

Pure. A sender has the findings of a run (sender_side.py). A receiver has its own (receiver_side.py). The
status needs more than the evidence has: whether anything moves, the program's CPU load, and the traffic of the
interface.
"""

from dataclasses import dataclass, replace
from typing import Final

from ..engine.host.tcp_info import TcpInfo
from ..engine.model.directions import Direction, End
from ..presets.diagnosis.evidence import Evidence
from ..presets.diagnosis.finding import Finding
from ..presets.diagnosis.flow_view import FlowView, flow_views
from ..presets.number_text import format_quantity, format_rate, format_share, format_time
from .observation import Status
from .receiver_side import find_receiver_limits
from .sender_side import describe_decision, diagnose_observed, lacks_data
from .thread_loads import ThreadLoad

_FULL: Final = 0.95  # of the rate that an interface should carry, by all of its traffic
_SMALL: Final = 0.75  # of the segments that the link carries
_HEADERS_BYTES: Final = 66  # Ethernet, IPv4, TCP with timestamps, as interfaces count them
_ALONE: Final = 0.9
_WHOLE_CORE: Final = 0.9  # of the time, running or waiting for a core
_WAITS: Final = 0.05
_IN_FLIGHT: Final = 0.7  # of the congestion window


@dataclass(frozen=True, slots=True)
class Judgement:
    """The status of a connection, a sentence about it, and the findings, the strongest first."""

    status: Status
    reason: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known beside the evidence: the remote host, the newest reading, and the interface's traffic.

    `stalled` bytes wait in the socket, and none moved for some time. With `is_idle` nothing moved in the last
    seconds, with `has_local_peer` the other end is a socket of this host. `interface_bit_s` is the rate of all
    traffic of the interface in this direction. `thread_load` is the load of the busiest thread of the `program` in
    the last interval; None is unknown.
    """

    remote: str
    info: TcpInfo
    stalled: int = 0
    is_idle: bool = False
    has_local_peer: bool = False
    interface: str | None = None
    interface_bit_s: float | None = None
    program: str | None = None
    thread_load: ThreadLoad | None = None


def judge(evidence: Evidence | None, around: Circumstances) -> Judgement:
    """Return the result for a connection; without evidence it was measured for too short a time."""
    if around.stalled:
        return _stalled(around)
    if around.is_idle or (evidence is not None and evidence.bit_s <= 0):
        return Judgement(Status.IDLE, "No payload moves.")
    if evidence is None:
        return Judgement(Status.NEW, "Measured for too short a time to tell.")
    if evidence.is_as_expected:
        reached = f"{format_rate(evidence.bit_s)} of {format_rate(evidence.expected_bit_s or 0.0)}"
        return Judgement(Status.HEALTHY, f"At the expected rate: {reached}.")
    is_sender = evidence.direction is Direction.OUT
    view = flow_views(evidence)[0]
    if is_sender and lacks_data(view):  # a full interface does not slow it down
        return _app_limited(view, around)
    shared = _share_of_full_interface(evidence, around)
    return shared or (_judge_sender if is_sender else _judge_receiver)(evidence, view, around)


def _judge_sender(evidence: Evidence, view: FlowView, around: Circumstances) -> Judgement:
    """Return the result of a connection that this host sends on, by the rules of a run."""
    findings = diagnose_observed(evidence)
    if findings:
        return Judgement(Status.LIMITED, findings[0].text, findings)
    return _path_or_unknown(view, around)


def _share_of_full_interface(evidence: Evidence, around: Circumstances) -> Judgement | None:
    """Return the result of a connection that shares an interface at its expected rate."""
    expected, total = evidence.expected_bit_s, around.interface_bit_s
    if around.interface is None or expected is None or total is None or total < _FULL * expected:
        return None
    if _fills_it_with_headers(evidence, total):
        return None
    return Judgement(
        Status.HEALTHY,
        f"{around.interface} is full: {format_rate(total)} in all, {format_rate(evidence.bit_s)} of it here.",
    )


def _fills_it_with_headers(evidence: Evidence, total_bit_s: float) -> bool:
    """Return whether a connection fills its interface by itself, and much of that is headers of small segments."""
    mss, link = evidence.flows[0].mss_bytes, evidence.link
    if not mss or link is None or link.payload_bytes is None or mss >= _SMALL * link.payload_bytes:
        return False
    return evidence.bit_s * (1 + _HEADERS_BYTES / mss) >= _ALONE * total_bit_s


def _app_limited(view: FlowView, around: Circumstances) -> Judgement:
    flow, load = view.flow, around.thread_load
    if load is not None and sum(load) >= _WHOLE_CORE:
        uses = f"a thread of {around.program} uses {format_share(load.running)} of one"
        if load.waiting >= _WAITS:
            uses += f", and waits for one {format_share(load.waiting)} of the time"
        return Judgement(Status.APP_LIMITED, f"The sending program is limited by its CPU core: {uses}.")
    idle = ""
    if flow.busy is not None and flow.busy <= 1 - _WAITS:
        idle = f": TCP had nothing to send for {format_share(1 - flow.busy)} of the time"
    elif flow.app_limited:
        idle = f": TCP had sent all that it had in {format_share(flow.app_limited)} of samples"
    return Judgement(Status.APP_LIMITED, f"The sending program sets the rate{idle}.")


def _path_or_unknown(view: FlowView, around: Circumstances) -> Judgement:
    """Return the result of a sender that neither windows nor losses hold up."""
    flow, in_flight = view.flow, view.in_flight_bytes
    fills = view.has_queue or view.fills_queue or view.has_small_queue
    fills = fills or (bool(flow.cwnd_bytes) and (in_flight or 0.0) >= _IN_FLIGHT * (flow.cwnd_bytes or 0))
    if flow.expected_bit_s is None and fills:
        trip = "" if flow.rtt_us is None else f", with a round trip of {format_time(flow.rtt_us)}"
        least = "" if flow.min_rtt_us is None else f", at best {format_time(flow.min_rtt_us)}"
        return Judgement(
            Status.HEALTHY, f"It fills its path{trip}{least}. Give --line-rate to judge the path itself."
        )
    return Judgement(
        Status.UNKNOWN,
        f"No window, loss or queue at this end explains the rate; {describe_decision(around.remote)}.",
    )


def _judge_receiver(_evidence: Evidence, view: FlowView, around: Circumstances) -> Judgement:
    """Return the result of a connection that this host receives on: the sender's figures are at the far end."""
    findings = tuple(
        replace(each, remedy=f"{each.remedy}; {describe_decision(around.remote)}")
        for each in find_receiver_limits(view, around.info)
    )
    if findings:
        return Judgement(Status.LIMITED, findings[0].text, findings)
    if around.has_local_peer:
        return Judgement(
            Status.UNKNOWN, "This end takes all that arrives. The sender, on this host, has the reason."
        )
    return Judgement(
        Status.UNKNOWN,
        "This end takes all that arrives. The sender's windows, losses and data are seen at the far end: "
        f"linkgauge observe there shows them; {describe_decision(around.remote)}.",
    )


def _stalled(around: Circumstances) -> Judgement:
    info, waiting = around.info, format_quantity(around.stalled, "byte")
    decide = describe_decision(around.remote)
    if not info.timeouts or info.probes:
        finding = Finding(
            "receive-window",
            None,
            0.85,
            "The receiver's window is closed (zero window): its program reads nothing.",
            f"{waiting} wait, with a window of {format_quantity(info.peer_window_bytes or 0, 'byte')}; "
            f"{format_quantity(info.probes, 'probe')} of it had no effect",
            f"at the remote end: see what stops its program; {decide}",
            End.FAR,
            1.0,
            Direction.OUT,
        )
    else:
        finding = Finding(
            "no-payload",
            None,
            0.7,
            "Nothing is acknowledged: packets or their acknowledgements are lost.",
            f"{waiting} wait, and {format_quantity(info.timeouts, 'timeout')} followed each other; "
            f"the last answer came {format_time(info.receive_idle_ms * 1_000)} ago",
            f"see whether the path is up, and whether it drops large packets: linkgauge mtu; {decide}",
            None,
            1.0,
            Direction.OUT,
        )
    return Judgement(Status.LIMITED, finding.text, (finding,))
