"""IP addresses: one spelling of each, the zone of a link-local one, and the network that counts as one client.

Pure: nothing is resolved. A socket that serves both families writes an IPv4 address as IPv6 (`::ffff:192.0.2.1`,
RFC 4291, section 2.5.5.2), and a link-local address carries its interface (`fe80::1%eth0`, RFC 4007). Rules about
addresses (networks, loopback, family) apply to the address without either.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, Literal

from .errors import PlanError

IpAddress = IPv4Address | IPv6Address
IpVersion = Literal[4, 6]

_IPV4_PART: Final = re.compile(r"0x[0-9a-f]{1,8}|0[0-7]{0,11}|[1-9][0-9]{0,9}", re.ASCII)
_IPV4_PARTS: Final = 4
_BYTE: Final = 255
_CLIENT_PREFIX_BITS: Final = 64  # the prefix of a link (RFC 4291, section 2.5.4)
_NOT_IN_ZONE: Final = frozenset("/:[]")  # the kernel refuses the first two, and an address ends at a bracket
_MAX_ZONE_BYTES: Final = 15  # IFNAMSIZ with its zero byte


@lru_cache(1_024)  # an endpoint asks five times for each connection: a seventh of its time under a flood of them
def parse_ip_address(text: str) -> IpAddress:
    """Return the address without its scope; raise ValueError if the text is not an IP address."""
    address = ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def canonical_host(host: str) -> str:
    """Return the one spelling of a host name or IP address, as the resolver reads it.

    Names are in lower case, in IDNA's ASCII, and without the dot at their end. Addresses are in their shortest
    form, IPv4 as IPv4 and with four decimal numbers; a zone stays as it is.
    """
    text, percent, zone = host.partition("%")
    if not text.isascii():
        try:
            text = text.encode("idna").decode("ascii")
        except UnicodeError:
            return host  # it has no address: the resolver refuses it
    text = text.lower().removesuffix(".")
    try:
        text = str(parse_ip_address(text))
    except ValueError:
        text = _parse_short_ipv4(text) or text
    return f"{text}{percent}{zone}"


def _parse_short_ipv4(text: str) -> str | None:
    """Return an IPv4 address that is written with fewer, octal or hexadecimal numbers (inet_aton(3))."""
    parts = text.split(".")
    if len(parts) > _IPV4_PARTS or not all(_IPV4_PART.fullmatch(part) for part in parts):
        return None
    *first, last = (int(part, 16 if part[1:2] == "x" else 8 if part[0] == "0" else 10) for part in parts)
    shift = 8 * (_IPV4_PARTS - len(first))
    if any(number > _BYTE for number in first) or last >> shift:
        return None
    return str(IPv4Address(int.from_bytes(bytes(first), "big") << shift | last))


def unmap_ip_address(text: str) -> str:
    """Return an IPv4 address in its own notation, and any other text unchanged (scopes included)."""
    try:
        address = parse_ip_address(text)
    except ValueError:
        return text
    return str(address) if address.version == 4 else text


def ip_version_of(address: str) -> IpVersion:
    """Return the version of the packets to an address, as `unmap_ip_address` writes it."""
    return 6 if ":" in address else 4


def client_network(text: str) -> str:
    """Return the network whose addresses count as one client: an IPv4 address, or an IPv6 network of 64 bits.

    A host may take any address in its IPv6 network, so a single address says little. Link-local addresses are
    distinguished by address and interface: every host of a link has the same network. Other text is returned
    unchanged.
    """
    try:
        address = parse_ip_address(text)
    except ValueError:
        return text
    if address.version == 4:
        return str(address)
    return text.lower() if address.is_link_local else str(ip_network((address, _CLIENT_PREFIX_BITS), strict=False))


def is_loopback_address(text: str) -> bool:
    """Return whether the address is one of the host's own loopback interface."""
    return parse_ip_address(text).is_loopback


def check_zone(field: str, host: str) -> None:
    """Check that a link-local address names its interface, as in `fe80::1%eth0`, and that no other host does.

    Args:
        field: the name of the value in the error's text.
        host: a name, or an address of either family.

    Raises:
        PlanError: the interface is missing, has an impossible name, or belongs to no link-local address.
    """
    address, percent, zone = host.partition("%")
    try:
        is_link_local = (ip := ip_address(address)).version == 6 and ip.is_link_local
    except ValueError:
        is_link_local = False
    if not percent:
        if is_link_local:
            allowed = f"a link-local address needs the interface of this machine that leads there: {host}%eth0"
            raise PlanError(field, host, allowed)
    elif not is_link_local:
        raise PlanError(field, repr(host), "only a link-local IPv6 address (fe80::1%eth0) has an interface after %")
    elif not _is_interface_name(zone):
        allowed = "the name of an interface has 1 to 15 bytes without spaces, colons, slashes and brackets"
        raise PlanError(field, repr(host), f"{allowed}; write a port as [fe80::1%eth0]:PORT")


def _is_interface_name(zone: str) -> bool:
    """Return whether the kernel allows an interface this name, and it is printable."""
    is_usable = zone.isprintable() and " " not in zone and not _NOT_IN_ZONE & set(zone)
    return is_usable and zone not in {".", ".."} and 1 <= len(zone.encode(errors="replace")) <= _MAX_ZONE_BYTES
