"""The path between the ends: pacing, a congestion window that still grows, or a slow path.

Measured, at the sender (tcp_info of linux/tcp.h): the pacing rate (tcpi_pacing_rate), the congestion window
(tcpi_snd_cwnd times tcpi_snd_mss), the rate at which the path delivered while data was sent (tcpi_delivery_rate),
and the smoothed and the shortest round trip (tcpi_rtt, tcpi_min_rtt): their difference is a queue on the path.

Meaning: if the sender had data and no window stopped it, only its pace, congestion control or the path can be the
limit. A sender that sends at its pacing rate is limited by it: TCP by itself paces at 1.2 times its rate or more,
and a slower path makes a queue. BBR is an exception: it paces at the rate that it measured on the path, and keeps
no queue, so the path is the better guess. Two ends of one host have no path between them: there the pace is BBR's
own choice. A congestion window below bandwidth x delay (RFC 5681) limits only a flow whose payload in flight fills
it. Everything else is the path's, if it has a queue or the flow fills its congestion window. If not, neither end
shows the reason for the wait.

Findings: `pacing`, `congestion-window`, `path-slow`, `unexplained`. Lost packets have a module of their own, which
comes first.
"""

from collections.abc import Iterator
from typing import Final

from ....engine.model.directions import Direction
from ....engine.model.plan import SECOND_NS
from ...number_text import (
    format_bytes,
    format_percent,
    format_quantity,
    format_rate,
    format_share,
    format_time,
)
from .. import remedies
from ..evidence import MIN_SHARE, describe_unseen
from ..finding import MIN_CONFIDENCE, NOT_IDENTIFIED, Finding
from ..flow_view import FlowView
from .loss import HIGH_LOSS
from .two_way import misses_little, waiting_part

_NEAR_MOST: Final = 0.85  # of the limit, which includes headers: 0.91 of it at MTU 576
_OVER_MOST: Final = 1.05  # without segmentation offload it leaves headers out
_PACED: Final = 1.1  # a flow within this much of its pacing rate is limited by it
# BBR paces at the highest recent rate, and at up to 1.25 times that. On loopback, one session of 1 MiB
# blocks went at 0.8 of its pace and one of 128 KiB at 0.45; cubic, which does not pace, carried 1.5 times as much.
_PACED_BY_BBR: Final = 2.5
_AT_ITS_PACE: Final = 1.3
_FILLED: Final = 0.7  # of the congestion window: a flow with less in flight waits for something else
_IN_QUEUE: Final = 0.5  # of the congestion window: a flow with less in flight does not fill the path
_ACKS_WAIT: Final = 0.75  # of the expected rate: good links carry this if acknowledgements wait behind data
_MUCH_WAITS: Final = 0.25  # of a direction's gap
_KEEPS_LOSING: Final = 0.5  # of the samples: losses keep the congestion window from growing
_BY_CHANCE: Final = 1.5  # variance of the segments lost in a sample, as a share of their mean
_GROWN: Final = 0.9  # of bandwidth x delay
_DELIVERS: Final = 0.97  # a path with this share of the expected rate, while data is sent, is not slow
_ALIKE: Final = 0.1
_UNSEEN_CONFIDENCE: Final = 0.3
_BY_PROBES: Final = 0.6


def find_path_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the findings about the path, which explains the rest of the gap."""
    if view.budget.remaining("network") < MIN_SHARE:
        return
    yield from _pacing(view)
    yield from _congestion_window(view)
    yield from _slow_path(view)


def find_host_pacing(view: FlowView) -> Iterator[Finding]:
    """Yield a finding if BBR paces a flow within one host: no other limit of the host has explained its rate."""
    flow, evidence, pacing_bit_s = view.flow, view.evidence, _pacing_bit_s(view)
    if pacing_bit_s is None or not view.flow.is_bbr or pacing_bit_s > _PACED_BY_BBR * flow.bit_s:
        return
    if view.budget.remaining("network") < MIN_SHARE:
        return
    signs = [
        f"it {evidence.tense('paces', 'paced')} at {format_rate(pacing_bit_s)}",
        f"{format_rate(flow.bit_s)} {evidence.tense('arrives', 'arrived')}",
    ]
    if flow.delivery_bit_s is not None:
        delivery = format_rate(flow.delivery_bit_s * evidence.sessions)
        signs.append(f"{delivery} {evidence.tense('is', 'was')} delivered while data was sent")
    other = None if evidence.is_observed else remedies.other_congestion_control(flow)
    yield Finding(
        "pacing",
        view.budget.take("network"),
        0.8 if pacing_bit_s <= _AT_ITS_PACE * flow.bit_s else 0.6,
        f"The congestion control, {flow.congestion}, {evidence.tense('paces', 'paced')} the sender.",
        "; ".join(signs),
        remedies.avoid_pacing(view.sender, other),
        view.sender.end,
        trial=other,
    )


def _pacing(view: FlowView) -> Iterator[Finding]:
    """Yield a finding if the sender sends at its pacing rate, and has made no queue on the path.

    On a short path the round trip varies without a queue. The packets of a queue would be in flight.
    """
    flow, share, pacing_bit_s = view.flow, _filled_share(view), _pacing_bit_s(view)
    most_bit_s = None if flow.max_pacing_bit_s is None else flow.max_pacing_bit_s * view.evidence.sessions
    sent_bit_s = flow.bit_s / max(0.5, 1 - (flow.retransmitted or 0.0))
    if most_bit_s is not None and _NEAR_MOST * most_bit_s <= sent_bit_s <= _OVER_MOST * most_bit_s:
        yield _limited_pace(view, most_bit_s)
        return
    if pacing_bit_s is None or view.flow.is_bbr or pacing_bit_s > _PACED * flow.bit_s:
        return
    has_room = share is not None and share < _FILLED
    if view.has_queue and not has_room:
        return
    sign = view.evidence.tense("no queue builds", "no queue built up")
    if share is not None and has_room:
        sign = f"{format_percent(share)} of the congestion window {view.evidence.tense('is', 'was')} in flight"
    yield Finding(
        "pacing",
        view.budget.take("network"),
        0.9 if has_room else 0.8,
        f"The sender {view.evidence.tense('is', 'was')} paced below the expected rate.",
        f"it {view.evidence.tense('paces', 'paced')} at {format_rate(pacing_bit_s)}, {format_rate(flow.bit_s)} "
        f"{view.evidence.tense('arrives', 'arrived')}, and {sign}",
        remedies.show_pacing(view.sender),
        view.sender.end,
    )


def _limited_pace(view: FlowView, most_bit_s: int) -> Finding:
    """Return the finding about a limit that a program has set for its sockets; any congestion control obeys it."""
    flow, evidence = view.flow, view.evidence
    return Finding(
        "pacing",
        view.budget.take("network"),
        0.95,
        f"The sender {evidence.tense('is', 'was')} paced below the expected rate: its sockets have a limit.",
        f"SO_MAX_PACING_RATE is {format_rate(most_bit_s)}, and {format_rate(flow.bit_s)} "
        f"{evidence.tense('arrives', 'arrived')}",
        remedies.show_pacing(view.sender),
        view.sender.end,
    )


def _pacing_bit_s(view: FlowView) -> int | None:
    """Return the rate at which all sessions together are paced; None if it is unknown or 0 (no pace)."""
    pacing_bit_s = view.flow.pacing_bit_s
    return pacing_bit_s * view.evidence.sessions if pacing_bit_s else None


def _filled_share(view: FlowView) -> float | None:
    """Return the part of the congestion window that is in flight; None if it is unknown."""
    cwnd, in_flight = view.flow.cwnd_bytes, view.in_flight_bytes
    return None if not cwnd or in_flight is None else in_flight / cwnd


def _congestion_window(view: FlowView) -> Iterator[Finding]:
    """Yield a finding if the flow fills a congestion window below bandwidth x delay: it still grows."""
    flow = view.flow
    cwnd, needed, in_flight = flow.cwnd_bytes, view.needed_window_bytes, view.in_flight_bytes
    if cwnd is None or needed is None or in_flight is None or cwnd >= _GROWN * needed:
        return
    if view.has_queue or view.fills_queue or (flow.lossy or 0.0) >= _KEEPS_LOSING:
        return
    if in_flight < _FILLED * cwnd:
        return
    longer = remedies.longer_run(view.evidence, warmup_ns=10 * SECOND_NS)
    sessions = remedies.more_sessions(view.evidence.sessions, 4)
    yield Finding(
        "congestion-window",
        view.budget.take("network"),
        0.65 if (flow.retransmitted or 0.0) < HIGH_LOSS else 0.6,  # losses before the measured time are not seen
        f"The congestion window {view.evidence.tense('has not yet', 'had not')} grown to bandwidth x delay.",
        f"{format_bytes(cwnd)} of the {format_bytes(round(needed))} needed, {format_bytes(round(in_flight))} of it "
        f"in flight, after {format_quantity(view.flow.retransmits or 0, 'retransmit')}",
        f"linkgauge … {longer}{f' or {sessions}' if sessions else ''}",
        view.sender.end,
        trial=longer,
    )


def _slow_path(view: FlowView) -> Iterator[Finding]:
    share = view.budget.take("network")
    if share < MIN_SHARE:
        return
    flow = view.flow
    if view.sender.end is view.evidence.unseen_end and flow.rtt_us is None:  # an NDT7 server reports its TCP
        yield _unseen_sender(view, share)
        return
    evidence = [f"{format_rate(flow.bit_s)} arrived"]
    if flow.busy is not None:
        evidence[0] = f"the sender had data for {format_share(flow.busy)} of the time, and {evidence[0]}"
    delivery_bit_s = (flow.delivery_bit_s or 0) * view.evidence.sessions
    if delivery_bit_s >= flow.bit_s:  # a median below the received rate only shows that acknowledgements vary
        evidence.append(f"the path delivered {format_rate(delivery_bit_s)} while data was sent")
    if flow.rtt_us is not None and flow.min_rtt_us is not None:
        queue = "a small queue" if view.has_small_queue else "no queue"
        queue = "a queue" if view.has_queue else queue
        evidence.append(
            f"{queue} {view.evidence.tense('builds', 'built up')}: round trip {format_time(flow.rtt_us)}, "
            f"at best {format_time(flow.min_rtt_us)}"
        )
    step = view.step
    if step is not None:
        before, then = format_rate(step.before_bit_s), format_rate(step.then_bit_s)
        evidence.append(f"{before} in the first {format_time(step.after_s * 1e6)}, {then} after that")
    confidence = _path_confidence(view)
    is_known = confidence >= MIN_CONFIDENCE
    remedy = _remedy(view, is_known=is_known)
    yield Finding(
        "path-slow" if is_known else "unexplained",
        share,
        confidence,
        _describe_path(view) if is_known else NOT_IDENTIFIED,
        "; ".join([*evidence, *_room(view), *_other_direction(view)]),
        remedy.text,
        trial=remedy.trial,
    )


def _describe_path(view: FlowView) -> str:
    step, tense = view.step, view.evidence.tense
    if step is None:
        return f"The path itself {tense('carries', 'carried')} less than a link of this kind."
    return "The path became slower during the test." if step.is_slower else "The path was slower at first."


def _remedy(view: FlowView, *, is_known: bool) -> remedies.Remedy:
    """Return the place to look; for both directions at once, the test of one, in which no acknowledgement waits."""
    check = remedies.show_queue(view.sender)
    text = f"to see whether it is the path, give more sessions and watch its queue: {check}"
    if is_known:
        look = f"then check port speeds and shapers on the path ({remedies.SHOW_BUCKET})"
        text = f"{check}; {look}{_other_control(view)}"
    if view.evidence.direction is not Direction.DUPLEX:
        return remedies.Remedy(text)
    alone = remedies.test_alone(view.flow)
    return remedies.Remedy(f"{alone.text}; {text}", alone.trial)


def _unseen_sender(view: FlowView, share: float) -> Finding:
    """Return the finding about a sender whose TCP is not seen: the path if it fills a queue there, else unknown."""
    label, unseen = view.sender.end.label, describe_unseen(view.evidence, view.sender.end)
    arrived, rise_ns = f"{format_rate(view.flow.bit_s)} arrived", view.probe_rise_ns
    if rise_ns is None or view.evidence.direction is Direction.DUPLEX:
        there = f"{unseen}, and the sender's windows, round trips and queues are there"
        return Finding(
            "unexplained",
            share,
            _UNSEEN_CONFIDENCE,
            NOT_IDENTIFIED,
            "; ".join([arrived, there, *_other_direction(view)]),
            f"run linkgauge endpoint on the {label} host, and test against that",
        )
    wait = view.evidence.tense("wait", "waited")
    queue = f"under it packets {wait} {format_time(rise_ns / 1_000)} in a queue"
    return Finding(
        "path-slow",
        share,
        _BY_PROBES,
        _describe_path(view),
        "; ".join([f"{arrived} at a constant rate", queue, unseen, *_other_direction(view)]),
        f"check port speeds and shapers on the path, and the interface of the {label} host",
    )


def _room(view: FlowView) -> Iterator[str]:
    """Yield the filled part of the congestion window if it speaks against the path."""
    filled = _filled_share(view)
    if filled is not None and filled < _IN_QUEUE and not (view.has_queue or view.has_small_queue):
        yield f"{format_percent(filled)} of the congestion window {view.evidence.tense('is', 'was')} in flight"


def _path_confidence(view: FlowView) -> float:
    """Return how likely the path is the limit.

    A queue makes it likely, also if the path had two rates. Delivery at the expected rate, even in only a quarter
    of the intervals, makes it unlikely. So does room in the congestion window without a queue, except for BBR,
    which keeps none. A small gap of both directions at once means little, and so does one that acknowledgements
    explain in part.
    """
    delivery_bit_s, filled = view.flow.delivery_bit_s or 0, _filled_share(view)
    if view.step is not None and (view.has_queue or view.has_small_queue):
        return 0.7
    fastest_bit_s = max(view.flow.upper_bit_s or 0, delivery_bit_s if view.evidence.sessions == 1 else 0)
    if fastest_bit_s >= _DELIVERS * view.target_bit_s:
        return 0.4
    if view.evidence.direction is Direction.DUPLEX and view.flow.bit_s >= _ACKS_WAIT * view.target_bit_s:
        return 0.4 if view.has_queue and misses_little(view.evidence) else 0.6
    if view.has_queue and waiting_part(view) < _MUCH_WAITS and not _may_lose_by_chance(view):
        return 0.85
    if view.has_queue or view.has_small_queue:
        return 0.6
    return 0.4 if filled is not None and filled < _IN_QUEUE and not view.flow.is_bbr else 0.5


def _may_lose_by_chance(view: FlowView) -> bool:
    """Return whether losses may limit the rate beside a queue: it varies, or both ways lose single packets."""
    flow = view.flow
    if view.evidence.direction is Direction.DUPLEX:
        dispersion = flow.loss_dispersion
        return dispersion is not None and dispersion <= _BY_CHANCE and (flow.lossy or 0.0) >= _KEEPS_LOSING
    return flow.rate_spread is not None and not view.fills_queue


def _other_control(view: FlowView) -> str:
    """Return the comparison that tells a slow path from a wrong estimate of BBR, which keeps no queue."""
    if not view.flow.is_bbr or view.has_queue:
        return ""
    other = remedies.other_congestion_control(view.flow)
    return f"; a paced sender would look the same, which a comparison decides: linkgauge … {other}"


def _other_direction(view: FlowView) -> Iterator[str]:
    """Yield a text about the other direction: its rate, or the option that tests it.

    A connection of another program cannot be told to send the other way.
    """
    others = [flow for flow in view.evidence.flows if flow is not view.flow]
    is_or_was = view.evidence.tense("is", "was")
    if not others:
        if not view.evidence.is_observed:
            option = f": --direction {view.flow.direction.opposite}"
            yield f"the other direction {is_or_was} not tested{'' if view.evidence.is_device else option}"
        return
    bit_s = others[0].bit_s
    is_alike = abs(bit_s - view.flow.bit_s) <= _ALIKE * max(bit_s, view.flow.bit_s)
    yield f"the other direction {is_or_was} {'similar' if is_alike else 'different'}: {format_rate(bit_s)}"
