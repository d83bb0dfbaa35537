"""The bytes that a direction may still start to carry, in a run that ends after a number of bytes.

All sessions of a direction share one amount, in several processes: each writes its own word of the shared counters,
and reads those of the others. A word is raised before the bytes are sent and lowered again if all words together
are too much, so that the sessions never send more than the amount.
"""

from typing import Final

# A claim is a part of the rest: large at first, so that its cost does not count, and small towards the end, so
# that no slow session has much left to send when the others have finished.
_CLAIM_DIVISOR: Final = 64
_LARGEST_CLAIM_BYTES: Final = 16 << 20


def extend_amount(claims: memoryview, count: int) -> None:
    """Let the sessions of a direction carry up to `count` bytes more than its amount, or all of it again.

    Call it once they have started all. A claim at the same moment may undo it.
    """
    for index, claimed in enumerate(claims.tolist()):
        taken_back = min(claimed, count)
        claims[index] -= taken_back
        count -= taken_back


class ByteBudget:
    """One session's part of a direction's amount.

    Args:
        claims: The words of all sessions of the direction (`SharedCounters.claims`).
        index: The position of the session's own word.
        limit_bytes: The total of all sessions.
    """

    def __init__(self, claims: memoryview, index: int, limit_bytes: int) -> None:
        self._claims = claims
        self._index = index
        self._limit_bytes = limit_bytes
        self._left = 0

    def take(self, count: int) -> int:
        """Return how many of `count` bytes the session may send now; 0 if none are left."""
        if self._left < count:
            self._claim(count)
        taken = min(count, self._left)
        self._left -= taken
        return taken

    def take_whole(self, count: int) -> bool:
        """Return whether the session may start a response of `count` bytes: it may while a single byte is left."""
        return self.take(count) > 0

    def settle(self, carried: int) -> None:
        """Return the unused part of a connection that has ended; it `carried` the rest."""
        self._left = 0
        self._claims[self._index] = carried

    def _claim(self, least: int) -> None:
        claims, index = self._claims, self._index
        free = self._limit_bytes - sum(claims.tolist())
        part = min(free // _CLAIM_DIVISOR, _LARGEST_CLAIM_BYTES)
        wanted = min(
            free, max(least, part - part % least) - self._left
        )  # whole blocks or responses, but for the last
        if wanted <= 0:
            return
        claims[index] += wanted
        excess = sum(claims.tolist()) - self._limit_bytes  # another session has claimed at the same moment
        if excess > 0:
            given_back = min(excess, wanted)
            claims[index] -= given_back
            wanted -= given_back
        self._left += wanted
