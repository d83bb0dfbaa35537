"""The windows that bound a flow, and the one that its bytes in flight have reached.

Pure. A session has at most one window of unacknowledged payload in flight, so its rate is at most a window for each
round trip.

Two readings tell whether a flow sits at a window: its samples (engine/results/sums/send_holds.py), and the kernel's
clocks (tcpi_rwnd_limited and tcpi_sndbuf_limited of linux/tcp.h). The window that stops it more often is the limit.
The payload that fits into a buffer depends on the packets, so it does not matter here: without segmentation
offload, 55 KB of payload fill a send buffer that holds 73 KB with it.

If the kernel does not report the content of its buffers, a model remains. Bytes in flight follow from rate x RTT.
Linux accounts for the memory of packets, not for their payload. Measured on emulated links of 10 and 100 Mb/s, 16K
to 256K, 2 to 50 ms, 1 to 4 sessions: 1.10 to 1.30 times a requested window was in flight (the kernel doubles the
request), and 0.53 to 0.73 times the limit of an autotuned send buffer. The receive window is the one that the other
end advertises (tcpi_snd_wnd): 0.65 or 1.3 times the limit, depending on the first packets.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from ...engine.model.directions import Direction
from .evidence import EndEvidence, Evidence, HoldShares
from .flow_view import FlowView, flow_views

WINDOW_PER_REQUESTED: Final = 1.3
_WINDOW_PER_LIMIT: Final = 0.65
_NEAR_LIMIT: Final = 0.5  # a smaller advertised window still grows, or its reader is slow
MAX_UNSCALED_BYTES: Final = 65_535  # RFC 7323: without window scaling
# A flow sits at a window from this share of it on. Above the second share, the window is not the one modelled.
_REACHED: Final = 0.78
_BEYOND: Final = 1.6
# If the kernel's clocks name the window as well, less is enough.
_REACHED_BY_CLOCKS: Final = 0.5
_MIN_CLOCK: Final = 0.05
# Of the samples, or of the time by the kernel's clocks: a flow that is held for less has another limit.
_HELD: Final = 0.4
_MOSTLY: Final = 0.8  # of the samples: on a busy host the round trip is longer without any queue
_MIN_SAMPLES: Final = 3
_AT_LIMIT: Final = 0.8  # of a kernel's limit: a buffer of this size does not grow any more
_CONSTANT: Final = 1.15  # times its first size: a window that did not grow
_CONSTANT_UNSEEN: Final = 1.5  # a window that grows doubles in the time of a reading of a few seconds

BoundKind = Literal["requested", "clamped", "autotuned", "unscaled", "fixed", "unknown"]
"""What sets a window.

The user; a kernel that grants less; a kernel's limit of autotuning; no window scaling; or a receiver's kernel that
does not let it grow. In a connection of another program it may be unknown whether the program or its kernel does.
"""


@dataclass(frozen=True, slots=True)
class WindowBound:
    """A window of one end: `window_bytes` of payload may be in flight in each session.

    `limit_bytes` is the setting behind it, as it reads at `end`. `is_sender` tells a send buffer from a
    receive window. `held` is the share of samples, and `clocked` the share of time, for which it stopped the flow;
    None for a window that is modelled.
    """

    kind: BoundKind
    window_bytes: float
    limit_bytes: int
    end: EndEvidence
    is_sender: bool
    held: float | None = None
    clocked: float | None = None


@dataclass(frozen=True, slots=True)
class FlowWindows:
    """The windows that must agree in one direction, in bytes of payload of a session; None is unknown.

    `window` is the smallest window of both ends, `needed` bandwidth x delay of the expected rate.
    """

    direction: Direction
    in_flight: float | None
    window: float | None
    cwnd: float | None
    needed: float | None


def flow_windows(evidence: Evidence) -> tuple[FlowWindows, ...]:
    """Return the windows of each direction."""
    return tuple(
        FlowWindows(
            view.flow.direction,
            view.in_flight_bytes,
            _smallest_window(view),
            view.flow.cwnd_bytes,
            None if view.flow.expected_bit_s is None else view.needed_window_bytes,
        )
        for view in flow_views(evidence)
    )


def _smallest_window(view: FlowView) -> float | None:
    """Return the window that stops a flow, or else the smallest one that is known."""
    full = find_full_window(view)
    if full is not None:
        return full.window_bytes
    return min((bound.window_bytes for bound in _window_bounds(view)), default=None)


def find_reached_bound(view: FlowView) -> WindowBound | None:
    """Return the smallest window of a flow if the flow sits at it and needs more; None otherwise.

    Without an expected rate its need is unknown: then only a window that the user set counts, or one that stops a
    connection of another program. If packets wait in a queue, a larger window would only make the queue longer.
    """
    bound = find_full_window(view)
    if bound is None or (bound.held is not None and view.fills_queue):
        return None
    if view.flow.expected_bit_s is None:
        is_observed = view.evidence.is_observed and (bound.held or 0.0) >= (_MOSTLY if view.has_queue else _HELD)
        return bound if view.evidence.window_bytes is not None or is_observed else None
    needed = _needed_bytes(view)
    return None if needed is None or bound.window_bytes >= needed else bound


def find_full_window(view: FlowView) -> WindowBound | None:
    """Return the smallest window of a flow if the flow sits at it, whether it needs more or not."""
    holds = view.flow.holds
    if holds is not None and holds.samples >= _MIN_SAMPLES:
        return _measured_bound(view, holds)
    bound = min(_window_bounds(view), key=lambda each: each.window_bytes, default=None)
    return bound if bound is not None and _is_reached(view, bound) else None


def find_set_window(view: FlowView) -> WindowBound | None:
    """Return the receive window that the user has set, if its reader keeps up with the payload; None otherwise."""
    flow = view.flow
    if flow.holds is None or flow.leaves_unread:
        return None
    bound = _set_window(view, _level(view), is_sender=False)
    return None if bound is None else replace(bound, held=flow.holds.window, clocked=flow.rwnd_limited)


def _measured_bound(view: FlowView, holds: HoldShares) -> WindowBound | None:
    """Return the window that stops a flow, by the account of its own kernel."""
    flow = view.flow
    windows, buffers = (holds.window, flow.rwnd_limited or 0.0), (holds.buffer, flow.sndbuf_limited or 0.0)
    sampled, timed = windows[0] + buffers[0], windows[1] + buffers[1]
    if sampled < _HELD and (timed < _HELD or sampled < _HELD / 2):  # the clocks count lost bytes as in flight
        return None
    is_sender = max(buffers) > max(windows)
    if not is_sender and flow.leaves_unread:
        return None  # unread data makes a window smaller than its setting
    held, clocked = buffers if is_sender else windows
    own = _own_buffer if is_sender else _own_window
    bound = _set_window(view, _level(view), is_sender=is_sender) or own(view)
    return None if bound is None else replace(bound, held=held, clocked=clocked)


def _set_window(view: FlowView, window_bytes: float | None, *, is_sender: bool) -> WindowBound | None:
    """Return the window that the user has set, as one end's kernel grants it; None if the kernel chose it.

    `window_bytes` is the payload that it allows in flight; None is unknown.
    """
    flow, requested = view.flow, view.evidence.window_bytes
    if requested is None:
        return None
    granted = flow.send_window_bytes if is_sender else flow.receive_window_bytes
    size = requested if granted is None else granted
    kind: BoundKind = "clamped" if size < requested else "requested"
    end = view.sender if is_sender else view.receiver
    return WindowBound(kind, window_bytes or WINDOW_PER_REQUESTED * size, size, end, is_sender)


def _level(view: FlowView) -> float:
    """Return the bytes that a session has in flight at the window that stops it."""
    return float(view.flow.unacked_bytes or view.in_flight_bytes or 0.0)


def _own_buffer(view: FlowView) -> WindowBound | None:
    """Return the limit that a kernel's own send buffer has reached; None while it still grows."""
    limit, size = view.sender.tcp and view.sender.tcp.tcp_wmem_max_bytes, view.flow.send_buffer_bytes
    if size is None:
        return None
    if limit is None or size < _AT_LIMIT * limit:
        is_set = view.evidence.is_observed  # a program that leaves it to the kernel has it grow
        return WindowBound("unknown", _level(view), size, view.sender, is_sender=True) if is_set else None
    return WindowBound("autotuned", _level(view), limit, view.sender, is_sender=True)


def _own_window(view: FlowView) -> WindowBound | None:
    """Return the bound of a kernel's own receive window; None if no bound is known."""
    flow, receiver = view.flow, view.receiver
    window, buffer = flow.peer_window_bytes, flow.receive_buffer_bytes
    limit = None if receiver.tcp is None else receiver.tcp.tcp_rmem_max_bytes
    if window is None:
        return None
    if flow.window_scaling is False and window <= MAX_UNSCALED_BYTES:
        return WindowBound("unscaled", _level(view), MAX_UNSCALED_BYTES, receiver, is_sender=False)
    if limit is None:
        is_constant = not flow.is_read_late and (flow.window_growth or 1.0) <= _CONSTANT_UNSEEN
        is_constant = is_constant and view.evidence.has_foreign_end
        return WindowBound("unknown", _level(view), window, receiver, is_sender=False) if is_constant else None
    if (buffer or 0) >= _AT_LIMIT * limit or window >= _NEAR_LIMIT * limit:
        return WindowBound("autotuned", _level(view), limit, receiver, is_sender=False)
    if buffer is not None and (flow.window_growth or 1.0) <= _CONSTANT:
        return WindowBound("fixed", _level(view), window, receiver, is_sender=False)
    return None


def _window_bounds(view: FlowView) -> Iterator[WindowBound]:
    flow = view.flow
    for end, is_sender in ((view.sender, True), (view.receiver, False)):
        advertised = None if is_sender else flow.peer_window_bytes
        limit = end.tcp and (end.tcp.tcp_wmem_max_bytes if is_sender else end.tcp.tcp_rmem_max_bytes)
        bound = _set_window(view, advertised, is_sender=is_sender)
        if bound is not None:
            yield bound
        elif limit is not None and (advertised is None or advertised >= _NEAR_LIMIT * limit):
            yield WindowBound("autotuned", advertised or _WINDOW_PER_LIMIT * limit, limit, end, is_sender)
    if flow.window_scaling is False:
        yield WindowBound("unscaled", MAX_UNSCALED_BYTES, MAX_UNSCALED_BYTES, view.receiver, is_sender=False)


def _is_reached(view: FlowView, bound: WindowBound) -> bool:
    in_flight = view.in_flight_bytes
    if in_flight is None:
        return False
    share = in_flight / bound.window_bytes
    clocks = (view.flow.sndbuf_limited if bound.is_sender else view.flow.rwnd_limited) or 0.0
    return (_REACHED_BY_CLOCKS if clocks >= _MIN_CLOCK else _REACHED) <= share <= _BEYOND


def _needed_bytes(view: FlowView) -> float | None:
    """Return bandwidth x delay of a session: without a queue the present round trip is the path's own."""
    needed, in_flight = view.needed_window_bytes, view.in_flight_bytes
    if view.has_queue or in_flight is None or not view.flow.bit_s:
        return needed
    return in_flight * view.target_bit_s / view.flow.bit_s
