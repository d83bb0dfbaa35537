"""A group of payload datagrams of one size, whose headers are written all at once.

The kernel cuts a group into its datagrams (UDP_SEGMENT, udp(7)), so that one system call sends up to 64 of them.
The numbers of a group are written as one strided copy into its memory, and of most groups only their lowest 16
bits, out of a table: with the stamps 1.1 µs for 46 datagrams of 1,400 bytes. Whole numbers that are made anew take
2.8, and a struct.pack_into for each datagram 3.4. Sizes that are not a multiple of 8 need the latter.
"""

import os
import struct
import sys
from array import array
from typing import Final, Protocol

from ...protocol.payload_datagrams import PAYLOAD_HEADER

MAX_SEGMENTS: Final = 64  # UDP_MAX_SEGMENTS of Linux before 6.9
MAX_GROUP_BYTES: Final = 65_507
_WORD_BYTES: Final = 8
_LOW_BITS: Final = 16
_LOW: Final = (1 << _LOW_BITS) - 1
_PAIR: Final = struct.Struct("<QQ")  # number and stamp
_HAS_LANES: Final = sys.byteorder == "little"


def segments_in_group(datagram_bytes: int) -> int:
    """Return how many datagrams of a size one system call can send."""
    return max(1, min(MAX_SEGMENTS, MAX_GROUP_BYTES // datagram_bytes))


class StampedGroup(Protocol):
    """The memory of a group, whatever its headers."""

    datagram_bytes: int
    count: int

    def stamp(self, first: int, count: int, now_ns: int) -> memoryview:
        """Return `count` datagrams with the numbers from `first` on and the same time."""
        ...


class DatagramGroup:
    """The memory of a group: random payload, and a header in each datagram.

    Args:
        datagram_bytes: The size of each datagram, its header included.
        count: The maximum number of datagrams that are sent at once.
        cookie: The cookie of the session, which every header has.
    """

    __slots__ = (
        "_high",
        "_lane",
        "_low_lanes",
        "_low_numbers",
        "_lows",
        "_stamp",
        "_stamp_lanes",
        "_view",
        "_words",
        "count",
        "datagram_bytes",
    )

    def __init__(self, datagram_bytes: int, count: int, cookie: int) -> None:
        self.datagram_bytes = datagram_bytes
        self.count = count
        size = datagram_bytes * count
        memory = bytearray(os.urandom(size + -size % _WORD_BYTES))
        for start in range(0, size, datagram_bytes):
            PAYLOAD_HEADER.pack_into(memory, start, 0, 0, cookie)
        whole = memoryview(memory)
        self._view = whole[:size]
        self._lane = 0
        self._words: memoryview | None = None
        self._high = -1  # the higher bits of the numbers that all datagrams have
        self._stamp = array("Q", (0,))
        if _HAS_LANES and datagram_bytes % _WORD_BYTES == 0 and count > 1:
            self._words, self._lane = whole.cast("Q"), datagram_bytes // _WORD_BYTES
            self._lows = whole.cast("H")
            self._low_numbers = memoryview(array("H", range(1 << _LOW_BITS)))
            self._low_lanes = slice(0, size // 2, datagram_bytes // 2)
            self._stamp_lanes = slice(1, size // _WORD_BYTES, self._lane)

    def stamp(self, first: int, count: int, now_ns: int) -> memoryview:
        """Return `count` datagrams with the numbers from `first` on and the same time."""
        words = self._words
        if count == self.count and words is not None:
            low = first & _LOW
            if first - low == self._high and low + count <= _LOW:
                self._lows[self._low_lanes] = self._low_numbers[low : low + count]
            else:
                words[0 : count * self._lane : self._lane] = memoryview(array("Q", range(first, first + count)))
                self._high = first - low if low + count <= _LOW else -1
            self._stamp[0] = now_ns
            words[self._stamp_lanes] = memoryview(self._stamp * count)
            return self._view
        self._high = -1
        if count > 1 and words is not None:
            end = count * self._lane
            words[0 : end : self._lane] = memoryview(array("Q", range(first, first + count)))
            words[1 : end : self._lane] = memoryview(array("Q", (now_ns,)) * count)
        else:
            for index in range(count):
                # The cookie stays as it is.
                _PAIR.pack_into(self._view, index * self.datagram_bytes, first + index, now_ns)
        return self._view[: count * self.datagram_bytes]
