"""The link itself: segment size, TCP timestamps, speed and duplex of the interfaces, other traffic.

Measured: the sender's segment size (tcpi_snd_mss of linux/tcp.h) and its options (tcpi_options), both interfaces'
MTU, speed and duplex (ethtool(8), /sys/class/net), and their byte and collision counters (/proc/net/dev).

Meaning: each packet carries Ethernet, IP and TCP headers, so smaller segments, and the 12 bytes of timestamps (RFC
7323), leave less of the line rate for payload. A slower or half-duplex interface lowers the line rate itself. Bytes
on the interface beyond payload and headers of the test are other traffic.

Findings: `mtu-mismatch`, or `mss-small` if both MTUs are right; `timestamps-on`, `timestamps-off`; `nic-speed`,
`half-duplex`, `duplex-mismatch`; `other-traffic`.
"""

from collections.abc import Iterator
from typing import Final

from ....engine.model.directions import Direction, End
from ....engine.results.rate_and_loss import bits_per_second
from ...number_text import format_bytes, format_quantity, format_rate
from .. import remedies
from ..evidence import EndEvidence, LinkEvidence, end_name, nic_name
from ..finding import Finding
from ..flow_view import FlowView
from .shared_endpoint import other_tests_bit_s

_TIMESTAMPS_BYTES: Final = 12  # RFC 7323, padding included
# Acknowledgements, the control connection and ARP stay under this share of the expected rate. On a slow link the
# samples of the far end may take more: 8 kb/s for each session at four a second.
_OTHERS_SHARE: Final = 0.05
_CONTROL_BIT_S: Final = 20_000
_CONTROL_SESSION_BIT_S: Final = 8_000
_HEADERS: Final = 1.08  # bytes in /proc/net/dev for each byte of payload at MTU 1500, with some margin
_SMALL_MTU_HEADERS: Final = 1.25
_SMALL_MSS_BYTES: Final = 1_000


def find_link_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the findings about the link, which apply before any packet is late or lost."""
    yield from _segments(view)
    yield from _timestamps(view)
    yield from find_nic_limits(view)
    yield from _other_traffic(view)


def _share_of_gap(view: FlowView, missing_bit_s: float) -> float:
    return min(1.0, max(0.0, missing_bit_s / view.gap_bit_s)) if view.gap_bit_s > 0 else 0.0


def _carries(link: LinkEvidence, expected_bit_s: float, payload_bytes: int, option_bytes: int) -> float:
    """Return the expected rate if packets have another payload, and additional TCP options."""
    if link.payload_bytes is None or link.wire_bytes is None:
        return expected_bit_s
    overhead = link.wire_bytes - link.payload_bytes + option_bytes
    share, expected_share = payload_bytes / (payload_bytes + overhead), link.payload_bytes / link.wire_bytes
    return expected_bit_s * share / expected_share


def _options_bytes(view: FlowView) -> int:
    """Return the bytes of each packet that timestamps take, if the preset's packets have none."""
    link = view.evidence.link
    if link is None or link.timestamps or not view.flow.timestamps:
        return 0
    return _TIMESTAMPS_BYTES


def _segments(view: FlowView) -> Iterator[Finding]:
    """Yield the cost of segments smaller than the preset's, by an interface's MTU or a clamp on the path."""
    link, mss = view.evidence.link, view.flow.mss_bytes
    if link is None or link.payload_bytes is None or link.mtu_bytes is None or mss is None:
        return
    options = _options_bytes(view)
    usual = link.payload_bytes - options
    if mss >= usual:
        return
    carries = _carries(link, view.target_bit_s, mss, options)
    missing = _carries(link, view.target_bit_s, usual, options) - carries
    share = view.budget.take("network", "starved", "receiver", "buffer", limit=_share_of_gap(view, missing))
    rates = f"{format_rate(carries)} of {format_rate(view.target_bit_s)}"
    evidence = f"segments of {format_bytes(mss)} instead of {format_bytes(usual)} leave {rates}"
    small = [end for end in (view.sender, view.receiver) if end.mtu_bytes not in {None, link.mtu_bytes}]
    if small:
        end = min(small, key=lambda each: each.mtu_bytes or 0)
        size = "smaller" if (end.mtu_bytes or 0) < link.mtu_bytes else "larger"
        yield Finding(
            "mtu-mismatch",
            share,
            0.95,
            f"{nic_name(end)} has a {size} MTU than the link.",
            f"MTU {end.mtu_bytes} instead of {link.mtu_bytes}; {evidence}",
            remedies.set_mtu(end, link.mtu_bytes),
            end.end,
        )
        return
    text = "The path clamps the MSS: segments are smaller than the MTU of both ends allows."
    if view.evidence.is_observed:  # the far end's MTU is unknown
        text = "The path or the far end clamps the MSS: segments are smaller than this end's MTU allows."
    yield Finding(
        "mss-small",
        share,
        0.85,
        text,
        evidence,
        "look for a tunnel, a route with its own MTU, or a firewall: ip route get PEER; tracepath PEER",
    )


def _timestamps(view: FlowView) -> Iterator[Finding]:
    link, flow = view.evidence.link, view.flow
    if link is None or flow.timestamps is None or link.payload_bytes is None:
        return
    if _options_bytes(view):
        payload_bytes = link.payload_bytes - _TIMESTAMPS_BYTES
        missing = view.target_bit_s - _carries(link, view.target_bit_s, payload_bytes, _TIMESTAMPS_BYTES)
        share = view.budget.take("network", "starved", limit=_share_of_gap(view, missing))
        yield Finding(
            "timestamps-on",
            share,
            0.95,
            "TCP timestamps take room in each packet."
            if view.evidence.is_observed
            else "TCP timestamps take room in each packet, and the preset has none.",
            f"they take {format_bytes(_TIMESTAMPS_BYTES)} of each packet, {format_rate(missing)} in all",
            "linkgauge … --timestamps, to compare with a link that has them",
        )
    elif link.timestamps and not flow.timestamps:
        off = [end for end in (view.sender, view.receiver) if end.tcp is not None and not end.tcp.timestamps]
        end = off[0] if off else view.receiver
        yield Finding(
            "timestamps-off",
            view.budget.take("network", limit=0.2),
            0.5,
            "TCP timestamps are off."
            if view.evidence.is_observed
            else "TCP timestamps are off, and the preset has them.",
            "without them (RFC 7323) TCP measures the round trip once per window, and recovers from loss "
            "more slowly",
            remedies.enable_tcp_option(end, "timestamps"),
            end.end if off else None,
        )


def find_nic_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the interfaces whose speed or duplex is not the preset's."""
    link = view.evidence.link
    for end in (view.sender, view.receiver):
        nic = end.nic
        if nic is None or link is None or link.framing == "none":
            continue
        line, expected = nic.line_rate_bit_s, link.line_rate_bit_s
        if line is not None and expected is not None and line < expected:
            missing = view.target_bit_s * (1 - line / expected)
            yield Finding(
                "nic-speed",
                view.budget.take("network", "buffer", "starved", limit=_share_of_gap(view, missing)),
                0.95,
                f"{nic_name(end)} runs at a lower speed than the link should.",
                f"line rate {format_rate(line)} instead of {format_rate(expected)}, "
                f"duplex {nic.duplex or 'unknown'}",
                f"{remedies.show_nic(end)}; check cable and switch port; or: {remedies.negotiate(end)}",
                end.end,
            )
        if nic.duplex == "half" and link.duplex == "full":
            other = view.other_end(end)
            yield _half_duplex(view, end, mismatch=other.nic is not None and other.nic.duplex == "full")
        elif end.counts is not None and end.counts.collisions and nic.duplex != "full" and link.duplex == "full":
            yield _half_duplex(view, end, mismatch=False)


def _half_duplex(view: FlowView, end: EndEvidence, *, mismatch: bool) -> Finding:
    collisions = "collisions unknown"
    if end.counts is not None:
        collisions = format_quantity(end.counts.collisions, "collision")
    retransmits = "retransmits unknown"
    if view.flow.retransmits is not None:
        retransmits = format_quantity(view.flow.retransmits, "retransmit")
    return Finding(
        "duplex-mismatch" if mismatch else "half-duplex",
        view.budget.take("network", "buffer"),
        0.9,
        f"{nic_name(end)} runs half duplex" + (", the other end full duplex." if mismatch else "."),
        f"{collisions}; {retransmits}",
        f"let both ends negotiate; at {end_name(end.end)}: {remedies.negotiate(end)}",
        end.end,
    )


def _other_traffic(view: FlowView) -> Iterator[Finding]:
    """Yield the first interface that carried clearly more than the test."""
    evidence, link = view.evidence, view.evidence.link
    if link is None or link.framing == "none" or not evidence.span_ns:
        return
    is_out = view.flow.direction is Direction.OUT
    # A tenth of the other direction is an upper bound of its acknowledgements.
    own = view.flow.bit_s + sum(flow.bit_s for flow in evidence.flows if flow is not view.flow) * 0.1
    mss = view.flow.mss_bytes or _SMALL_MSS_BYTES
    # Other tests of the endpoint have a finding of their own. They may come from the near host as well.
    own += other_tests_bit_s(view)
    own *= _HEADERS if mss >= _SMALL_MSS_BYTES else _SMALL_MTU_HEADERS
    own *= 1 + (view.flow.retransmitted or 0.0)
    # Three kinds of bytes have crossed an interface and do not count as received: those under way at the end, those
    # that wait behind a lost packet, and those that the program has not read.
    unread_bytes = (view.flow.unread or 0.0) * (view.flow.receive_buffer_bytes or 0)
    under_way_bytes = ((view.flow.cwnd_bytes or 0) + unread_bytes) * evidence.sessions
    own += bits_per_second(under_way_bytes, evidence.span_ns) or 0.0
    control = _CONTROL_BIT_S + _CONTROL_SESSION_BIT_S * evidence.sessions * len(evidence.flows)
    least = max(_OTHERS_SHARE * view.target_bit_s, control)
    for end, sends in ((view.sender, True), (view.receiver, False)):
        if end.counts is None or end.nic is None or end.nic.sort == "loopback":
            continue
        # An end that is told late to stop counts for longer.
        counted_bytes = end.counts.sent_bytes if sends else end.counts.received_bytes
        carried = bits_per_second(counted_bytes, end.counts_ns or evidence.span_ns) or 0.0
        other = carried - own
        if other < least or (share := view.budget.remaining("network")) <= 0:
            continue
        share = view.budget.take("network", limit=_share_of_gap(view, other))
        tests = "tests of this endpoint" if other_tests_bit_s(view) else "the test"
        shares = f"{format_rate(carried)} {'out' if is_out else 'in'}, {format_rate(own)} of it from {tests}"
        named = evidence.other_traffic if end.end is End.NEAR else ()
        way = evidence.tense("leaves", "left") if sends else evidence.tense("arrives", "arrived")
        yield Finding(
            "other-traffic",
            share,
            0.8,
            f"Other traffic {way} through {end.end.label} {end.nic.name}.",
            "; ".join((shares, *named)),
            f"at {end_name(end.end)}: ss -tuanpi, or test while the link is idle",
            end.end,
        )
        return
