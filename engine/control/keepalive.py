"""Dead peer detection, by control messages and by payload.

Pure: time is an argument. Between two ends with a key, only messages that provably come from the other end are
signs of life (connection.py). The control connection of a run may be silent because its packets wait in a queue
that the run's own payload fills. So moving payload counts as a sign of life as well, for some time.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ..model.plan import SECOND_NS

PING_INTERVAL_S: Final = 1.0
SILENCE_TIMEOUT_NS: Final = 4 * SECOND_NS  # a sample is due every interval and a pong every second
MAX_SILENCE_NS: Final = 30 * SECOND_NS  # payload may leave buffers for a while, not longer
KEEPALIVE_INTERVAL_S: Final = 0.4
DEAD_PEER_CHECK_S: Final = 0.2
DEAD_PEER_TIMEOUT_NS: Final = 1_250_000_000
SSH_SILENCE_TIMEOUT_NS: Final = 3 * SECOND_NS  # only for a far end that ends by itself
_LATE_NS: Final = 500_000_000
_NEWS_NS: Final = 50_000_000  # the kernel gives the time of the last packet in ticks


class LivenessProblem(StrEnum):
    """A problem of a peer that is still alive."""

    SILENT = "silent"  # no control messages, and payload moves
    STALLED = "still"  # control messages, and no payload moves


@dataclass(slots=True)
class Liveness:
    """The last signs of life of the other end, monotonic nanoseconds."""

    last_progress_ns: int
    total_bytes: int = 0
    timeout_ns: int = SILENCE_TIMEOUT_NS

    def check_timeout(self, now_ns: int, last_received_ns: int, total_bytes: int) -> int | None:
        """Return how long the other end has been silent if it is lost, else None.

        `last_received_ns` is the time of the last control message, `total_bytes` all payload that was ever received
        or acknowledged.
        """
        if total_bytes != self.total_bytes:
            self.total_bytes = total_bytes
            self.last_progress_ns = now_ns
        silent_ns = now_ns - last_received_ns
        still_ns = now_ns - max(self.last_progress_ns, last_received_ns)
        return silent_ns if still_ns > self.timeout_ns or silent_ns > MAX_SILENCE_NS else None

    def find_problem(self, now_ns: int, last_received_ns: int) -> LivenessProblem | None:
        """Return the problem of an end, if any; call it after `check_timeout` returned None.

        Payload moves if some moved after the silence had become long: a dead link's last payload is as old as its
        silence.
        """
        if now_ns - last_received_ns > SILENCE_TIMEOUT_NS:
            is_moving = self.last_progress_ns - last_received_ns > SILENCE_TIMEOUT_NS
            return LivenessProblem.SILENT if is_moving else None
        return LivenessProblem.STALLED if now_ns - self.last_progress_ns > SILENCE_TIMEOUT_NS else None


@dataclass(slots=True)
class DeadPeerDetector:
    """Detects, within two seconds of load, that the near end has gone which started this far end by ssh.

    Anything that arrives is a sign of life, on the control connection or on any data connection. Acknowledgements
    count: on a full link a message may be seconds late, and they are not. Time in which this process did not run
    does not count: bytes that arrived meanwhile are still unread.
    """

    last_check_ns: int
    last_received_ns: int = 0
    total_bytes: int = 0
    _excused_ns: int = 0

    def measure_silence_ns(self, now_ns: int, last_received_ns: int, total_bytes: int) -> int:
        """Return how long there has been no sign of life; call it every `DEAD_PEER_CHECK_S`."""
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
