"""The network interface that carries a connection, with the standard library alone: for an engine that travels.

Linux. Route and interface are asked of netlink (rtnetlink(7)) by hand, offloads of an ioctl (linux/ethtool.h), rate
and duplex of /sys. What none of them tells is unknown.
"""

import array
import ipaddress
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from ..model.host_info import NicInfo

_HEADER: Final = struct.Struct("=IHHII")  # struct nlmsghdr
_ROUTE: Final = struct.Struct("=8BI")  # struct rtmsg
_LINK: Final = struct.Struct("=BxHiII")  # struct ifinfomsg
_ATTRIBUTE: Final = struct.Struct("=HH")
_NEW_LINK, _GET_LINK, _NEW_ROUTE, _GET_ROUTE = 16, 18, 24, 26
_IS_REQUEST: Final = 1
_DEADLINE_S: Final = 1.0
_READ_BYTES: Final = 65_536
_TO, _FROM, _OUT_BY = 1, 2, 4  # RTA_DST, RTA_SRC, RTA_OIF
_MTU, _QUEUE, _INFO, _INFO_KIND = 4, 6, 18, 1  # IFLA_MTU, IFLA_QDISC, IFLA_LINKINFO, IFLA_INFO_KIND
_KIND_BITS: Final = 0x3FFF  # NLA_TYPE_MASK: the others tell of nesting and byte order
_ARPHRD_LOOPBACK: Final = 772

_ASK_ETHTOOL: Final = 0x8946  # SIOCETHTOOL
_REQUEST: Final = struct.Struct("16sP16x")  # struct ifreq with a pointer
_GET_TSO, _GET_GSO, _GET_FLAGS, _GET_GRO = 0x1E, 0x23, 0x25, 0x2B
_LRO_FLAG: Final = 1 << 15
_MBIT_S: Final = 1_000_000
_CLASS: Final = Path("/sys/class/net")
_NOWHERE: Final = Path("/nonexistent")

InterfaceType = Literal["device", "virtual", "wireless", "loopback"]


def read_nic_stdlib(local: str, peer: str, nominal_speed_kinds: set[str]) -> NicInfo | None:
    """Read the interface by which packets from one address to another leave; None where no route is found.

    The kinds in `made_up_speeds` report a rate that no line has. Raises what the kernel does.
    """
    index = _index_by_route(ipaddress.ip_address(local), ipaddress.ip_address(peer))
    if index is None:
        return None
    found = _ask(_GET_LINK, _NEW_LINK, _LINK.pack(0, 0, index, 0, 0))
    _, hardware, *_ = _LINK.unpack_from(found)
    told, name = _attributes(found[_LINK.size :]), socket.if_indextoname(index)
    folder = _CLASS / name
    if _line(folder / "ifindex") != str(index):  # /sys may show another namespace's interfaces
        folder = _NOWHERE
    sort = _sort(hardware, folder)
    kind = _text(_attributes(told.get(_INFO, b"")).get(_INFO_KIND)) or _driver(folder)
    has_line = sort not in {"loopback", "wireless"} and kind not in nominal_speed_kinds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        tso, gso, gro, flags = (_ethtool(door, name, each) for each in (_GET_TSO, _GET_GSO, _GET_GRO, _GET_FLAGS))
    return NicInfo(
        name=name,
        sort=sort,
        kind=kind,
        line_rate_bit_s=_speed_bit_s(folder) if has_line else None,
        duplex=_duplex(folder),
        mtu_bytes=int.from_bytes(told[_MTU], sys.byteorder) if _MTU in told else None,
        tso=None if tso is None else bool(tso),
        gso=None if gso is None else bool(gso),
        gro=None if gro is None else bool(gro),
        lro=None if flags is None else bool(flags & _LRO_FLAG),
        qdisc=_text(told.get(_QUEUE)),
    )


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _index_by_route(local: _Address, peer: _Address) -> int | None:
    """Ask the kernel by which interface packets go; None where it has no route for them."""
    if local.version != peer.version:
        return None
    family = socket.AF_INET if peer.version == 4 else socket.AF_INET6
    bits = peer.max_prefixlen
    body = _ROUTE.pack(family, bits, bits, 0, 0, 0, 0, 0, 0)
    for kind, address in ((_TO, peer.packed), (_FROM, local.packed)):
        body += _ATTRIBUTE.pack(_ATTRIBUTE.size + len(address), kind) + address
    answer = _ask(_GET_ROUTE, _NEW_ROUTE, body)
    by = _attributes(answer[_ROUTE.size :]).get(_OUT_BY)
    return None if by is None else int.from_bytes(by, sys.byteorder)


def _ask(question: int, answer: int, body: bytes) -> bytes:
    """Return what netlink answers; nothing where it answers with an error."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as door:
        door.settimeout(_DEADLINE_S)
        door.send(_HEADER.pack(_HEADER.size + len(body), question, _IS_REQUEST, 1, 0) + body)
        told = door.recv(_READ_BYTES)
    length, kind, *_ = _HEADER.unpack_from(told)
    return told[_HEADER.size : length] if kind == answer else b""


def _attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    place = 0
    while place + _ATTRIBUTE.size <= len(data):
        size, kind = _ATTRIBUTE.unpack_from(data, place)
        found[kind & _KIND_BITS] = data[place + _ATTRIBUTE.size : place + size]
        place += max((size + 3) & ~3, _ATTRIBUTE.size)
    return found


def _ethtool(door: socket.socket, name: str, command: int) -> int | None:
    """Return what an interface's driver answers; None where it does not."""
    import fcntl

    value = array.array("I", (command, 0))
    with suppress(OSError):
        fcntl.ioctl(door, _ASK_ETHTOOL, _REQUEST.pack(name.encode(), value.buffer_info()[0]))
        return value[1]
    return None


def _sort(hardware: int, folder: Path) -> InterfaceType:
    if hardware == _ARPHRD_LOOPBACK:
        return "loopback"
    if any((folder / each).exists() for each in ("phy80211", "wireless")):
        return "wireless"
    return "device" if (folder / "device").exists() else "virtual"


def _driver(folder: Path) -> str | None:
    with suppress(OSError):
        return (folder / "device" / "driver").readlink().name
    return None


def _speed_bit_s(folder: Path) -> int | None:
    text = _line(folder / "speed") or ""
    return int(text) * _MBIT_S or None if text.isdecimal() else None


def _duplex(folder: Path) -> Literal["full", "half"] | None:
    text = _line(folder / "duplex")
    return "full" if text == "full" else "half" if text == "half" else None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.split(b"\0")[0].decode(errors="replace") or None


def _line(path: Path) -> str | None:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").strip()
    return None
