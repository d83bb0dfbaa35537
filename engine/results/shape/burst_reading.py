"""What one burst shows of a policer or shaper: its rate, its bucket, its queue. Pure.

Both are token buckets (RFC 2697): a bucket of CBS bytes (committed burst size) passes at once, and fills again at
CIR (committed information rate). A policer drops what finds no tokens, a shaper lets it wait. Either way, what has
arrived since the first datagram of a burst that found a full bucket is at most

    A(t) = CBS + CIR * t,

and exactly that, up to a frame, while more is sent. So CIR is the slope of the arrivals in overload, and CBS is
what is left of them at t = 0. The knee is the arrival that first reaches this line.

A policer loses datagrams as soon as the bucket is empty: those before the first lost one came at the line's rate.
In front of a shaper they wait, so that many datagrams from the knee on arrive, at CIR and later and later, before
the first one is lost. A line behind a long queue does so as well, and has no bucket to speak of: its arrivals are on
the line from the first one on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

SECOND_NS: Final = 1_000_000_000
_MIN_ARRIVALS: Final = 12  # on the line: fewer give no slope
_LATER: Final = 0.4  # of the arrivals' time, in which the line is looked for first
_FITS: Final = 3  # each finds the knee of the last line
_KNEE_FRAMES: Final = 1.0  # below the line
_ONSET: Final = 16  # datagrams in which losses are counted
_HALF: Final = 0.5
_LEAST_LOSS: Final = 0.02  # of what was sent from the knee on: less is not an overload
_WAITED_FRAMES: Final = 2.0  # at CIR: so long has a datagram waited in a shaper before the first loss
_RISE_FRAMES: Final = 4.0
_SPARE_FRAMES: Final = 2  # from the knee to the first loss, at a policer
_LAST_ARRIVALS: Final = 8  # before the first loss, or at the end
_LATE_NS: Final = 100_000  # of an arrival, or of a sender that was held up: no wait in a queue


@dataclass(frozen=True, slots=True)
class Burst:
    """One burst as it was sent and as it arrived; the times of each end are of its own clock.

    `places` are the numbers of the datagrams in the order of their arrival, `arrived_ns` and `sent_ns` their times.
    `count` is the number of sent datagrams, and `unread` of these found no room in the receiver's socket.
    `frame_bytes` is each one's Ethernet frame, without preamble and checksum, as Linux counts it.
    """

    count: int
    places: Sequence[int]
    arrived_ns: Sequence[int]
    sent_ns: Sequence[int]
    frame_bytes: int
    unread: int = 0


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
    order = sorted(range(len(burst.places)), key=lambda n: burst.arrived_ns[n])
    places = [burst.places[n] for n in order]
    first_ns = burst.arrived_ns[order[0]]
    arrived = [burst.arrived_ns[n] - first_ns for n in order]
    sent = [burst.sent_ns[n] - burst.sent_ns[order[0]] for n in order]
    line = _fit_line(arrived, burst.frame_bytes)
    delays = [came - left for came, left in zip(arrived, sent, strict=True)]
    base_ns = min(delays)
    if line is None:
        return _unlimited(burst, arrived, sent)
    knee, slope, intercept = line
    cir_bit_s = slope * 8 * SECOND_NS
    frame_ns = burst.frame_bytes / slope
    lost_from = _onset_of_loss(places, burst.count, knee)
    after = burst.count - places[knee]
    lost = after - (len(places) - knee)
    has_loss = lost > max(_SPARE_FRAMES, _LEAST_LOSS * after)
    before_loss = len(places)
    if has_loss and lost_from is not None:
        before_loss = next((n for n, place in enumerate(places) if place > lost_from), len(places))
    rise_ns = _late(delays, knee, before_loss) - base_ns
    peak_ns = max(rise_ns, _late(delays, knee, len(delays)) - base_ns) if has_loss else max(delays) - base_ns
    offered = max(_rate(sent, knee, burst.frame_bytes), _rate(sent, len(sent) - 1, burst.frame_bytes))
    wait = _Wait(knee_place=places[knee], frame_bytes=burst.frame_bytes, cir_bit_s=cir_bit_s, offered_bit_s=offered)
    waits = wait.is_in_queue(rise_ns, lost_from if has_loss else None)
    if not has_loss and rise_ns < max(_RISE_FRAMES * frame_ns, 3 * _LATE_NS):
        return _unlimited(burst, arrived, sent)
    queue_ns = float(peak_ns) if waits else 0.0
    return BurstReading(
        cir_bit_s=cir_bit_s,
        cbs_bytes=max(0.0, intercept),
        passed_bytes=(places[knee] + 1) * burst.frame_bytes,
        has_loss=has_loss,
        waits=waits,
        queue_bytes=queue_ns * slope,
        queue_ns=queue_ns,
        offered_bit_s=offered,
    )


def _unlimited(burst: Burst, arrived: Sequence[int], sent: Sequence[int]) -> BurstReading:
    """Return the reading of a burst that nothing limited: it came as it was sent."""
    bit_s = max(_rate(arrived, len(arrived) - 1, burst.frame_bytes), 0.0)
    passed = burst.count * burst.frame_bytes
    offered = _rate(sent, len(sent) - 1, burst.frame_bytes)
    return BurstReading(None, 0.0, passed, has_loss=False, waits=False, queue_bytes=0.0, queue_ns=0.0,
                        offered_bit_s=min(offered, bit_s) if bit_s else offered)  # fmt: skip


def _late(delays: Sequence[int], knee: int, end: int) -> float:
    """Return the usual delay of the last arrivals before `end`, those from the knee on at most."""
    start = max(min(knee, end - 1), end - _LAST_ARRIVALS, 0)
    return float(median(delays[start:end])) if end > start else float(delays[0])


def _rate(times: Sequence[int], last: int, frame_bytes: int) -> float:
    """Return the rate from the first time to another, in bit/s; 0 if both are the same."""
    span_ns = times[last] - times[0]
    return last * frame_bytes * 8 * SECOND_NS / span_ns if span_ns > 0 else 0.0


def _fit_line(arrived: Sequence[int], frame_bytes: int) -> tuple[int, float, float] | None:
    """Return the knee, the slope in bytes a nanosecond and the bytes at 0 of the line that arrivals reach.

    None if too few arrivals are on it.
    """
    start = next((n for n, at in enumerate(arrived) if at >= _LATER * arrived[-1]), len(arrived))
    for _ in range(_FITS):
        fitted = _least_squares(arrived, start, frame_bytes)
        if fitted is None:
            return None
        slope, intercept = fitted
        knee = next(
            n
            for n, at in enumerate(arrived)
            if (n + 1) * frame_bytes >= intercept + slope * at - _KNEE_FRAMES * frame_bytes or n >= start
        )
        start = knee
    fitted = _least_squares(arrived, start, frame_bytes)
    return None if fitted is None else (start, *fitted)


def _least_squares(arrived: Sequence[int], start: int, frame_bytes: int) -> tuple[float, float] | None:
    """Return the slope and the bytes at 0 of the line through the arrivals from `start` on."""
    count = len(arrived) - start
    if count < _MIN_ARRIVALS or arrived[-1] <= arrived[start]:
        return None
    times = arrived[start:]
    mean_ns = sum(times) / count
    mean_bytes = (start + (count + 1) / 2) * frame_bytes
    spread = sum((at - mean_ns) ** 2 for at in times)
    common = sum((at - mean_ns) * ((start + n + 1) * frame_bytes - mean_bytes) for n, at in enumerate(times))
    if spread <= 0 or common <= 0:
        return None
    slope = common / spread
    return slope, mean_bytes - slope * mean_ns


def _onset_of_loss(places: Sequence[int], count: int, knee: int) -> int | None:
    """Return the first lost datagram from which on at least half as many are lost as in all of the overload.

    One that a line loses by chance is none of these. None without such losses.
    """
    came = bytearray(count)
    for place in places:
        if place < count:
            came[place] = 1
    after = count - places[knee]
    usual = (after - sum(came[places[knee] :])) / after if after else 0.0
    enough = max(_SPARE_FRAMES, _HALF * usual * _ONSET)
    place = came.find(0)
    while place >= 0:
        window = came[place : place + _ONSET]
        if len(window) - sum(window) >= min(enough, len(window)):
            return place
        place = came.find(0, place + 1)
    return None


@dataclass(frozen=True, slots=True)
class _Wait:
    """The place in the burst where the bucket is empty, and the rates around it."""

    knee_place: int
    frame_bytes: int
    cir_bit_s: float
    offered_bit_s: float

    def is_in_queue(self, waited_ns: float, lost_from: int | None) -> bool:
        """Return whether datagrams waited for tokens before the first one was lost for want of room."""
        frame_ns = self.frame_bytes * 8 * SECOND_NS / self.cir_bit_s
        if waited_ns < max(_WAITED_FRAMES * frame_ns, _LATE_NS):
            return False
        if lost_from is None:
            return True
        # The line is reached a frame early, and an arrival that is late makes it seem so, too.
        over = max(0.05, 1 - self.cir_bit_s / self.offered_bit_s) if self.offered_bit_s > self.cir_bit_s else 1.0
        early = _KNEE_FRAMES / over + _LATE_NS * self.cir_bit_s / (8 * SECOND_NS * self.frame_bytes)
        return lost_from - self.knee_place > _SPARE_FRAMES + early


def middle(values: Sequence[float]) -> float:
    """Return the median."""
    return float(median(values))
