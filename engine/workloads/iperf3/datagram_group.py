"""A group of datagrams with iperf3's header, in network byte order, written all at once.

As with linkgauge's own (udp/group.py) the numbers of a group are one strided copy into its memory, in words of 32
bits: seconds, microseconds, and the number in one word or two. Seconds and the number's upper word stay in the
memory until they change. Sizes that are not a multiple of 4 need a struct.pack_into for each datagram.
"""

import os
import struct
import sys
from array import array
from typing import Final

from ...iperf3.protocol.datagrams import header_of
from ...model.plan import SECOND_NS

_WORD_BYTES: Final = 4
_WORD_MASK: Final = 0xFFFF_FFFF
_WORD_CODE: Final = "I"
_HAS_LANES: Final = sys.byteorder == "little" and struct.calcsize(_WORD_CODE) == _WORD_BYTES


class Iperf3Group:
    """The memory of a group: random payload, and a header in each datagram.

    Args:
        datagram_bytes: The size of each datagram, its header included.
        count: The maximum number of datagrams that are sent at once.
        has_64bit_counters: Whether the numbers have 64 bits.
    """

    __slots__ = (
        "_header",
        "_is_wide",
        "_lane",
        "_number_at",
        "_number_mask",
        "_view",
        "_words",
        "_written",
        "count",
        "datagram_bytes",
    )

    def __init__(self, datagram_bytes: int, count: int, *, has_64bit_counters: bool) -> None:
        self.datagram_bytes = datagram_bytes
        self.count = count
        self._header = header_of(has_64bit_counters=has_64bit_counters)
        self._is_wide = has_64bit_counters
        self._number_mask = (1 << 64) - 1 if has_64bit_counters else _WORD_MASK
        self._number_at = 3 if has_64bit_counters else 2
        size = datagram_bytes * count
        whole = memoryview(bytearray(os.urandom(size + -size % _WORD_BYTES)))
        self._view = whole[:size]
        self._lane = datagram_bytes // _WORD_BYTES
        self._words: memoryview | None = None
        if _HAS_LANES and datagram_bytes % _WORD_BYTES == 0:
            self._words = whole.cast(_WORD_CODE)
        self._written = (-1, -1)  # the seconds and the numbers' upper word in all headers

    def stamp(self, first: int, count: int, now_ns: int) -> memoryview:
        """Return `count` datagrams with the numbers from `first` + 1 on and the same time."""
        seconds, nanoseconds = divmod(now_ns, SECOND_NS)
        number = first + 1 & self._number_mask
        low, words = number & _WORD_MASK, self._words
        if count > 1 and words is not None and low + count <= _WORD_MASK:
            if self._written != (seconds, number >> 32):
                self._write_rare(words, seconds, number >> 32)
            lane = self._lane
            end = count * lane
            words[1:end:lane] = memoryview(_swapped(nanoseconds // 1_000) * count)
            numbers = array(_WORD_CODE, range(low, low + count))
            numbers.byteswap()
            words[self._number_at : end : lane] = memoryview(numbers)
        else:
            for index in range(count):
                start, shown = index * self.datagram_bytes, number + index & self._number_mask
                self._header.pack_into(self._view, start, seconds & _WORD_MASK, nanoseconds // 1_000, shown)
        return self._view[: count * self.datagram_bytes]

    def _write_rare(self, words: memoryview, seconds: int, high: int) -> None:
        """Write the parts of every header that change once a second, and once in four billion datagrams."""
        lane, end = self._lane, self.count * self._lane
        words[0:end:lane] = memoryview(_swapped(seconds & _WORD_MASK) * self.count)
        if self._is_wide:
            words[2:end:lane] = memoryview(_swapped(high) * self.count)
        self._written = seconds, high


def _swapped(value: int) -> "array[int]":
    word = array(_WORD_CODE, (value,))
    word.byteswap()
    return word
