"""The datagrams that measure a path's MTU, between two ends that have a session's secret, and the result. Pure.

    near  PROBE     of the length in it; the far end answers REACHED with the length that arrived
    near  REQUEST   asks the far end for LARGE, a datagram of the length in it
    far   TOO_LONG  its kernel or a router refused the length, with the MTU that it reports
    near  TRACE     asks the far end for LARGE with a TTL that ends on the way
    far   EXPIRED   a router used up the TTL of that LARGE

All have the same fields and a code over them; PROBE and LARGE are padded with zeros, which no code covers. They go
over the socket of a UDP session (datagram_handshake.py), so only to an address that has echoed its cookie.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from ipaddress import IPv6Address, ip_address
from typing import Final, Self

from ..model.directions import Direction
from .coded_datagrams import CODED_BYTES, decode_coded, encode_coded

_FIELDS: Final = struct.Struct(">II16s")
PATH_HEADER_BYTES: Final = CODED_BYTES + _FIELDS.size
MAX_UDP_BYTES: Final = 65_507
MIN_PATH_MTU_BYTES: Final = {4: 576, 6: 1_280}  # every path carries these: RFC 791, RFC 8200
_USE: Final = b"path"
_KIND: Final = b"M"
_SIZE_BITS: Final = 18
_TTL_BITS: Final = 6
_NO_ROUTER: Final = bytes(16)


class PathKind(IntEnum):
    """The purpose of a datagram."""

    PROBE = 1
    REACHED = 2
    REQUEST = 3
    LARGE = 4
    TOO_LONG = 5
    TRACE = 6
    EXPIRED = 7


_PADDED: Final = {PathKind.PROBE, PathKind.LARGE}


@dataclass(frozen=True, slots=True)
class PathDatagram:
    """One of these datagrams.

    `size_bytes` is a length of UDP payload, for TOO_LONG the MTU; `serial` names the probe or the request that it
    belongs to. `router` is the address of a router that refused, or used up the TTL; None is the sender's own
    kernel. `ttl` is of TRACE only, and 0 else.
    """

    kind: PathKind
    serial: int
    size_bytes: int
    router: str | None = None
    ttl: int = 0

    def pack(self, session_secret: bytes) -> bytes:
        """Return its bytes, padded to its own length."""
        router = _NO_ROUTER if self.router is None else _pack_router(self.router)
        kind_and_size = (self.kind << _TTL_BITS | self.ttl) << _SIZE_BITS | self.size_bytes
        data = encode_coded(session_secret, _USE, _KIND, _FIELDS.pack(self.serial, kind_and_size, router))
        return data.ljust(self.size_bytes, b"\0") if self.kind in _PADDED else data

    @classmethod
    def unpack(cls, body: bytes) -> Self | None:
        """Read the body; None if it has another length, or no kind."""
        if len(body) != _FIELDS.size:
            return None
        serial, kind_and_size, router = _FIELDS.unpack(body)
        kind, ttl = kind_and_size >> _SIZE_BITS + _TTL_BITS, kind_and_size >> _SIZE_BITS & (1 << _TTL_BITS) - 1
        if kind not in set(PathKind):
            return None
        name = None if router == _NO_ROUTER else _unpack_router(router)
        return cls(PathKind(kind), serial, kind_and_size & (1 << _SIZE_BITS) - 1, name, ttl)


def decode_path_datagram(data: bytes, session_secret: bytes) -> PathDatagram | None:
    """Return such a datagram of the session; None for any other bytes, which never raise."""
    found = decode_quoted_path_datagram(data, session_secret)
    if found is None:
        return None
    return found if len(data) == (found.size_bytes if found.kind in _PADDED else PATH_HEADER_BYTES) else None


def decode_quoted_path_datagram(data: bytes, session_secret: bytes) -> PathDatagram | None:
    """Return the datagram that begins with these bytes: a router quotes only the beginning of a long one."""
    found = decode_coded(data[:PATH_HEADER_BYTES], session_secret, _USE, {_KIND: PathDatagram.unpack})
    if found is None or found.size_bytes > MAX_UDP_BYTES + PATH_HEADER_BYTES:
        return None
    return None if (found.ttl > 0) is not (found.kind == PathKind.TRACE) else found


def _pack_router(text: str) -> bytes:
    address = ip_address(text.partition("%")[0])
    return IPv6Address(f"::ffff:{address}").packed if address.version == 4 else address.packed


def _unpack_router(packed: bytes) -> str:
    address = IPv6Address(packed)
    return str(address.ipv4_mapped or address)


class MtuBound(StrEnum):
    """The limit of a direction's packets."""

    INTERFACE = "interface"
    ROUTER = "router"
    BLACK_HOLE = "black_hole"


@dataclass(frozen=True, slots=True)
class NarrowLink:
    """The link behind the hop `after_ttl`, 0 for the sending host, and before the hop `before_ttl`.

    Between them there may be hops that did not answer. A router is None if it is a host at one of the ends.
    """

    after_ttl: int
    before_ttl: int
    after_router: str | None = None
    before_router: str | None = None


@dataclass(frozen=True, slots=True)
class DirectionMtu:
    """The path MTU of one direction: of the IP packet, header included.

    `mtu_bytes` is None if not even the smallest probe arrived. `interface` is the sending host's, if its name is
    known, and `interface_bytes` its MTU, None if that is more than a datagram can have. `router` is the address
    of the router that refused longer packets, and `link` the place on the path behind which they do not come; None
    if that is not known.
    """

    direction: Direction
    mtu_bytes: int | None
    interface_bytes: int | None
    bound: MtuBound
    router: str | None = None
    interface: str | None = None
    header_bytes: int = 28
    link: NarrowLink | None = None

    @property
    def datagram_bytes(self) -> int | None:
        """The UDP payload of the longest packet."""
        return None if self.mtu_bytes is None else self.mtu_bytes - self.header_bytes


@dataclass(frozen=True, slots=True)
class PathMtu:
    """The path MTU of both directions between this host and a peer."""

    peer: str
    ip_version: int
    out: DirectionMtu
    in_: DirectionMtu

    @property
    def directions(self) -> tuple[DirectionMtu, DirectionMtu]:
        """Both directions."""
        return self.out, self.in_

    @property
    def has_black_hole(self) -> bool:
        """Whether packets disappear in a direction without a report to their sender."""
        return any(each.bound is MtuBound.BLACK_HOLE for each in self.directions)
