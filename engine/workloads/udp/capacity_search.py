"""The search for a link's capacity by one session: ten seconds of RFC 9097, then the highest rate without loss.

Pure. It is fed with the receiver's feedback and answers with the rate to send. The capacity is the second in which
most arrived (RFC 9097, section 5.3); a rate with losses can be that. What a service that must not lose datagrams
can use is the second result: the highest rate whose loss stays within the goal for five seconds.
"""

from enum import IntEnum
from typing import Final

from ...model.datagram_counters import SEARCH_DONE
from ...model.plan import MAX_RATE_BIT_S, SECOND_NS, Settings
from ...protocol.payload_datagrams import Feedback
from .rate_search import BestSecond, LossFreeSearch, RateSearch, Trial

SEARCH_NS: Final = 10 * SECOND_NS
_MAX_SPAN_NS: Final = 10 * SECOND_NS


class SearchPhase(IntEnum):
    """What a search is doing; a counter of the session has its number."""

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
        """The highest rate within the loss goal; None until it is found, and where there is none."""
        return None if self._loss_free is None else self._loss_free.result_bit_s

    def take(self, feedback: Feedback, rtt_ns: int) -> int:
        """Return the rate to send after a feedback, in bits of payload a second."""
        last, self._last = self._last, feedback
        if last is None:
            return self.rate_bit_s
        # From newest arrival to newest arrival, by the kernel's stamps: a receiver that was held up counts in one
        # trial what arrived in two, and a rate beyond the link's would be the best.
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
