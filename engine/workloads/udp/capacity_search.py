"""The search for a link's capacity by one session: ten seconds of RFC 9097, then the highest rate without loss.

Pure. It is fed with the receiver's feedback every 50 ms, and answers with the rate to send next. The capacity is
the second in which most arrived (RFC 9097, section 5.3), even if datagrams were lost in it. A service that must not
lose datagrams can use the second result: the highest rate whose loss stays within the goal for five seconds.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from math import sqrt
from typing import Final

from ...model.counters.session_counters import SEARCH_DONE
from ...model.plan import MAX_RATE_BIT_S, SECOND_NS, Settings
from ...protocol.payload_datagrams import Feedback

SEARCH_NS: Final = 10 * SECOND_NS
MIN_BIT_S: Final = 100_000
_MAX_SPAN_NS: Final = 10 * SECOND_NS
_GOOD_DELAY_NS: Final = 30_000_000  # RFC 9097, section 8.1: below it the rate may rise
_BAD_DELAY_NS: Final = 90_000_000  # above it the rate falls
_CONGESTION_LOSS: Final = 0.03  # above the usual loss of the link
_MAX_USUAL_LOSS: Final = 0.1
_CLEAR_LOSSES: Final = 4
_DOUBLING_TRIALS: Final = 2
_RAMP_LEAD: Final = 8  # the rate to the sent rate: reports of a doubled rate are late by a round trip
_CLIMB_LEAD: Final = 1.25
_PLATEAU_NS: Final = 500_000_000
_GROWTH: Final = 1.05
_CLIMB: Final = 0.01
_MAX_CLIMB: Final = 0.1
_ACCELERATION_TRIALS: Final = 5
_DRAIN: Final = 0.97
_ESTIMATE_NS: Final = 100_000_000
_ESTIMATE_DATAGRAMS: Final = 40
_MAX_TRIALS: Final = 200  # however short they are
_STEP_NS: Final = 5_000_000_000
_STEP_PERCENT: Final = 5
_SETTLE_NS: Final = 100_000_000
_MAX_SETTLE_NS: Final = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Trial:
    """The receiver's report of a short time.

    Args:
        received: The datagrams that arrived.
        lost: The datagrams that are missing since the last trial; below 0 if late ones came. The caller checks that
            no more were lost and received than sent.
        delay_variation_ns: How much longer they took than the fastest ever: their mean, or the newest one's.
        rtt_ns: The round trip time.
        span_ns: How long the trial lasted.
    """

    received: int
    lost: int
    delay_variation_ns: int
    rtt_ns: int
    span_ns: int = 50_000_000

    def __post_init__(self) -> None:
        """Raise ValueError for a trial that cannot be: rates are computed from it."""
        if self.received < 0 or self.span_ns < 1 or self.received + self.lost < 0:
            raise ValueError(f"impossible trial: {self}")


@dataclass(frozen=True, slots=True)
class BestSecond:
    """The second in which most arrived: its rate of payload, loss, delay variation and round trip."""

    bit_s: int
    lost_percent: float
    delay_variation_ns: int
    rtt_ns: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """A trial, and the bits of payload of a datagram in it."""

    trial: Trial
    datagram_bits: int


@dataclass(frozen=True, slots=True)
class _Sum:
    """Several trials together."""

    received: int
    lost: int
    received_bit_s: float

    @property
    def sent(self) -> int:
        return self.received + self.lost

    @property
    def sent_bit_s(self) -> float:
        """The rate at which the datagrams were sent, as far as the receiver can tell."""
        return self.received_bit_s * self.sent / self.received if self.received else 0.0

    @property
    def loss(self) -> float:
        return max(0.0, self.lost / self.sent) if self.sent > 0 else 0.0

    @property
    def highest_loss(self) -> float:
        """The ratio that could still be by chance the one that was seen: two standard deviations above it."""
        return self.loss + 2 * sqrt(max(0, self.lost) + 1) / self.sent if self.sent > 0 else 1.0


def _sum(seen: Iterable[_Seen]) -> _Sum:
    received = lost = bits = span_ns = 0
    for one in seen:
        received += one.trial.received
        lost += one.trial.lost
        bits += one.trial.received * one.datagram_bits
        span_ns += one.trial.span_ns
    return _Sum(received, lost, bits * SECOND_NS / span_ns)


class RateSearch:
    """The search of RFC 9097, type B: the rate rises on good trials, falls on bad ones, and stays in between.

    A trial is bad if delay variation is above 90 ms or losses are too many, good if it is below 30 ms. Four
    things differ, so that ten seconds are enough for 1 Mb/s as for 10 Gb/s:

    - Loss is a ratio: 3 % above what the link loses at any rate, over as many trials as it takes to see four
      losses more than that. Ten losses a trial, the limit of OB-UDPST, are more than 1 Mb/s sends in one; and at
      500 Mb/s a radio link that loses 1 % has twice as many at any rate.
    - Steps are proportions of the rate, not rows of 1 Mb/s: 1 %, and more after many good trials in a row.
    - Until the first bad trial the rate doubles every second trial (as type C does).
    - A bad trial leads to the rate that arrives, which is the capacity of a full link, and 3 % below it if a
      long queue must drain. The link stays full, so that some whole second shows its capacity.

    The result is the best second. The rate stays near what arrives: a dead link gets no flood, and a sender that
    is itself the limit is not asked for much more than it can send.

    Args:
        start_bit_s: The rate of payload to begin with: a fifth of what is expected is a good one.
        datagram_bytes: The payload of each datagram; may be set anew.
        max_bit_s: The highest rate.
    """

    def __init__(self, start_bit_s: int, datagram_bytes: int, max_bit_s: int = 10**12) -> None:
        self.datagram_bytes = datagram_bytes
        self._max_bit_s = max_bit_s
        self.rate_bit_s = self._bounded(start_bit_s)
        self.best: BestSecond | None = None
        self._trials: deque[_Seen] = deque(maxlen=_MAX_TRIALS)  # of the last second
        self._usual_loss = _MAX_USUAL_LOSS  # the lowest ratio so far
        self._excess = 0.0  # losses above the usual ones, and 3 %
        self._good = 0  # trials in a row
        self._is_ramp = True
        self._highest_sent_bit_s = 0.0
        self._plateau_ns = 0

    def step(self, trial: Trial) -> int:
        """Return the rate to send after a trial, in bits of payload a second."""
        self._trials.append(_Seen(trial, self.datagram_bytes * 8))
        self._note_best()
        newest = _sum(self._newest())
        if newest.sent >= _ESTIMATE_DATAGRAMS:
            self._usual_loss = min(self._usual_loss, newest.highest_loss)
        most_losses = (self._usual_loss + _CONGESTION_LOSS) * (trial.received + trial.lost)
        self._excess = max(0.0, self._excess + trial.lost - most_losses)
        if not trial.received:
            return self.rate_bit_s
        if self._excess > _CLEAR_LOSSES or trial.delay_variation_ns > _BAD_DELAY_NS:
            self._fall(trial, newest)
        elif trial.delay_variation_ns < _GOOD_DELAY_NS:
            self._rise(trial, newest)
        return self.rate_bit_s

    def _fall(self, trial: Trial, newest: _Sum) -> None:
        self._is_ramp = False
        self._good = 0
        self._excess = 0.0
        part = _DRAIN if trial.delay_variation_ns > _BAD_DELAY_NS else 1
        self.rate_bit_s = self._bounded(min(self.rate_bit_s, newest.received_bit_s * part))

    def _rise(self, trial: Trial, newest: _Sum) -> None:
        self._good += 1
        if not self._is_ramp:
            climb = min(_MAX_CLIMB, _CLIMB * (1 + self._good // _ACCELERATION_TRIALS))
            self._raise(self.rate_bit_s * (1 + climb), newest.sent_bit_s * _CLIMB_LEAD)
        elif self._has_plateau(trial, newest):
            self._is_ramp = False
            self.rate_bit_s = self._bounded(newest.sent_bit_s)
        elif self._good % _DOUBLING_TRIALS == 0:
            self._raise(self.rate_bit_s * 2, newest.sent_bit_s * _RAMP_LEAD)

    def _raise(self, bit_s: float, most_bit_s: float) -> None:
        self.rate_bit_s = self._bounded(max(self.rate_bit_s, min(bit_s, most_bit_s)))

    def _has_plateau(self, trial: Trial, newest: _Sum) -> bool:
        """Return whether more is asked of the sender than it can send, or than the highest rate allows."""
        if newest.sent_bit_s > _GROWTH * self._highest_sent_bit_s:
            self._highest_sent_bit_s = newest.sent_bit_s
            self._plateau_ns = 0
        else:
            self._plateau_ns += trial.span_ns
        return self._plateau_ns > _PLATEAU_NS + trial.rtt_ns

    def _newest(self) -> list[_Seen]:
        """Return the newest trials, as many as a rate can be computed from."""
        span_ns = received = 0
        seen: list[_Seen] = []
        for one in reversed(self._trials):
            seen.append(one)
            span_ns += one.trial.span_ns
            received += one.trial.received
            if span_ns >= _ESTIMATE_NS and received >= _ESTIMATE_DATAGRAMS:
                break
        return seen

    def _note_best(self) -> None:
        """Keep the trials of the last second, and their result if it is the best one."""
        span_ns = sum(one.trial.span_ns for one in self._trials)
        while span_ns - self._trials[0].trial.span_ns >= SECOND_NS:
            span_ns -= self._trials.popleft().trial.span_ns
        last = _sum(self._trials)
        if span_ns >= SECOND_NS and (self.best is None or last.received_bit_s > self.best.bit_s):
            count = len(self._trials)
            self.best = BestSecond(
                round(last.received_bit_s),
                100 * last.loss,
                sum(one.trial.delay_variation_ns for one in self._trials) // count,
                sum(one.trial.rtt_ns for one in self._trials) // count,
            )

    def _bounded(self, bit_s: float) -> int:
        return round(max(MIN_BIT_S, min(self._max_bit_s, bit_s)))


class LossFreeSearch:
    """The search for the highest rate whose loss stays within a goal for five seconds.

    It tries 100, 95, 90 ... 5 % of a rate. A step ends as soon as its loss is more than the goal allows for all of
    its five seconds, or its delay variation above 90 ms: a long queue that fills loses nothing until it is full.
    Before a step counts, the queue of the one before it drains.

    Attributes:
        rate_bit_s: The rate to send now.
        result_bit_s: The rate that arrived in the first such step, at most the set one; None until then, and if
            there is none.
        is_done: Whether the search has ended.

    Args:
        found_bit_s: The rate to begin with.
        datagram_bytes: The payload of each datagram.
        loss_goal: The share of the datagrams that may be lost.
    """

    def __init__(self, found_bit_s: int, datagram_bytes: int, loss_goal: float) -> None:
        self._found_bit_s = found_bit_s
        self._datagram_bits = datagram_bytes * 8
        self._loss_goal = loss_goal
        self._percent = 100
        self.result_bit_s: int | None = None
        self.is_done = False
        self._begin_step()

    def step(self, trial: Trial) -> int:
        """Return the rate to send after a trial, in bits of payload a second."""
        if self.is_done:
            return self.rate_bit_s
        if not self._has_settled(trial):
            return self.rate_bit_s
        self._span_ns += trial.span_ns
        self._received += trial.received
        self._lost += trial.lost
        expected = self.rate_bit_s * _STEP_NS / SECOND_NS / self._datagram_bits
        is_queue_full = trial.delay_variation_ns > _BAD_DELAY_NS
        if is_queue_full or self._lost > self._loss_goal * max(expected, self._received + self._lost):
            self._go_down()
        elif self._span_ns >= _STEP_NS:
            self._end_step()
        return self.rate_bit_s

    def _has_settled(self, trial: Trial) -> bool:
        """Return whether the trial shows the rate of this step, and no longer that of the one before it."""
        if self._is_settled:
            return True
        self._waited_ns += trial.span_ns
        is_empty = trial.delay_variation_ns < _GOOD_DELAY_NS or self._waited_ns >= _MAX_SETTLE_NS
        self._is_settled = is_empty and self._waited_ns >= _SETTLE_NS + trial.rtt_ns
        return False

    def _begin_step(self) -> None:
        self.rate_bit_s = max(1, self._found_bit_s * self._percent // 100)
        self._received = self._lost = self._span_ns = self._waited_ns = 0
        self._is_settled = False

    def _end_step(self) -> None:
        if self._received and self._lost <= self._loss_goal * (self._received + self._lost):
            arrived_bit_s = self._received * self._datagram_bits * SECOND_NS // self._span_ns
            self.result_bit_s = min(self.rate_bit_s, arrived_bit_s)
            self.is_done = True
        else:
            self._go_down()

    def _go_down(self) -> None:
        self._percent -= _STEP_PERCENT
        if self._percent > 0:
            self._begin_step()
        else:
            self.is_done = True


class SearchPhase(IntEnum):
    """The phase of a search; a counter of the session has its number."""

    CAPACITY = 1
    LOSS_FREE = 2
    DONE = SEARCH_DONE


class CapacitySearch:
    """Both searches, one after the other.

    Args:
        settings: The settings, whose rate is where the search starts.
        datagram_bytes: The UDP payload of each datagram.
        loss_goal: The share of the datagrams that may be lost at the second result.
    """

    def __init__(self, settings: Settings, datagram_bytes: int, loss_goal: float) -> None:
        self._datagram_bytes = datagram_bytes
        self._loss_goal = loss_goal
        self._search = RateSearch(
            settings.rate_bit_s or 1, datagram_bytes, settings.search_max_bit_s or MAX_RATE_BIT_S
        )
        self._loss_free: LossFreeSearch | None = None
        self._last: Feedback | None = None
        self._searched_ns = 0
        self.phase = SearchPhase.CAPACITY
        self.rate_bit_s = self._search.rate_bit_s

    @property
    def best(self) -> BestSecond | None:
        """The second in which most arrived so far."""
        return self._search.best

    @property
    def loss_free_bit_s(self) -> int | None:
        """The highest rate within the loss goal; None until it is found, and if there is none."""
        return None if self._loss_free is None else self._loss_free.result_bit_s

    def take(self, feedback: Feedback, rtt_ns: int) -> int:
        """Return the rate to send after a feedback, in bits of payload a second."""
        last, self._last = self._last, feedback
        if last is None:
            return self.rate_bit_s
        # From newest arrival to newest arrival, by the kernel's stamps: a receiver that was held up counts the
        # arrivals of two trials in one, and a rate beyond the link's would be the best.
        span_ns = (feedback.sent_ns - feedback.hold_ns) - (last.sent_ns - last.hold_ns)
        if feedback.received <= last.received:
            span_ns = feedback.sent_ns - last.sent_ns
        if not 0 < span_ns <= _MAX_SPAN_NS:  # the other host's clock is not believed
            return self.rate_bit_s
        received = max(0, feedback.received - last.received)
        sent = max(0, feedback.advanced - last.advanced)  # the other host's counts are not believed either
        self._step(Trial(received, sent - received, feedback.delay_ns, rtt_ns, span_ns))
        return self.rate_bit_s

    def _step(self, trial: Trial) -> None:
        if self._loss_free is not None:
            self.rate_bit_s = self._loss_free.step(trial)
            if self._loss_free.is_done:
                self.phase = SearchPhase.DONE
            return
        self.rate_bit_s = self._search.step(trial)
        self._searched_ns += trial.span_ns
        best = self._search.best
        if self._searched_ns < SEARCH_NS:
            return
        if best is None or not best.bit_s:
            self.phase = SearchPhase.DONE
            return
        self._loss_free = LossFreeSearch(best.bit_s, self._datagram_bytes, self._loss_goal)
        self.rate_bit_s = self._loss_free.rate_bit_s
        self.phase = SearchPhase.LOSS_FREE
