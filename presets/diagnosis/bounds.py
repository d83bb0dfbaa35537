"""The windows that bound a flow, and the one that its bytes in flight have reached.

Pure. A session has at most one window of unacknowledged payload in flight, so its rate is at most a window for each
round trip. Bytes in flight follow from what was measured: rate x RTT. A flow that sits at the smallest of its
windows, below bandwidth x delay, is limited by that window, whatever the kernel's clocks say: with small buffers
tcpi_rwnd_limited and tcpi_sndbuf_limited (linux/tcp.h) stay near zero.

Linux accounts for the memory of packets, not for their payload. Measured on emulated links of 10 and 100 Mb/s, 16K
to 256K, 2 to 50 ms, 1 to 4 sessions: 1.10 to 1.30 times a requested window was in flight (the kernel doubles what
is asked for), and 0.53 to 0.73 times the limit of an autotuned send buffer. The receive window is what the other
end advertises (tcpi_snd_wnd): 0.65 or 1.3 times the limit, by the packets that came first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from ...engine.model.plan import Direction
from .evidence import EndEvidence, Evidence, FlowView, flow_views

WINDOW_PER_REQUESTED: Final = 1.3
_WINDOW_PER_LIMIT: Final = 0.65
_NEAR_LIMIT: Final = 0.5  # a smaller advertised window still grows, or its reader is slow
MAX_UNSCALED_BYTES: Final = 65_535  # RFC 7323: without window scaling
# A flow sits at a window from this share of it on; above the second one, the window is not what it was taken for.
_REACHED: Final = 0.78
_BEYOND: Final = 1.6
# Where the kernel's clocks name the window as well, less is enough.
_REACHED_BY_CLOCKS: Final = 0.5
_MIN_CLOCK: Final = 0.05

BoundKind = Literal["requested", "clamped", "autotuned", "unscaled"]
"""What sets a window: the person; a kernel that grants less; a kernel's limit of autotuning; no window scaling."""


@dataclass(frozen=True, slots=True)
class WindowBound:
    """A window of one end: `window_bytes` of payload may be in flight in each session.

    `limit_bytes` is the setting behind it, as a person finds it at `end`. `is_sender` tells a send buffer from a
    receive window.
    """

    kind: BoundKind
    window_bytes: float
    limit_bytes: int
    end: EndEvidence
    is_sender: bool


@dataclass(frozen=True, slots=True)
class FlowWindows:
    """What must agree in one direction, in bytes of payload of a session; None where it is unknown.

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
            min((bound.window_bytes for bound in _window_bounds(view)), default=None),
            view.flow.cwnd_bytes,
            None if view.flow.expected_bit_s is None else view.needed_window_bytes,
        )
        for view in flow_views(evidence)
    )


def find_reached_bound(view: FlowView) -> WindowBound | None:
    """Return the smallest window of a flow if the flow sits at it and needs more; None otherwise.

    Without an expected rate nothing says how much it needs: then only a window that the person set counts.
    """
    bound = find_full_window(view)
    if bound is None:
        return None
    if view.flow.expected_bit_s is None:
        return bound if view.evidence.window_bytes is not None else None
    needed = _needed_bytes(view)
    return None if needed is None or bound.window_bytes >= needed else bound


def find_full_window(view: FlowView) -> WindowBound | None:
    """Return the smallest window of a flow if the flow sits at it, whether it needs more or not."""
    bound = min(_window_bounds(view), key=lambda each: each.window_bytes, default=None)
    return bound if bound is not None and _is_reached(view, bound) else None


def _window_bounds(view: FlowView) -> Iterator[WindowBound]:
    flow, requested = view.flow, view.evidence.window_bytes
    sides = (
        (view.sender, True, flow.send_window_bytes, view.sender.tcp and view.sender.tcp.tcp_wmem_max_bytes),
        (
            view.receiver,
            False,
            flow.receive_window_bytes,
            view.receiver.tcp and view.receiver.tcp.tcp_rmem_max_bytes,
        ),
    )
    for end, is_sender, granted, limit in sides:
        advertised = None if is_sender else flow.peer_window_bytes
        if requested is not None:
            size = requested if granted is None else granted
            kind: BoundKind = "clamped" if size < requested else "requested"
            yield WindowBound(kind, advertised or WINDOW_PER_REQUESTED * size, size, end, is_sender)
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
