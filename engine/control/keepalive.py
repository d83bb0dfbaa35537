"""Whether the other end is still there, judged by what it says and by what it carries.

Pure: time is an argument. The control connection of a run may be silent for a while because the run's own flood
fills the queue it waits in; so payload that moves counts as a sign of life as well, for some time.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ..model.plan import SECOND_NS

PING_INTERVAL_S: Final = 1.0
SILENCE_TIMEOUT_NS: Final = 4 * SECOND_NS  # a sample is due every interval and a pong every second
MAX_SILENCE_NS: Final = 30 * SECOND_NS  # payload may be on its way from buffers for a while, not longer
KEEPALIVE_INTERVAL_S: Final = 0.4
DEAD_PEER_CHECK_S: Final = 0.2
DEAD_PEER_TIMEOUT_NS: Final = 1_250_000_000
SSH_SILENCE_TIMEOUT_NS: Final = 3 * SECOND_NS  # of a far end that would be gone by itself
_LATE_NS: Final = 500_000_000
_NEWS_NS: Final = 50_000_000  # the kernel tells of the last packet in ticks of its own


class LivenessProblem(StrEnum):
    """What is not as it should be at an end that is not lost."""

    SILENT = "silent"  # it says nothing, and payload moves
    STALLED = "still"  # it answers, and no payload moves


@dataclass(slots=True)
class Liveness:
    """The last signs of life of the other end, monotonic nanoseconds."""

    last_progress_ns: int
    total_bytes: int = 0
    timeout_ns: int = SILENCE_TIMEOUT_NS

    def check_timeout(self, now_ns: int, last_received_ns: int, total_bytes: int) -> int | None:
        """Take in what is known now; return how long the other end has been silent if it is lost, else None.

        `heard_ns` is when the last control bytes came, `total_bytes` all payload that was ever received
        or acknowledged.
        """
        if total_bytes != self.total_bytes:
            self.total_bytes = total_bytes
            self.last_progress_ns = now_ns
        silent_ns = now_ns - last_received_ns
        still_ns = now_ns - max(self.last_progress_ns, last_received_ns)
        return silent_ns if still_ns > self.timeout_ns or silent_ns > MAX_SILENCE_NS else None

    def find_problem(self, now_ns: int, last_received_ns: int) -> LivenessProblem | None:
        """Return what is wrong with an end that `lost_for_ns` has just not called lost."""
        if now_ns - last_received_ns > SILENCE_TIMEOUT_NS:
            return LivenessProblem.SILENT
        return LivenessProblem.STALLED if now_ns - self.last_progress_ns > SILENCE_TIMEOUT_NS else None


@dataclass(slots=True)
class DeadPeerDetector:
    """What holds a far end that ssh started to its near end while there is load: gone within two seconds.

    Anything that comes is a sign of life, on the control connection or on any data connection, acknowledgements
    among it: where a link is full, a word may be seconds behind, and they are not. A while in which this process
    did not get to look is not counted: what came meanwhile has not been read either.
    """

    last_check_ns: int
    last_received_ns: int = 0
    total_bytes: int = 0
    _excused_ns: int = 0

    def measure_silence_ns(self, now_ns: int, last_received_ns: int, total_bytes: int) -> int:
        """Take in what is known now, every TETHER_LOOK_S; return how long there has been no sign of life."""
        since_ns = now_ns - self.last_check_ns
        self.last_check_ns = now_ns
        if since_ns > _LATE_NS:
            self._excused_ns += since_ns
        if total_bytes != self.total_bytes:
            self.total_bytes = total_bytes
            last_received_ns = now_ns
        if last_received_ns > self.last_received_ns + _NEWS_NS:
            self.last_received_ns = last_received_ns
            self._excused_ns = 0
        return max(0, now_ns - self.last_received_ns - self._excused_ns)
