"""A window of serial numbers: each is taken once, also where some overtake others on their way. Pure.

As the anti-replay window of IPsec (RFC 4303, section 3.4.3).
"""

from typing import Final

WINDOW_SERIALS: Final = 1_024


class SerialWindow:
    """Takes each serial once. Those that are `WINDOW_SERIALS` behind the newest one count as taken."""

    __slots__ = ("_newest", "_taken")

    def __init__(self) -> None:
        self._newest = 0
        self._taken = 1  # bit n is the serial n below the newest one; 0 is no serial

    def take(self, serial: int) -> bool:
        """Take a serial, from 1; return whether it had not been taken. Check its code first."""
        ahead = serial - self._newest
        if ahead > 0:
            shifted = self._taken << ahead if ahead < WINDOW_SERIALS else 0
            self._taken = (shifted | 1) & ((1 << WINDOW_SERIALS) - 1)
            self._newest = serial
            return True
        if -ahead >= WINDOW_SERIALS or self._taken >> -ahead & 1:
            return False
        self._taken |= 1 << -ahead
        return True
