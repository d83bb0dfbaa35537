"""The wire model: the payload rate of a line, computed from the overhead of each packet.

Pure arithmetic on whole bytes. A packet of the link's MTU contains IP and TCP headers, and its framing and tunnel
add more on the line. The payload's share of all these bytes is its share of the line rate. The model does not know
processors, windows and loss, so its rate is an upper bound for any run. A UDP datagram has its own header, any size
up to the MTU, and no acknowledgement.
"""

from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

from ..engine.model.errors import PlanError
from ..engine.model.serialization import OMITTED_AT_DEFAULT
from .number_text import format_rate
from .preset import Flow, Framing, LinkSpec, Tunnel

SEGMENTS_PER_ACK: Final = 2  # RFC 1122, 4.2.3.2: an acknowledgement for at least every second full-sized segment
# SONET uses 9 of 270 columns for section and line overhead and one for the path. OC-12c, with four times as many
# and three stuffed, has the same share (ITU-T G.707): 149.76 of 155.52, 599.04 of 622.08.
SONET_SHARE: Final = Fraction(26, 27)
_TIMESTAMPS_BYTES: Final = 12  # RFC 7323: 10, and two of padding
_MAX_TCP_OPTION_BYTES: Final = 40
_CELL_BYTES: Final = 53
_CELL_PAYLOAD_BYTES: Final = 48
_IP_BYTES: Final = {4: 20, 6: 40}
_IPV4: Final = 4
_UDP_BYTES: Final = 8
_MAX_LENGTH_FIELD: Final = 65_535  # of IPv4 with its header, of IPv6 without it
FRAMING_NAMES: Final[dict[Framing, str]] = {
    "ethernet": "Ethernet",
    "atm": "ATM, Classical IP (AAL5, LLC/SNAP)",
    "atm-lane": "ATM, LAN emulation (AAL5)",
    "fddi": "FDDI",
    "none": "no line",
}
TUNNEL_NAMES: Final[dict[Tunnel, str]] = {
    "vxlan": "VXLAN",
    "wireguard": "WireGuard",
    "gre": "GRE",
    "pppoe": "PPPoE",
}


@dataclass(frozen=True, slots=True)
class Overhead:
    """A named part of the bytes in a packet or around it."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Variant:
    """Options that change the link of a preset; None leaves the link's own value.

    `tunnel` adds a tunnel inside the link: its packets shrink by the tunnel's overhead, so that they still fit the
    link's MTU. `outer_ip` is the IP version under a tunnel. `tcp_option_bytes` counts options beyond timestamps.
    With `is_bare` packets have no frame: the line rate is that of an interface without a link header (tun).
    """

    ip: Literal[4, 6] = 4
    timestamps: bool | None = None
    tcp_option_bytes: int = 0
    vlan_tags: int = 0
    tunnel: Tunnel | None = None
    outer_ip: Literal[4, 6] = 4
    line_rate_bit_s: int | None = None
    mtu_bytes: int | None = None
    is_bare: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        """Raise PlanError if no packet can have these options."""
        options = self.tcp_option_bytes
        most = _MAX_TCP_OPTION_BYTES - (_TIMESTAMPS_BYTES if self.timestamps else 0)
        if options % 4 or not 0 <= options <= most:
            raise PlanError("TCP options", f"{options} bytes", f"give a multiple of 4, 0 to {most}")
        if not 0 <= self.vlan_tags <= 2:
            raise PlanError("VLAN tags", self.vlan_tags, "give 0, 1 or 2 (QinQ)")
        if self.line_rate_bit_s is not None and self.line_rate_bit_s <= 0:
            raise PlanError("line rate", f"{self.line_rate_bit_s} bit/s", "give a rate above 0")

    def changes(self, link: LinkSpec) -> bool:
        """Return whether these options make a link differ from itself."""
        return bool(
            self.ip != 4
            or self.timestamps not in {None, link.timestamps}
            or self.tcp_option_bytes
            or self.vlan_tags
            or self.tunnel
            or (self.outer_ip != 4 and link.tunnel)
            or self.line_rate_bit_s not in {None, link.line_rate_bit_s}
            or self.mtu_bytes not in {None, link.mtu_bytes}
            or self.is_bare
        )

    def with_timestamps(self, on: bool) -> "Variant":
        """Return the same options with TCP timestamps on or off."""
        return replace(self, timestamps=on)

    def over_ip(self, version: int | None) -> "Variant":
        """Return these options for connections of an IP version; None if it is unknown.

        Raises PlanError if the options expect IPv6 and the connections use IPv4.
        """
        if version is None or version == self.ip:
            return self
        if version == _IPV4:
            allowed = "the connection uses IPv4: leave it out, or connect with -6"
            raise PlanError("IP version", "6 (--ipv6)", allowed)
        return replace(self, ip=6)

    def with_defaults(self, defaults: "Variant") -> "Variant":
        """Return these options; `defaults` has the values of the others."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        changes = {field.name: values[field.name] for field in fields(self) if values[field.name] != field.default}
        return replace(defaults, **changes)

    @property
    def description(self) -> str:
        """The options as text; empty without options."""
        words = [
            "IPv6" if self.ip == 6 else "",
            {None: "", True: "TCP timestamps", False: "no TCP timestamps"}[self.timestamps],
            f"{self.tcp_option_bytes} bytes of TCP options" if self.tcp_option_bytes else "",
            ("", "VLAN", "QinQ")[self.vlan_tags],
            TUNNEL_NAMES[self.tunnel] if self.tunnel else "",
            f"outer IPv{self.outer_ip}" if self.outer_ip != 4 else "",
            f"line rate {format_rate(self.line_rate_bit_s)}" if self.line_rate_bit_s else "",
            f"MTU {self.mtu_bytes}" if self.mtu_bytes else "",
            "no frames" if self.is_bare else "",
        ]
        return ", ".join(filter(None, words))


DEFAULT_VARIANT: Final = Variant()


@dataclass(frozen=True, slots=True)
class Derivation:
    """The steps from a line rate to a payload rate, with every number.

    `mtu_bytes` is the link's MTU minus `tunnel_overhead`, the overhead of a tunnel from the options. A packet has
    `packet_bytes`: packets of TCP fill the MTU, a datagram may be smaller. `payload_bytes` are these minus
    `headers`, `wire_bytes` are these plus `framing_overhead`. `ack_parts` are the bytes of an acknowledgement if
    acknowledgements share the line with data, and else empty. `directions` is 2 if the rate is a total of both.
    """

    flow: Flow
    line_bit_s: int
    usable_bit_s: int
    tunnel_overhead: tuple[Overhead, ...]
    mtu_bytes: int
    packet_bytes: int
    headers: tuple[Overhead, ...]
    payload_bytes: int
    framing_overhead: tuple[Overhead, ...]
    wire_bytes: int
    ack_parts: tuple[Overhead, ...]
    directions: int

    @property
    def ack_bytes(self) -> int:
        """The size of one acknowledgement on the wire."""
        return sum(part.bytes for part in self.ack_parts)

    @property
    def segments(self) -> int:
        """The number of data packets for each acknowledgement; 1 if acknowledgements are not counted."""
        return SEGMENTS_PER_ACK if self.ack_parts else 1

    @property
    def bit_s(self) -> int:
        """The payload rate."""
        share = Fraction(self.segments * self.payload_bytes, self.segments * self.wire_bytes + self.ack_bytes)
        return round(self.usable_bit_s * self.directions * share)


@lru_cache(maxsize=256)  # each run of a mesh asks for the same link
def derive(link: LinkSpec, flow: Flow, variant: Variant = DEFAULT_VARIANT) -> Derivation | None:
    """Return the TCP payload rate of a link with its arithmetic; None if the link has no line to compute.

    Raises PlanError if the link cannot have these options.
    """
    line = _find_line(link, flow, variant)
    if line is None:
        return None
    headers = _headers(link, variant)
    ack: tuple[Overhead, ...] = ()
    if flow == "duplex" or link.duplex == "half":
        ack = (*headers, *line.around(_sum_bytes(headers)))
    return line.derive(headers, line.mtu_bytes, ack)


def ipv6_share(link: LinkSpec, flow: Flow) -> Fraction:
    """Return the payload rate of a link over IPv6 as a share of its rate over IPv4.

    Without a line it is the share of the payload in a packet, and without an MTU it is 1.
    """
    four, six = derive(link, flow), derive(link, flow, Variant(ip=6))
    if four is not None and six is not None:
        return Fraction(six.bit_s, four.bit_s)
    if link.mtu_bytes is None:
        return Fraction(1)
    headers = [_sum_bytes(_headers(link, Variant(ip=version))) for version in (6, 4)]
    six_bytes, four_bytes = (link.mtu_bytes - size for size in headers)
    return Fraction(six_bytes, four_bytes) if six_bytes > 0 else Fraction(1)


def derive_datagrams(
    link: LinkSpec, flow: Flow, variant: Variant = DEFAULT_VARIANT, datagram_bytes: int | None = None
) -> Derivation | None:
    """Return the UDP payload rate of a link with its arithmetic; None if the link has no line to compute.

    Args:
        link: The link of a preset.
        flow: One direction, or both together.
        variant: Options of the link; options of TCP have no effect.
        datagram_bytes: The UDP payload of each datagram; None for the largest that needs no fragments.

    Raises:
        PlanError: The link cannot have these options, or no packet of it holds such a datagram.
    """
    line = _find_line(link, flow, variant)
    if line is None:
        return None
    headers, most = _datagram_headers(variant), _largest_datagram(line)
    size = most if datagram_bytes is None else datagram_bytes
    if not 1 <= size <= most:
        raise PlanError("datagram size", size, f"this link carries 1 to {most} bytes in one packet")
    return line.derive(headers, size + _sum_bytes(headers), ())


def largest_datagram(link: LinkSpec, variant: Variant = DEFAULT_VARIANT) -> int | None:
    """Return the largest UDP payload that a link carries in one packet; None without a line.

    Raises PlanError if the link cannot have these options.
    """
    line = _find_line(link, "simplex", variant)
    return None if line is None else _largest_datagram(line)


@dataclass(frozen=True, slots=True)
class LayerRates:
    """A rate of UDP payload as its IP packets and its bits on the line; None without a line to compute."""

    ip_bit_s: float
    wire_bit_s: float | None


def layer_rates(
    payload_bit_s: float, datagram_bytes: int, link: LinkSpec | None = None, variant: Variant = DEFAULT_VARIANT
) -> LayerRates:
    """Return the rates of IP and of the line for a measured rate of UDP payload.

    If a datagram does not fit the link's MTU, its rate on the line is unknown, since its fragments are.
    """
    ip_bytes = datagram_bytes + _IP_BYTES[variant.ip] + _UDP_BYTES
    ip_bit_s = payload_bit_s * ip_bytes / datagram_bytes
    line = None if link is None else _find_line(link, "simplex", variant)
    if line is None or ip_bytes > line.mtu_bytes:
        return LayerRates(ip_bit_s, None)
    wire_bytes = ip_bytes + _sum_bytes(line.around(ip_bytes))
    return LayerRates(ip_bit_s, payload_bit_s * wire_bytes / datagram_bytes)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line with its options, for every packet on it. `mtu_bytes` is the MTU inside the tunnels."""

    link: LinkSpec
    flow: Flow
    variant: Variant
    line_bit_s: int
    mtu_bytes: int
    tunnel: Tunnel | None
    squeezed: tuple[Overhead, ...]

    def around(self, packet_bytes: int) -> tuple[Overhead, ...]:
        """Return all overhead around one packet."""
        return _around(self.link.framing, self.tunnel, self.variant, packet_bytes, self.mtu_bytes)

    def too_small(self, header_bytes: int) -> PlanError:
        """Return the error of an MTU without room for payload."""
        squeezed = _sum_bytes(self.squeezed)
        least = squeezed + header_bytes + 1
        return PlanError("MTU", self.mtu_bytes + squeezed, f"headers take all of it; give at least {least}")

    def derive(self, headers: tuple[Overhead, ...], packet_bytes: int, ack: tuple[Overhead, ...]) -> Derivation:
        """Return the payload rate of packets of one size."""
        header_bytes = _sum_bytes(headers)
        if packet_bytes <= header_bytes:
            raise self.too_small(header_bytes)
        link, framing = self.link, self.around(packet_bytes)
        has_cells = link.framing in {"atm", "atm-lane"}
        return Derivation(
            flow=self.flow,
            line_bit_s=self.line_bit_s,
            usable_bit_s=round(self.line_bit_s * SONET_SHARE) if has_cells else self.line_bit_s,
            tunnel_overhead=self.squeezed,
            mtu_bytes=self.mtu_bytes,
            packet_bytes=packet_bytes,
            headers=headers,
            payload_bytes=packet_bytes - header_bytes,
            framing_overhead=framing,
            wire_bytes=packet_bytes + _sum_bytes(framing),
            ack_parts=ack,
            directions=2 if self.flow == "duplex" and link.duplex != "half" else 1,
        )


def _find_line(link: LinkSpec, flow: Flow, variant: Variant) -> _Line | None:
    """Return the line of a link; None without one. Raises PlanError if it cannot have these options."""
    line = variant.line_rate_bit_s or link.line_rate_bit_s
    mtu = variant.mtu_bytes or link.mtu_bytes
    if link.framing == "none" or line is None or mtu is None or flow == "exchange":
        return None
    tunnel = _tunnel_of(link, variant)
    if variant.vlan_tags and link.framing != "ethernet":
        raise PlanError(
            "VLAN tags",
            variant.vlan_tags,
            f"only Ethernet has them, and this link has {FRAMING_NAMES[link.framing]}",
        )
    squeezed = _tunnel_parts(variant.tunnel, variant.outer_ip) if variant.tunnel else ()
    return _Line(link, flow, variant, line, mtu - _sum_bytes(squeezed), tunnel, squeezed)


def _sum_bytes(parts: tuple[Overhead, ...]) -> int:
    return sum(part.bytes for part in parts)


def _tunnel_of(link: LinkSpec, variant: Variant) -> Tunnel | None:
    if link.tunnel and variant.tunnel:
        raise PlanError("tunnel", variant.tunnel, f"the link is already a {TUNNEL_NAMES[link.tunnel]} tunnel")
    return variant.tunnel or link.tunnel


def _headers(link: LinkSpec, variant: Variant) -> tuple[Overhead, ...]:
    timestamps = link.timestamps if variant.timestamps is None else variant.timestamps
    if timestamps and variant.tcp_option_bytes > _MAX_TCP_OPTION_BYTES - _TIMESTAMPS_BYTES:
        raise PlanError("TCP options", f"{variant.tcp_option_bytes} bytes", "timestamps leave room for 28")
    parts = (
        Overhead(f"IPv{variant.ip} header", _IP_BYTES[variant.ip]),
        Overhead("TCP header", 20),
        Overhead("TCP timestamps", _TIMESTAMPS_BYTES if timestamps else 0),
        Overhead("other TCP options", variant.tcp_option_bytes),
    )
    return tuple(part for part in parts if part.bytes)


def _datagram_headers(variant: Variant) -> tuple[Overhead, ...]:
    return Overhead(f"IPv{variant.ip} header", _IP_BYTES[variant.ip]), Overhead("UDP header", _UDP_BYTES)


def _largest_datagram(line: _Line) -> int:
    headers = _sum_bytes(_datagram_headers(line.variant))
    if line.mtu_bytes <= headers:
        raise line.too_small(headers)
    most = _MAX_LENGTH_FIELD - (headers if line.variant.ip == 4 else _UDP_BYTES)
    return min(line.mtu_bytes - headers, most)


def _around(
    framing: Framing, tunnel: Tunnel | None, variant: Variant, packet_bytes: int, mtu_bytes: int
) -> tuple[Overhead, ...]:
    """Return all overhead around one packet on the line."""
    parts: list[Overhead] = []
    if tunnel == "wireguard":  # pads to 16 bytes, but not beyond the tunnel's MTU
        parts.append(Overhead("WireGuard padding", min(-packet_bytes % 16, mtu_bytes - packet_bytes)))
    if tunnel:
        parts.extend(_tunnel_parts(tunnel, variant.outer_ip))
    inside = packet_bytes + sum(part.bytes for part in parts)
    parts.extend(_frame(framing, variant, inside))
    return tuple(part for part in parts if part.bytes)


def _frame(framing: Framing, variant: Variant, inside: int) -> tuple[Overhead, ...]:
    if variant.is_bare:
        return ()
    if framing == "ethernet":
        return _ethernet(inside, variant.vlan_tags)
    if framing == "fddi":
        return _FDDI
    return _atm(inside, emulated=framing == "atm-lane")


def _tunnel_parts(tunnel: Tunnel, outer_ip: Literal[4, 6]) -> tuple[Overhead, ...]:
    outer = Overhead(f"outer IPv{outer_ip} header", _IP_BYTES[outer_ip])
    udp = Overhead("outer UDP header", 8)
    if tunnel == "vxlan":  # RFC 7348
        return (Overhead("inner Ethernet header", 14), Overhead("VXLAN header", 8), udp, outer)
    if tunnel == "wireguard":
        return (Overhead("WireGuard header", 16), Overhead("WireGuard authentication tag", 16), udp, outer)
    if tunnel == "gre":  # RFC 2784, without key and checksum
        return (Overhead("GRE header", 4), outer)
    return (Overhead("PPP protocol field", 2), Overhead("PPPoE header", 6))  # RFC 2516


def _ethernet(inside: int, vlan_tags: int) -> tuple[Overhead, ...]:
    tags = 4 * vlan_tags
    return (
        Overhead("padding to the shortest frame", max(0, 46 - tags - inside)),
        Overhead("preamble and start of frame", 8),
        Overhead("Ethernet header", 14),
        Overhead(("", "VLAN tag", "QinQ tags")[vlan_tags], tags),
        Overhead("frame check sequence", 4),
        Overhead("gap between frames", 12),
    )


# ISO 9314-2, and RFC 1390 for IP: two symbols are a byte.
_FDDI: Final = (
    Overhead("preamble", 8),
    Overhead("starting delimiter", 1),
    Overhead("frame control", 1),
    Overhead("addresses", 12),
    Overhead("LLC and SNAP headers", 8),
    Overhead("frame check sequence", 4),
    Overhead("ending delimiter and frame status", 2),
)


def _atm(inside: int, *, emulated: bool) -> tuple[Overhead, ...]:
    if emulated:  # LAN emulation 1.0: an Ethernet frame without its check sequence, of at least 62 bytes
        shortest = max(0, 62 - 16 - inside)
        parts = [
            Overhead("padding to the shortest frame", shortest),
            Overhead("LAN emulation header", 2),
            Overhead("Ethernet header", 14),
        ]
    else:
        parts = [Overhead("LLC and SNAP headers", 8)]  # RFC 2684
    parts.append(Overhead("AAL5 trailer", 8))
    whole = inside + sum(part.bytes for part in parts)
    cells = -(-whole // _CELL_PAYLOAD_BYTES)
    parts.append(Overhead(f"padding to {cells} whole cells", cells * _CELL_PAYLOAD_BYTES - whole))
    parts.append(Overhead(f"headers of {cells} cells", cells * (_CELL_BYTES - _CELL_PAYLOAD_BYTES)))
    return tuple(parts)
