"""The datagrams that measure a policer or shaper, between two ends that have a session's secret. Pure.

    near  REQUEST   asks the far end for a burst: its number, its datagrams, their size, the pace of the last ones
    far   SENT      answers it, again for each repeated request: how many it has sent, and whether that is all
    near  QUERY     asks for the arrivals of the near end's own burst, from a place in their list on
    far   ARRIVALS  answers it: a part of the list, its length, and what found no room in the far end's socket

The datagrams of a burst have the header of payload (payload_datagrams.py), whose number is that of the burst and
the place in it. All others have a code over all of their bytes. They go over the socket of a UDP session
(datagram_handshake.py), so only to an address that has echoed its cookie.
"""

import struct
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Final, Self

from .coded_datagrams import decode_coded, encode_coded
from .payload_datagrams import PAYLOAD_HEADER

MIN_BURST_DATAGRAM_BYTES: Final = 64
MAX_BURST_DATAGRAM_BYTES: Final = 9_000
MAX_BURST_DATAGRAMS: Final = 1 << 16
MAX_BURST_BYTES: Final = 24 << 20
MAX_BURSTS: Final = 200
ARRIVALS_IN_DATAGRAM: Final = 140
MAX_ARRIVAL_NS: Final = (1 << 32) - 1
"""The longest time after a burst's first arrival: what comes later is not counted."""
_PLACE_BITS: Final = 16
_USE: Final = b"burst"
_REQUEST: Final = struct.Struct(">IIIIQ")
_SENT: Final = struct.Struct(">III?")
_QUERY: Final = struct.Struct(">II")
_ARRIVALS: Final = struct.Struct(">IIII")
_ARRIVAL: Final = struct.Struct(">II")


def burst_number(burst: int, place: int) -> int:
    """Return the number of a burst's datagram in the header of payload."""
    return burst << _PLACE_BITS | place


def read_burst_number(number: int) -> tuple[int, int]:
    """Return the burst of a datagram, and its place there."""
    return number >> _PLACE_BITS, number & ((1 << _PLACE_BITS) - 1)


@dataclass(frozen=True, slots=True)
class BurstRequest:
    """A burst to send: `head` datagrams as fast as possible, then `tail` at a pace; 0 is as fast as possible.

    `datagram_bytes` is the UDP payload of each; `tail_bit_s` is in bits of payload a second.
    """

    burst: int
    head: int
    tail: int
    datagram_bytes: int
    tail_bit_s: int = 0

    @property
    def count(self) -> int:
        """The number of datagrams."""
        return self.head + self.tail

    @property
    def is_allowed(self) -> bool:
        """Whether an end sends such a burst: it is bounded in datagrams and bytes."""
        has_size = MIN_BURST_DATAGRAM_BYTES <= self.datagram_bytes <= MAX_BURST_DATAGRAM_BYTES
        is_short = 0 < self.count <= MAX_BURST_DATAGRAMS and self.count * self.datagram_bytes <= MAX_BURST_BYTES
        return has_size and is_short and 0 < self.burst <= MAX_BURSTS

    def pack(self, session_secret: bytes) -> bytes:
        """Return its bytes."""
        return encode_coded(session_secret, _USE, b"B", _REQUEST.pack(*astuple(self)))

    @classmethod
    def unpack(cls, body: bytes) -> Self | None:
        """Read the body; None if it has another length."""
        return cls(*_REQUEST.unpack(body)) if len(body) == _REQUEST.size else None


@dataclass(frozen=True, slots=True)
class BurstSent:
    """What the far end has sent of a burst, and how many of these its own host dropped."""

    burst: int
    sent: int
    dropped: int
    is_over: bool

    def pack(self, session_secret: bytes) -> bytes:
        """Return its bytes."""
        return encode_coded(session_secret, _USE, b"S", _SENT.pack(*astuple(self)))

    @classmethod
    def unpack(cls, body: bytes) -> Self | None:
        """Read the body; None if it has another length."""
        return cls(*_SENT.unpack(body)) if len(body) == _SENT.size else None


@dataclass(frozen=True, slots=True)
class BurstQuery:
    """A question for the arrivals of a burst, from a place in their list on."""

    burst: int
    offset: int

    def pack(self, session_secret: bytes) -> bytes:
        """Return its bytes."""
        return encode_coded(session_secret, _USE, b"Q", _QUERY.pack(*astuple(self)))

    @classmethod
    def unpack(cls, body: bytes) -> Self | None:
        """Read the body; None if it has another length."""
        return cls(*_QUERY.unpack(body)) if len(body) == _QUERY.size else None


@dataclass(frozen=True, slots=True)
class BurstArrivals:
    """A part of a burst's arrivals: the place of each in the burst, and when it came after the first one.

    `total` is the length of the whole list so far, `unread` the datagrams that found no room in the socket.
    """

    burst: int
    total: int
    unread: int
    offset: int
    arrivals: tuple[tuple[int, int], ...] = ()

    def pack(self, session_secret: bytes) -> bytes:
        """Return its bytes."""
        head = _ARRIVALS.pack(self.burst, self.total, self.unread, self.offset)
        return encode_coded(
            session_secret, _USE, b"V", head + b"".join(_ARRIVAL.pack(*each) for each in self.arrivals)
        )

    @classmethod
    def unpack(cls, body: bytes) -> Self | None:
        """Read the body; None if it has an impossible length, or more than it says."""
        rest = len(body) - _ARRIVALS.size
        if rest < 0 or rest % _ARRIVAL.size or rest > ARRIVALS_IN_DATAGRAM * _ARRIVAL.size:
            return None
        burst, total, unread, offset = _ARRIVALS.unpack_from(body)
        arrivals = tuple(_ARRIVAL.iter_unpack(body[_ARRIVALS.size :]))
        if total > MAX_BURST_DATAGRAMS or offset + len(arrivals) > total:
            return None
        return cls(burst, total, unread, offset, arrivals)


BurstDatagram = BurstRequest | BurstSent | BurstQuery | BurstArrivals
_DECODERS: Final[dict[bytes, Callable[[bytes], BurstDatagram | None]]] = {
    b"B": BurstRequest.unpack,
    b"S": BurstSent.unpack,
    b"Q": BurstQuery.unpack,
    b"V": BurstArrivals.unpack,
}


def decode_burst_datagram(data: bytes, session_secret: bytes) -> BurstDatagram | None:
    """Return such a datagram of the session; None for any other bytes, which never raise."""
    return decode_coded(data, session_secret, _USE, _DECODERS)


def read_burst_header(data: bytes | bytearray | memoryview, cookie: int) -> tuple[int, int, int] | None:
    """Return burst, place and send stamp of a burst's datagram; None for any other bytes."""
    if len(data) < PAYLOAD_HEADER.size:
        return None
    number, stamp_ns, found = PAYLOAD_HEADER.unpack_from(data)
    return (*read_burst_number(number), stamp_ns) if found == cookie and number < MAX_BURSTS + 1 << 16 else None
