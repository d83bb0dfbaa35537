"""The closed loop of a sender without a rate: it sends as fast as the receiver, and the link, take the datagrams.

Pure. It is fed with the receiver's feedback, and answers with two limits:

- The window: the most datagrams that were sent and have not been seen by the receiver. It is what the receiver's
  buffer holds, so that a receiver that is slower than the sender loses nothing, as TCP's window has it. On one host
  that alone is the loop, and the sender is not paced.
- The rate, once a link shows that it is slower than the sender: by a queue that grows, or by losses in the network.

It begins at 10 Mb/s and doubles with each trial, until the link fills, or the sender or the receiver is the limit.
Later the rate follows what arrives: a little below it for a second, so that the queue drains and stays empty, then
up in small steps until the link is full again. That costs few losses even behind a queue of a few packets.
"""

from collections import deque
from math import sqrt
from typing import Final

from ...model.plan import MAX_RATE_BIT_S, SECOND_NS
from ...protocol.payload_datagrams import Feedback
from .capacity_search import MIN_BIT_S

START_BIT_S: Final = 10_000_000
_TRIAL_NS: Final = 10_000_000
_STEADY_TRIAL_NS: Final = 50_000_000
_TRIAL_DATAGRAMS: Final = 10
_MAX_TRIAL_NS: Final = 200_000_000
_ESTIMATE_NS: Final = 50_000_000
_ESTIMATE_DATAGRAMS: Final = 40
_MAX_SPAN_NS: Final = 10 * SECOND_NS
_QUEUE_NS: Final = 5_000_000  # a longer wait than usual is a queue of this sender
_USUAL_NS: Final = 5 * SECOND_NS  # the usual wait is the shortest in one or two of these spans
_MAX_DRAIN_NS: Final = SECOND_NS // 2  # a wait that lasts longer at a lower rate is not this sender's
_LOSS: Final = 0.004  # above what the link loses at any rate
_CLEAR_LOSSES: Final = 4
_HALVED: Final = 0.5
_VAIN_FALLS: Final = 2  # in a row that do not halve the losses show that these are usual
_DRAIN: Final = 0.93
_BELOW: Final = 0.98
_HOLD_NS: Final = SECOND_NS
_CLIMB: Final = 0.01
_MAX_CLIMB: Final = 0.1
_CLIMB_LEAD: Final = 2  # a busy host sends less than its rate
_RAMP_LEAD: Final = 8  # a sender that sends less than an eighth of its rate is not held by it, even on a busy host
_MIN_WINDOW: Final = 16
_MAX_PARTS: Final = 64
_STUCK_NS: Final = 100_000_000
_PACKET_OVERHEAD_BYTES: Final = 1_024  # of a datagram in the kernel's memory (SKB_TRUESIZE, linux/skbuff.h)


class ClosedLoop:
    """The window and the rate of one session's sender.

    Attributes:
        rate_bit_s: The rate of payload; None is no pacing.
        window: The most datagrams in flight.
        acknowledged: The datagrams that are no longer in flight: a sender may have sent `window` more.

    Args:
        datagram_bytes: The payload of each datagram.
        group: The number of datagrams that are sent at once.
        most_bit_s: The highest rate; None is no limit.
        now_ns: The time.
    """

    def __init__(self, datagram_bytes: int, group: int, most_bit_s: int | None, now_ns: int) -> None:
        self._datagram_bytes, self._group = datagram_bytes, group
        self._most_bit_s = most_bit_s
        self._since_ns = now_ns  # datagrams sent from then on have the rate
        self.rate_bit_s: int | None = self._bounded(START_BIT_S)
        self.acknowledged = 0
        self._window_part = 1
        self._narrowed_at = 0  # the drops of what was sent before belong to one window
        self._buffer_bytes = 0
        self._last: Feedback | None = None
        self._moved_ns = now_ns
        self._sent = 0
        self._begin_trial(now_ns)
        self._newest: deque[_Trial] = deque(maxlen=_TRIAL_DATAGRAMS)
        self._is_ramp = True
        self._good = 0
        self._hold_ns = 0
        self._excess = 0.0
        self._usual_loss = 1.0
        self._loss_at_fall: float | None = None
        self._vain_falls = 0
        self._drain_ns: int | None = None  # since the fall for a queue
        self._usual = _UsualWait()

    @property
    def window(self) -> int:
        """The most datagrams in flight: half of the receiver's buffer, or fewer once it had no room for some."""
        if not self._buffer_bytes:  # the receiver does not tell, and reports too seldom for a window
            return 1 << 62
        each = self._datagram_bytes + (_PACKET_OVERHEAD_BYTES if self._group == 1 else 0)
        return max(_MIN_WINDOW, 2 * self._group, self._buffer_bytes // each // self._window_part)

    def change(self, datagram_bytes: int, group: int, most_bit_s: int | None, now_ns: int) -> None:
        """Go on with datagrams of another size."""
        self._datagram_bytes, self._group, self._most_bit_s = datagram_bytes, group, most_bit_s
        self._set_rate(self.rate_bit_s, now_ns)

    def take(self, feedback: Feedback, rtt_ns: int, sent: int, now_ns: int) -> None:
        """Take in a feedback. `sent` is the number of datagrams that were sent, `now_ns` the time."""
        last, self._last, self._sent = self._last, feedback, sent
        self._buffer_bytes = feedback.buffer_bytes
        self._acknowledge(feedback, rtt_ns, sent, now_ns)
        if last is None:
            return
        dropped = max(0, feedback.socket_dropped - last.socket_dropped)
        if dropped and self._buffer_bytes and self.acknowledged >= self._narrowed_at:
            self._window_part, self._narrowed_at = min(_MAX_PARTS, self._window_part * 2), sent
        if feedback.echo_ns < self._since_ns:  # of datagrams at another rate
            self._begin_trial(now_ns)
            return
        # From newest arrival to newest arrival, by the kernel's stamps: a receiver that was held up counts no more.
        span_ns = (feedback.sent_ns - feedback.hold_ns) - (last.sent_ns - last.hold_ns)
        received = feedback.received - last.received
        lost = feedback.advanced - last.advanced - received
        if not 0 < span_ns <= _MAX_SPAN_NS or received < 0 or received + lost < 0:
            return
        # A receiver's drops are the window's matter, if there is one.
        self._trial.add(received, lost - (dropped if self._buffer_bytes else 0), feedback.delay_ns, span_ns)
        least_ns = _TRIAL_NS if self._is_ramp or self.rate_bit_s is None else _STEADY_TRIAL_NS
        is_long = self._trial.span_ns >= least_ns and self._trial.received >= _TRIAL_DATAGRAMS
        if is_long or self._trial.span_ns > max(_MAX_TRIAL_NS, 2 * rtt_ns):
            trial = self._trial
            sent_bit_s = (
                (sent - self._sent_before) * self._datagram_bytes * 8 * SECOND_NS / max(1, now_ns - self._began_ns)
            )
            self._begin_trial(now_ns)
            self._step(trial, sent_bit_s, rtt_ns, now_ns)

    def _begin_trial(self, now_ns: int) -> None:
        self._trial, self._began_ns, self._sent_before = _Trial(), now_ns, self._sent

    def _acknowledge(self, feedback: Feedback, rtt_ns: int, sent: int, now_ns: int) -> None:
        """Note what has arrived; what is missing for long is no longer in flight."""
        advanced = min(sent, feedback.advanced)
        if advanced > self.acknowledged:
            self.acknowledged, self._moved_ns = advanced, now_ns
        elif sent == self.acknowledged or feedback.has_unread:
            self._moved_ns = now_ns
        elif now_ns - self._moved_ns > _STUCK_NS + 2 * rtt_ns:
            self.acknowledged, self._moved_ns = sent, now_ns

    def _step(self, trial: "_Trial", sent_bit_s: float, rtt_ns: int, now_ns: int) -> None:
        """Choose the rate after a trial."""
        self._newest.append(trial)
        usual_ns = self._usual.add(trial.delay_ns, now_ns)
        self._note_losses(trial)
        has_losses = self._excess > _CLEAR_LOSSES
        has_queue = trial.delay_ns > usual_ns + _QUEUE_NS + rtt_ns // 8
        if self._drain_ns is not None and not self._is_draining(has_queue, trial, now_ns):
            has_queue = False
        if has_losses or (has_queue and self._drain_ns is None):
            self._fall(trial, now_ns, has_queue=has_queue)
        elif not has_queue and self.rate_bit_s is not None:
            self._rise(trial.span_ns, sent_bit_s, self.rate_bit_s, now_ns)

    def _note_losses(self, trial: "_Trial") -> None:
        """Count the losses above the usual ones, which a fall of the rate does not change."""
        newest = self._estimate()
        if self._loss_at_fall is not None:
            self._vain_falls = self._vain_falls + 1 if trial.loss > _HALVED * self._loss_at_fall else 0
            if self._vain_falls >= _VAIN_FALLS:
                self._usual_loss = max(self._usual_loss, trial.highest_loss)
            self._loss_at_fall = None
        if newest.received + newest.lost >= _ESTIMATE_DATAGRAMS:
            self._usual_loss = min(self._usual_loss, newest.highest_loss)
        most = (min(self._usual_loss, 1 - _LOSS) + _LOSS) * (trial.received + trial.lost)
        self._excess = max(0.0, self._excess + trial.lost - most)

    def _is_draining(self, has_queue: bool, trial: "_Trial", now_ns: int) -> bool:
        """Return whether the queue of the last fall is still draining."""
        if has_queue and self._drain_ns is not None and now_ns - self._drain_ns < _MAX_DRAIN_NS:
            return True
        if has_queue:
            self._usual.reset(trial.delay_ns, now_ns)
        elif self.rate_bit_s is not None:
            self._set_rate(self.rate_bit_s * _BELOW / _DRAIN, now_ns)
        self._drain_ns = None
        return False

    def _fall(self, trial: "_Trial", now_ns: int, *, has_queue: bool) -> None:
        newest = trial if trial.received >= _ESTIMATE_DATAGRAMS else self._estimate()
        if not newest.received:
            return
        part = _DRAIN if has_queue else _BELOW
        arrived = newest.bit_s(self._datagram_bytes)
        self._drain_ns = now_ns if has_queue else None
        self._loss_at_fall = trial.loss if self._excess > _CLEAR_LOSSES else None
        self._is_ramp, self._good, self._hold_ns, self._excess = False, 0, 0, 0.0
        self._set_rate(arrived * part if self.rate_bit_s is None else min(self.rate_bit_s, arrived) * part, now_ns)

    def _rise(self, span_ns: int, sent_bit_s: float, rate_bit_s: int, now_ns: int) -> None:
        if self._is_ramp:
            self._is_ramp = sent_bit_s * _RAMP_LEAD > rate_bit_s
            # Without a window the rate alone keeps a receiver from losses.
            free_bit_s = self._most_bit_s if self._buffer_bytes else sent_bit_s
            self._set_rate(2 * rate_bit_s if self._is_ramp else free_bit_s, now_ns)
        else:
            self._hold_ns += span_ns
            if self._hold_ns >= _HOLD_NS:
                self._good += 1
                climb = min(_MAX_CLIMB, _CLIMB * self._good)
                self._set_rate(max(rate_bit_s, min(rate_bit_s * (1 + climb), sent_bit_s * _CLIMB_LEAD)), now_ns)

    def _set_rate(self, bit_s: float | None, now_ns: int) -> None:
        """Set the rate. The datagrams that were sent before say nothing about it."""
        rate = None if bit_s is None else self._bounded(bit_s)
        if rate != self.rate_bit_s:
            self.rate_bit_s, self._since_ns = rate, now_ns
            self._begin_trial(now_ns)

    def _bounded(self, bit_s: float) -> int:
        return round(max(MIN_BIT_S, min(self._most_bit_s or MAX_RATE_BIT_S, bit_s)))

    def _estimate(self) -> "_Trial":
        """Return the newest trials together, as many as a rate can be computed from."""
        whole = _Trial()
        for one in reversed(self._newest):
            whole.add(one.received, one.lost, one.delay_ns, one.span_ns)
            if whole.span_ns >= _ESTIMATE_NS and whole.received >= _ESTIMATE_DATAGRAMS:
                break
        return whole


class _Trial:
    """The receiver's reports of a short time together."""

    __slots__ = ("_delays_ns", "lost", "received", "span_ns")

    def __init__(self) -> None:
        self.received = self.lost = self.span_ns = self._delays_ns = 0

    def add(self, received: int, lost: int, delay_ns: int, span_ns: int) -> None:
        self.received += received
        self.lost += lost
        self.span_ns += span_ns
        self._delays_ns += delay_ns * received

    @property
    def delay_ns(self) -> int:
        """The mean delay above the shortest one."""
        return self._delays_ns // self.received if self.received else 0

    @property
    def loss(self) -> float:
        sent = self.received + self.lost
        return max(0.0, self.lost / sent) if sent > 0 else 0.0

    @property
    def highest_loss(self) -> float:
        """The ratio that could still be by chance the one that was seen: two standard deviations above it."""
        sent = self.received + self.lost
        return min(1.0, self.loss + 2 * sqrt(max(0, self.lost) + 1) / sent) if sent > 0 else 1.0

    def bit_s(self, datagram_bytes: int) -> float:
        """Return the rate of the payload that arrived."""
        return self.received * datagram_bytes * 8 * SECOND_NS / max(1, self.span_ns)


class _UsualWait:
    """The shortest mean delay of a trial in the last seconds: what a link has at any rate."""

    __slots__ = ("_least_ns", "_previous_ns", "_since_ns")

    def __init__(self) -> None:
        self._least_ns: int | None = None
        self._previous_ns: int | None = None
        self._since_ns = 0

    def add(self, delay_ns: int, now_ns: int) -> int:
        """Take in a delay, and return the usual one."""
        if self._least_ns is None or now_ns - self._since_ns > _USUAL_NS:
            self._previous_ns, self._least_ns, self._since_ns = self._least_ns, delay_ns, now_ns
        self._least_ns = min(self._least_ns, delay_ns)
        return self._least_ns if self._previous_ns is None else min(self._least_ns, self._previous_ns)

    def reset(self, delay_ns: int, now_ns: int) -> None:
        """Make a delay the usual one: a lower rate did not shorten it."""
        self._previous_ns, self._least_ns, self._since_ns = None, delay_ns, now_ns
