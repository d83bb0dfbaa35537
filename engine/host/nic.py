"""The network interface that carries a connection, and its counters. Linux only; unknown elsewhere.

rtnetlink(7) knows route, addresses, MTU, kind and queue, and the ethtool ioctl (linux/ethtool.h) rate, duplex and
offloads. Both answer for the network namespace of this process. /sys may show the interfaces of another one, so it
serves only for the driver and for wireless devices, after a check that it shows the same interface.

Only the standard library is used: the module travels to far ends, and an import there comes from a zip.
"""

import array
import logging
import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from threading import Thread
from typing import Final, Literal, NamedTuple

from ..model.host_info import NicInfo
from ..model.ip_address import IpAddress, parse_ip_address
from ..model.samples import NicCounts

_log = logging.getLogger(__name__)

AddressPort = Sequence[str | int]
"""A socket address in the form of the socket module; empty if it is unknown."""

# A reading takes less than a millisecond. An unknown interface is better than a greeting that waits for a driver.
DEADLINE_S: Final = 2.0

_ARPHRD_LOOPBACK: Final = 772
_CLASS: Final = Path("/sys/class/net")
# Drivers of these kinds report a constant as their rate (veth 10 Gb/s, tun 10 Mb/s): there is no line.
_NOMINAL_SPEED_KINDS: Final = {"veth", "netkit", "tun", "tap", "dummy", "ifb"}
# These report what the interfaces below them do: a VLAN of a veth 10 Gb/s, a bridge the highest of its ports.
_STACKED_KINDS: Final = {"bridge", "vlan", "macvlan", "macvtap", "ipvlan", "macsec", "bond", "team"}
_SUMMING_KINDS: Final = {"bond", "team"}


async def read_connection_nic(local: AddressPort, peer: AddressPort) -> NicInfo | None:
    """Return the interface that carries a connection between two addresses; None if that is unknown.

    Never raises, and takes `DEADLINE_S` at most: a driver may block, and a run must not fail without this.
    """
    from .event_loop import call_in_thread  # a list of presets reads interfaces without an event loop

    try:
        return await call_in_thread(partial(read_nic, local, peer), name="nic", deadline_s=DEADLINE_S)
    except Exception as error:  # noqa: BLE001 - the kernel and its drivers may fail in any way
        _log.debug("the interface between %s and %s is unknown: %r", local, peer, error)
        return None


def read_nic(local: AddressPort, peer: AddressPort) -> NicInfo | None:
    """Read the interface by which the packets of a connection leave.

    None off Linux, and if neither a route nor an interface with the local address exists. Raises the kernel's
    OSError.
    """
    if sys.platform != "linux" or not local or not peer:
        return None
    with open_netlink() as netlink:
        index = _find_interface(netlink, local, peer)
        link = None if index is None else _get_link(netlink, index)
        return None if link is None else _describe(netlink, link)


def _find_interface(netlink: socket.socket, local: AddressPort, peer: AddressPort) -> int | None:
    """Return the index of the interface, by the route: the local address alone may be on quite another one."""
    if len(peer) > 3 and peer[3]:
        return int(peer[3])  # the scope of an IPv6 link-local address is its interface
    source, target = (parse_ip_address(str(address[0])) for address in (local, peer))
    index = _find_by_route(netlink, source, target)
    # A host that only answers may have no route that it would choose itself.
    return _find_by_address(netlink, source) if index is None else index


def read_own_nics() -> list[NicInfo]:
    """Return the interfaces of this host that have a lasting address; none off Linux.

    Never raises, and takes `DEADLINE_S` at most: a driver may block.
    """
    found: list[NicInfo] = []
    thread = Thread(target=_read_own_nics, args=(found,), name="nics", daemon=True)
    thread.start()
    thread.join(DEADLINE_S)
    return list(found)


def _read_own_nics(found: list[NicInfo]) -> None:
    """Add the interfaces with a lasting address to `found`, those read before an error included."""
    try:
        indexes = sorted({each.interface for each in _read_all_addresses() if each.is_lasting})
        for index in indexes:
            with open_netlink() as netlink:
                link = _get_link(netlink, index)
                if link is not None:
                    found.append(_describe(netlink, link))
    except OSError as error:
        _log.debug("the interfaces of this host are unknown: %r", error)


def find_counter_folder(name: str) -> Path | None:
    """Return the folder of an interface in /sys, for its counters; None if there is none of this namespace.

    Raises OSError.
    """
    if sys.platform != "linux":
        return None
    with open_netlink() as netlink:
        link = _get_link(netlink, socket.if_nametoindex(name))
    return None if link is None else _sysfs_folder(link)


def read_addresses() -> list[IpAddress]:
    """Return the lasting addresses of all interfaces that other hosts may reach; none off Linux. Raises OSError."""
    return [ip_address(each.packed) for each in _read_all_addresses() if each.is_lasting]


def local_addresses() -> list[str]:
    """Return the IP addresses of this machine's interfaces, link-local ones left out; empty off Linux."""
    addresses = (ip_address(each.packed) for each in _read_all_addresses())
    return [str(address) for address in addresses if not address.is_link_local]


def interface_families(name: str) -> set[int]:
    """Return the families of an interface's addresses, link-local ones left out; empty off Linux."""
    if sys.platform != "linux":
        return set()
    number = socket.if_nametoindex(name)
    addresses = (ip_address(each.packed) for each in _read_all_addresses() if each.interface == number)
    return {_family_of(address) for address in addresses if not address.is_link_local}


def _describe(netlink: socket.socket, link: "_Link") -> NicInfo:
    folder = _sysfs_folder(link)
    device = _device_folder(link, folder)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        line = _find_line(netlink, sock, link)
        tso, gso, gro, flags = (
            _read_ethtool_value(sock, link.name, command)
            for command in (_ETHTOOL_GTSO, _ETHTOOL_GGSO, _ETHTOOL_GGRO, _ETHTOOL_GFLAGS)
        )
    return NicInfo(
        name=link.name,
        sort=_nic_type(link, folder, device),
        kind=link.kind or _driver(device),
        line_rate_bit_s=line.rate_bit_s,
        duplex=line.duplex,
        mtu_bytes=link.mtu_bytes,
        tso=None if tso is None else bool(tso),
        gso=None if gso is None else bool(gso),
        gro=None if gro is None else bool(gro),
        lro=None if flags is None else bool(flags & _ETH_FLAG_LRO),
        qdisc=link.qdisc,
    )


def _find_line(netlink: socket.socket, sock: socket.socket, link: "_Link") -> "_Line":
    """Return the line of an interface, without a rate if it has no line or if that is uncertain.

    An interface that is stacked on others has a rate if they have one line rate. A bridge with ports of several
    rates does not tell by which port the far end is reached.
    """
    line, folder = _read_line(sock, link.name), _sysfs_folder(link)
    device = _device_folder(link, folder)
    kind = link.kind or _driver(device)
    if _nic_type(link, folder, device) in {"loopback", "wireless"} or kind in _NOMINAL_SPEED_KINDS:
        return line._replace(rate_bit_s=None)
    below = _links_below(netlink, link) if kind in _STACKED_KINDS else []
    if not below:
        return line
    rates = {_find_line(netlink, sock, each).rate_bit_s for each in below} - {None}
    if kind in _SUMMING_KINDS and rates:
        return line
    return line._replace(rate_bit_s=rates.pop() if len(rates) == 1 else None)


def _links_below(netlink: socket.socket, link: "_Link") -> "list[_Link]":
    """Return the ports of an interface, or the one that it is made on; none of another namespace."""
    # The whole dump is read before the socket takes another request.
    links = list(_get_links(netlink, 0, NLM_F_DUMP))
    return [each for each in links if each.master == link.number or each.number == link.lower]


# rtnetlink(7): a request is a header, a structure and attributes; so is each part of its answer.

_NETLINK_DEADLINE_S: Final = 1.0
_READ_BYTES: Final = 65_536
_HEADER: Final = struct.Struct("=IHHII")  # struct nlmsghdr
_ROUTE: Final = struct.Struct("=8BI")  # struct rtmsg
_LINK: Final = struct.Struct("=BxHiII")  # struct ifinfomsg
_ADDRESS: Final = struct.Struct("=4BI")  # struct ifaddrmsg
_ATTRIBUTE: Final = struct.Struct("=HH")  # struct rtattr
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_RTM_NEWLINK, _RTM_GETLINK = 16, 18
_RTM_NEWADDR, _RTM_GETADDR = 20, 22
_RTM_NEWROUTE, _RTM_GETROUTE = 24, 26
_NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
_NLA_TYPE_MASK: Final = 0x3FFF  # the other two bits mark nested attributes and network byte order
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

Attributes = dict[int, bytes]


def open_netlink() -> socket.socket:
    """Return a socket for `request_netlink`, with a deadline for each answer."""
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    netlink.settimeout(_NETLINK_DEADLINE_S)
    return netlink


class _Link(NamedTuple):
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


def _find_by_route(netlink: socket.socket, source: IpAddress, target: IpAddress) -> int | None:
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
        request += _ATTRIBUTE.pack(_ATTRIBUTE.size + len(address), kind) + address
    for body in request_netlink(netlink, _RTM_GETROUTE, _RTM_NEWROUTE, request):
        return parse_attributes(body[_ROUTE.size :])
    return {}


class _Address(NamedTuple):
    """An address of an interface; others may reach a lasting one, now and later."""

    interface: int
    packed: bytes
    is_lasting: bool


def _read_all_addresses() -> list[_Address]:
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
            is_lasting = scope < _RT_SCOPE_LINK and not flags & _IFA_F_PASSING
            addresses.append(_Address(index, packed, is_lasting))
    return addresses


def _find_by_address(netlink: socket.socket, source: IpAddress) -> int | None:
    addresses = _get_addresses(netlink, _family_of(source))
    return next((each.interface for each in addresses if each.packed == source.packed), None)


def _family_of(address: IpAddress) -> int:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def _get_link(netlink: socket.socket, index: int) -> _Link | None:
    return next(_get_links(netlink, index), None)


def _get_links(netlink: socket.socket, index: int, flags: int = 0) -> Iterator[_Link]:
    """Yield the interface of a number, or with NLM_F_DUMP all of them."""
    request = _LINK.pack(0, 0, index, 0, 0)
    for body in request_netlink(netlink, _RTM_GETLINK, _RTM_NEWLINK, request, flags):
        _, hardware_type, number, *_ = _LINK.unpack_from(body)
        attributes = parse_attributes(body[_LINK.size :])
        yield _Link(
            number=number,
            hardware_type=hardware_type,
            name=_text(attributes.get(_IFLA_IFNAME)) or socket.if_indextoname(number),
            hardware_address=attributes.get(_IFLA_ADDRESS, b""),
            mtu_bytes=_number(attributes.get(_IFLA_MTU)),
            qdisc=_text(attributes.get(_IFLA_QDISC)),
            kind=_text(parse_attributes(attributes.get(_IFLA_LINKINFO, b"")).get(_IFLA_INFO_KIND)),
            parent_bus=_text(attributes.get(_IFLA_PARENT_DEV_BUS_NAME)),
            parent_device=_text(attributes.get(_IFLA_PARENT_DEV_NAME)),
            lower=None if _IFLA_LINK_NETNSID in attributes else _number(attributes.get(_IFLA_LINK)),
            master=_number(attributes.get(_IFLA_MASTER)),
        )


def request_netlink(
    netlink: socket.socket, request: int, answer: int, body: bytes, flags: int = 0
) -> Iterator[bytes]:
    """Yield the body of each part of an answer; none if the kernel answers with an error.

    Args:
        netlink: a NETLINK_ROUTE socket on which no answer is outstanding.
        request: the type of the message to send (RTM_GET...).
        answer: the type of the parts to yield (RTM_NEW...).
        body: the request's structure and attributes.
        flags: NLM_F_DUMP asks for all objects, in several parts.
    """
    netlink.send(_HEADER.pack(_HEADER.size + len(body), request, _NLM_F_REQUEST | flags, 1, 0) + body)
    while True:
        data = netlink.recv(_READ_BYTES)
        while len(data) >= _HEADER.size:
            length, kind, *_ = _HEADER.unpack_from(data)
            if kind in {_NLMSG_ERROR, _NLMSG_DONE}:
                return
            if kind == answer:
                yield data[_HEADER.size : length]
            data = data[max(_align(length), _HEADER.size) :]
        if not flags & NLM_F_DUMP:
            return


def parse_attributes(data: bytes) -> Attributes:
    """Return the attributes that follow a structure, by their kind; the kernel has checked their sizes."""
    attributes: Attributes = {}
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        size, kind = _ATTRIBUTE.unpack_from(data, offset)
        attributes[kind & _NLA_TYPE_MASK] = data[offset + _ATTRIBUTE.size : offset + size]
        offset += max(_align(size), _ATTRIBUTE.size)
    return attributes


def _align(size: int) -> int:
    return (size + 3) & ~3


def _number(value: bytes | None) -> int | None:
    return None if value is None else int.from_bytes(value, sys.byteorder)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.split(b"\0")[0].decode(errors="replace") or None


# linux/ethtool.h: a request is a structure that the driver fills in, by way of struct ifreq.

_SIOCETHTOOL: Final = 0x8946
_IFREQ: Final = struct.Struct("16sP16x")  # struct ifreq with a pointer
_ETHTOOL_GTSO, _ETHTOOL_GGSO, _ETHTOOL_GFLAGS, _ETHTOOL_GGRO = 0x1E, 0x23, 0x25, 0x2B
_ETH_FLAG_LRO: Final = 1 << 15
_ETHTOOL_GLINKSETTINGS: Final = 0x4C
_LINK_SETTINGS: Final = struct.Struct("=IIB6xb")  # up to link_mode_masks_nwords
_MASK_WORDS_OFFSET: Final = _LINK_SETTINGS.size - 1
_LINK_SETTINGS_WORDS: Final = 12 + 3 * 127  # the structure, and three masks of as many words as fit the field
_MBIT_S: Final = 1_000_000
_UNKNOWN_SPEEDS: Final = {0, 0xFFFF, 0xFFFF_FFFF}  # SPEED_UNKNOWN, as 16 and as 32 bits
_DUPLEXES: Final[dict[int, Literal["full", "half"]]] = {0: "half", 1: "full"}


class _Line(NamedTuple):
    """The line of an interface; None if its driver does not report a value."""

    rate_bit_s: int | None = None
    duplex: Literal["full", "half"] | None = None


def _read_line(sock: socket.socket, name: str) -> _Line:
    """Return rate and duplex. The first request learns the size of the masks, the second one reads (ethtool.h)."""
    settings = array.array("I", [0] * _LINK_SETTINGS_WORDS)
    settings[0] = _ETHTOOL_GLINKSETTINGS
    if not _ethtool(sock, name, settings):
        return _Line()
    data = memoryview(settings).cast("B")
    *_, mask_words = _LINK_SETTINGS.unpack_from(data)
    if mask_words >= 0:
        return _Line()
    data[_MASK_WORDS_OFFSET] = -mask_words
    if not _ethtool(sock, name, settings):
        return _Line()
    _, speed_mbit_s, duplex, _ = _LINK_SETTINGS.unpack_from(data)
    rate_bit_s = None if speed_mbit_s in _UNKNOWN_SPEEDS else speed_mbit_s * _MBIT_S
    return _Line(rate_bit_s, _DUPLEXES.get(duplex))


def _read_ethtool_value(sock: socket.socket, name: str, command: int) -> int | None:
    value = array.array("I", (command, 0))  # struct ethtool_value
    return value[1] if _ethtool(sock, name, value) else None


def _ethtool(sock: socket.socket, name: str, structure: "array.array[int]") -> bool:
    """Run an ethtool request: the driver fills in the structure. Return whether it succeeded."""
    import fcntl  # not on every system

    with suppress(OSError):
        fcntl.ioctl(sock, _SIOCETHTOOL, _IFREQ.pack(name.encode(), structure.buffer_info()[0]))
        return True
    return False


# /sys


def _sysfs_folder(link: _Link) -> Path | None:
    """Return the interface's folder; None if /sys shows another namespace, perhaps with a namesake in it."""
    folder = _CLASS / link.name
    try:
        index, address = ((folder / name).read_text(encoding="ascii").strip() for name in ("ifindex", "address"))
    except OSError:
        return None
    return folder if (index, address) == (str(link.number), link.hardware_address.hex(":")) else None


def _device_folder(link: _Link, folder: Path | None) -> Path | None:
    """Return the folder of the device on a bus that an interface belongs to; None if it has none."""
    if link.parent_bus and link.parent_device:
        return Path("/sys/bus", link.parent_bus, "devices", link.parent_device)
    if folder is None or not (folder / "device").exists():  # kernels before 5.14 name no parent
        return None
    return folder / "device"


def _nic_type(
    link: _Link, folder: Path | None, device: Path | None
) -> Literal["device", "virtual", "wireless", "loopback"]:
    if link.hardware_type == _ARPHRD_LOOPBACK:
        return "loopback"
    if folder is not None and any((folder / name).exists() for name in ("phy80211", "wireless")):
        return "wireless"
    return "virtual" if device is None else "device"


def _driver(device: Path | None) -> str | None:
    if device is not None:
        with suppress(OSError):
            return (device / "driver").readlink().name
    return None


# Counters, from /proc/net/dev: a few microseconds each, if netlink would take a socket and a millisecond.

_DEV: Final = Path("/proc/net/dev")
_COLUMNS: Final = 16


def parse_net_dev(text: str, name: str) -> NicCounts | None:
    """Return the line of an interface in /proc/net/dev (proc(5)); None if it is not there.

    Columns: bytes packets errs drop fifo frame compressed multicast, received; bytes packets errs drop fifo colls
    carrier compressed, sent. fifo, frame and carrier are part of errs already (dev_seq_printf_stats of Linux).
    """
    counts = _find_columns(text, name)
    if counts is None:
        return None
    return NicCounts(
        received_bytes=counts[0],
        sent_bytes=counts[8],
        errors=counts[2] + counts[10],
        dropped=counts[3] + counts[11],
        collisions=counts[13],
    )


def _find_columns(text: str, name: str) -> list[int] | None:
    for line in text.splitlines():
        interface, colon, rest = line.partition(":")
        if colon and interface.strip() == name:
            counts = [int(word) for word in rest.split() if word.isdecimal()]
            return counts if len(counts) >= _COLUMNS else None
    return None


def read_nic_counts(name: str | None) -> NicCounts | None:
    """Return the counters of an interface of this namespace; None if there is none of that name."""
    if name is None:
        return None
    try:
        return parse_net_dev(_DEV.read_text(encoding="ascii", errors="replace"), name)
    except (OSError, ValueError):
        return None


def read_nic_drops(name: str | None) -> tuple[int, int] | None:
    """Return the frames that an interface has dropped, received and to be sent; None if it is unknown."""
    try:
        columns = None if name is None else _find_columns(_DEV.read_text(encoding="ascii", errors="replace"), name)
    except (OSError, ValueError):
        return None
    return None if columns is None else (columns[3] + columns[4], columns[11] + columns[12])
