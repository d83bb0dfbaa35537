"""Lost packets, on the way or at a network interface.

Measured: the share of the payload that the sender's TCP sent again (tcpi_bytes_retrans of linux/tcp.h; if it is
missing, tcpi_total_retrans times the segment size), the packets that arrived out of order (tcpi_rcv_ooopack), and
the error and drop counters of both interfaces (/proc/net/dev).

Meaning: a queue that overflows is how TCP's congestion control finds the rate of a path. The more sessions share
it and the shorter it is, the more is lost: 0.7 % of 8 sessions through 50 Mb/s. The path causes these losses, and
its finding comes first. They come while the queue is full: the round trip is long, and the rate constant. A slow
start that ends in the queue loses much within one round trip, and nothing afterwards.

Other losses come while the round trip is that of the path. If there are many, or if they lower TCP's own bound
under the expected rate, they limit the flow (FlowView.lossy_bit_s). BBR does not slow down for them.

A policer drops the packets above its rate and keeps no queue: packets are lost, and yet the rate is constant and
the round trip that of the path. Loss by chance does not change the round trip either, but it changes the rate: TCP
halves its window at each loss, at any time. With n lost packets in an interval, the rates of intervals spread
by 0.21 / sqrt(n) or more, in 21 runs without a queue over links of 0.4 to 4 % loss and up to 40 ms. Behind a token
bucket it was 0.07 to 0.17 in 15 of 23 runs; a bucket of a few packets looks like chance. A large bucket lets TCP
grow until much of a window is lost at once: TCP halves its window once for all of it, and is faster than its bound.
Behind a policer sessions share its rate, so together they vary less than each by itself. A policer drops again
and again. The short queue of a long path drops once, at the end of slow start, and TCP takes many round trips to
reach the rate again: such losses in few samples, half of the time before the end, are not a policer's. If they
come again, but seldom, or if the rate varies much, a policer is only a guess.

BBR keeps its rate in spite of loss. If it loses packets below the expected rate and keeps no queue, something on
the path drops the excess.

Without selective acknowledgements (tcpi_options; RFC 2018) a sender learns of one loss of a window each round trip.
A packet that others overtake looks lost as well, until the receiver tells of a copy (tcpi_dsack_dups; RFC 2883).

Findings: `reordering`; `nic-errors` and `nic-drops` if an interface counts the packets itself, `policer`, else
`loss`, or `retransmission-storm` if a quarter or more is sent again, with `sack-off` beside it.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt
from typing import Final

from ....engine.model.directions import Direction
from ...number_text import format_percent, format_quantity, format_rate, format_time
from .. import remedies
from ..evidence import MIN_SHARE, EndEvidence, nic_name
from ..finding import Finding
from ..flow_view import FlowView

_REORDERED: Final = 0.003  # of the packets that arrive at a receiver whose sender is not seen
HIGH_LOSS: Final = 0.003
"""The share of lost payload that is more than a path in order loses."""
_MIN_LOSS: Final = 0.0003  # below this the bound does not matter
_MIN_ERRORS: Final = 10  # broken frames; plugging in a cable makes fewer
_STEADY: Final = 0.17  # times 1 / sqrt(lost packets in an interval)
_MIN_LOST: Final = 30  # packets; the spread of fewer is chance
_MIN_INTERVALS: Final = 8
_BBR_HEEDS: Final = 0.15  # Linux's BBR keeps its rate up to a loss of about 20 %
_ONCE: Final = 0.25  # of the samples: losses of a slow start
_VARIES: Final = 0.35  # behind policers that lost often it was up to 0.22 in 18 of 20 runs
_LONG_AGO: Final = 0.5  # of the samples: nothing was lost since
_STORM: Final = 0.25
_BY_SACK: Final = 0.3  # of the gap that losses explain
_MIN_NEEDLESS: Final = 5  # segments
_FILLED: Final = 0.7  # of the congestion window: a flow with less in flight waits for something else
_EXPLAINS: Final = 1.5  # a bound further from the measured rate does not explain it
_DISPERSED: Final = 2.5  # by chance it was up to 1.4 in 28 runs
# Times the rate that this loss by chance allows, and more if few packets were lost: none of 70 runs with loss by
# chance had more than 1.11 + 4 / sqrt(lost).
_OVER_BOUND: Final = 1.3
_OF_FEW_LOST: Final = 4.0
_SHORT_QUEUE: Final = 20  # packets
_SHORT_QUEUE_US: Final = 9_000
_MIN_BURSTS: Final = 20  # packets: if there are fewer, some come at once by chance
_MIN_POLICED: Final = 0.001
_BY_CHANCE: Final = 3.0  # times that rate: a short test still has the payload of slow start; a queue gives more


def find_loss_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the finding that explains lost packets, if loss limits the flow."""
    loss = view.flow.retransmitted
    if view.budget.remaining("network") < MIN_SHARE:
        return
    if loss is None:
        seen = find_losses_at_receiver(view) if view.sender.end is view.evidence.unseen_end else None
        if seen is not None:
            yield replace(seen, share=view.budget.take("network"))
        return
    yield from _reordering(view)
    if view.budget.remaining("network") < MIN_SHARE or loss < _MIN_LOSS:
        return
    bound = view.lossy_bit_s
    is_bound = loss_bound(view) is not None
    evidence = _describe(view, loss, bound)
    for end in (view.receiver, view.sender):
        finding = _nic_fault(view, end, evidence)
        if finding is not None:
            yield replace(finding, share=view.budget.take("network"))
            return
    if loss >= _MIN_POLICED and _is_policed(view):
        yield _policer(view, view.budget.take("network"), evidence)
        return
    if (loss < HIGH_LOSS and not is_bound) or _is_overflow(view, loss):
        return
    yield from _without_sack(view)
    share = view.budget.take("network")
    other = remedies.other_congestion_control(view.flow)
    part = "Most packets" if loss >= 2 * _STORM else "Many packets" if loss >= _STORM else "Packets"
    yield Finding(
        "retransmission-storm" if loss >= _STORM else "loss",
        share,
        0.9 if bound is None or view.flow.bit_s < _BY_CHANCE * bound else 0.6,
        f"{part} {view.evidence.tense('are', 'were')} lost on the path.",
        evidence,
        f"{remedies.show_nic_errors(view.receiver)}; then check cable, optics, switch port counters and policers; "
        f"for comparison: linkgauge … {other}",
        trial=other,
    )


def _without_sack(view: FlowView) -> Iterator[Finding]:
    """Yield the finding that losses cost more than they must: their repair takes a round trip each."""
    if view.flow.sack is not False:
        return
    rtt = "a round trip" if view.flow.rtt_us is None else f"a round trip of {format_time(view.flow.rtt_us)}"
    yield Finding(
        "sack-off",
        view.budget.take("network", limit=_BY_SACK * view.budget.remaining("network")),
        0.7,
        f"Selective acknowledgements (SACK, RFC 2018) {view.evidence.tense('are', 'were')} off.",
        f"each further loss of a window {view.evidence.tense('costs', 'cost')} {rtt}, and many end in a timeout",
        remedies.enable_sack(),
    )


def _reordering(view: FlowView) -> Iterator[Finding]:
    """Yield a finding if more segments were sent again needlessly than for losses: they arrived late."""
    flow, evidence = view.flow, view.evidence
    needless, lost = flow.needless or 0, flow.retransmits or 0
    packets = flow.bit_s / 8 * evidence.span_ns / 1e9 / (flow.mss_bytes or 1)
    is_often = needless >= max(_MIN_NEEDLESS, HIGH_LOSS * packets)
    if not is_often or needless <= lost or view.fills_queue:
        return
    overtook = f"; the sender saw {format_quantity(flow.reordered, 'overtaking')}" if flow.reordered else ""
    yield Finding(
        "reordering",
        view.budget.take("network", limit=view.budget.remaining("network") * needless / (needless + lost)),
        0.75,
        f"Packets {evidence.tense('change', 'changed')} their order on the path, and TCP "
        f"{evidence.tense('takes', 'took')} the late ones for lost.",
        f"{format_quantity(needless, 'segment')} sent again had arrived (RFC 2883), and {lost} had not{overtook}",
        "look for a path that spreads packets over several lines (bonding in mode balance-rr, multipath by "
        "packet), and let it choose by connection",
    )


def loss_bound(view: FlowView) -> float | None:
    """Return the rate in bit/s that the losses allow TCP; None if that is not a limit, or a full link lost them."""
    loss = view.flow.retransmitted
    if loss is None or loss < _MIN_LOSS or view.has_queue or _is_overflow(view, loss):
        return None
    bound = view.lossy_bit_s
    is_in_force = bound is not None and view.flow.bit_s < _BY_CHANCE * bound and bound < view.target_bit_s
    return bound if is_in_force else None


def find_losses_at_receiver(view: FlowView) -> Finding | None:
    """Return the finding about losses that only the receiver shows: its packets arrive out of order.

    A full queue loses some as well, without being a fault: they explain only a rate below the expected one, and not
    a constant one that keeps a queue on the path filled.
    """
    flow = view.flow
    if flow.expected_bit_s is None or not flow.out_of_order or not flow.mss_bytes:
        return None
    packets = flow.bit_s / 8 * view.evidence.span_ns / 1e9 / flow.mss_bytes
    share = flow.out_of_order / max(1.0, packets)
    if share < _REORDERED or view.gap_bit_s < MIN_SHARE * view.target_bit_s or view.probe_rise_ns is not None:
        return None
    return Finding(
        "loss",
        1.0,
        0.5,
        view.evidence.tense(
            "Packets are lost, or change their order, before they reach this host.",
            "Packets were lost, or changed their order, before they reached this host.",
        ),
        f"{format_percent(share)} of the packets arrived out of order",
        f"{remedies.show_nic_errors(view.receiver)}; at the sender: ss -ti shows its retransmits",
        None,
        1.0,
    )


def _is_overflow(view: FlowView, loss: float) -> bool:
    """Return whether a queue that the flow fills dropped the packets, or the losses do not slow this flow down."""
    flow = view.flow
    if view.fills_queue:
        return True
    if flow.is_bbr:
        return loss < _BBR_HEEDS and not _is_policed(view)
    return flow.lossy is not None and flow.lossy <= _ONCE and (flow.retransmits or 0) >= _MIN_LOST


def _is_policed(view: FlowView) -> bool:
    """Return whether the rate is constant in spite of losses, and the path has no queue that explains it."""
    flow = view.flow
    lost, cwnd, spread = flow.retransmits or 0, flow.cwnd_bytes, flow.rate_spread
    if not cwnd or spread is None or flow.intervals < _MIN_INTERVALS or _lost_once(view):
        return False
    # Rate x RTT leaves the losses out, and a policer loses much.
    in_flight = max(view.in_flight_bytes or 0.0, flow.unacked_bytes or 0)
    if not flow.is_bbr and in_flight < _FILLED * cwnd:
        return False
    if not view.has_no_room:
        # The line behind a policer has a short queue of bursts.
        dispersion = flow.loss_dispersion or 0.0
        return dispersion >= _DISPERSED and _exceeds_bound(view, lost) and _has_short_queue(view)
    is_steady = spread <= _STEADY * sqrt(flow.intervals / max(1, lost))
    return _exceeds_bound(view, lost) or (lost >= _MIN_LOST and (is_steady or view.shares_limit or flow.is_bbr))


def _loses_seldom(view: FlowView) -> bool:
    """Return whether few samples have losses, as with one slow start, or with a short queue on a long path."""
    return view.flow.lossy is not None and view.flow.lossy <= _ONCE


def _lost_once(view: FlowView) -> bool:
    """Return whether few samples have losses, and nothing was lost for long until the end."""
    return _loses_seldom(view) and (view.flow.quiet or 0.0) >= _LONG_AGO


def _exceeds_bound(view: FlowView, lost: int) -> bool:
    """Return whether the rate is above the bound of this loss by chance: much was lost at once.

    Both ways at once, a slow start may last until it is measured.
    """
    bound = view.lossy_bit_s
    if bound is None or lost < _MIN_BURSTS or view.evidence.direction is Direction.DUPLEX:
        return False
    return view.flow.bit_s >= (_OVER_BOUND + _OF_FEW_LOST / sqrt(lost)) * bound


def _has_short_queue(view: FlowView) -> bool:
    """Return whether the round trip is longer than the path's, but shorter than with a full queue."""
    most_us = min(_SHORT_QUEUE_US, _SHORT_QUEUE * view.packet_us)
    return view.rise_us is not None and not view.has_queue and view.rise_us <= most_us


def _policer(view: FlowView, share: float, loss_text: str) -> Finding:
    flow, evidence, bound = view.flow, view.evidence, view.lossy_bit_s
    slower = remedies.lower_rate(flow.bit_s)
    spread = format_percent(flow.rate_spread or 0.0)
    sign = f"the rate {evidence.tense('stays', 'stayed')} the same within {spread}"
    if bound is not None and _exceeds_bound(view, flow.retransmits or 0):
        sign = (
            f"so much loss by chance {evidence.tense('leaves', 'would have left')} TCP about {format_rate(bound)}"
        )
    queue = "at most a short queue" if view.has_small_queue else "no queue"
    is_guess = _loses_seldom(view) or (flow.rate_spread or 0.0) > _VARIES
    other = "; a full queue of few packets would look the same" if is_guess else ""
    return Finding(
        "policer",
        share,
        0.5 if is_guess else 0.8,
        f"A policer on the path {evidence.tense('drops', 'dropped')} all packets above its rate.",
        f"it {evidence.tense('lets', 'let')} about {format_rate(flow.bit_s)} pass; {loss_text}; "
        f"{sign}, and {queue} {evidence.tense('builds', 'built up')}: "
        f"round trip {format_time(flow.rtt_us or 0)}, at best {format_time(flow.min_rtt_us or 0)}{other}",
        remedies.shape_below(view.sender, flow, slower),
        trial=slower,
    )


def _describe(view: FlowView, loss: float, bound: float | None) -> str:
    flow = view.flow
    text = f"{format_percent(loss)} of the payload was sent again"
    if flow.retransmits is not None:
        text += f" ({format_quantity(flow.retransmits, 'segment')})"
    if flow.out_of_order:
        text += f", {format_quantity(flow.out_of_order, 'packet')} arrived out of order"
    explains = bound is not None and bound / _EXPLAINS <= flow.bit_s <= bound * _EXPLAINS
    if bound is not None and explains and bound < view.target_bit_s and flow.rtt_us is not None:
        rtt = format_time(flow.rtt_us)
        leaves = view.evidence.tense("leaves", "left")
        text += f"; with a round trip of {rtt} that {leaves} TCP about {format_rate(bound)}"
    return text


def _nic_fault(view: FlowView, end: EndEvidence, loss_text: str) -> Finding | None:
    """Return the finding about an interface that counts broken or dropped frames; its share is for the caller."""
    counts, nic = end.counts, end.nic
    if counts is None or nic is None:
        return None
    if counts.errors >= _MIN_ERRORS:
        return Finding(
            "nic-errors",
            None,
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
            None,
            0.85,
            f"{nic_name(end)} drops frames because the host takes them too slowly.",
            f"{format_quantity(counts.dropped, 'frame')} dropped; {loss_text}",
            remedies.enlarge_receive_ring(end),
            end.end,
        )
    return None
