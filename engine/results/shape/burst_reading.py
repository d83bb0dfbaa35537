"""What one burst shows of a policer or shaper: its rate, its bucket, its queue. Pure.

Both are token buckets (RFC 2697): a bucket of CBS bytes (committed burst size) passes at once, and fills again at
CIR (committed information rate). A policer drops what finds no tokens, a shaper lets it wait. Either way, what has
arrived since the first datagram of a burst that found a full bucket is at most

    A(t) = CBS + CIR * t,

and exactly that, up to a frame, whenever the bucket is empty: for each arrival that has waited, and for each one
right behind a lost one. So CIR is the slope of the line through these, and CBS is its height at t = 0. The knee is
the arrival that first reaches the line. A sender that was held up is below it for a while, which does not matter.
If it was held up for so long that the bucket was full again, a new burst begins there.

A policer loses datagrams as soon as the bucket is empty: those before the first lost one came at the line's rate.
In front of a shaper they wait, so that many datagrams from the knee on arrive, at CIR and later and later, before
the first one is lost. A line behind a long queue does so as well, and has no bucket to speak of: its arrivals are
on the line from the first one on.

A path may have both: datagrams wait for a line, and a bucket behind it drops some. So if those right behind a lost
one come more slowly than those that waited, they alone tell the slope, and the bucket is a policer unless those
before the loss came as slowly.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import Final

SECOND_NS: Final = 1_000_000_000
_MIN_ARRIVALS: Final = 12  # on the line: fewer give no slope
_FEW_ARRIVALS: Final = 4  # of a part of a burst: they have a slope as well
_DENSE: Final = 0.25  # of the arrivals are behind a lost one if a limit drops
_TIGHTER: Final = 0.9  # times the rate of what waits: what drops is another limit then
_LATER: Final = 0.4  # of the arrivals' time, in which the line is looked for first
_FITS: Final = 3  # each with the arrivals that are on the last line
_KNEE_FRAMES: Final = 1.0  # below the line
_ONSET: Final = 16  # datagrams in which losses are counted
_HALF: Final = 0.5
_LEAST_LOSS: Final = 0.02  # of what was sent from the knee on: less is not an overload
_WAITED_FRAMES: Final = 2.0  # at CIR: so long has a datagram waited in a shaper before the first loss
_RISE_FRAMES: Final = 4.0
_SPARE_FRAMES: Final = 2  # from the knee to the first loss, at a policer
_TRIM_FRAMES: Final = 2.0  # off the line: of an arrival behind a sender that was held up
_TRIM_SPREADS: Final = 4.0
_STEADY_FRAMES: Final = 1.5  # off the line, usually: a sender by itself wanders by many frames
_STEADY_BUCKET_FRAMES: Final = 4.0
_STEADY_SHARE: Final = 0.6
_STEADY_ARRIVALS: Final = 400
_SLOWER: Final = 0.9
_FASTER: Final = 1.1  # than CIR
_LAST_ARRIVALS: Final = 8  # before the first loss, or at the end
_LATE_NS: Final = 100_000  # of an arrival, or of a sender that was held up: no wait in a queue
_DRIFT_NS: Final = 20_000  # of both ends' clocks, in a burst
_FIRST: Final = 100  # arrivals on the line that tell the bucket: later, a late timer has lost some of its tokens
_TOP: Final = 0.9  # of the arrivals on the line: a datagram may leave less than its tokens, or its timer be late
_BELOW_FRAMES: Final = 8  # of arrivals while an empty bucket fills: those behind a sender that was held up
_RETURNS: Final = 2
_ABOVE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Burst:
    """One burst as it was sent and as it arrived; the times of each end are of its own clock.

    `places` are the numbers of the datagrams in the order of their arrival, `arrived_ns` and `sent_ns` their times.
    `count` is the number of sent datagrams, and `unread` of these found no room in the receiver's socket.
    `frame_bytes` is each one's Ethernet frame, without preamble and checksum, as Linux counts it. `pace_bit_s` is
    the rate at which the last ones were to be sent; 0 is as fast as possible.
    """

    count: int
    places: Sequence[int]
    arrived_ns: Sequence[int]
    sent_ns: Sequence[int]
    frame_bytes: int
    unread: int = 0
    pace_bit_s: float = 0.0


@dataclass(frozen=True, slots=True)
class BurstReading:
    """What a burst shows; rates and sizes are of Ethernet frames, as in `Burst`.

    `cir_bit_s` is None if nothing limited the burst, `cbs_bytes` is what passed beyond it. `passed_bytes` is what
    was sent up to the knee. `has_loss` and `waits` say what the limit does with the rest: it drops, it delays, or
    first one and then the other. `queue_bytes` is the longest queue, `queue_ns` its delay, both 0 without one; if
    nothing was lost, the queue was not full. `offered_bit_s` is the rate at which the burst was sent up to there.
    """

    cir_bit_s: float | None
    cbs_bytes: float
    passed_bytes: int
    has_loss: bool
    waits: bool
    queue_bytes: float
    queue_ns: float
    offered_bit_s: float


def read_burst(burst: Burst) -> BurstReading | None:
    """Return what a burst shows; None if too little arrived, or if the receiving host lost some of it itself."""
    if burst.unread or len(burst.places) < _MIN_ARRIVALS:
        return None
    track = _Track(burst)
    if len(track.places) < _MIN_ARRIVALS:
        return None
    line = track.fit()
    reading = track.unlimited() if line is None else track.read(line)
    if reading.cir_bit_s is None:
        line = line if line is not None and track.comes_back(line) else track.fit_steady()
        reading = reading if line is None else track.read(line, is_steady=True)
    return reading


@dataclass(frozen=True, slots=True)
class _Part:
    """Arrivals that begin with a full bucket: from `start` to before `end`; `kept` of them are on the line."""

    start: int
    end: int
    kept: list[int]
    height_bytes: float


@dataclass(frozen=True, slots=True)
class _Line:
    """The line of arrivals from an empty bucket: `knee` is the first of them, `slope` in bytes a nanosecond."""

    knee: int
    slope: float
    height_bytes: float
    parts: Sequence[_Part]


def _in_order(burst: Burst) -> list[int]:
    """Return the arrivals in the order of their times, without a network's second copies."""
    seen: set[int] = set()
    return [
        n
        for n in sorted(range(len(burst.places)), key=lambda n: burst.arrived_ns[n])
        if not (burst.places[n] in seen or seen.add(burst.places[n]))
    ]


def _least_of_rest(times: Sequence[int]) -> list[int]:
    """Return for each arrival when the first of it and all later ones was sent: some overtake others."""
    return list(accumulate(reversed(times), min))[::-1]


class _Track:
    """A burst in the order of its arrivals; all times are since the first of them."""

    def __init__(self, burst: Burst) -> None:
        order = _in_order(burst)
        self._burst, self._frame = burst, burst.frame_bytes
        self.places = [burst.places[n] for n in order]
        self.arrived = [burst.arrived_ns[n] - burst.arrived_ns[order[0]] for n in order]
        self._sent = [burst.sent_ns[n] - burst.sent_ns[order[0]] for n in order]
        delays = [came - left for came, left in zip(self.arrived, self._sent, strict=True)]
        base_ns = min(delays)
        self._late_ns = [each - base_ns for each in delays]
        self._since = _least_of_rest(self._sent)
        self._came = bytearray(burst.count)
        for place in self.places:
            self._came[place] = 1

    def fit(self) -> _Line | None:
        """Return the line of the arrivals from an empty bucket; None if there are too few."""
        slope = self._first_slope(self._from_empty_bucket(0.0))
        behind = self._behind_lost()
        tighter = self._first_slope(behind)
        is_tighter = slope is not None and tighter is not None and tighter < _TIGHTER * slope
        slope = tighter if is_tighter else slope
        parts: list[_Part] = []
        for _ in range(_FITS):
            if slope is None:
                return None
            empty = self._from_empty_bucket(self._frame / slope)
            parts = self._parts(slope, empty, behind if is_tighter else empty)
            slope = self._common_slope(parts)
        return None if slope is None else self._line(slope, parts)

    def fit_steady(self) -> _Line | None:
        """Return the line of a burst without waits or losses that came too steadily to be as its sender sent it.

        A shaper in the sending host may hold up the sender itself, so that nothing waits. None if the burst came
        unsteadily, at its own pace, or at one rate throughout.
        """
        every = list(range(len(self.places)))
        slope = self._first_slope(every)
        parts: list[_Part] = []
        for _ in range(_FITS):
            if slope is None:
                return None
            parts = self._parts(slope, every, every)
            slope = self._common_slope(parts)
        pace = self._burst.pace_bit_s
        if slope is None or (pace and slope * 8 * SECOND_NS > _SLOWER * pace):
            return None
        line = self._line(slope, parts)
        off = [
            abs(each - part.height_bytes) for part in parts for each in self._offsets(slope, part.kept, part.start)
        ]
        if line.height_bytes < _STEADY_BUCKET_FRAMES * self._frame:  # it came at one rate throughout
            return None
        is_steady = median(off) <= _STEADY_FRAMES * self._frame and len(off) >= _STEADY_SHARE * len(every)
        return line if is_steady and len(off) >= _STEADY_ARRIVALS else None

    def comes_back(self, line: _Line) -> bool:
        """Return whether arrivals that were below the line of a real bucket come back to it, and none exceed it.

        A shaper in the sending host holds up the sender itself. If the host does so as well, the sender catches up.
        """
        returns = above = 0
        if line.height_bytes < _STEADY_BUCKET_FRAMES * self._frame:
            return False
        for part in line.parts:
            if not part.kept:
                continue
            is_below = False
            usual = median(self._offsets(line.slope, part.kept, part.start))
            for offset in self._offsets(line.slope, range(part.kept[0], part.end), part.start):
                frames = (offset - usual) / self._frame
                above += frames > _TRIM_FRAMES
                returns += is_below and abs(frames) <= _STEADY_FRAMES
                is_below = frames < -_BELOW_FRAMES or (is_below and frames < -_STEADY_FRAMES)
        return returns >= _RETURNS and above <= _ABOVE * len(self.places)

    def _line(self, slope: float, parts: list[_Part]) -> _Line:
        """Return the line of the first part, which the pause before the burst has filled, or of the usual one."""
        heights = {part.start: self._height(slope, part) for part in parts if len(part.kept) >= _FEW_ARRIVALS}
        part = parts[0] if len(parts[0].kept) >= _MIN_ARRIVALS else max(parts, key=lambda each: len(each.kept))
        height = heights[part.start] if part is parts[0] else float(median(heights.values()))
        offsets = self._offsets(slope, part.kept, part.start)
        lowest = median(offsets) - _KNEE_FRAMES * self._frame
        knee = next(n for n, off in zip(part.kept, offsets, strict=True) if off >= lowest)
        return _Line(knee, slope, height, parts)

    def _height(self, slope: float, part: _Part) -> float:
        """Return the bytes of a full bucket: what has arrived is never more, and now and then as much.

        It was full last at the datagram before which its sender had sent least for the tokens' time.
        """
        offsets = sorted(self._offsets(slope, part.kept[:_FIRST], part.start))
        start, before = part.start, range(part.start, part.kept[0] + 1)
        full = max(before, key=lambda n: slope * self._since[n] - n * self._frame)
        unused = slope * (self.arrived[full] - self.arrived[start]) - (full - start) * self._frame
        return offsets[int(_TOP * len(offsets))] + max(0.0, unused)

    def _from_empty_bucket(self, wait_ns: float) -> list[int]:
        """Return the arrivals that found the bucket empty: they have waited, or the one before each was lost."""
        wait_ns = max(wait_ns, _LATE_NS)
        came, late_ns = self._came, self._late_ns
        return [
            n for n, place in enumerate(self.places) if late_ns[n] > wait_ns or (place > 0 and not came[place - 1])
        ]

    def _behind_lost(self) -> list[int]:
        """Return the arrivals right behind a lost one: they tell the limit that drops, also behind a slow line.

        None if losses by chance would leave as many other arrivals between them.
        """
        behind = [n for n, place in enumerate(self.places) if place > 0 and not self._came[place - 1]]
        later = behind[len(behind) // 2 :]
        return behind if later and len(later) >= _DENSE * (len(self.places) - later[0]) else []

    def _first_slope(self, empty: list[int]) -> float | None:
        """Return the usual slope between arrivals that are some apart, each pair with the weight of its time.

        A sender that was held up between them gives a pair no more weight than others: its slope may be too low.
        """
        pairs = sorted(
            ((last - first) * self._frame / span_ns, span_ns)
            for first, last in zip(empty, empty[_MIN_ARRIVALS - 1 :], strict=False)
            if (span_ns := self.arrived[last] - self.arrived[first]) > 0
        )
        if not pairs:
            return None
        most_ns = median(span_ns for _, span_ns in pairs)
        half_ns = sum(min(span_ns, most_ns) for _, span_ns in pairs) / 2
        for slope, span_ns in pairs:
            half_ns -= min(span_ns, most_ns)
            if half_ns <= 0:
                return slope
        return None

    def _full_again(self, slope: float) -> list[int]:
        """Return the arrivals before which the bucket was full, because nothing had been sent for so long."""
        starts = [0]
        spare = self._frame + _DRIFT_NS * slope  # a line lets one frame pass
        for n in range(1, len(self._since)):
            since = starts[-1]
            if (n - since) * self._frame + spare <= slope * (self._since[n] - self._since[since]):
                starts.append(n)
        return starts

    def _parts(self, slope: float, empty: list[int], sure: list[int]) -> list[_Part]:
        """Return the parts of the burst that begin with a full bucket, with their arrivals on the line.

        `empty` may be on it; those of them that are in `sure` tell its height.
        """
        starts = self._full_again(slope)
        parts: list[_Part] = []
        for start, end in zip(starts, [*starts[1:], len(self.places)], strict=True):
            chosen, telling = (each[bisect_left(each, start) : bisect_left(each, end)] for each in (empty, sure))
            offsets = self._offsets(slope, chosen, start)
            later_ns = self.arrived[start] + _LATER * (self.arrived[end - 1] - self.arrived[start])
            later = self._offsets(slope, [n for n in telling if self.arrived[n] >= later_ns], start)
            if not later:
                parts.append(_Part(start, end, [], 0.0))
                continue
            usual = float(median(later))
            most = max(_TRIM_FRAMES * self._frame, _TRIM_SPREADS * median(abs(each - usual) for each in later))
            kept = [n for n, off in zip(chosen, offsets, strict=True) if abs(off - usual) <= most]
            parts.append(_Part(start, end, kept, usual))
        return parts

    def _offsets(self, slope: float, chosen: Sequence[int], start: int) -> list[float]:
        """Return how many bytes more than the slope's had arrived since `start`, at each arrival."""
        since_ns = self.arrived[start]
        return [(n - start + 1) * self._frame - slope * (self.arrived[n] - since_ns) for n in chosen]

    def _common_slope(self, parts: list[_Part]) -> float | None:
        """Return the slope by least squares, with a height for each part; None if there are too few arrivals."""
        spread = common = 0.0
        for part in parts:
            count = len(part.kept)
            if count < _FEW_ARRIVALS:
                continue
            times = [self.arrived[n] for n in part.kept]
            mean_ns, mean_n = sum(times) / count, sum(part.kept) / count
            spread += sum((at - mean_ns) ** 2 for at in times)
            common += sum((at - mean_ns) * (n - mean_n) for at, n in zip(times, part.kept, strict=True))
        is_enough = sum(len(part.kept) for part in parts) >= _MIN_ARRIVALS
        return common * self._frame / spread if is_enough and spread > 0 and common > 0 else None

    def read(self, line: _Line, *, is_steady: bool = False) -> BurstReading:
        """Return what the burst shows, for the line of its arrivals; they waited if they came steadily."""
        places, knee = self.places, line.knee
        lost_from = _onset_of_loss(self._came, places[knee])
        has_loss = lost_from is not None
        before_loss = len(places)
        if lost_from is not None:
            before_loss = next((n for n, place in enumerate(places) if place > lost_from), len(places))
        rise_ns = self._usual_late_ns(knee, before_loss)
        peak_ns = max(rise_ns, self._usual_late_ns(knee, len(places)))
        offered = max(_rate(self._sent, knee, self._frame), _rate(self._sent, len(places) - 1, self._frame))
        cir_bit_s = line.slope * 8 * SECOND_NS
        reached = min(offered, _rate(self.arrived, knee, self._frame) or offered)
        wait = _Wait(places[knee], self._frame, cir_bit_s, reached)
        came = self._rate_between(knee, before_loss - 1)
        waits = is_steady or (wait.is_in_queue(rise_ns, lost_from) and came <= _FASTER * cir_bit_s)
        if not is_steady and not has_loss and rise_ns < max(_RISE_FRAMES * self._frame / line.slope, 3 * _LATE_NS):
            return self.unlimited()
        queue_ns = float(peak_ns) if waits else 0.0
        return BurstReading(
            cir_bit_s=cir_bit_s,
            cbs_bytes=max(0.0, line.height_bytes),
            passed_bytes=(places[knee] - places[0] + 1) * self._frame,
            has_loss=has_loss,
            waits=waits,
            queue_bytes=queue_ns * line.slope,
            queue_ns=queue_ns,
            offered_bit_s=offered,
        )

    def _rate_between(self, first: int, last: int) -> float:
        """Return the rate from one arrival to another, but for some frames that may have come early, in bit/s.

        If datagrams that have waited came faster than CIR, a line before the bucket has delayed them.
        """
        span_ns = self.arrived[last] - self.arrived[first] if last > first else 0
        frames = last - first - _SPARE_FRAMES
        return frames * self._frame * 8 * SECOND_NS / span_ns if span_ns > 0 else 0.0

    def _usual_late_ns(self, knee: int, end: int) -> float:
        """Return the usual delay of the last arrivals before `end`, those from the knee on at most."""
        start = max(min(knee, end - 1), end - _LAST_ARRIVALS, 0)
        return float(median(self._late_ns[start:end])) if end > start else 0.0

    def unlimited(self) -> BurstReading:
        """Return the reading of a burst that nothing limited: it came as it was sent."""
        last = len(self.places) - 1
        came, offered = _rate(self.arrived, last, self._frame), _rate(self._sent, last, self._frame)
        passed = self._burst.count * self._frame
        offered = min(offered, came) if came else offered
        return BurstReading(None, 0.0, passed, False, False, 0.0, 0.0, offered)


def _rate(times: Sequence[int], last: int, frame_bytes: int) -> float:
    """Return the rate from the first time to another, in bit/s; 0 if both are the same."""
    span_ns = times[last] - times[0]
    return last * frame_bytes * 8 * SECOND_NS / span_ns if span_ns > 0 else 0.0


def _onset_of_loss(came: bytearray, knee_place: int) -> int | None:
    """Return the first lost datagram from which on at least half as many are lost as in all of the overload.

    One that a line loses by chance is none of these. None without such losses.
    """
    after = came[knee_place:]
    lost = len(after) - sum(after)
    if lost <= max(_SPARE_FRAMES, _LEAST_LOSS * len(after)):
        return None
    enough = max(_SPARE_FRAMES, _HALF * lost / len(after) * _ONSET)
    place = came.find(0)
    while place >= 0:
        window = came[place : place + _ONSET]
        if len(window) - sum(window) >= min(enough, len(window)):
            return place
        place = came.find(0, place + 1)
    return None


@dataclass(frozen=True, slots=True)
class _Wait:
    """The place in the burst where the bucket is empty, its rate, and the rate at which the burst reached it."""

    knee_place: int
    frame_bytes: int
    cir_bit_s: float
    reached_bit_s: float

    def is_in_queue(self, waited_ns: float, lost_from: int | None) -> bool:
        """Return whether datagrams waited for tokens before the first one was lost for want of room."""
        frame_ns = self.frame_bytes * 8 * SECOND_NS / self.cir_bit_s
        if waited_ns < max(_WAITED_FRAMES * frame_ns, _LATE_NS):
            return False
        if lost_from is None:
            return True
        # The line is reached a frame early, and an arrival that is late makes it seem so, too.
        over = max(0.05, 1 - self.cir_bit_s / self.reached_bit_s) if self.reached_bit_s > self.cir_bit_s else 1.0
        early = _KNEE_FRAMES / over + _LATE_NS * self.cir_bit_s / (8 * SECOND_NS * self.frame_bytes)
        return lost_from - self.knee_place > _SPARE_FRAMES + early
