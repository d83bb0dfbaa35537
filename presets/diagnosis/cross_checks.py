"""The second reading of a finding: whether other quantities than those of its rule say the same.

A rule reads a few numbers, and a link that was built in another way may bend one of them. So each finding that is
said with confidence has a check here, made from numbers that its rule does not need: for a window the kernel's
clocks where the rule went by samples, for losses what the receiver got out of order, for a slow path the rate at
which it delivered. A check that disagrees takes the confidence down to a guess; one whose numbers are unknown, to
what is said of a single reading.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from .core_load import used_or_waited
from .evidence import EndEvidence
from .finding import Finding
from .flow_view import FlowView
from .rules.processor import HELD_UP

CHECKED_FROM: Final = 0.8
"""Findings of this confidence or more need a second reading."""
ONE_READING: Final = 0.85
DISAGREED: Final = 0.6
_HELD: Final = 0.25  # of samples or time: the second of two accounts of one thing
_ALIKE: Final = 2.0  # two estimates of one quantity differ by less than this factor
_MATHIS_RANGE: Final = (0.25, 4.0)  # times the bound of a lossy path: cubic, short tests and reordering vary it
_DELIVERED: Final = 1.35  # times the rate: what a path delivers in bursts
_UNREAD: Final = 0.2
_SPREAD: Final = 0.02

Check = Callable[[FlowView], bool | None]
"""Returns whether other numbers agree with a finding; None if they are unknown."""


def weigh(view: FlowView, finding: Finding) -> Finding:
    """Return a finding with the confidence that its second reading leaves it."""
    check = _CHECKS.get(finding.code)
    if check is None or finding.confidence < CHECKED_FROM:
        return finding
    agrees = check(view)
    if agrees:
        return finding
    return replace(finding, confidence=min(finding.confidence, ONE_READING if agrees is None else DISAGREED))


def _any_known(*readings: bool | None) -> bool | None:
    """Return whether one of several readings agrees; None if all are unknown."""
    known = [reading for reading in readings if reading is not None]
    return any(known) if known else None


def _window(view: FlowView) -> bool | None:
    """Ask the clocks of the kernel, or what is in flight by its count and by rate x RTT."""
    flow = view.flow
    clocks = (flow.rwnd_limited or 0.0) + (flow.sndbuf_limited or 0.0) >= _HELD or None  # small buffers leave none
    counted, computed = flow.unacked_bytes, view.in_flight_bytes
    alike = None if not counted or not computed else max(counted / computed, computed / counted) <= _ALIKE
    return _any_known(clocks, alike)


def _loss(view: FlowView) -> bool | None:
    """Ask what the receiver got out of order, or the rate that so much loss leaves."""
    flow = view.flow
    reordered = None if flow.out_of_order is None else flow.out_of_order > 0
    bound = view.lossy_bit_s
    if bound is None:
        return reordered
    low, high = _MATHIS_RANGE
    return _any_known(reordered, low * bound <= flow.bit_s <= high * bound)


def _policer(view: FlowView) -> bool | None:
    """Ask what the receiver got out of order: segments that follow a lost one."""
    return None if view.flow.out_of_order is None else view.flow.out_of_order > 0


def _path(view: FlowView) -> bool | None:
    """Ask what the path delivered while data was sent, or a congestion window that was full."""
    flow = view.flow
    delivered = None
    if flow.delivery_bit_s is not None:
        delivered = flow.delivery_bit_s * view.evidence.sessions <= _DELIVERED * flow.bit_s
    filled = None if flow.holds is None else flow.holds.congestion + flow.holds.pace >= _HELD
    return _any_known(delivered, filled)


def _pacing(view: FlowView) -> bool | None:
    """Look for unsent data with room in both windows, or a pace that equals the limit of the socket."""
    flow = view.flow
    limited = None if flow.max_pacing_bit_s is None else True
    waits = None if flow.holds is None else flow.holds.pace + flow.holds.empty >= _HELD
    return _any_known(limited, waits)


def _reader(view: FlowView) -> bool | None:
    """Look for unread data in the receiver's buffer, a window that shrinks at times, or a worker without a core."""
    flow, receiver = view.flow, view.receiver
    unread = None if flow.unread is None else flow.unread >= _UNREAD
    shrinks = flow.is_read_late or None
    return _any_known(unread, shrinks, _waits(receiver) or None)  # a worker that stands still does not wait


def _waits(end: EndEvidence) -> bool | None:
    used = used_or_waited(end)
    return None if used is None else used >= HELD_UP


def _starved(view: FlowView) -> bool | None:
    """Look for samples that find nothing to send, or rates that vary as those of a program that stops and goes."""
    flow = view.flow
    empty = None if flow.holds is None else flow.holds.empty > 0
    varies = None if flow.rate_spread is None else flow.rate_spread >= _SPREAD
    return _any_known(empty, varies)


def _core(view: FlowView) -> bool | None:
    """Ask the workers' own account of the time that they used and waited for."""
    return _any_known(_waits(view.sender), _waits(view.receiver))


_CHECKS: Final[dict[str, Check]] = {
    "window-below-bdp": _window,
    "window-clamped": _window,
    "window-scaling-off": _window,
    "loss": _loss,
    "policer": _policer,
    "path-slow": _path,
    "pacing": _pacing,
    "receive-window": _reader,
    "sender-starved": _starved,
    "core-saturated": _core,
}
