"""Windows that are too small: for bandwidth x delay, by a kernel limit, or without window scaling.

Measured: the payload in flight (rate x RTT), the buffers that the kernel granted (SO_SNDBUF and SO_RCVBUF,
socket(7)), both kernels' limits (net.core.rmem_max, net.ipv4.tcp_rmem and their counterparts for sending, tcp(7)),
whether window scaling was negotiated, and the time for which the peer's receive window or the send buffer stopped
the sender (tcpi_rwnd_limited and tcpi_sndbuf_limited of linux/tcp.h).

Meaning: a session carries at most one window for each round trip, so it needs a window of bandwidth x delay. A flow
whose payload in flight has reached its smallest window is limited by it (window_bounds.py). The kernel's clocks
support that, and share out the time that no bound explains.

Findings: `window-scaling-off`; `window-below-bdp` for a requested window; `window-clamped` for a kernel's limit.
`receive-window` and `send-buffer` come last: time that no other rule explains.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from ....engine.model.plan import MAX_WINDOW_BYTES
from ...number_text import format_quantity, format_rate, format_share, format_time
from .. import remedies
from ..evidence import MIN_SHARE, EndEvidence, describe_unseen, end_name
from ..finding import Finding
from ..flow_view import FlowView
from ..trial import Trial
from ..window_bounds import BoundKind, WindowBound, find_full_window, find_reached_bound, find_set_window
from .loss import loss_bound

_BY_CLOCKS: Final = 0.05
"""A share of time that is worth a mention."""

# Linux opens a session with a receive window of 64 KB. Only unread data makes it smaller.
_FIRST_WINDOW_BYTES: Final = 65_535
_OFTEN: Final = 0.25  # of the samples: rarer losses leave the window full for most of the time
_IN_WINDOW: Final = 0.6  # of the window: a flow with less in flight is not stopped by the window's usual size


def find_window_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the finding about the smallest window, if the payload in flight has reached it."""
    bound = find_reached_bound(view)
    if bound is None or view.budget.remaining("receiver", "buffer", "network") < MIN_SHARE:
        return
    # The kernel may count a wait for the window as a wait for the network.
    share = view.budget.take("receiver", "buffer", "network")
    view.budget.network = share * _share_of_loss(view, bound)
    yield _FINDINGS[bound.kind](view, bound, share - view.budget.network)


def _share_of_loss(view: FlowView, bound: WindowBound) -> float:
    """Return the part of a gap that losses explain beside a window, by the rate that either alone would allow."""
    lossy_bit_s, rtt_s = loss_bound(view), view.base_rtt_s
    if lossy_bit_s is None or rtt_s is None or (view.flow.lossy or 0.0) < _OFTEN:
        return 0.0
    windowed_bit_s = bound.window_bytes * 8 * view.evidence.sessions / rtt_s
    by_loss, by_window = (max(0.0, view.target_bit_s - each) for each in (lossy_bit_s, windowed_bit_s))
    return by_loss / (by_loss + by_window) if by_loss + by_window > 0 else 0.0


def find_remaining_window_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the findings about time limited by a window that no other rule has explained."""
    flow, window = view.flow, find_full_window(view) or find_set_window(view)
    if window is not None and view.evidence.window_bytes is not None:
        if (share := view.budget.take("receiver", "buffer")) >= MIN_SHARE:
            where = view.evidence.tense("; packets wait in queues.", "; packets waited in queues.")
            is_full = view.evidence.tense("is full at times", "was full at times")
            yield replace(
                _requested_window(view, window, share),
                confidence=0.6,
                text=f"The window {is_full}{where if view.has_queue else '.'}",
            )
        return
    if (share := view.budget.take("receiver")) >= MIN_SHARE and not _is_seldom_full(view):
        yield _closed_window(view, share)
    if (share := view.budget.take("buffer")) >= MIN_SHARE:
        yield Finding(
            "send-buffer",
            share,
            0.5,
            f"The send buffer of {end_name(view.sender.end)} {view.evidence.tense('is', 'was')} full of "
            "unacknowledged data.",
            f"full for {format_share(flow.sndbuf_limited)} of the time",
            "give a larger --window, or "
            + remedies.raise_autotuning_limit(view.sender, _larger_buffer(view), is_sender=True),
            view.sender.end,
        )


def _is_seldom_full(view: FlowView) -> bool:
    """Return whether samples contradict the clock of the receive window: it also runs while losses are repaired."""
    flow = view.flow
    if flow.holds is None or flow.is_read_late:
        return False
    return flow.holds.window + (flow.unread or 0.0) < _BY_CLOCKS


def _closed_window(view: FlowView, share: float) -> Finding:
    """Return the finding about a receive window that stops the sender, though the kernel would let it be larger."""
    receiver, window, in_flight = view.receiver, view.flow.peer_window_bytes, view.in_flight_bytes
    is_unseen = receiver.end is view.evidence.unseen_end
    is_unread = _is_unread(view)
    evidence = f"for {format_share(view.flow.rwnd_limited)} of the time, with a window of {_bytes(window)}"
    if is_unread and in_flight is not None:
        evidence += f" and {_bytes(round(in_flight))} in flight {_where(view)}"
    if view.flow.is_read_late:
        evidence += (
            f"; the window was clearly below its largest size in {format_share(view.flow.low_window)} of samples"
        )
    remedy = remedies.FREE_DEVICE if view.evidence.is_device else remedies.show_processes(receiver)
    if receiver.waiting is not None:
        evidence += (
            f"; its worker used {format_share(receiver.busiest_worker)} of a core, "
            f"and waited {format_share(receiver.waiting)} of the time for one"
        )
        remedy = remedies.show_states(receiver)
    size_bytes = remedies.round_window(window or 0)
    if is_unseen and not is_unread:  # its kernel's limit is unknown: the window may be at it
        return Finding(
            "receive-window",
            share,
            0.6,
            f"The receive window of {end_name(receiver.end)} {view.evidence.tense('stops', 'stopped')} the sender.",
            f"{evidence}; {describe_unseen(view.evidence, receiver.end)}",
            f"a larger --window, or {remedies.raise_autotuning_limit(receiver, size_bytes, is_sender=False)}",
            receiver.end,
        )
    return Finding(
        "receive-window",
        share,
        0.85 if is_unread else 0.5,
        f"The receiver at {end_name(receiver.end)} {view.evidence.tense('is reading', 'read')} too slowly"
        + (
            view.evidence.tense(": its window stops the sender.", ": its window stopped the sender.")
            if (view.flow.rwnd_limited or 0.0) >= _BY_CLOCKS
            else view.evidence.tense(", and acknowledges late.", ", and acknowledged late.")
        ),
        evidence,
        remedy,
        receiver.end,
    )


def _is_unread(view: FlowView) -> bool:
    """Return whether the receiver's program leaves data unread: by its buffer, or else by its window's size."""
    flow, window, in_flight = view.flow, view.flow.peer_window_bytes, view.in_flight_bytes
    if flow.is_read_late or flow.unread is not None:
        return flow.leaves_unread
    if view.evidence.has_foreign_end:
        # Its first window may be of any size; but no end offers less than a segment (RFC 9293, 3.8.6.2.2) unless
        # data waits.
        return window is not None and window < (flow.mss_bytes or 0)
    return window is not None and (
        window < _FIRST_WINDOW_BYTES or (in_flight is not None and in_flight < _IN_WINDOW * window)
    )


def _fixed_window(view: FlowView, bound: WindowBound, share: float) -> Finding:
    end, flow = bound.end, view.flow
    return Finding(
        "window-clamped",
        share,
        0.85,
        f"The receive window of {end_name(end.end)} {view.evidence.tense('does', 'did')} not grow.",
        f"it stayed at {_bytes(bound.limit_bytes)} though its program reads all that arrives, and its kernel's "
        "own limit is "
        f"{_bytes(end.tcp and end.tcp.tcp_rmem_max_bytes)}; {_describe(view, bound)}",
        remedies.let_window_grow(end, (flow.receive_buffer_bytes or 0) >= 4 * bound.limit_bytes),
        end.end,
    )


def _requested_window(view: FlowView, bound: WindowBound, share: float) -> Finding:
    size = min(MAX_WINDOW_BYTES, remedies.round_window(_needed(view)))
    larger, auto, first = Trial(window_bytes=size), Trial(window_auto=True), _prerequisites(view, size)
    is_larger = size > (view.evidence.window_bytes or 0)
    return Finding(
        "window-below-bdp",
        share,
        0.95,
        "The window is smaller than bandwidth x delay.",
        f"a window of {_bytes(bound.limit_bytes)}: {_describe(view, bound)}",
        f"linkgauge … {larger}, or {auto}{first}" if is_larger else f"linkgauge … {auto}",
        trial=larger if is_larger and not first else auto,
    )


def _clamped_window(view: FlowView, bound: WindowBound, share: float) -> Finding:
    end, requested = bound.end, view.evidence.window_bytes or 0
    size = max(remedies.round_window(_needed(view)), requested)
    sysctl = f"net.core.{'w' if bound.is_sender else 'r'}mem_max" if remedies.is_linux(end) else "its limit"
    limit = _limit(end, sends=bound.is_sender) or bound.limit_bytes
    return Finding(
        "window-clamped",
        share,
        0.9,
        f"The {end.end.label} kernel {view.evidence.tense('grants', 'granted')} less than the requested window.",
        f"{_bytes(bound.limit_bytes)} of the requested {_bytes(requested)}; {sysctl} is {_bytes(limit)}; "
        f"{_describe(view, bound)}",
        remedies.raise_buffer_limit(end, size, is_sender=bound.is_sender),
        end.end,
    )


def _autotuned_window(view: FlowView, bound: WindowBound, share: float) -> Finding:
    end = bound.end
    sysctl = f"net.ipv4.tcp_{'w' if bound.is_sender else 'r'}mem" if remedies.is_linux(end) else "its limit"
    buffer = "send buffer" if bound.is_sender else "receive window"
    return Finding(
        "window-clamped",
        share,
        0.9,
        f"The {buffer} of {end_name(end.end)} {view.evidence.tense('has reached', 'reached')} the kernel's limit.",
        f"{sysctl} allows {_bytes(bound.limit_bytes)}; {_describe(view, bound)}",
        remedies.raise_autotuning_limit(end, remedies.round_window(_needed(view)), is_sender=bound.is_sender),
        end.end,
    )


def _unscaled_window(view: FlowView, bound: WindowBound, share: float) -> Finding:
    off = [end for end in (view.sender, view.receiver) if end.tcp is not None and end.tcp.window_scaling is False]
    end = off[0] if off else view.receiver
    return Finding(
        "window-scaling-off",
        share,
        0.95,
        "TCP window scaling is off: the window cannot grow.",
        f"without it (RFC 7323) no window can exceed 64 KiB; {_describe(view, bound)}",
        remedies.enable_tcp_option(end, "window_scaling")
        + ("" if off else "; if it is on, look for a firewall on the path"),
        end.end if off else None,
    )


def _constant_window(view: FlowView, bound: WindowBound, share: float) -> Finding:
    """Return the finding about a window that does not grow, of another program's connection or of a browser."""
    end, words = bound.end, ("send buffer", "SNDBUF") if bound.is_sender else ("receive window", "RCVBUF")
    unseen = "" if bound.is_sender else f"; {describe_unseen(view.evidence, end.end)}"
    if view.evidence.is_observed:
        remedy = (
            f"at {end_name(end.end)}, in the program: do not set SO_{words[1]}, so that the kernel lets it grow, "
        )
        remedy += f"or set {_bytes(remedies.round_window(2 * _needed(view)))}"
        remedy += "" if bound.is_sender else "; or raise net.ipv4.tcp_rmem there"
    else:
        remedy = f"at {end_name(end.end)}: raise the limit of its receive buffers (Linux: net.ipv4.tcp_rmem)"
    return Finding(
        "window-below-bdp",
        share,
        0.85 if bound.is_sender else 0.7,
        f"The {words[0]} of {end_name(end.end)} is constant, and smaller than bandwidth x delay.",
        f"{_bytes(bound.limit_bytes)}: {_describe(view, bound)}{unseen}",
        remedy,
        end.end,
    )


_FINDINGS: Final[dict[BoundKind, Callable[[FlowView, WindowBound, float], Finding]]] = {
    "requested": _requested_window,
    "clamped": _clamped_window,
    "autotuned": _autotuned_window,
    "unscaled": _unscaled_window,
    "fixed": _fixed_window,
    "unknown": _constant_window,
}


def _prerequisites(view: FlowView, size: int) -> str:
    """Return the commands that raise the limits under the window, if there are any."""
    commands = [
        remedies.raise_buffer_limit(end, size, is_sender=sends)
        for end, sends in ((view.sender, True), (view.receiver, False))
        if (_limit(end, sends=sends) or size) < size
    ]
    return f"; first {'; '.join(commands)}" if commands else ""


def _limit(end: EndEvidence, *, sends: bool) -> int | None:
    return None if end.tcp is None else end.tcp.wmem_max_bytes if sends else end.tcp.rmem_max_bytes


def _needed(view: FlowView) -> float:
    return max(view.needed_window_bytes or 0.0, view.in_flight_bytes or 0.0)


def _describe(view: FlowView, bound: WindowBound) -> str:
    """Return the numbers behind a bound: bytes in flight, the need of the target, and the kernel's clocks."""
    in_flight, rtt = _bytes(round(view.in_flight_bytes or 0)), format_time(view.flow.rtt_us or 0)
    has, is_or_was = view.evidence.tense("has", "had"), view.evidence.tense("is", "was")
    subject = "the connection" if view.evidence.is_observed else "each session"
    parts = [f"{subject} {has} {in_flight} in flight with a round trip of {rtt}"]
    if bound.held is None:
        parts[0] += f", about as much as the kernel allows for it ({_bytes(round(bound.window_bytes))})"
    else:
        what = "its send buffer" if bound.is_sender else "the receiver's window"
        parts.append(f"{what} {is_or_was} full of them in {format_share(bound.held)} of samples")
    if view.flow.expected_bit_s is not None:
        parts.append(f"{format_rate(view.target_bit_s)} need {_bytes(round(_needed(view)))} {_where(view)}")
    if max(view.flow.rwnd_limited or 0.0, view.flow.sndbuf_limited or 0.0) >= _BY_CLOCKS:
        parts.append(_limited(view))
    return "; ".join(parts)


def _where(view: FlowView) -> str:
    return "in this connection" if view.evidence.is_observed else "in each session"


def _larger_buffer(view: FlowView) -> int:
    """Return a send buffer of twice the needed window, and at least the present limit."""
    tcp = view.sender.tcp
    return max(remedies.round_window(2 * (view.needed_window_bytes or 0)), (tcp and tcp.tcp_wmem_max_bytes) or 0)


def _limited(view: FlowView) -> str:
    flow = view.flow
    waits = view.evidence.tense("waits", "waited")
    return (
        f"TCP {waits} for the receiver's window {format_share(flow.rwnd_limited)} of the time, "
        f"and for the sender's buffer {format_share(flow.sndbuf_limited)}"
    )


def _bytes(size: int | None) -> str:
    return "an unknown number of bytes" if size is None else format_quantity(size, "byte")
