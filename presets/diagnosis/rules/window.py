"""Findings about windows: too small for bandwidth times delay, clamped by the kernel, without scaling."""

from collections.abc import Iterator
from typing import Final

from ...number_text import format_rate
from .. import remedies
from ..budget import FlowView, end_name
from ..evidence import EndEvidence
from ..finding import Finding

# Linux keeps twice what was asked for, and lends what its book-keeping does not take: 57,344 asked for became a
# window of 74,752 in a lab. What it grows by itself ends at about two thirds of the limit: 42,112 of 65,536.
_ASKED_CARRIES: Final = 1.3
_GROWN_CARRIES: Final = 0.65
_UNSCALED_BYTES: Final = 65_535  # the largest window without scaling, RFC 7323
# Held up for less than this of what is missing, the window is not the matter.
_LEAST_SHARE: Final = 0.05


def find_window_limits(view: FlowView) -> Iterator[Finding]:
    """Give what of the two windows, the peer's and the send buffer, held the sender up."""
    held = view.budget.remaining("receiver", "buffer")
    needed = view.needed_window_bytes
    if held < _LEAST_SHARE or needed is None:
        return
    if view.flow.window_scaling is False and needed > _UNSCALED_BYTES:
        yield _unscaled(view, needed)
    elif view.evidence.window_bytes is not None and needed > _ASKED_CARRIES * _granted(view):
        yield _asked(view, needed)
    else:
        yield from _grown(view, needed)


def find_remaining_window_limits(view: FlowView) -> Iterator[Finding]:
    """Give what windows held up that nothing else explains."""
    flow = view.flow
    if (share := view.budget.take("receiver")) >= _LEAST_SHARE:
        yield Finding(
            "receive-window",
            share,
            0.5,
            f"The receive window of {end_name(view.receiver.end)} holds the sender back: it is read too slowly.",
            f"held for {_percent(flow.rwnd_limited)} of the time, with {_bytes(flow.peer_window_bytes)} granted",
            remedies.show_processes(view.receiver),
            view.receiver.end,
        )
    if (share := view.budget.take("buffer")) >= _LEAST_SHARE:
        yield Finding(
            "send-buffer",
            share,
            0.5,
            f"The send buffer of {end_name(view.sender.end)} is full of what is not acknowledged yet.",
            f"held for {_percent(flow.sndbuf_limited)} of the time",
            "give a larger --window, or "
            + remedies.raise_autotuning_limit(view.sender, _wished(view), is_sender=True),
            view.sender.end,
        )


def _granted(view: FlowView) -> int:
    """Return the smaller of the two windows that were granted; what was asked for where nobody tells."""
    known = [size for size in (view.flow.send_window_bytes, view.flow.receive_window_bytes) if size is not None]
    return min(known, default=view.evidence.window_bytes or 0)


def _asked(view: FlowView, needed: float) -> Finding:
    asked, granted = view.evidence.window_bytes or 0, _granted(view)
    sends = granted == view.flow.send_window_bytes
    end = view.sender if sends else view.receiver
    share = view.budget.take("receiver", "buffer")
    share += view.budget.take("network")  # between two windows nothing goes, whatever the state is called
    size = remedies.round_window(needed)
    shown = f"{_carries(view, _ASKED_CARRIES * granted)}; {_needs(view, needed)}; {_held(view)}"
    if granted < asked:
        limit = f"net.core.{'w' if sends else 'r'}mem_max" if remedies.is_linux(end) else "its limit"
        return Finding(
            "window-clamped",
            share,
            0.9,
            f"The kernel of {end_name(end.end)} grants {_bytes(granted)} of the {_bytes(asked)} asked for.",
            f"{limit} there is {_bytes(_limit(end, sends=sends) or granted)}; {shown}",
            remedies.raise_buffer_limit(end, max(size, asked), is_sender=sends),
            end.end,
        )
    return Finding(
        "window-below-bdp",
        share,
        0.95,
        f"The window of {_bytes(granted)} is below bandwidth x delay.",
        shown,
        f"linkgauge … --window {remedies.format_window(size)}, or --window auto{_and_let(view, size)}",
    )


def _and_let(view: FlowView, size: int) -> str:
    """Return what must be allowed first for a window to be granted."""
    first = [
        remedies.raise_buffer_limit(end, size, is_sender=sends)
        for end, sends in ((view.sender, True), (view.receiver, False))
        if (_limit(end, sends=sends) or size) < size
    ]
    return f"; first {'; '.join(first)}" if first else ""


def _limit(end: EndEvidence, *, sends: bool) -> int | None:
    return None if end.tcp is None else end.tcp.wmem_max_bytes if sends else end.tcp.rmem_max_bytes


def _unscaled(view: FlowView, needed: float) -> Finding:
    share = view.budget.take("receiver", "buffer", "network")
    off = [end for end in (view.sender, view.receiver) if end.tcp is not None and end.tcp.window_scaling is False]
    end = off[0] if off else view.receiver
    return Finding(
        "window-scaling-off",
        share,
        0.95,
        "TCP window scaling (RFC 1323, RFC 7323) was not negotiated: no window is above 64 KiB.",
        f"{_carries(view, _UNSCALED_BYTES)}; {_needs(view, needed)}; {_held(view)}",
        remedies.enable_tcp_option(end, "window_scaling")
        + ("" if off else "; where it is on, look for a firewall on the way"),
        end.end if off else None,
    )


def _grown(view: FlowView, needed: float) -> Iterator[Finding]:
    """Give the limit of the kernel that a window which it grows by itself has come to."""
    for name, end, sends in (("receiver", view.receiver, False), ("buffer", view.sender, True)):
        facts = end.tcp
        limit = None if facts is None else facts.tcp_wmem_max_bytes if sends else facts.tcp_rmem_max_bytes
        if limit is None or view.budget.remaining(name) < _LEAST_SHARE or _GROWN_CARRIES * limit >= needed:
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
            f"The {buffer} of {end_name(end.end)} has grown to the kernel's limit.",
            f"{sysctl} ends at {_bytes(limit)} there; {_needs(view, needed)}; {_held(view)}",
            remedies.raise_autotuning_limit(end, remedies.round_window(needed), is_sender=sends),
            end.end,
        )


def _wished(view: FlowView) -> int:
    """Return a send buffer that is larger than what is needed, and than what there may be now."""
    facts = view.sender.tcp
    return max(
        remedies.round_window(2 * (view.needed_window_bytes or 0)), (facts and facts.tcp_wmem_max_bytes) or 0
    )


def _carries(view: FlowView, window_bytes: float) -> str:
    trip = view.base_rtt_s or 1.0
    rate = format_rate(window_bytes * 8 / trip * view.evidence.sessions)
    return f"it carries {rate} at most at a round trip of {trip * 1e3:.3g} ms"


def _needs(view: FlowView, needed: float) -> str:
    return f"{format_rate(view.target_bit_s)} need {_bytes(round(needed))} in each session"


def _held(view: FlowView) -> str:
    flow = view.flow
    return (
        f"TCP was held by the peer's window for {_percent(flow.rwnd_limited)} and by its send buffer for "
        f"{_percent(flow.sndbuf_limited)} of the time"
    )


def _percent(share: float | None) -> str:
    return "an unknown part" if share is None else f"{100 * share:.0f} %"


def _bytes(size: int | None) -> str:
    return "an unknown number of bytes" if size is None else f"{size:,} bytes".replace(",", " ")
