"""The deadlines of datagrams that are sent at a constant rate.

Pure: the time is an argument. Whole numbers, so that the rate is exact over any time: sent and skipped datagrams
together match the rate, to one datagram.
"""

from math import gcd
from typing import Final

_SECOND_NS: Final = 1_000_000_000
_CATCH_UP_NS: Final = 1_000_000
_GROUP_NS: Final = 250_000


class Pacer:
    """Tells how many datagrams are due, and when the next one is.

    A sender that was held up catches up on 1 ms of the rate, or one datagram. The rest counts as `skipped`:
    catching up on all of it would be a burst, whose losses would count against the link.

    Args:
        bit_s: The rate of the datagrams' payload; None: as fast as the caller can send.
        datagram_bytes: The payload of each.
        now_ns: The time at which the first one is due, if `part` is all of its `parts`.
        part: How much of the first one's time has passed. Sessions that begin together have different parts: all
            at once, 16 of four datagrams a second sent 8 % less than their rate in a test of a second.
        parts: The number of these parts.
    """

    __slots__ = (
        "_cost",
        "_credit",
        "_credit_max",
        "_gain",
        "_most",
        "_now_ns",
        "_unit",
        "counts_skipped",
        "skipped",
    )

    def __init__(self, bit_s: int | None, datagram_bytes: int, now_ns: int, part: int = 1, parts: int = 1) -> None:
        self.skipped = 0
        self.counts_skipped = True  # nobody waits for datagrams at a rate that the sender has found itself
        # A nanosecond earns `_gain`, a datagram takes `_cost`: in billionths of a bit, `_unit` of them for one.
        self._gain = 0  # no rate
        self._unit = 1
        self._credit = self._cost = self._credit_max = self._most = 0
        self._now_ns = now_ns
        self.change(now_ns, bit_s, datagram_bytes)
        self._credit = self._credit * part // parts

    def change(self, now_ns: int, bit_s: int | None, datagram_bytes: int) -> None:
        """Go on at another rate or size, also after a pause. No datagram counts as skipped for it.

        Raises:
            ValueError: The rate or the size is not above 0.
        """
        if datagram_bytes < 1 or (bit_s is not None and bit_s < 1):
            raise ValueError(f"no pace: {datagram_bytes} bytes at {bit_s} bit/s")
        cost, gain = datagram_bytes * 8 * _SECOND_NS, bit_s or 0
        credit = (self._credit + max(0, now_ns - self._now_ns) * self._gain) * self._unit if self._gain else cost
        # Without the common divisor most are small numbers, which divide faster.
        self._unit = gcd(cost, gain)
        self._cost, self._gain = cost // self._unit, gain // self._unit
        self._credit_max = self._cost + max(self._cost, self._gain * _CATCH_UP_NS)
        self._most = self._credit_max // self._cost
        self._credit = min(credit // self._unit, self._credit_max)
        self._now_ns = max(self._now_ns, now_ns)

    def take(self, now_ns: int, limit: int) -> int:
        """Return how many datagrams, at most `limit`, are due. The caller sends them."""
        if not self._gain:
            return limit
        cost = self._cost
        if now_ns > self._now_ns:
            self._credit += (now_ns - self._now_ns) * self._gain
            self._now_ns = now_ns
            if self._credit > self._credit_max:
                given_up = self._credit // cost - self._most
                self.skipped += given_up * self.counts_skipped
                self._credit -= given_up * cost
        due = min(limit, self._credit // cost)
        self._credit -= due * cost
        return due

    def wait_ns(self, now_ns: int, count: int = 1) -> int:
        """Return the time until `count` datagrams are due; 0 if they are.

        If they take longer than 0.25 ms to become due, it is the time until as many as fit into that are due, at
        least one.
        """
        gain = self._gain
        if not gain:
            return 0
        missing = self._cost - self._credit - (now_ns - self._now_ns) * gain
        if count > 1:
            missing += (min(count, max(1, gain * _GROUP_NS // self._cost)) - 1) * self._cost
        return -(-missing // gain) if missing > 0 else 0
