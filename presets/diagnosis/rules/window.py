"""Windows that are too small: for bandwidth x delay, by a kernel limit, or without window scaling.

Measured: the time for which the peer's receive window or the send buffer stopped the sender (tcpi_rwnd_limited and
tcpi_sndbuf_limited of linux/tcp.h), the buffers that the kernel granted (SO_SNDBUF and SO_RCVBUF, socket(7)),
both kernels' limits (net.core.rmem_max, net.ipv4.tcp_rmem and their counterparts for sending, tcp(7)), and whether
window scaling was negotiated.

Meaning: a session carries at most one window for each round trip, so it needs a window of bandwidth x delay.
Without window scaling (RFC 7323) no window exceeds 65,535 bytes.

Findings: `window-scaling-off`; `window-below-bdp` for a requested window; `window-clamped` for a kernel's limit.
`receive-window` and `send-buffer` come last: time that no other rule explains.
"""

from collections.abc import Iterator
from typing import Final

from ...number_text import format_milliseconds, format_quantity, format_rate
from .. import remedies
from ..evidence import MIN_SHARE, EndEvidence, FlowView, end_name
from ..finding import Finding

# Linux doubles the requested buffer and uses a part for its book-keeping: 57,344 bytes became a window of 74,752 in
# a lab. An autotuned window ends at about two thirds of the limit: 42,112 of 65,536.
_WINDOW_PER_REQUESTED: Final = 1.3
_WINDOW_PER_LIMIT: Final = 0.65
_MAX_UNSCALED_BYTES: Final = 65_535


def find_window_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the finding about the receive window or send buffer that stopped the sender."""
    limited = view.budget.remaining("receiver", "buffer")
    needed = view.needed_window_bytes
    if limited < MIN_SHARE or needed is None:
        return
    if view.flow.window_scaling is False and needed > _MAX_UNSCALED_BYTES:
        yield _unscaled_window(view, needed)
    elif view.evidence.window_bytes is not None and needed > _WINDOW_PER_REQUESTED * _granted_bytes(view):
        yield _requested_window(view, needed)
    else:
        yield from _autotuned_window(view, needed)


def find_remaining_window_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the findings about time limited by a window that no other rule has explained."""
    flow = view.flow
    if (share := view.budget.take("receiver")) >= MIN_SHARE:
        yield Finding(
            "receive-window",
            share,
            0.5,
            f"The receiver at {end_name(view.receiver.end)} is reading too slowly: its window stops the sender.",
            f"for {_percent(flow.rwnd_limited)} of the time, with a window of {_bytes(flow.peer_window_bytes)}",
            remedies.show_processes(view.receiver),
            view.receiver.end,
        )
    if (share := view.budget.take("buffer")) >= MIN_SHARE:
        yield Finding(
            "send-buffer",
            share,
            0.5,
            f"The send buffer of {end_name(view.sender.end)} is full of unacknowledged data.",
            f"full for {_percent(flow.sndbuf_limited)} of the time",
            "give a larger --window, or "
            + remedies.raise_autotuning_limit(view.sender, _larger_buffer(view), is_sender=True),
            view.sender.end,
        )


def _granted_bytes(view: FlowView) -> int:
    """Return the smaller of the two granted windows; the requested one if neither is known."""
    known = [size for size in (view.flow.send_window_bytes, view.flow.receive_window_bytes) if size is not None]
    return min(known, default=view.evidence.window_bytes or 0)


def _requested_window(view: FlowView, needed: float) -> Finding:
    requested, granted = view.evidence.window_bytes or 0, _granted_bytes(view)
    sends = granted == view.flow.send_window_bytes
    end = view.sender if sends else view.receiver
    share = view.budget.take("receiver", "buffer")
    share += view.budget.take("network")  # the kernel may account a wait for the window as one for the network
    size = remedies.round_window(needed)
    evidence = f"{_carries(view, _WINDOW_PER_REQUESTED * granted)}; {_needs(view, needed)}; {_limited(view)}"
    if granted < requested:
        limit = f"net.core.{'w' if sends else 'r'}mem_max" if remedies.is_linux(end) else "its limit"
        return Finding(
            "window-clamped",
            share,
            0.9,
            f"The {end.end.label} kernel grants only {_bytes(granted)} of the requested {_bytes(requested)}.",
            f"{limit} is {_bytes(_limit(end, sends=sends) or granted)}; {evidence}",
            remedies.raise_buffer_limit(end, max(size, requested), is_sender=sends),
            end.end,
        )
    return Finding(
        "window-below-bdp",
        share,
        0.95,
        f"The window of {_bytes(granted)} is smaller than bandwidth x delay.",
        evidence,
        f"linkgauge … --window {remedies.format_window(size)}, or --window auto{_prerequisites(view, size)}",
    )


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


def _unscaled_window(view: FlowView, needed: float) -> Finding:
    share = view.budget.take("receiver", "buffer", "network")
    off = [end for end in (view.sender, view.receiver) if end.tcp is not None and end.tcp.window_scaling is False]
    end = off[0] if off else view.receiver
    return Finding(
        "window-scaling-off",
        share,
        0.95,
        "TCP window scaling (RFC 7323) is off: no window can exceed 64 KiB.",
        f"{_carries(view, _MAX_UNSCALED_BYTES)}; {_needs(view, needed)}; {_limited(view)}",
        remedies.enable_tcp_option(end, "window_scaling")
        + ("" if off else "; if it is on, look for a firewall on the path"),
        end.end if off else None,
    )


def _autotuned_window(view: FlowView, needed: float) -> Iterator[Finding]:
    """Yield the kernel's limits that autotuned windows have reached."""
    for name, end, sends in (("receiver", view.receiver, False), ("buffer", view.sender, True)):
        tcp = end.tcp
        limit = None if tcp is None else tcp.tcp_wmem_max_bytes if sends else tcp.tcp_rmem_max_bytes
        if limit is None or view.budget.remaining(name) < MIN_SHARE or _WINDOW_PER_LIMIT * limit >= needed:
            continue
        if view.evidence.window_bytes is not None:
            continue
        share = view.budget.take(name, "network")
        sysctl = f"net.ipv4.tcp_{'w' if sends else 'r'}mem" if remedies.is_linux(end) else "its limit"
        buffer = "send buffer" if sends else "receive window"
        yield Finding(
            "window-clamped",
            share,
            0.9,
            f"The {buffer} of {end_name(end.end)} has reached the kernel's limit.",
            f"{sysctl} allows {_bytes(limit)}; {_needs(view, needed)}; {_limited(view)}",
            remedies.raise_autotuning_limit(end, remedies.round_window(needed), is_sender=sends),
            end.end,
        )


def _larger_buffer(view: FlowView) -> int:
    """Return a send buffer of twice the needed window, and at least the present limit."""
    tcp = view.sender.tcp
    return max(remedies.round_window(2 * (view.needed_window_bytes or 0)), (tcp and tcp.tcp_wmem_max_bytes) or 0)


def _carries(view: FlowView, window_bytes: float) -> str:
    rtt_s = view.base_rtt_s or 1.0
    rate = format_rate(window_bytes * 8 / rtt_s * view.evidence.sessions)
    return f"it carries at most {rate} with a round trip of {format_milliseconds(rtt_s * 1e6)}"


def _needs(view: FlowView, needed: float) -> str:
    return f"{format_rate(view.target_bit_s)} need {_bytes(round(needed))} in each session"


def _limited(view: FlowView) -> str:
    flow = view.flow
    return (
        f"the receiver's window stopped TCP for {_percent(flow.rwnd_limited)}, its send buffer for "
        f"{_percent(flow.sndbuf_limited)} of the time"
    )


def _percent(share: float | None) -> str:
    return "an unknown part" if share is None else f"{100 * share:.0f} %"


def _bytes(size: int | None) -> str:
    return "an unknown number of bytes" if size is None else format_quantity(size, "byte")
