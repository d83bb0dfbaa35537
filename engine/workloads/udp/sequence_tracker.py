"""Loss, duplicates and reordering of numbered datagrams, counted in order of arrival.

Pure. The state is a list of the ranges of numbers that are missing, each with the position in the order of arrival
of the datagram that jumped over it. Datagrams in order cost two additions for a whole group; the list is searched
for those out of order only, and it is bounded whatever arrives: three arrays have a seventh of the bytes of tuples.
"""

from array import array
from bisect import bisect_left, bisect_right
from operator import sub
from typing import Final

WINDOW: Final = 1 << 20  # numbers below the highest one in which a datagram that arrives late is still counted
MAX_RANGES: Final = 65_536  # of missing numbers; the oldest ones become final, as if they had left the window
MAX_ADVANCE: Final = 1 << 22  # above the highest number; a number beyond it is not one of this sender
_RUN: Final = 3  # TCP takes a segment for lost when three later ones have arrived
_COMPACTION: Final = 4_096  # final ranges that stay at the front of the list until one deletion removes them all
# At most: three arrays, which grow by an eighth at a time, and the copies that a reader makes of them.
TRACKER_BYTES: Final = 6 * 8 * (MAX_RANGES + _COMPACTION) * 9 // 8


# The counts that it returns, and the list of gaps: all in one object, because each datagram changes several.
class SequenceTracker:
    """Counts the fate of one sender's datagrams, whose numbers begin at 0.

    Reordering is that of RFC 4737: a datagram is reordered if its number is below one that arrived before it. Only
    the first copy of a datagram counts; a missing one is `lost`, until it arrives within the window.

    Attributes:
        advanced: The highest number and one: the datagrams that must have been sent.
        received: The datagrams of different numbers that arrived.
        duplicates: Further copies of those.
        late: Datagrams from below the window. They look like duplicates, and stay lost.
        reordered: Datagrams that arrived after one of a higher number.
        reordered_3: Those whose three predecessors all had higher numbers (n-reordering, n = 3).
        extent_max: The largest extent of reordering: positions between a datagram and the first that overtook it.
        invalid: Datagrams whose number is implausibly far ahead. They count nowhere else.
    """

    __slots__ = (
        "_final_gaps",
        "_final_longest",
        "_floor",
        "_head",
        "_jumps",
        "_last",
        "_settled",
        "_starts",
        "_stops",
        "_streak_start",
        "_version",
        "advanced",
        "duplicates",
        "extent_max",
        "invalid",
        "late",
        "received",
        "reordered",
        "reordered_3",
    )

    def __init__(self) -> None:
        self.advanced: int = 0
        self.received = self.duplicates = self.late = self.invalid = 0
        self.reordered = self.reordered_3 = self.extent_max = 0
        # Missing numbers: first, one behind the last, and the position of arrival of the datagram that jumped over
        # them.
        self._starts, self._stops, self._jumps = array("Q"), array("Q"), array("Q")
        self._head = 0  # the ranges before it are final
        self._floor = 0  # numbers below it are final
        self._final_gaps = self._final_longest = 0
        self._version = 0  # odd while the arrays change
        self._settled = 0, 0, 0  # positions of arrival at the last two calls of `take_bursts`, and its count
        # The last three arrivals before the datagrams in order that came since position `_streak_start`.
        self._last = (-1,) * _RUN
        self._streak_start = 0

    @property
    def lost(self) -> int:
        """The datagrams that are missing so far."""
        return self.advanced - self.received

    @property
    def gaps(self) -> int:
        """The number of bursts of loss as they stand: a datagram that arrives late can close or split one."""
        return self._final_gaps + len(self._starts) - self._head

    @property
    def gap_longest(self) -> int:
        """The longest burst of loss as it stands, in datagrams."""
        return self._longest_between(self._head, len(self._starts))

    def add(self, number: int) -> int:
        """Count one datagram; return 1 if it is a new one, else 0."""
        return self.add_run(number, 1)

    def add_run(self, first: int, count: int) -> int:
        """Count datagrams of consecutive numbers that arrived in this order; return how many are new."""
        if first == self.advanced:
            self.advanced = first + count
            self.received += count
            return count
        self._version += 1
        new = self._add_out_of_order(first, count)
        self._version += 1
        return new

    def _add_out_of_order(self, first: int, count: int) -> int:
        self._remember(self.received - self._streak_start, self.advanced)
        if first > self.advanced:
            return self._jump(first, count)
        old = min(count, self.advanced - first)
        recovered = self._recover(first, first + old)
        self._streak_start = self.received
        self.advanced += count - old
        self.received += count - old
        return recovered + count - old

    def take_bursts(self) -> tuple[int, int]:
        """Return how many bursts of loss were there at the last call already, and the longest of the new ones.

        Younger ones may yet be closed by datagrams that come out of order. Another thread may call it: if the
        ranges change meanwhile, it returns the count of the last call.
        """
        before, since, count = self._settled
        version, received, head = self._version, self.received, self._head
        jumps = self._jumps[head:]
        first, behind = bisect_left(jumps, before), bisect_left(jumps, since)
        settled = self._final_gaps + behind
        longest = self._longest_between(head + first, head + behind)
        if version % 2 or version != self._version:
            return count, 0
        self._settled = since, received, settled
        return settled, longest

    def _longest_between(self, first: int, behind: int) -> int:
        lengths = map(sub, self._stops[first:behind], self._starts[first:behind])
        return max(self._final_longest, max(lengths, default=0))

    def _jump(self, first: int, count: int) -> int:
        """Count datagrams that leave a gap behind those that arrived before."""
        self._streak_start = self.received
        if first - self.advanced >= MAX_ADVANCE:
            self.invalid += count
            return 0
        self._starts.append(self.advanced)
        self._stops.append(first)
        self._jumps.append(self.received)
        self.advanced = first + count
        self.received += count
        self._finalize()
        return count

    def _recover(self, first: int, end: int) -> int:
        """Count datagrams below the highest number; return how many were missing."""
        floor = self._floor = max(self._floor, self.advanced - WINDOW)
        if first < floor:
            self.late += min(end, floor) - first
            first = floor
            if first >= end:
                return 0
        index = bisect_right(self._stops, first, self._head)
        recovered = 0
        while index < len(self._starts) and self._starts[index] < end:
            start, stop = self._starts[index], self._stops[index]
            low, high = max(start, first), min(stop, end)
            if not recovered and min(self._last) > low:  # the others follow one of a lower number
                self.reordered_3 += 1
            recovered += high - low
            self._count_reordered(high - low, self._jumps[index])
            self._remember(high - low, high)
            index = self._fill(index, low, high)
        self.duplicates += end - first - recovered
        self._finalize()
        return recovered

    def _fill(self, index: int, low: int, high: int) -> int:
        """Take the numbers from `low` to before `high` out of a range; return the index of the one behind them."""
        if self._starts[index] < low and high < self._stops[index]:
            self._starts.insert(index + 1, high)
            self._stops.insert(index, low)
            self._jumps.insert(index, self._jumps[index])
            return index + 2
        if self._starts[index] < low:
            self._stops[index] = low
        elif high < self._stops[index]:
            self._starts[index] = high
        else:
            del self._starts[index], self._stops[index], self._jumps[index]
            return index
        return index + 1

    def _count_reordered(self, count: int, jump: int) -> None:
        self.received += count
        self.reordered += count
        extent = self.received - 1 - jump  # of the last one, which has the largest
        self.extent_max = max(self.extent_max, extent)

    def _remember(self, count: int, end: int) -> None:
        """Keep the last three arrivals, after `count` in order that end before the number `end`."""
        kept = min(_RUN, count)
        if kept:
            self._last = self._last[kept:] + tuple(range(end - kept, end))

    def _finalize(self) -> None:
        """Make the ranges final that have left the window, or are too many."""
        floor, head = max(self._floor, self.advanced - WINDOW), self._head
        starts, stops = self._starts, self._stops
        while head < len(stops) and (stops[head] <= floor or len(stops) - head > MAX_RANGES):
            floor = max(floor, stops[head])
            self._final_gaps += 1
            self._final_longest = max(self._final_longest, stops[head] - starts[head])
            head += 1
        if head >= _COMPACTION:
            del starts[:head], stops[:head], self._jumps[:head]
            head = 0
        self._floor, self._head = floor, head
