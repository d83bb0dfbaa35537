"""The due times of tests and probes. Pure.

Time is divided into periods, and each has one due time, moved by the jitter. A due time depends only on the plan,
the names of this host and the peer, and the number of its period. So a restarted watch computes the same due
times, and tests of many hosts do not coincide. Times are seconds since 1970, UTC: summer time moves nothing.

Nothing is kept between two calls, so the next call takes account of a clock that was set. While you wait for a due
time, ask again at least every LONGEST_WAIT_S.
"""

import hashlib
import math
from dataclasses import dataclass
from typing import Final

from ..engine.model.plan import SECOND_NS
from .watch_plan import WatchedPeer

LONGEST_WAIT_S: Final = 10.0
"""The clock is read again after this wait: it may have been set."""


@dataclass(frozen=True, slots=True)
class DueTimes:
    """The due times of a peer's tests, or of its probes: one a period, in ascending order.

    Args:
        name: distinguishes them from the due times of others.
        period_ns: the time from one to the next, without jitter.
        jitter: the maximum by which each is moved to either side, as a share of the period, 0 to 0.5.
    """

    name: str
    period_ns: int
    jitter: float

    def next_due_s(self, last_s: float | None, now_s: float) -> float:
        """Return when the next test is due; a time in the past is due now.

        Of several due times that have passed since the last test only the newest counts. The first test is due at
        once. If the clock was set back, a cycle less than a period ahead does not come twice. A last cycle further
        ahead is ignored, because it would mean a long silence: the newest due time of the present clock counts.

        Args:
            last_s: the due time of the last cycle that was decided or skipped; None before the first.
            now_s: the present time.
        """
        newest_s = self.newest_s(now_s)
        if last_s is None or newest_s > last_s or last_s > now_s + self.period_ns / SECOND_NS:
            return newest_s
        return self.following_s(last_s)

    def newest_s(self, now_s: float) -> float:
        """Return the newest due time that has passed."""
        return self._at_s(self._newest(now_s))

    def between(self, first_s: float, last_s: float) -> tuple[float, float, int] | None:
        """Return the first and the last due time between two times, both exclusive, and their number."""
        since_s = self.following_s(first_s)
        if since_s >= last_s:
            return None
        after = self._newest(last_s)
        until = after - 1 if self._at_s(after) == last_s else after
        return since_s, self._at_s(until), until - self._newest(since_s) + 1

    def following_s(self, time_s: float) -> float:
        """Return the first due time after a time."""
        number = self._number(time_s) - 1
        while self._at_s(number) <= time_s:
            number += 1
        return self._at_s(number)

    def _newest(self, time_s: float) -> int:
        """Return the number of the newest due time that has passed."""
        number = self._number(time_s) + 1
        while self._at_s(number) > time_s:
            number -= 1
        return number

    def _number(self, time_s: float) -> int:
        """Return about the number of the period of a time: at most one off, and one more for the jitter."""
        return math.floor(time_s * SECOND_NS / self.period_ns - _share(self.name))

    def _at_s(self, number: int) -> float:
        moved = (2 * _share(f"{self.name} {number}") - 1) * self.jitter
        return ((number + _share(self.name) + moved) * self.period_ns) / SECOND_NS


def check_times(peer: WatchedPeer) -> DueTimes:
    """Return the due times of a peer's full tests."""
    return DueTimes(f"check {peer.origin}{peer.name}", peer.timing.check_every_ns, peer.timing.jitter)


def probe_times(peer: WatchedPeer) -> DueTimes | None:
    """Return the due times of a peer's probes; None without probes."""
    every_ns = peer.timing.probe_every_ns
    return None if every_ns is None else DueTimes(f"probe {peer.origin}{peer.name}", every_ns, peer.timing.jitter)


def wait_s(due_s: float, now_s: float) -> float:
    """Return how long to wait before the clock is read again; 0 if the time is due."""
    return min(LONGEST_WAIT_S, max(0.0, due_s - now_s))


def _share(text: str) -> float:
    """Return a number from 0 to 1, without 1, that depends only on a text, on any host and in any release."""
    digest = hashlib.blake2b(text.encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big") / 2**48
