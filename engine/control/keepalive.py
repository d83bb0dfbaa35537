"""Whether the other end is still there, judged by what it says and by what it carries.

Pure: time is an argument. The control connection of a run may be silent for a while because the run's own flood
fills the queue it waits in; so payload that moves counts as a sign of life as well, for some time.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ..model.plan import SECOND_NS

PING_INTERVAL_S: Final = 1.0
SILENCE_NS: Final = 4 * SECOND_NS  # a sample is due every interval and a pong every second
LONGEST_SILENCE_NS: Final = 30 * SECOND_NS  # payload may be on its way from buffers for a while, not longer
TETHER_PING_S: Final = 0.4
TETHER_LOOK_S: Final = 0.2
TETHER_NS: Final = 1_250_000_000
TETHERED_SILENCE_NS: Final = 3 * SECOND_NS  # of a far end that would be gone by itself
_LATE_NS: Final = 500_000_000
_NEWS_NS: Final = 50_000_000  # the kernel tells of the last packet in ticks of its own


class Trouble(StrEnum):
    """What is not as it should be at an end that is not lost."""

    SILENT = "silent"  # it says nothing, and payload moves
    STILL = "still"  # it answers, and no payload moves


@dataclass(slots=True)
class Liveness:
    """The last signs of life of the other end, monotonic nanoseconds."""

    moved_ns: int
    total_bytes: int = 0
    patience_ns: int = SILENCE_NS

    def lost_for_ns(self, now_ns: int, heard_ns: int, total_bytes: int) -> int | None:
        """Take in what is known now; return how long the other end has been silent if it is lost, else None.

        `heard_ns` is when the last control bytes came, `total_bytes` all payload that was ever received
        or acknowledged.
        """
        if total_bytes != self.total_bytes:
            self.total_bytes = total_bytes
            self.moved_ns = now_ns
        silent_ns = now_ns - heard_ns
        still_ns = now_ns - max(self.moved_ns, heard_ns)
        return silent_ns if still_ns > self.patience_ns or silent_ns > LONGEST_SILENCE_NS else None

    def trouble(self, now_ns: int, heard_ns: int) -> Trouble | None:
        """Return what is wrong with an end that `lost_for_ns` has just not called lost."""
        if now_ns - heard_ns > SILENCE_NS:
            return Trouble.SILENT
        return Trouble.STILL if now_ns - self.moved_ns > SILENCE_NS else None


@dataclass(slots=True)
class Tether:
    """What holds a far end that ssh started to its near end while there is load: gone within two seconds.

    Anything that comes is a sign of life, on the control connection or on any data connection, acknowledgements
    among it: where a link is full, a word may be seconds behind, and they are not. A while in which this process
    did not get to look is not counted: what came meanwhile has not been read either.
    """

    looked_ns: int
    heard_ns: int = 0
    total_bytes: int = 0
    _excused_ns: int = 0

    def silent_ns(self, now_ns: int, heard_ns: int, total_bytes: int) -> int:
        """Take in what is known now, every TETHER_LOOK_S; return how long there has been no sign of life."""
        since_ns = now_ns - self.looked_ns
        self.looked_ns = now_ns
        if since_ns > _LATE_NS:
            self._excused_ns += since_ns
        if total_bytes != self.total_bytes:
            self.total_bytes = total_bytes
            heard_ns = now_ns
        if heard_ns > self.heard_ns + _NEWS_NS:
            self.heard_ns = heard_ns
            self._excused_ns = 0
        return max(0, now_ns - self.heard_ns - self._excused_ns)
