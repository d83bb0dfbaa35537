"""The pace of a slow stream: how many bytes are due, and when to look again.

Pure: the time is an argument. The kernel's pacing (SO_MAX_PACING_RATE) waits after each packet for the packet's
time at the rate, and lets the first ten pass. Packets of loopback have 64 KB: at 64 kb/s that is 80 s of payload at
once, then one packet every 8 s. If the sender itself hands over small pieces, some move in every interval.
"""

from typing import Final

SLOW_BIT_S: Final = 100_000_000  # above it, packets of any size pass many times an interval
_BYTES_NS: Final = 8_000_000_000  # the nanoseconds of a byte at 1 b/s
_PIECE_BYTES: Final = 2 * 1_448  # two packets of Ethernet: larger pieces save nothing
_MIN_NS: Final = 10_000_000
_MAX_NS: Final = 50_000_000
_TURNS_OF_INTERVAL: Final = 10
_CATCH_UP_NS: Final = 200_000_000


class BytePace:
    """Tells how many bytes a session may hand over, so that their mean is the rate.

    A sender that was held up catches up on 0.2 s of the rate, not on more: the rest would be a burst.

    Args:
        bit_s: The session's rate.
        interval_ns: The time between two samples; payload moves several times in it, if there are enough bytes.
        now_ns: The time at which the first byte is due.
    """

    def __init__(self, bit_s: int, interval_ns: int, now_ns: int) -> None:
        self._bit_s = max(1, bit_s)
        longest_ns = min(_MAX_NS, interval_ns // _TURNS_OF_INTERVAL)
        self._turn_ns = max(_MIN_NS, min(longest_ns, _PIECE_BYTES * _BYTES_NS // self._bit_s))
        self._credit_max = max(1, self._bit_s * max(_CATCH_UP_NS, 2 * self._turn_ns) // _BYTES_NS) * _BYTES_NS
        self._credit = _BYTES_NS  # in 8 billionths of a byte, so that the rate is exact over any time
        self._now_ns = now_ns

    def due(self, now_ns: int) -> int:
        """Return how many bytes are due."""
        self._credit = min(self._credit_max, self._credit + (now_ns - self._now_ns) * self._bit_s)
        self._now_ns = now_ns
        return self._credit // _BYTES_NS

    def take(self, count: int) -> None:
        """Note the bytes that were handed over."""
        self._credit -= count * _BYTES_NS

    @property
    def wait_ns(self) -> int:
        """The time after which to look again: a whole byte is due then."""
        missing = max(0, _BYTES_NS - self._credit)
        return max(self._turn_ns, -(-missing // self._bit_s))
