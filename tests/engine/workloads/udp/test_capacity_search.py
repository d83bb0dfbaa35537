"""The search for a capacity: its phases, fed with the feedback of a receiver behind a link that is simulated."""

import pytest
from linkgauge.engine.model.plan import MAX_RATE_BIT_S, Settings
from linkgauge.engine.protocol.payload_datagrams import Feedback
from linkgauge.engine.workloads.udp.capacity_search import CapacitySearch, SearchPhase

SIZE = 1_000
SPAN_NS = 50_000_000
SETTINGS = Settings(rate_bit_s=1_000_000, datagram_bytes=SIZE, searches_rate=True)


class Link:
    """A link without a queue: what exceeds its rate is lost, and a share of the rest."""

    def __init__(self, bit_s: int, loss: float = 0.0) -> None:
        self._bit_s = bit_s
        self._loss = loss
        self._serial = 0
        self._sent = self._received = 0.0

    def feedback(self, rate_bit_s: int) -> Feedback:
        """Return the feedback after 50 ms at a rate."""
        self._serial += 1
        self._sent += rate_bit_s / 8 / SIZE / 20
        self._received += min(rate_bit_s, self._bit_s) * (1 - self._loss) / 8 / SIZE / 20
        received = int(self._received)
        return Feedback(
            self._serial, 1, 0, self._serial * SPAN_NS, int(self._sent), received, received * SIZE, 0, 0
        )


def run_search(search: CapacitySearch, link: Link, seconds: float) -> int:
    """Search for so long at most; return the feedbacks that it took."""
    for count in range(int(seconds * 20)):
        if search.phase is SearchPhase.DONE:
            return count
        search.take(link.feedback(search.rate_bit_s), 1_000_000)
    return int(seconds * 20)


@pytest.mark.parametrize("bit_s", [2_000_000, 50_000_000, 3_000_000_000])
def test_both_searches_find_a_link_without_loss(bit_s: int) -> None:
    """The capacity after ten seconds, and a rate without loss after five more for each step."""
    search = CapacitySearch(SETTINGS, SIZE, 0.001)
    count = run_search(search, Link(bit_s), 70)
    assert search.phase is SearchPhase.DONE
    assert search.best is not None
    assert abs(search.best.bit_s / bit_s - 1) < 0.02
    assert search.loss_free_bit_s is not None
    assert 0.88 * bit_s <= search.loss_free_bit_s <= 1.001 * bit_s
    assert count >= 15 * 20


def test_a_link_that_loses_at_every_rate_has_a_capacity_and_no_rate_without_loss() -> None:
    """Two percent of all datagrams are lost, and the goal is 0.1 %."""
    search = CapacitySearch(SETTINGS, SIZE, 0.001)
    run_search(search, Link(20_000_000, loss=0.02), 120)
    assert search.phase is SearchPhase.DONE
    assert search.best is not None
    assert search.best.bit_s == pytest.approx(19_600_000, rel=0.02)
    assert search.loss_free_bit_s is None


def test_the_rate_stays_below_the_limit_of_an_endpoint() -> None:
    """Both searches, whatever the link carries."""
    settings = Settings(rate_bit_s=1_000_000, searches_rate=True, search_max_bit_s=5_000_000)
    search, link = CapacitySearch(settings, SIZE, 0.001), Link(10**9)
    rates = set[int]()
    for _ in range(600):
        rates.add(search.take(link.feedback(search.rate_bit_s), 1_000_000))
    assert max(rates) <= 5_000_000


def test_impossible_times_of_the_other_host_change_nothing() -> None:
    """A clock that stands still, goes back or leaps makes no trial."""
    search = CapacitySearch(SETTINGS, SIZE, 0.001)
    for serial, sent_ns in enumerate((5, 5, 4, 2**61, 1), 1):
        assert search.take(Feedback(serial, 1, 0, sent_ns, 10**9, 10**9, 0, 0, 0), 0) == 1_000_000
    assert search.best is None


def test_a_link_that_brings_nothing_ends_without_a_result() -> None:
    """After the ten seconds of the first search."""
    search = CapacitySearch(SETTINGS, SIZE, 0.001)
    run_search(search, Link(0), 20)
    assert search.phase is SearchPhase.DONE
    assert search.loss_free_bit_s is None


def test_counts_of_the_other_host_that_fall_end_no_session() -> None:
    """Whatever it reports, the search goes on within its bounds."""
    search = CapacitySearch(SETTINGS, SIZE, 0.001)
    for serial, (advanced, received) in enumerate([(50, 50), (10, 60), (0, 0), (9, 2**61), (2**61, 5)] * 10, 1):
        search.take(Feedback(serial, 1, 0, serial * SPAN_NS, advanced, received, 0, 0, 0), 0)
    assert 100_000 <= search.rate_bit_s <= MAX_RATE_BIT_S
