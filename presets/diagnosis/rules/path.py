"""The path between the ends: pacing, a congestion window that still grows, or a slow path.

Measured, at the sender (tcp_info of linux/tcp.h): the pacing rate (tcpi_pacing_rate), the congestion window
(tcpi_snd_cwnd times tcpi_snd_mss), the rate at which the path delivered while data was sent (tcpi_delivery_rate),
and the smoothed and the shortest round trip (tcpi_rtt, tcpi_min_rtt): their difference is a queue on the path.

Meaning: if the sender had data and no window stopped it, only congestion control or the path can be the limit. A
queue, or a delivery rate below the expected one, points to the path. Without a queue, BBR may pace too slowly, or a
congestion window below bandwidth x delay (RFC 5681) may not have grown yet.

Findings: `pacing`, `congestion-window`, `path-slow`. Lost packets have a module of their own, which comes first.
"""

from collections.abc import Iterator
from typing import Final

from ....engine.model.plan import Direction
from ...number_text import format_bytes, format_milliseconds, format_quantity, format_rate
from .. import remedies
from ..evidence import MIN_SHARE, FlowView
from ..finding import Finding

_PACING_GAIN: Final = 1.3  # BBR paces at up to 1.25 times the rate at which data arrives
_DELIVERS: Final = 0.97  # a path with this share of the expected rate, while data is sent, is not slow
_ALIKE: Final = 0.1


def find_path_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the findings about the path, which explains the rest of the gap."""
    if view.budget.remaining("network") < MIN_SHARE:
        return
    yield from _pacing(view)
    yield from _congestion_window(view)
    yield from _slow_path(view)


def _pacing(view: FlowView) -> Iterator[Finding]:
    """Yield a finding if BBR paces below the expected rate and no queue shows that the path is the limit."""
    flow = view.flow
    pacing_bit_s = None if flow.pacing_bit_s is None else flow.pacing_bit_s * view.evidence.sessions
    if not (flow.congestion or "").startswith("bbr") or pacing_bit_s is None or view.has_queue:
        return
    if pacing_bit_s > _PACING_GAIN * flow.bit_s and pacing_bit_s > view.target_bit_s:
        return
    yield Finding(
        "pacing",
        view.budget.take("network"),
        0.6,
        f"{flow.congestion} paces the sender too slowly.",
        f"it paces at {format_rate(pacing_bit_s)}, {format_rate(flow.bit_s)} arrives, and no queue builds",
        "for comparison: linkgauge … --congestion cubic",
        view.sender.end,
    )


def _congestion_window(view: FlowView) -> Iterator[Finding]:
    """Yield a finding if the congestion window is below bandwidth x delay without loss: it still grows."""
    cwnd, needed = view.flow.cwnd_bytes, view.needed_window_bytes
    if cwnd is None or needed is None or cwnd >= needed or view.has_queue:
        return
    yield Finding(
        "congestion-window",
        view.budget.take("network"),
        0.7,
        "The congestion window has not yet grown to bandwidth x delay.",
        f"{format_bytes(cwnd)} of the {format_bytes(round(needed))} needed, "
        f"after {format_quantity(view.flow.retransmits or 0, 'retransmit')}",
        "linkgauge … --seconds 60 --warmup 10, or more --sessions",
        view.sender.end,
    )


def _slow_path(view: FlowView) -> Iterator[Finding]:
    share = view.budget.take("network")
    if share < MIN_SHARE:
        return
    flow = view.flow
    evidence = [f"{format_rate(flow.bit_s)} arrived"]
    if flow.busy is not None:
        evidence[0] = f"the sender had data for {100 * flow.busy:.0f} % of the time, and {evidence[0]}"
    if flow.delivery_bit_s is not None:
        delivery = format_rate(flow.delivery_bit_s * view.evidence.sessions)
        evidence.append(f"the path delivered {delivery} while data was sent")
    if flow.rtt_us is not None and flow.min_rtt_us is not None:
        queue = "a queue builds" if view.has_queue else "no queue builds"
        evidence.append(
            f"{queue}: round trip {format_milliseconds(flow.rtt_us)}, "
            f"at best {format_milliseconds(flow.min_rtt_us)}"
        )
    yield Finding(
        "path-slow",
        share,
        _path_confidence(view),
        "The path itself carries less than a link of this kind.",
        "; ".join([*evidence, _other_direction(view)]),
        f"{remedies.show_queue(view.sender)}; then check port speeds and shapers on the path",
    )


def _path_confidence(view: FlowView) -> float:
    """Return how likely the path is the limit: more with a queue, less with delivery at the expected rate."""
    delivery_bit_s = view.flow.delivery_bit_s or 0
    if view.evidence.sessions == 1 and delivery_bit_s >= _DELIVERS * view.target_bit_s:
        return 0.4
    return 0.85 if view.has_queue else 0.5


def _other_direction(view: FlowView) -> str:
    """Return a text about the other direction: its rate, or the option that tests it."""
    others = [flow for flow in view.evidence.flows if flow is not view.flow]
    if not others:
        back = Direction.IN if view.flow.direction is Direction.OUT else Direction.OUT
        return f"the other direction is not tested: --direction {back}"
    bit_s = others[0].bit_s
    is_alike = abs(bit_s - view.flow.bit_s) <= _ALIKE * max(bit_s, view.flow.bit_s)
    return f"the other direction is {'similar' if is_alike else 'different'}: {format_rate(bit_s)}"
