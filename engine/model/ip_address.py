"""IP addresses in text: without their scope, and IPv4 as IPv4 whichever way a socket writes it.

Pure. A socket that serves both families writes an IPv4 address as IPv6 (`::ffff:192.0.2.1`, RFC 4291, section
2.5.5.2), and a link-local address carries its interface (`fe80::1%eth0`, RFC 4007). Rules about addresses
(networks, loopback, family) apply to the address beneath.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address

IpAddress = IPv4Address | IPv6Address


def parse_ip_address(text: str) -> IpAddress:
    """Return the address without its scope; raise ValueError where the text is no IP address."""
    address = ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def unmap_ip_address(text: str) -> str:
    """Return an IPv4 address in its own notation, and any other text unchanged (scopes included)."""
    try:
        address = parse_ip_address(text)
    except ValueError:
        return text
    return str(address) if address.version == 4 else text


def is_loopback_address(text: str) -> bool:
    """Return whether the address is one of the host's own loopback interface."""
    return parse_ip_address(text).is_loopback
