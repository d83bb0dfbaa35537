"""The limits of a transfer that show at its receiver alone: unread data, a window that does not grow, losses.

Measured: the unread part of the receive buffer (SO_MEMINFO), the window that this kernel advertises (tcpi_rcv_wnd
of linux/tcp.h, Linux 6.2), its estimate of the round trip from timestamps (tcpi_rcv_rtt), the buffer's limit
(net.ipv4.tcp_rmem), and the packets that arrived out of order (tcpi_rcv_ooopack).

Meaning: a program that leaves data unread closes its window. Linux lets a window grow to twice the data of a round
trip (tcp_rcv_space_adjust), so a flow that fills more of it has a window that cannot grow. Packets behind a lost
one arrive out of order, and a full queue loses some without being a fault: losses explain only a rate below the
expected one.

Findings: `receive-window`, `window-clamped`, `window-below-bdp`, `window-scaling-off`, `loss`.
"""

from collections.abc import Iterator
from typing import Final

from ..engine.host.tcp_info import TcpInfo
from ..presets.diagnosis import remedies
from ..presets.diagnosis.evidence import end_name
from ..presets.diagnosis.finding import Finding, FindingCode
from ..presets.diagnosis.flow_view import FlowView
from ..presets.diagnosis.rules.loss import find_losses_at_receiver
from ..presets.diagnosis.window_bounds import MAX_UNSCALED_BYTES
from ..presets.number_text import format_quantity, format_share, format_time

_FULL: Final = 0.75  # of the advertised window: a growing one is at most half full
_FULL_UNSCALED: Final = 0.6  # and one without window scaling cannot grow
_AT_LIMIT: Final = 0.8  # of tcp_rmem


def find_receiver_limits(view: FlowView, info: TcpInfo) -> Iterator[Finding]:
    """Yield the first limit that the receiver's kernel shows."""
    for find in (_unread, _full_window, _losses):
        finding = find(view, info)
        if finding is not None:
            yield finding
            return


def _unread(view: FlowView, _info: TcpInfo) -> Finding | None:
    flow, end = view.flow, view.receiver
    if not flow.leaves_unread:
        return None
    return Finding(
        "receive-window",
        _share(view),
        0.8,
        f"The receiver at {end_name(end.end)} is reading too slowly: its window stops the sender.",
        f"its program leaves {format_share(flow.unread)} of the receive buffer unread, of "
        f"{format_quantity(flow.receive_buffer_bytes or 0, 'byte')}",
        remedies.show_processes(end),
        end.end,
        1.0,
    )


def _full_window(view: FlowView, info: TcpInfo) -> Finding | None:
    """Return the finding about a window that holds all that is in flight, by the clock of timestamps."""
    window, trip_us, end = info.window_bytes, info.receive_rtt_us, view.receiver
    if not window or not trip_us or not info.timestamps:
        return None
    in_flight, full = view.flow.bit_s / 8 * trip_us * 1e-6, _FULL
    if not info.window_scaling:  # the kernel keeps a larger one than its segments can announce
        window, full = min(window, MAX_UNSCALED_BYTES), _FULL_UNSCALED
    if in_flight < full * window:
        return None
    buffer, limit = view.flow.receive_buffer_bytes or 0, end.tcp and end.tcp.tcp_rmem_max_bytes
    code: FindingCode = "window-below-bdp"
    text = f"The receive window of {end_name(end.end)} is constant, and smaller than bandwidth x delay."
    remedy = f"at {end_name(end.end)}, in the program: do not set SO_RCVBUF, so that the kernel lets it grow"
    if not info.window_scaling and window <= MAX_UNSCALED_BYTES:
        code, text = "window-scaling-off", "TCP window scaling is off: the window cannot grow."
        remedy = remedies.enable_tcp_option(end, "window_scaling")
    elif limit is not None and buffer >= _AT_LIMIT * limit:
        code, text = "window-clamped", f"The receive window of {end_name(end.end)} has reached the kernel's limit."
        remedy = remedies.raise_autotuning_limit(end, remedies.round_window(2 * window), is_sender=False)
    evidence = (
        f"{format_quantity(round(in_flight), 'byte')} arrive in a round trip of {format_time(trip_us)}, with a "
        f"window of {format_quantity(window, 'byte')} in a buffer of {format_quantity(buffer, 'byte')}"
    )
    return Finding(code, _share(view), 0.65, text, evidence, remedy, end.end, 1.0)


def _losses(view: FlowView, _info: TcpInfo) -> Finding | None:
    return find_losses_at_receiver(view)


def _share(view: FlowView) -> float | None:
    return None if view.flow.expected_bit_s is None else 1.0
