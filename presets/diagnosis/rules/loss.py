"""Lost packets, on the way or at a network interface.

Measured: the share of the payload that the sender's TCP sent again (tcpi_bytes_retrans of linux/tcp.h; where it is
missing, tcpi_total_retrans times the segment size), the packets that the receiver got out of order
(tcpi_rcv_ooopack), and the error and drop counters of both interfaces (/proc/net/dev).

Meaning: a queue that overflows now and then, as TCP's congestion control intends, loses about one packet in 10,000.
More than that, or any loss that lowers TCP's own bound under the expected rate, limits the flow. The bound is that
of Mathis, Semke, Mahdavi and Ott, 1997: MSS / RTT x sqrt(3/2 / loss) for each session.

Findings: `nic-errors` and `nic-drops` if an interface counts the packets itself, else `loss`.
"""

from collections.abc import Iterator
from math import sqrt
from typing import Final

from ...number_text import format_percent, format_quantity, format_rate, format_time
from .. import remedies
from ..evidence import MIN_SHARE, EndEvidence, FlowView, nic_name
from ..finding import Finding

_HIGH_LOSS: Final = 0.003
_MIN_LOSS: Final = 0.0003  # below this the bound is not looked at
_MATHIS: Final = 1.5  # CUBIC does a little better than this constant of Reno
_MIN_ERRORS: Final = 10  # broken frames; fewer are a cable that was plugged in


def find_loss_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the finding that explains lost packets, if loss limits the flow."""
    loss = view.flow.retransmitted
    if view.budget.remaining("network") < MIN_SHARE or loss is None or loss < _MIN_LOSS:
        return
    bound = _mathis_bound(view, loss)
    is_bound = bound is not None and bound < view.target_bit_s and not view.has_queue
    if loss < _HIGH_LOSS and not is_bound:
        return
    share = view.budget.take("network")
    evidence = _describe(view, loss, bound)
    for end in (view.receiver, view.sender):
        finding = _nic_fault(view, end, share, evidence)
        if finding is not None:
            yield finding
            return
    yield Finding(
        "loss",
        share,
        0.9,
        f"Packets {view.evidence.tense('are', 'were')} lost on the path.",
        evidence,
        f"{remedies.show_nic_errors(view.receiver)}; then check cable, optics, switch port counters and policers; "
        f"for comparison: linkgauge … {remedies.other_congestion_control(view.flow)}",
    )


def _mathis_bound(view: FlowView, loss: float) -> float | None:
    """Return the rate in bit/s that TCP reaches with so much loss, of all sessions together."""
    rtt, mss = view.flow.rtt_us, view.flow.mss_bytes
    if not rtt or not mss or loss <= 0:
        return None
    return mss * 8e6 / rtt * sqrt(_MATHIS / loss) * view.evidence.sessions


def _describe(view: FlowView, loss: float, bound: float | None) -> str:
    flow = view.flow
    text = f"{format_percent(loss)} of the payload was sent again"
    if flow.retransmits is not None:
        text += f" ({format_quantity(flow.retransmits, 'segment')})"
    if flow.out_of_order:
        text += f", {format_quantity(flow.out_of_order, 'packet')} arrived out of order"
    if bound is not None and flow.rtt_us is not None:
        rtt = format_time(flow.rtt_us)
        leaves = view.evidence.tense("leaves", "left")
        text += f"; with a round trip of {rtt} that {leaves} TCP about {format_rate(bound)}"
    return text


def _nic_fault(view: FlowView, end: EndEvidence, share: float, loss_text: str) -> Finding | None:
    """Return the finding about an interface that counts broken or dropped frames."""
    counts, nic = end.counts, end.nic
    if counts is None or nic is None:
        return None
    if counts.errors >= _MIN_ERRORS:
        return Finding(
            "nic-errors",
            share,
            0.95,
            f"{nic_name(end)} counts broken frames: check cable, optics and duplex.",
            f"{format_quantity(counts.errors, 'error')}, {format_quantity(counts.collisions, 'collision')}; "
            f"{loss_text}",
            f"{remedies.show_nic_errors(end)}; change the cable or the optics",
            end.end,
        )
    if counts.dropped >= max(_MIN_ERRORS, (view.flow.retransmits or 0) // 4):
        return Finding(
            "nic-drops",
            share,
            0.85,
            f"{nic_name(end)} drops frames because the host takes them too slowly.",
            f"{format_quantity(counts.dropped, 'frame')} dropped; {loss_text}",
            remedies.enlarge_receive_ring(end),
            end.end,
        )
    return None
