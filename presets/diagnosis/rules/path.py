"""Findings about the path between the ends: loss, pacing, a congestion window that grows, a path that is slow."""

from collections.abc import Iterator
from math import sqrt
from typing import Final

from ....engine.model.plan import Direction
from ...number_text import format_rate
from .. import remedies
from ..budget import FlowView, end_name
from ..evidence import EndEvidence
from ..finding import Finding

# Sent again: a queue that overflows now and then, as TCP means it to, loses a packet in ten thousand; this is more.
_MUCH_LOSS: Final = 0.003
_SOME_LOSS: Final = 0.0003
# What TCP can do with so much loss (Mathis et al. 1997): MSS / RTT x sqrt(3/2 / loss). Cubic does a little better.
_MATHIS: Final = 1.5
_ERRORS: Final = 10  # broken frames that are more than a cable that was plugged in
_PACED: Final = 1.3  # bbr's pacing rate is within its gain of 1.25 of what it sends
# While it sends, the path delivers what is expected: then it is not the path that is slow.
_DELIVERS: Final = 0.97
_LEAST_SHARE: Final = 0.05


def find_path_limits(view: FlowView) -> Iterator[Finding]:
    """Give what happens between the ends; what is left of the gap is the path's."""
    if view.budget.remaining("network") < _LEAST_SHARE:
        return
    yield from _loss(view)
    yield from _pacing(view)
    yield from _congestion_window(view)
    yield from _slow(view)


def _loss(view: FlowView) -> Iterator[Finding]:
    lost = view.flow.retransmitted
    if lost is None or lost < _SOME_LOSS:
        return
    bound = _mathis(view, lost)
    is_bound = bound is not None and bound < view.target_bit_s and not view.has_queue
    if lost < _MUCH_LOSS and not is_bound:
        return
    share = view.budget.take("network")
    shown = f"{100 * lost:.2g} % of the payload was sent again ({view.flow.retransmits} segments)"
    if view.flow.out_of_order:
        shown += f", {view.flow.out_of_order} packets came out of order"
    if bound is not None:
        trip = (view.flow.rtt_us or 0) / 1_000
        shown += f"; at a round trip of {trip:.3g} ms that leaves TCP about {format_rate(bound)}"
    for end in (view.receiver, view.sender):
        found = _nic_fault(view, end, share, shown)
        if found is not None:
            yield found
            return
    yield Finding(
        "loss",
        share,
        0.9,
        "Packets are lost on the way.",
        shown,
        f"{_counters(view.receiver)}; then cable, optics, switch port counters, policers; "
        "see what it costs: linkgauge … --congestion bbr",
    )


def _mathis(view: FlowView, lost: float) -> float | None:
    rtt, mss = view.flow.rtt_us, view.flow.mss_bytes
    if not rtt or not mss or lost <= 0:
        return None
    return mss * 8e6 / rtt * sqrt(_MATHIS / lost) * view.evidence.sessions


def _counters(end: EndEvidence) -> str:
    name = end.nic.name if end.nic else "NIC"
    return f"at the {end.end} end: ip -s -s link show {name}" if remedies.is_linux(end) else remedies.show_nic(end)


def _nic_fault(view: FlowView, end: EndEvidence, share: float, shown: str) -> Finding | None:
    """Return what a NIC itself says of frames that it could not take."""
    counts, nic = end.counts, end.nic
    if counts is None or nic is None:
        return None
    if counts.errors >= _ERRORS:
        return Finding(
            "nic-errors",
            share,
            0.95,
            f"{nic.name} at {end_name(end.end)} counts broken frames: cable, optics or duplex.",
            f"{counts.errors} errors, {counts.collisions} collisions; {shown}",
            f"{_counters(end)}; change the cable or the optics",
            end.end,
        )
    if counts.dropped >= max(_ERRORS, (view.flow.retransmits or 0) // 4):
        return Finding(
            "nic-drops",
            share,
            0.85,
            f"{nic.name} at {end_name(end.end)} drops frames that the host does not take in time.",
            f"{counts.dropped} dropped; {shown}",
            f"at the {end.end} end: ethtool -G {nic.name} rx 4096",
            end.end,
        )
    return None


def _pacing(view: FlowView) -> Iterator[Finding]:
    """Give a congestion control that paces by its own estimate, where no queue shows the path's limit."""
    flow = view.flow
    paced = None if flow.pacing_bit_s is None else flow.pacing_bit_s * view.evidence.sessions
    if not (flow.congestion or "").startswith("bbr") or paced is None or view.has_queue:
        return
    if paced > _PACED * flow.bit_s and paced > view.target_bit_s:
        return
    yield Finding(
        "pacing",
        view.budget.take("network"),
        0.6,
        f"{flow.congestion} paces the sender below the expected rate.",
        f"its pacing rate is {format_rate(paced)}, {format_rate(flow.bit_s)} arrive, and no queue builds",
        "linkgauge … --congestion cubic, to see what the path carries",
        view.sender.end,
    )


def _congestion_window(view: FlowView) -> Iterator[Finding]:
    """Give a congestion window that is below bandwidth x delay without loss: it is still growing."""
    cwnd, needed = view.flow.cwnd_bytes, view.needed_window_bytes
    if cwnd is None or needed is None or cwnd >= needed or view.has_queue:
        return
    yield Finding(
        "congestion-window",
        view.budget.take("network"),
        0.7,
        "The congestion window has not grown to bandwidth x delay yet.",
        f"{cwnd} bytes of the {needed:.0f} needed, after {view.flow.retransmits or 0} retransmits",
        "linkgauge … --seconds 60 --warmup 10, or more --sessions",
        view.sender.end,
    )


def _slow(view: FlowView) -> Iterator[Finding]:
    share = view.budget.take("network")
    if share < _LEAST_SHARE:
        return
    flow = view.flow
    shown = [f"{format_rate(flow.bit_s)} got through"]
    if flow.busy is not None:
        shown[0] = f"there was something to send for {100 * flow.busy:.0f} % of the time, {shown[0]}"
    if flow.delivery_bit_s is not None:
        shown.append(
            f"the path delivered {format_rate(flow.delivery_bit_s * view.evidence.sessions)} while it sent"
        )
    if flow.rtt_us is not None and flow.min_rtt_us is not None:
        queue = "a queue builds" if view.has_queue else "no queue builds"
        shown.append(f"{queue}: round trip {flow.rtt_us / 1e3:.3g} ms, at best {flow.min_rtt_us / 1e3:.3g} ms")
    yield Finding(
        "path-slow",
        share,
        _path_confidence(view),
        "The path itself carries less than a link of this kind.",
        "; ".join([*shown, _other_way(view)]),
        f"{_qdisc(view.sender)}; then port speeds and shapers on the way",
    )


def _path_confidence(view: FlowView) -> float:
    """Return how sure it is the path: a queue shows it, and delivery at the expected rate speaks against it."""
    delivered = view.flow.delivery_bit_s or 0
    if view.evidence.sessions == 1 and delivered >= _DELIVERS * view.target_bit_s:
        return 0.4
    return 0.85 if view.has_queue else 0.5


def _other_way(view: FlowView) -> str:
    """Return whether the other direction is slow too, where it ran; else how to find out."""
    other = [one for one in view.evidence.flows if one is not view.flow]
    if not other:
        back = Direction.IN if view.flow.direction is Direction.OUT else Direction.OUT
        return f"the other way tells whether it is both: --direction {back}"
    rate = other[0].bit_s
    alike = abs(rate - view.flow.bit_s) <= 0.1 * max(rate, view.flow.bit_s)
    return f"{'both ways alike' if alike else 'not both ways alike'}: {format_rate(rate)} the other way"


def _qdisc(end: EndEvidence) -> str:
    name = end.nic.name if end.nic else "NIC"
    if not remedies.is_linux(end):
        return remedies.show_nic(end)
    kind = f" ({end.nic.qdisc})" if end.nic is not None and end.nic.qdisc else ""
    return f"at the {end.end} end: tc -s qdisc show dev {name}{kind}"
