"""The order of the bursts of one direction: until a limit shows, until its bucket is full, and then ten more. Pure.

1. Longer and longer bursts at the line's rate, until some of it is lost or delayed. Without that there is no limit.
2. An overload after the burst, at higher and higher rates, until less arrives than is sent: the rate of the limit.
3. Longer and longer pauses before the burst, until its bucket does not grow any more.
4. The same burst again and again.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from ...protocol.burst_datagrams import MAX_BURST_BYTES, MAX_BURST_DATAGRAMS
from ...results.shape.burst_reading import SECOND_NS, Burst, BurstReading

BURSTS: Final = 10
_FIRST_HEAD_BYTES: Final = 64 << 10
_MOST_HEAD_BYTES: Final = 16 << 20
_HEAD_STEP: Final = 4
_FIRST_OVERLOAD_BIT_S: Final = 4_000_000
_OVERLOAD_STEP: Final = 4
_MOST_OVERLOAD_BIT_S: Final = 4_000_000_000
_LADDER_S: Final = 0.15
_OVERLOAD_S: Final = 0.4
_MOST_OVERLOAD_S: Final = 3.0
_LINE_FRAMES: Final = 120  # that should arrive in overload, for a slope within a percent
_OVERLOAD: Final = 2.0  # times CIR
_IS_OVERLOAD: Final = 0.9
_MOST_TAIL_BYTES: Final = 12 << 20
_PAUSE_S: Final = 0.3
_MOST_PAUSE_S: Final = 12.0
_REFILLED: Final = 1.25  # times the time that CIR takes to fill the bucket
_PAUSE_STEP: Final = 2.0
_GROWS: Final = 1.05
_GROWS_FRAMES: Final = 1.5
_HEAD_OVER: Final = 1.3
_SPARE_DATAGRAMS: Final = 32
_TIGHTER: Final = 0.9  # times the rate that is known: another limit, which the first bursts did not reach
_FASTER: Final = 1.1
# A bucket that is so short must not fill while the sender sleeps between two datagrams.
_SHORT_BUCKET_S: Final = 0.0015
_LOST: Final = 0.02
_MOST_ATTEMPTS: Final = 40
_MOST_SLOWER: Final = 5


class _Phase(Enum):
    HEAD = auto()
    OVERLOAD = auto()
    PAUSE = auto()
    REPEAT = auto()


@dataclass(frozen=True, slots=True)
class Step:
    """The next burst: the idle pause before it, its datagrams at the line's rate, and those of the overload.

    `tail_bit_s` is the overload's rate of payload; 0 is the line's.
    """

    pause_s: float
    head: int
    tail: int
    tail_bit_s: int


class BurstSearch:
    """The bursts of one direction. Send the burst of `next_step` and note it, until there is none.

    Args:
        datagram_bytes: The UDP payload of each datagram.
        frame_bytes: Its Ethernet frame.
        bursts: How many bursts the result has.
    """

    def __init__(self, datagram_bytes: int, frame_bytes: int, bursts: int = BURSTS) -> None:
        self._datagram_bytes, self._frame_bytes, self._bursts = datagram_bytes, frame_bytes, bursts
        self._phase = _Phase.HEAD
        self._head_bytes = _FIRST_HEAD_BYTES
        self._line_bit_s = 0  # as fast as possible
        self._slower = self._attempts = 0
        self._overload_bit_s, self._overload_s = _FIRST_OVERLOAD_BIT_S, _OVERLOAD_S
        self._cir_bit_s = 0.0
        self._cbs_bytes = 0.0
        self._tried_s = self.pause_s = _PAUSE_S
        self._is_behind_line = self.is_settled = False
        self.readings: list[BurstReading] = []

    def next_step(self) -> Step | None:
        """Return the next burst; None once there are enough."""
        if self._attempts >= _MOST_ATTEMPTS or len(self.readings) >= self._bursts:
            return None
        head = -(-self._head_bytes // self._frame_bytes)
        if self._phase is _Phase.HEAD:
            return self._step(_PAUSE_S, head, 0, 0)
        if self._phase is _Phase.OVERLOAD:
            tail = round(self._overload_bit_s * _LADDER_S / 8 / self._datagram_bytes)
            return self._step(self._tried_s, head, tail, self._overload_bit_s)
        return self._step(self._tried_s, head, *self._main_tail())

    def _main_tail(self) -> tuple[int, int]:
        """Return the datagrams of the overload and their rate, for a limit that is known."""
        share = self._datagram_bytes / self._frame_bytes
        most = _MOST_TAIL_BYTES // self._datagram_bytes
        if self._cbs_bytes * 8 < _SHORT_BUCKET_S * self._cir_bit_s:
            return most, 0
        bit_s = max(1_000, round(_OVERLOAD * self._cir_bit_s * share))
        line_s = _LINE_FRAMES * 8 * self._frame_bytes / self._cir_bit_s
        seconds = min(_MOST_OVERLOAD_S, max(self._overload_s, line_s))
        return min(most, round(seconds * bit_s / 8 / self._datagram_bytes)), bit_s

    def _step(self, pause_s: float, head: int, tail: int, tail_bit_s: int) -> Step:
        """Return a burst within the limits of one, at a lower rate if the receiver takes no more."""
        most = min(MAX_BURST_DATAGRAMS, MAX_BURST_BYTES // self._datagram_bytes)
        head = min(head, most)
        tail = min(tail, most - head)
        if self._line_bit_s:
            return Step(pause_s, 0, head + tail, self._line_bit_s)
        return Step(pause_s, head, tail, tail_bit_s)

    def note(self, burst: Burst, reading: BurstReading | None) -> None:
        """Note a burst and its reading; None if it has none."""
        self._attempts += 1
        if burst.unread and self._slower < _MOST_SLOWER:
            self._slow_down(burst)
            return
        lost = 1 - len(burst.places) / burst.count if burst.count else 0.0
        is_whole = lost <= _LOST and reading is not None and reading.cir_bit_s is None
        if reading is not None and is_whole and self._is_longest:
            self._note_unlimited(reading)
        elif self._phase is _Phase.HEAD:
            self._note_head(reading, is_limited=lost > _LOST or (reading is not None and not is_whole))
        elif self._phase is _Phase.OVERLOAD:
            self._note_overload(reading)
        elif reading is not None:
            self._note_main(reading)

    def _slow_down(self, burst: Burst) -> None:
        """Send less than the receiver could not take."""
        self._slower += 1
        span_ns = max(burst.sent_ns, default=0) - min(burst.sent_ns, default=0)
        sent_bit_s = burst.count * self._datagram_bytes * 8 * SECOND_NS / span_ns if span_ns > 0 else 0.0
        least_bit_s = max(1_000_000, round(_OVERLOAD * self._cir_bit_s))
        if sent_bit_s:
            self._line_bit_s = max(least_bit_s, round(sent_bit_s / 2))

    def _note_head(self, reading: BurstReading | None, *, is_limited: bool) -> None:
        if not is_limited:
            self._head_bytes = min(_MOST_HEAD_BYTES, _HEAD_STEP * self._head_bytes)
            return
        self._phase = _Phase.OVERLOAD
        if reading is not None and reading.waits and reading.cir_bit_s is not None:
            self._begin_pauses(reading)  # what waits comes at the limit's rate

    @property
    def _is_longest(self) -> bool:
        """Whether no burst may be longer than the last one."""
        return self._head_bytes >= min(_MOST_HEAD_BYTES, MAX_BURST_DATAGRAMS * self._frame_bytes)

    def _note_unlimited(self, reading: BurstReading) -> None:
        """Count a burst that nothing limited, though none may be longer, and begin again.

        After a limited one, a busy host had held that one up, rather than a limit. What most of ten show is true.
        """
        self.readings.append(reading)
        self.is_settled = True
        self._phase = _Phase.HEAD
        self._overload_bit_s = _FIRST_OVERLOAD_BIT_S

    def _note_overload(self, reading: BurstReading | None) -> None:
        """Take the rate of the limit if less arrived than was sent."""
        sent_bit_s = self._overload_bit_s * self._frame_bytes / self._datagram_bytes
        is_most = self._overload_bit_s >= _MOST_OVERLOAD_BIT_S
        cir_bit_s = None if reading is None else reading.cir_bit_s
        if reading is not None and cir_bit_s is not None and (is_most or cir_bit_s <= _IS_OVERLOAD * sent_bit_s):
            self._begin_pauses(reading)
        else:
            self._overload_bit_s = min(_MOST_OVERLOAD_BIT_S, _OVERLOAD_STEP * self._overload_bit_s)

    def _begin_pauses(self, reading: BurstReading) -> None:
        self._adopt(reading)
        self._tried_s = self.pause_s = max(_PAUSE_S, self._refill_s)
        self._phase = _Phase.PAUSE

    def _adopt(self, reading: BurstReading, growth: float = 1.0) -> None:
        """Take over the numbers of a bucket, and send more than it holds, also if it grows by a factor."""
        self._cir_bit_s, self._cbs_bytes = reading.cir_bit_s or self._cir_bit_s, reading.cbs_bytes
        passed = max(reading.passed_bytes, self._cbs_bytes)
        spare = _SPARE_DATAGRAMS * self._frame_bytes
        self._head_bytes = min(_MOST_HEAD_BYTES, round(_HEAD_OVER * growth * passed) + spare)

    @property
    def _refill_s(self) -> float:
        """The pause in which the bucket fills, with a margin."""
        return min(_MOST_PAUSE_S, _REFILLED * 8 * self._cbs_bytes / self._cir_bit_s) if self._cir_bit_s else 0.0

    def _is_line(self, reading: BurstReading) -> bool:
        """Whether a burst shows the line alone, behind which a bucket is known: it did not become empty."""
        return self._is_behind_line and (reading.cir_bit_s or 0.0) > _FASTER * self._cir_bit_s

    def _note_main(self, reading: BurstReading) -> None:
        unlimited = [each for each in self.readings if each.cir_bit_s is None]
        if reading.cir_bit_s is None:
            self._head_bytes = min(_MOST_HEAD_BYTES, 2 * self._head_bytes)  # the bucket holds more than was sent
            return
        if self._is_line(reading) and self._overload_s < _MOST_OVERLOAD_S:
            self._overload_s *= 2
            return
        if reading.cir_bit_s < _TIGHTER * self._cir_bit_s and reading.has_loss:
            self._is_behind_line = True  # burst by burst, the bucket behind it has become empty
            self.is_settled, self.readings = False, unlimited
            self._begin_pauses(reading)
            return
        grown = reading.cbs_bytes > _GROWS * self._cbs_bytes + _GROWS_FRAMES * self._frame_bytes
        if self._phase is _Phase.REPEAT:
            self.readings.append(reading)
            return
        if grown or len(unlimited) == len(self.readings):  # a longer pause may show more
            self.readings = [*unlimited, reading]
            self._adopt(reading, _PAUSE_STEP)
            self.pause_s = max(self._tried_s, self._refill_s)
            self._tried_s = min(_MOST_PAUSE_S, _PAUSE_STEP * self.pause_s)
            if self.pause_s >= _MOST_PAUSE_S:
                self._phase = _Phase.REPEAT
            return
        self.readings.append(reading)
        self._adopt(reading)
        self.is_settled = True
        self._tried_s = self.pause_s = min(self.pause_s, max(_PAUSE_S, self._refill_s))
        self._phase = _Phase.REPEAT
