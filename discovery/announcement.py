"""The announcement of an endpoint: its fields, written and read. Pure: knows neither zeroconf nor a socket.

A TXT record has `v`, the version of the protocol; `key` and `tls`, 1 if clients need one; `iperf3`, the port for
clients of iperf3, if any. It has no host name, no version of the program and no fingerprint: the user gives that.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface, ip_address
from typing import Final

from ..engine.model.errors import PlanError, make_printable
from ..engine.model.peer import Iperf3Settings, Peer
from ..engine.protocol.preamble import PROTOCOL_VERSION

SERVICE_TYPE: Final = "_linkgauge._tcp.local."
MAX_NAME_BYTES: Final = 63  # of a label: RFC 6763, section 4.1.1
MAX_TEXT_BYTES: Final = 1_024  # of a TXT record; ours has about 30
_MAX_ADDRESSES: Final = 16
Interface = IPv4Interface | IPv6Interface
_NUMBER: Final = re.compile(rb"[0-9]{1,5}")


@dataclass(frozen=True, slots=True)
class Announcement:
    """An endpoint's announcement on the LAN. The user finds it by `name`."""

    name: str
    port: int
    wants_key: bool
    wants_tls: bool
    iperf3_port: int | None = None

    def __post_init__(self) -> None:
        """Raise PlanError if the name cannot be announced."""
        if not self.name.strip() or not self.name.isprintable() or len(self.name.encode()) > MAX_NAME_BYTES:
            allowed = f"give a name of at most {MAX_NAME_BYTES} bytes, without control characters"
            raise PlanError("--announce", repr(self.name[:MAX_NAME_BYTES]), allowed)

    def properties(self) -> dict[str, str]:
        """Return the TXT record."""
        iperf3 = {} if self.iperf3_port is None else {"iperf3": str(self.iperf3_port)}
        return {
            "v": str(PROTOCOL_VERSION),
            "key": str(int(self.wants_key)),
            "tls": str(int(self.wants_tls)),
            **iperf3,
        }


@dataclass(frozen=True, slots=True)
class FoundEndpoint:
    """An endpoint by its announcement on this LAN, without any proof. None is unknown.

    `peer` is the address itself, never the announced name: stored credentials of a name must not go to a host that
    only claims it.
    """

    name: str
    peer: Peer
    protocol_version: int | None
    wants_key: bool | None
    wants_tls: bool | None
    iperf3_peer: Peer | None = None


def read_announcement(
    service_name: str,
    addresses: Iterable[str],
    port: int | None,
    properties: Mapping[bytes, bytes | None],
    own: Collection[Interface] = (),
) -> FoundEndpoint | None:
    """Return the endpoint that an announcement describes; None if it does not describe one.

    Args:
        service_name: the whole name of the service, with its type.
        addresses: its addresses; IPv6 link-local ones have their interface.
        port: the port of its SRV record.
        properties: its TXT record.
        own: this host's addresses, each with its network.
    """
    address = find_address(addresses, own)
    if address is None or port is None:
        return None
    try:
        peer = Peer(address, port)
    except PlanError:
        return None
    label = service_name.removesuffix(f".{SERVICE_TYPE}")
    iperf3 = _read_number(properties.get(b"iperf3"))
    return FoundEndpoint(
        make_printable(label[:MAX_NAME_BYTES]),
        peer,
        _read_number(properties.get(b"v")),
        _read_flag(properties.get(b"key")),
        _read_flag(properties.get(b"tls")),
        Peer(address, iperf3, iperf3=Iperf3Settings()) if iperf3 is not None and 1 <= iperf3 <= 65_535 else None,
    )


def find_address(addresses: Iterable[str], own: Collection[Interface] = ()) -> str | None:
    """Return the address for reaching an endpoint; None if no address can be reached.

    A host also announces the addresses of its containers' bridges, and this host may have the same ones. So the
    order is: addresses in a network of this host, IPv4, the order of the announcement. This host's own addresses
    come last, and link-local ones after them.
    """
    usable: list[tuple[tuple[bool, bool, bool, bool, int], str]] = []
    for number, text in enumerate(addresses):
        if number >= _MAX_ADDRESSES:
            break
        try:
            address = ip_address(text)
        except ValueError:
            continue
        # If another host announces loopback, that is a trap or a mistake.
        if address.is_loopback or address.is_unspecified or address.is_multicast or text == "255.255.255.255":
            continue
        if address.is_link_local and address.version == 6 and "%" not in text:
            continue
        mapped = getattr(address, "ipv4_mapped", None)
        if mapped is not None:
            continue
        is_own = any(address == each.ip for each in own)
        is_elsewhere = not any(address in each.network for each in own)
        usable.append(((address.is_link_local, is_own, is_elsewhere, address.version != 4, number), text))
    return min(usable)[1] if usable else None


def _read_number(value: bytes | None) -> int | None:
    return int(value) if value is not None and _NUMBER.fullmatch(value) else None


def _read_flag(value: bytes | None) -> bool | None:
    return {b"0": False, b"1": True}.get(value or b"")
