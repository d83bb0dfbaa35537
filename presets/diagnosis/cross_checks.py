"""Cross-checks of findings: whether other quantities than those of a finding's rule agree with it.

A rule reads a few numbers, and an unusual link may distort one of them. So each confident finding has a check here,
made from numbers that its rule does not need. For a window these are the kernel's clocks, if the rule read samples;
for losses the packets out of order at the receiver; for a slow path its delivery rate. If a check disagrees, the
confidence falls to a guess. If its numbers are unknown, it falls to the confidence of a single reading.
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
"""Findings of this confidence or more are checked."""
ONE_READING: Final = 0.85
DISAGREED: Final = 0.6
_HELD: Final = 0.25  # of samples or time, by the second of two measurements
_ALIKE: Final = 2.0  # two estimates of one quantity differ by less than this factor
_MATHIS_RANGE: Final = (
    0.25,
    4.0,
)  # times the bound of a lossy path, which varies with cubic, short tests and reordering
_DELIVERED: Final = 1.35  # times the rate: a path delivers so much in bursts
_UNREAD: Final = 0.2
_SPREAD: Final = 0.02

Check = Callable[[FlowView], bool | None]
"""Returns whether other numbers agree with a finding; None if they are unknown."""


def weigh(view: FlowView, finding: Finding) -> Finding:
    """Return a finding with its confidence after the check."""
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
    """Read the kernel's clocks, or compare its count of bytes in flight with rate x RTT."""
    flow = view.flow
    clocks = (flow.rwnd_limited or 0.0) + (
        flow.sndbuf_limited or 0.0
    ) >= _HELD or None  # with small buffers the clocks do not run
    counted, computed = flow.unacked_bytes, view.in_flight_bytes
    alike = None if not counted or not computed else max(counted / computed, computed / counted) <= _ALIKE
    return _any_known(clocks, alike)


def _loss(view: FlowView) -> bool | None:
    """Look for packets out of order at the receiver, or the rate that this loss allows."""
    flow = view.flow
    reordered = None if flow.out_of_order is None else flow.out_of_order > 0
    bound = view.lossy_bit_s
    if bound is None:
        return reordered
    low, high = _MATHIS_RANGE
    return _any_known(reordered, low * bound <= flow.bit_s <= high * bound)


def _policer(view: FlowView) -> bool | None:
    """Look for packets out of order at the receiver: segments that follow a lost one."""
    return None if view.flow.out_of_order is None else view.flow.out_of_order > 0


def _path(view: FlowView) -> bool | None:
    """Look for a low delivery rate while data was sent, or a full congestion window."""
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
    return _any_known(unread, shrinks, _waits(receiver) or None)  # a stopped worker does not wait


def _waits(end: EndEvidence) -> bool | None:
    used = used_or_waited(end)
    return None if used is None else used >= HELD_UP


def _starved(view: FlowView) -> bool | None:
    """Look for samples with nothing to send, or rates that vary as if the program stops at times."""
    flow = view.flow
    empty = None if flow.holds is None else flow.holds.empty > 0
    varies = None if flow.rate_spread is None else flow.rate_spread >= _SPREAD
    return _any_known(empty, varies)


def _core(view: FlowView) -> bool | None:
    """Read the workers' own times: how long they ran, and how long they waited for a core."""
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
