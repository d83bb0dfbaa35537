"""Findings about the link itself: MTU, headers, the NIC's speed and duplex, and who else is on it."""

from collections.abc import Iterator
from typing import Final

from ....engine.model.plan import SECOND_NS, Direction
from ...number_text import format_rate
from .. import remedies
from ..budget import FlowView, end_name
from ..evidence import EndEvidence, LinkEvidence
from ..finding import Finding

_TIMESTAMPS_BYTES: Final = 12  # RFC 7323, padding included
# Acknowledgements, the control connection and ARP are no other traffic; neither are headers.
_OTHERS_SHARE: Final = 0.05
_HEADERS: Final = 1.08  # of payload: what /proc/net/dev counts of packets at MTU 1500, and some more
_SMALL_MTU_HEADERS: Final = 1.25
_SMALL_MSS_BYTES: Final = 1_000


def find_link_limits(view: FlowView) -> Iterator[Finding]:
    """Give what the link takes away before any packet is late or lost."""
    yield from _segments(view)
    yield from _timestamps(view)
    yield from _nics(view)
    yield from _others(view)


def _of_gap(view: FlowView, missing_bit_s: float) -> float:
    return min(1.0, max(0.0, missing_bit_s / view.gap_bit_s)) if view.gap_bit_s > 0 else 0.0


def _carries(link: LinkEvidence, wanted_bit_s: float, payload_bytes: int, option_bytes: int) -> float:
    """Return what the line carries with so much payload in each packet, and so much more around it."""
    if link.payload_bytes is None or link.wire_bytes is None:
        return wanted_bit_s
    around = link.wire_bytes - link.payload_bytes + option_bytes
    share, was = payload_bytes / (payload_bytes + around), link.payload_bytes / link.wire_bytes
    return wanted_bit_s * share / was


def _options_bytes(view: FlowView) -> int:
    """Return what timestamps take of each packet beyond what the preset's packets have."""
    link = view.evidence.link
    if link is None or link.timestamps or not view.flow.timestamps:
        return 0
    return _TIMESTAMPS_BYTES


def _segments(view: FlowView) -> Iterator[Finding]:
    """Give the cost of segments that are smaller than the preset's: of an MTU somewhere, or of a clamp."""
    link, mss = view.evidence.link, view.flow.mss_bytes
    if link is None or link.payload_bytes is None or link.mtu_bytes is None or mss is None:
        return
    options = _options_bytes(view)
    usual = link.payload_bytes - options
    if mss >= usual:
        return
    carries = _carries(link, view.target_bit_s, mss, options)
    missing = _carries(link, view.target_bit_s, usual, options) - carries
    share = view.budget.take("network", "starved", limit=_of_gap(view, missing))
    carried = format_rate(carries)
    shown = f"segments of {mss} bytes instead of {usual} leave {carried} of {format_rate(view.target_bit_s)}"
    small = [end for end in (view.sender, view.receiver) if _mtu(end) is not None and _mtu(end) != link.mtu_bytes]
    if small:
        end = min(small, key=lambda each: _mtu(each) or 0)
        name = end.nic.name if end.nic else ""
        yield Finding(
            "mtu-mismatch",
            share,
            0.95,
            f"The MTU of {name} at {end_name(end.end)} is {_mtu(end)}, where the link has {link.mtu_bytes}.",
            shown,
            remedies.set_mtu(end, link.mtu_bytes),
            end.end,
        )
        return
    yield Finding(
        "mss-small",
        share,
        0.85,
        "Segments are smaller than both ends' MTU allows: something on the way clamps the MSS.",
        shown,
        f"look for a tunnel, a route's own MTU or a firewall: ip route get {'PEER'}; tracepath PEER",
    )


def _mtu(end: EndEvidence) -> int | None:
    return None if end.nic is None else end.nic.mtu_bytes


def _timestamps(view: FlowView) -> Iterator[Finding]:
    link, flow = view.evidence.link, view.flow
    if link is None or flow.timestamps is None or link.payload_bytes is None:
        return
    if _options_bytes(view):
        payload_bytes = link.payload_bytes - _TIMESTAMPS_BYTES
        missing = view.target_bit_s - _carries(link, view.target_bit_s, payload_bytes, _TIMESTAMPS_BYTES)
        share = view.budget.take("network", "starved", limit=_of_gap(view, missing))
        yield Finding(
            "timestamps-on",
            share,
            0.95,
            "TCP timestamps take 12 bytes of each packet, which the preset's packets do not carry.",
            f"that is {format_rate(missing)}",
            "linkgauge … --timestamps, to hold the link against what it can carry with them",
        )
    elif link.timestamps and not flow.timestamps:
        off = [end for end in (view.sender, view.receiver) if end.tcp is not None and not end.tcp.timestamps]
        end = off[0] if off else view.receiver
        yield Finding(
            "timestamps-off",
            view.budget.take("network", limit=0.2),
            0.5,
            "TCP timestamps (RFC 1323, RFC 7323) were not negotiated: round trips are measured once a window.",
            "the preset's sessions have them; without them TCP recovers from loss more slowly",
            remedies.enable_tcp_option(end, "timestamps"),
            end.end if off else None,
        )


def _nics(view: FlowView) -> Iterator[Finding]:
    """Give a NIC that is not what the preset says."""
    link = view.evidence.link
    for end in (view.sender, view.receiver):
        nic = end.nic
        if nic is None or link is None or link.framing == "none":
            continue
        line, wanted = nic.line_rate_bit_s, link.line_rate_bit_s
        if line is not None and wanted is not None and line < wanted:
            missing = view.target_bit_s * (1 - line / wanted)
            yield Finding(
                "nic-speed",
                view.budget.take("network", "buffer", "starved", limit=_of_gap(view, missing)),
                0.95,
                f"{nic.name} at {end_name(end.end)} runs at {format_rate(line)} and not at {format_rate(wanted)}.",
                f"speed {line // 1_000_000} Mb/s, duplex {nic.duplex or 'unknown'}",
                f"{remedies.show_nic(end)}; then cable, switch port or: ethtool -s {nic.name} autoneg on",
                end.end,
            )
        if nic.duplex == "half" and link.duplex == "full":
            other = view.receiver if end is view.sender else view.sender
            yield _half(view, end, mismatch=other.nic is not None and other.nic.duplex == "full")
        elif end.counts is not None and end.counts.collisions and nic.duplex != "full" and link.duplex == "full":
            yield _half(view, end, mismatch=False)


def _half(view: FlowView, end: EndEvidence, *, mismatch: bool) -> Finding:
    name = end.nic.name if end.nic else "the NIC"
    collisions = "unknown" if end.counts is None else f"{end.counts.collisions}"
    return Finding(
        "duplex-mismatch" if mismatch else "half-duplex",
        view.budget.take("network", "buffer"),
        0.9,
        f"{name} at {end_name(end.end)} runs half duplex" + (", the other end full duplex." if mismatch else "."),
        f"collisions: {collisions}; retransmits: {view.flow.retransmits}",
        f"let both ends negotiate; at the {end.end} end: ethtool -s {name} autoneg on",
        end.end,
    )


def _others(view: FlowView) -> Iterator[Finding]:
    """Give what else went through the interfaces while the test did."""
    evidence, seconds = view.evidence, view.evidence.span_ns / SECOND_NS
    link = evidence.link
    if link is None or link.framing == "none" or not seconds:
        return
    is_out = view.flow.direction is Direction.OUT
    own = view.flow.bit_s + sum(one.bit_s for one in evidence.flows if one is not view.flow) * 0.1
    mss = view.flow.mss_bytes or _SMALL_MSS_BYTES
    own *= _HEADERS if mss >= _SMALL_MSS_BYTES else _SMALL_MTU_HEADERS
    own *= 1 + (view.flow.retransmitted or 0.0)
    for end, sends in ((view.sender, True), (view.receiver, False)):
        if end.counts is None or end.nic is None or end.nic.sort == "loopback":
            continue
        carried = (end.counts.sent_bytes if sends else end.counts.received_bytes) * 8 / seconds
        other = carried - own
        if other < _OTHERS_SHARE * view.target_bit_s or (share := view.budget.remaining("network")) <= 0:
            continue
        share = view.budget.take("network", limit=_of_gap(view, other))
        way = "leaves by" if sends else "comes in by"
        yield Finding(
            "other-traffic",
            share,
            0.8,
            f"Other traffic {way} {end.nic.name} at {end_name(end.end)} at the same time.",
            f"{format_rate(carried)} {'out' if is_out else 'in'}, {format_rate(own)} of it the test with headers",
            f"at the {end.end} end: ss -tuanpi (Linux), or test when the link is idle",
            end.end,
        )
        return
