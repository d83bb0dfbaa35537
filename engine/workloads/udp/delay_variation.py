"""Jitter and delay variation of datagrams, from the sender's stamps and the receiver's.

Pure. The two clocks are of two hosts: their offset is unknown, and they drift apart by up to some hundred
microseconds a second. Jitter compares datagrams that follow each other, so that neither counts. Delay variation
compares each with the shortest delay, so the drift must be taken out.
"""

from itertools import pairwise
from typing import Final

_MAX_DIFFERENCE_NS: Final = 1 << 32  # of one datagram: sums of a day at 50,000 a second stay below 64 bits
_STEP_NS: Final = 100_000_000  # between two datagrams: more can be a clock that was set
_STEP_SPAN_NS: Final = 1_000_000_000  # that a new level of delay lasts before it is a new base
_STEADY_NS: Final = 5_000_000  # between the shortest delays in that time
_BUCKET_NS: Final = 62_500_000  # the shortest delay in each shows the drift
_MIN_POINTS: Final = 8
_MAX_POINTS: Final = 64  # then each bucket gets twice as long
_MAX_DRIFT: Final = 500e-6
_MIN_MOVEMENT_NS: Final = 20_000
_CLEAR_RATIO: Final = 4
_SHIFT: Final = 32  # the drift is an integer in units of 2**-32
_NEVER: Final = 1 << 80


class Jitter:
    """The interarrival jitter of RFC 3550, appendix A.8, of datagrams in order of arrival.

    Attributes:
        sum_ns: The sum of the jitter at each datagram but the first; with `count` its mean.
        count: The number of values in the sum.
        max_ns: The largest value.
    """

    __slots__ = ("_delay_ns", "_sixteenths", "count", "max_ns", "sum_ns")

    def __init__(self) -> None:
        self.sum_ns = self.count = self.max_ns = 0
        self._delay_ns: int | None = None
        self._sixteenths = 0  # of a nanosecond

    def count_datagram(self, sent_ns: int, received_ns: int) -> None:
        """Count a datagram by its two stamps, each from its own clock."""
        delay_ns = received_ns - sent_ns
        if self._delay_ns is None:
            self._delay_ns = delay_ns
            return
        difference_ns = delay_ns - self._delay_ns
        if difference_ns < 0:
            difference_ns = -difference_ns
        if difference_ns > _MAX_DIFFERENCE_NS:  # noqa: PLR1730 - min() costs 0.1 µs
            difference_ns = _MAX_DIFFERENCE_NS
        self._delay_ns = delay_ns
        sixteenths = self._sixteenths
        self._sixteenths = sixteenths = sixteenths + difference_ns - ((sixteenths + 8) >> 4)
        jitter_ns = sixteenths >> 4
        self.sum_ns += jitter_ns
        self.count += 1
        if jitter_ns > self.max_ns:  # noqa: PLR1730 - max() costs 0.1 µs
            self.max_ns = jitter_ns


class DelayVariation:
    """How much longer each datagram took than the fastest one (RFC 5481, packet delay variation).

    The fastest one is that so far. Drift is the slope of the line below the shortest delays of short times, an edge
    of their lower hull (Moon, Skelly, Towsley 1999). It counts from half a second on, and only if it explains
    these delays: a queue that fills, and stays full, is not drift.

    A delay that falls by more than 100 ms below the shortest one is a new base at once, as is one that rises as
    much from one datagram to the next and then stays for a second: a clock was set, or the route is another one.
    """

    __slots__ = (
        "_base_ns",
        "_bucket_end_ns",
        "_bucket_ns",
        "_delay_ns",
        "_drift",
        "_low_at_ns",
        "_low_ns",
        "_origin_ns",
        "_points",
        "_sent_ns",
        "_step_points",
    )

    def __init__(self) -> None:
        self._origin_ns = self._sent_ns = self._drift = 0
        self._restart(0)
        self._delay_ns = self._base_ns = self._bucket_end_ns = _NEVER

    @property
    def drift_ppm(self) -> float:
        """How much faster the receiver's clock runs than the sender's, in millionths; 0 until it is known."""
        return self._drift * 1e6 / (1 << _SHIFT)

    def variation_of(self, sent_ns: int, received_ns: int) -> int:
        """Return how much longer than the fastest datagram this one took, in nanoseconds, from 0.

        The receiver calls it for each of up to 50,000 datagrams a second.
        """
        delay_ns = received_ns - sent_ns
        rise_ns = delay_ns - self._delay_ns
        if rise_ns > _STEP_NS and 0 <= (sent_ns - self._sent_ns) * _CLEAR_RATIO < rise_ns:
            self._close_bucket(received_ns)
            self._step_points = []
        elif received_ns >= self._bucket_end_ns:
            self._close_bucket(received_ns)
        self._delay_ns = delay_ns
        self._sent_ns = sent_ns
        level_ns = delay_ns - ((received_ns - self._origin_ns) * self._drift >> _SHIFT)
        if level_ns < self._low_ns:
            self._low_ns = level_ns
            self._low_at_ns = received_ns
        variation_ns = level_ns - self._base_ns
        if variation_ns >= 0:
            return variation_ns
        if variation_ns < -_STEP_NS:
            self._restart(received_ns)
            self._low_ns = level_ns
        self._base_ns = level_ns
        return 0

    def _restart(self, now_ns: int) -> None:
        """Forget the delays before a clock was set; it drifts as it did."""
        self._origin_ns = self._origin_ns or now_ns
        self._points: list[tuple[int, int]] = []  # the shortest delay of each bucket: time since the origin, delay
        self._step_points: list[tuple[int, int]] | None = None  # those since a rise that may be a step
        self._bucket_ns = _BUCKET_NS
        self._begin_bucket(now_ns)

    def _begin_bucket(self, now_ns: int) -> None:
        self._bucket_end_ns = now_ns + self._bucket_ns
        self._low_ns = _NEVER
        self._low_at_ns = now_ns

    def _drift_at(self, since_origin_ns: int) -> int:
        return since_origin_ns * self._drift >> _SHIFT

    def _shortest_ns(self, points: list[tuple[int, int]]) -> int:
        return min(delay_ns - self._drift_at(at_ns) for at_ns, delay_ns in points)

    def _close_bucket(self, now_ns: int) -> None:
        """Note the shortest delay of a bucket, in which there was a datagram, and begin the next one."""
        at_ns = self._low_at_ns - self._origin_ns
        point = at_ns, self._low_ns + self._drift_at(at_ns)
        is_high = self._low_ns > self._base_ns + _STEP_NS
        self._points.append(point)
        self._begin_bucket(now_ns)
        if self._step_points is not None:
            self._step_points = [*_newest(self._step_points, at_ns), point] if is_high else None
            if self._step_points is not None and _is_steady(self._step_points):
                self._base_ns = self._shortest_ns(self._step_points)
                self._restart(now_ns)
                return
        if len(self._points) >= _MAX_POINTS:
            self._bucket_ns *= 2
            pairs = zip(self._points[::2], self._points[1::2], strict=True)
            self._points = [min(pair, key=lambda point: point[1] - self._drift_at(point[0])) for pair in pairs]
        if len(self._points) >= _MIN_POINTS:
            self._drift = round(_find_drift(self._points) * (1 << _SHIFT))
            self._base_ns = self._shortest_ns(self._points)


def _newest(points: list[tuple[int, int]], now_ns: int) -> list[tuple[int, int]]:
    """Return the points of the time in which a new level must last, and the one before it."""
    older = sum(now_ns - at_ns >= _STEP_SPAN_NS for at_ns, _ in points)
    return points[max(0, older - 1) :]


def _is_steady(points: list[tuple[int, int]]) -> bool:
    delays_ns = [delay_ns for _, delay_ns in points]
    return points[-1][0] - points[0][0] >= _STEP_SPAN_NS and max(delays_ns) - min(delays_ns) <= _STEADY_NS


def _find_drift(points: list[tuple[int, int]]) -> float:
    """Return the slope of the line below all points; 0 if it does not explain them."""
    mean_at = sum(at_ns for at_ns, _ in points) / len(points)
    before, after = next(edge for edge in pairwise(lower_hull(points)) if edge[1][0] >= mean_at)
    slope = (after[1] - before[1]) / (after[0] - before[0])
    slope = max(-_MAX_DRIFT, min(_MAX_DRIFT, slope))
    above = sorted(delay_ns - slope * at_ns for at_ns, delay_ns in points)
    scatter_ns = above[len(above) // 2] - above[0]
    movement_ns = abs(slope) * (points[-1][0] - points[0][0])
    return slope if movement_ns >= _MIN_MOVEMENT_NS + _CLEAR_RATIO * scatter_ns else 0.0


def lower_hull(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the corners of the lower convex hull of points whose times ascend (Andrew's monotone chain)."""
    hull: list[tuple[int, int]] = []
    for point in points:
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _turns_down(first: tuple[int, int], second: tuple[int, int], third: tuple[int, int]) -> bool:
    return (second[0] - first[0]) * (third[1] - first[1]) <= (second[1] - first[1]) * (third[0] - first[0])
