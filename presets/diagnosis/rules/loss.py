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

from ...number_text import format_rate
from .. import remedies
from ..evidence import MIN_SHARE, EndEvidence, FlowView, end_name
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
        "Packets are lost on the way.",
        evidence,
        f"{remedies.show_nic_errors(view.receiver)}; then cable, optics, switch port counters, policers; "
        "see what it costs: linkgauge … --congestion bbr",
    )


def _mathis_bound(view: FlowView, loss: float) -> float | None:
    """Return the rate in bit/s that TCP reaches with so much loss, of all sessions together."""
    rtt, mss = view.flow.rtt_us, view.flow.mss_bytes
    if not rtt or not mss or loss <= 0:
        return None
    return mss * 8e6 / rtt * sqrt(_MATHIS / loss) * view.evidence.sessions


def _describe(view: FlowView, loss: float, bound: float | None) -> str:
    text = f"{100 * loss:.2g} % of the payload was sent again ({view.flow.retransmits} segments)"
    if view.flow.out_of_order:
        text += f", {view.flow.out_of_order} packets came out of order"
    if bound is not None:
        rtt_ms = (view.flow.rtt_us or 0) / 1_000
        text += f"; at a round trip of {rtt_ms:.3g} ms that leaves TCP about {format_rate(bound)}"
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
            f"{nic.name} at {end_name(end.end)} counts broken frames: cable, optics or duplex.",
            f"{counts.errors} errors, {counts.collisions} collisions; {loss_text}",
            f"{remedies.show_nic_errors(end)}; change the cable or the optics",
            end.end,
        )
    if counts.dropped >= max(_MIN_ERRORS, (view.flow.retransmits or 0) // 4):
        return Finding(
            "nic-drops",
            share,
            0.85,
            f"{nic.name} at {end_name(end.end)} drops frames that the host does not take in time.",
            f"{counts.dropped} dropped; {loss_text}",
            f"at the {end.end} end: ethtool -G {nic.name} rx 4096",
            end.end,
        )
    return None
