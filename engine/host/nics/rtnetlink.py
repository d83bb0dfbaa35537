"""The routes, addresses and interfaces of this network namespace, as rtnetlink(7) reports them."""

import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

from ...model.ip_address import IpAddress, parse_ip_address
from .netlink import (
    ATTRIBUTE,
    NLM_F_DUMP,
    Attributes,
    number_of,
    open_netlink,
    parse_attributes,
    request_netlink,
    text_of,
)

AddressPort = Sequence[str | int]
"""A socket address in the form of the socket module; empty if it is unknown."""

_ROUTE: Final = struct.Struct("=8BI")  # struct rtmsg
_LINK: Final = struct.Struct("=BxHiII")  # struct ifinfomsg
_ADDRESS: Final = struct.Struct("=4BI")  # struct ifaddrmsg
_RTM_NEWLINK, _RTM_GETLINK = 16, 18
_RTM_NEWADDR, _RTM_GETADDR = 20, 22
_RTM_NEWROUTE, _RTM_GETROUTE = 24, 26
_RTA_DST, _RTA_SRC, _RTA_OIF, _RTA_CACHEINFO = 1, 2, 4, 12
_EXPIRES: Final = slice(8, 12)  # of struct rta_cacheinfo
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RT_SCOPE_LINK: Final = 253  # this and larger scopes end at the link or at the host
_IFA_F_PASSING: Final = 0x01 | 0x08 | 0x20 | 0x40  # secondary or temporary, failed, deprecated, tentative
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_LINK, _IFLA_QDISC, _IFLA_MASTER, _IFLA_LINKINFO = (
    1,
    3,
    4,
    5,
    6,
    10,
    18,
)
_IFLA_LINK_NETNSID: Final = 37  # the interface below is of another namespace
_IFLA_INFO_KIND: Final = 1
_IFLA_PARENT_DEV_NAME, _IFLA_PARENT_DEV_BUS_NAME = 56, 57


class Link(NamedTuple):
    """The attributes of RTM_NEWLINK for an interface; None if the kernel leaves one out.

    `lower` is the interface that it is made on, and `master` the bridge or bond whose port it is, by number.
    """

    number: int
    hardware_type: int
    name: str
    hardware_address: bytes
    mtu_bytes: int | None
    qdisc: str | None
    kind: str | None
    parent_bus: str | None
    parent_device: str | None
    lower: int | None
    master: int | None


def find_by_route(netlink: socket.socket, source: IpAddress, target: IpAddress) -> int | None:
    """Return the interface that the kernel sends such packets by; None if it has no route for them."""
    index = _get_route(netlink, source, target).get(_RTA_OIF)
    return None if index is None else int.from_bytes(index, sys.byteorder)


def is_path_mtu_cached(local: AddressPort, peer: AddressPort) -> bool:
    """Return whether this host has an MTU of the route from a router, and it has not expired."""
    source, target = (parse_ip_address(str(address[0])) for address in (local, peer))
    with open_netlink() as netlink:
        cache_info = _get_route(netlink, source, target).get(_RTA_CACHEINFO, b"")
    return any(cache_info[_EXPIRES])


def _get_route(netlink: socket.socket, source: IpAddress, target: IpAddress) -> Attributes:
    """Return the attributes of the route of such packets; none if there is no route."""
    if source.version != target.version:
        return {}
    family = _family_of(target)
    bits = target.max_prefixlen
    request = _ROUTE.pack(family, bits, bits, 0, 0, 0, 0, 0, 0)
    for kind, address in ((_RTA_DST, target.packed), (_RTA_SRC, source.packed)):
        request += ATTRIBUTE.pack(ATTRIBUTE.size + len(address), kind) + address
    for body in request_netlink(netlink, _RTM_GETROUTE, _RTM_NEWROUTE, request):
        return parse_attributes(body[_ROUTE.size :])
    return {}


class _Address(NamedTuple):
    """An address of an interface; a passing one is tentative, temporary or deprecated."""

    interface: int
    packed: bytes
    scope: int
    is_passing: bool

    @property
    def is_lasting(self) -> bool:
        """Whether hosts beyond the link may reach it, now and later."""
        return self.scope < _RT_SCOPE_LINK and not self.is_passing


def read_all_addresses() -> list[_Address]:
    """Return the addresses of both families; none off Linux."""
    if sys.platform != "linux":
        return []
    with open_netlink() as netlink:
        return [each for family in (socket.AF_INET, socket.AF_INET6) for each in _get_addresses(netlink, family)]


def _get_addresses(netlink: socket.socket, family: int) -> list[_Address]:
    addresses: list[_Address] = []
    # The whole dump is read before the socket takes another request.
    for body in request_netlink(netlink, _RTM_GETADDR, _RTM_NEWADDR, _ADDRESS.pack(family, 0, 0, 0, 0), NLM_F_DUMP):
        _, _, flags, scope, index = _ADDRESS.unpack_from(body)
        attributes = parse_attributes(body[_ADDRESS.size :])
        # On a point-to-point link IFA_ADDRESS is the other end's address, and IFA_LOCAL this end's.
        packed = attributes.get(_IFA_LOCAL, attributes.get(_IFA_ADDRESS))
        if packed is not None:
            addresses.append(_Address(index, packed, scope, bool(flags & _IFA_F_PASSING)))
    return addresses


def find_by_address(netlink: socket.socket, source: IpAddress) -> int | None:
    """Return the interface that has an address; None if none has it."""
    addresses = _get_addresses(netlink, _family_of(source))
    return next((each.interface for each in addresses if each.packed == source.packed), None)


def _family_of(address: IpAddress) -> int:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def get_link(netlink: socket.socket, index: int) -> Link | None:
    """Return the interface of a number; None if there is none."""
    return next(get_links(netlink, index), None)


def get_links(netlink: socket.socket, index: int, flags: int = 0) -> Iterator[Link]:
    """Yield the interface of a number, or with NLM_F_DUMP all of them."""
    request = _LINK.pack(0, 0, index, 0, 0)
    for body in request_netlink(netlink, _RTM_GETLINK, _RTM_NEWLINK, request, flags):
        _, hardware_type, number, *_ = _LINK.unpack_from(body)
        attributes = parse_attributes(body[_LINK.size :])
        yield Link(
            number=number,
            hardware_type=hardware_type,
            name=text_of(attributes.get(_IFLA_IFNAME)) or socket.if_indextoname(number),
            hardware_address=attributes.get(_IFLA_ADDRESS, b""),
            mtu_bytes=number_of(attributes.get(_IFLA_MTU)),
            qdisc=text_of(attributes.get(_IFLA_QDISC)),
            kind=text_of(parse_attributes(attributes.get(_IFLA_LINKINFO, b"")).get(_IFLA_INFO_KIND)),
            parent_bus=text_of(attributes.get(_IFLA_PARENT_DEV_BUS_NAME)),
            parent_device=text_of(attributes.get(_IFLA_PARENT_DEV_NAME)),
            lower=None if _IFLA_LINK_NETNSID in attributes else number_of(attributes.get(_IFLA_LINK)),
            master=number_of(attributes.get(_IFLA_MASTER)),
        )


def read_addresses() -> list[IpAddress]:
    """Return the lasting addresses of all interfaces that other hosts may reach; none off Linux. Raises OSError."""
    return [ip_address(each.packed) for each in read_all_addresses() if each.is_lasting]


def read_link_local_hosts() -> list[str]:
    """Return the lasting link-local addresses, as `fe80::1%eth0`; none off Linux. Raises OSError."""
    addresses = [each for each in read_all_addresses() if each.scope == _RT_SCOPE_LINK and not each.is_passing]
    return [
        f"{address}%{socket.if_indextoname(each.interface)}"
        for each in addresses
        if (address := ip_address(each.packed)).version == 6
    ]


def local_addresses() -> list[str]:
    """Return the IP addresses of this machine's interfaces, link-local ones left out; empty off Linux."""
    addresses = (ip_address(each.packed) for each in read_all_addresses())
    return [str(address) for address in addresses if not address.is_link_local]


def interface_families(name: str) -> set[int]:
    """Return the families of an interface's addresses, link-local ones left out; empty off Linux."""
    if sys.platform != "linux":
        return set()
    number = socket.if_nametoindex(name)
    addresses = (ip_address(each.packed) for each in read_all_addresses() if each.interface == number)
    return {_family_of(address) for address in addresses if not address.is_link_local}
