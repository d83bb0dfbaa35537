"""One-way delays of each direction above the shortest one, from four times of two clocks.

Pure. The clocks are of two hosts: their offset is unknown, and they drift apart by up to some hundred microseconds
a second. In the delays of one direction the drift is a slope upwards, in the other's the same slope downwards. So
the drift is the slope for which the lines below the shortest delays of both directions are, in sum, the highest:
the lower hulls of Moon, Skelly, Towsley (1999), with both directions in one. A direction without load pins it down
while the other one is loaded. If both are loaded, the earlier drift stays.

All of the run's shortest delays count, so that a queue that fills and stays full never becomes the base. If a queue
grows by less than the clocks may drift, and the other direction does not contradict it, it is taken for drift: 2 ms
in 20 s would be one of 100 ppm.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from ..udp.delay_variation import lower_hull

_BUCKET_NS: Final = 250_000_000  # the shortest delay in each counts
_MAX_POINTS: Final = 64  # then each bucket gets twice as long
_MAX_DRIFT: Final = 500e-6
_MIN_POINTS: Final = 6
_QUIET_NS: Final = 1_750_000_000  # before any load: how much the shortest delays vary then is noise
_NOISE_FACTOR: Final = 2.0
_MIN_NOISE_NS: Final = 10_000
_BISECTIONS: Final = 16
_NEVER: Final = float("inf")

_Point = tuple[int, int]  # time since the first datagram, delay


class OneWayDelays:
    """Takes the four times of each echoed datagram; returns the rise of each direction's delay."""

    def __init__(self) -> None:
        self._origin: tuple[int, int, int] | None = None
        self._out = _Shortest()
        self._in = _Shortest()
        self._drift = 0.0
        self._bucket_ns = _BUCKET_NS
        self._bucket_end_ns = _BUCKET_NS

    @property
    def drift_ppm(self) -> float:
        """How much faster the far end's clock runs than the near end's, in millionths; 0 until it is known."""
        return self._drift * 1e6

    def rises_of(self, sent_ns: int, arrived_ns: int, answered_ns: int, received_ns: int) -> tuple[int, int]:
        """Return how much longer than the fastest one a datagram took out, and its echo in: nanoseconds, from 0.

        Args:
            sent_ns: when it was sent, by the near end's clock.
            arrived_ns: when it came to the far end, by that end's clock.
            answered_ns: when its echo was sent, by the same.
            received_ns: when the echo came, by the near end's clock.
        """
        if self._origin is None:  # small numbers from here on: a float has 53 bits
            self._origin = sent_ns, arrived_ns - sent_ns, received_ns - answered_ns
        began_ns, first_out_ns, first_in_ns = self._origin
        at_ns = received_ns - began_ns
        if at_ns >= self._bucket_end_ns:
            self._close_bucket(at_ns)
        rise_out_ns = self._out.rise_of(at_ns, arrived_ns - sent_ns - first_out_ns, self._drift)
        rise_in_ns = self._in.rise_of(at_ns, received_ns - answered_ns - first_in_ns, -self._drift)
        return rise_out_ns, rise_in_ns

    def _close_bucket(self, now_ns: int) -> None:
        for direction in (self._out, self._in):
            direction.close_bucket()
        if len(self._out.points) >= _MAX_POINTS:
            self._bucket_ns *= 2
            for direction in (self._out, self._in):
                direction.halve()
        self._bucket_end_ns = now_ns + self._bucket_ns
        if len(self._out.points) >= _MIN_POINTS:
            self._drift = find_drift(self._out.points, self._in.points)
            self._out.rebase(self._drift)
            self._in.rebase(-self._drift)


class _Shortest:
    """The shortest delays of one direction. `slope` is the slope of the line below them."""

    def __init__(self) -> None:
        self.points: list[_Point] = []
        self._lowest: _Point | None = None  # of this bucket
        self._lowest_level = _NEVER
        self._base = _NEVER

    def rise_of(self, at_ns: int, delay_ns: int, slope: float) -> int:
        """Return how much longer a delay is than the line below the shortest ones."""
        level = delay_ns - at_ns * slope
        if level < self._lowest_level:
            self._lowest, self._lowest_level = (at_ns, delay_ns), level
        self._base = min(self._base, level)
        return round(level - self._base)

    def close_bucket(self) -> None:
        """Note the shortest delay of a bucket."""
        if self._lowest is not None:
            self.points.append(self._lowest)
        self._lowest, self._lowest_level = None, _NEVER

    def halve(self) -> None:
        """Keep the shorter one of each two delays: the line below all does not need the other one."""
        pairs = zip(self.points[::2], self.points[1::2], strict=False)
        rest = self.points[-1:] if len(self.points) % 2 else []
        self.points = [min(pair, key=lambda point: point[1]) for pair in pairs] + rest

    def rebase(self, slope: float) -> None:
        """Put the line below all points, with another slope."""
        self._base = _level(self.points, slope)


def find_drift(out: Sequence[_Point], in_: Sequence[_Point]) -> float:
    """Return the drift of the far clock against the near one, from the shortest delays of each direction.

    Of all drifts that explain the delays as well as the best one, within their noise, it is the one next to 0: a
    few milliseconds that vary over two seconds are not evidence of drift.
    """
    out_hull, in_hull = lower_hull(list(out)), lower_hull(list(in_))

    def height(drift: float) -> float:
        return _level(out_hull, drift) + _level(in_hull, -drift)

    edges = [*_slopes(out_hull), *(-slope for slope in _slopes(in_hull)), -_MAX_DRIFT, _MAX_DRIFT]
    best = max((drift for drift in edges if abs(drift) <= _MAX_DRIFT), key=height)
    enough = height(best) - max(_MIN_NOISE_NS, _NOISE_FACTOR * (_noise(out, best) + _noise(in_, -best)))
    if height(0.0) >= enough:
        return 0.0
    near, far = best, 0.0  # `height` is concave: it falls from the best drift towards 0
    for _ in range(_BISECTIONS):
        middle = (near + far) / 2
        near, far = (middle, far) if height(middle) >= enough else (near, middle)
    return near


def _level(points: Sequence[_Point], slope: float) -> float:
    """Return where a line of this slope, below all points, begins."""
    return min(delay_ns - at_ns * slope for at_ns, delay_ns in points)


def _slopes(hull: Sequence[_Point]) -> list[float]:
    return [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(hull) if b[0] > a[0]]


def _noise(points: Sequence[_Point], slope: float) -> float:
    """Return how much the shortest delays varied at first, before any load: their median above the line."""
    first = [point for point in points if point[0] < _QUIET_NS] or points[:1]
    above = sorted(delay_ns - at_ns * slope for at_ns, delay_ns in first)
    return above[len(above) // 2] - above[0]
