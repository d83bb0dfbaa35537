"""The search for a capacity, over simulated links of many capacities, queues, delays and losses."""

import random
from collections import deque
from itertools import cycle, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.plan import MAX_RATE_BIT_S, Settings
from linkgauge.engine.protocol.payload_datagrams import Feedback
from linkgauge.engine.workloads.udp.capacity_search import (
    MIN_BIT_S,
    CapacitySearch,
    LossFreeSearch,
    RateSearch,
    SearchPhase,
    Trial,
)

MBIT = 1_000_000
GBIT = 1_000_000_000
TICKS_IN_TRIAL = 50


class Link:
    """A link in ticks of a millisecond: a sender, half the round trip, a loss by chance, a queue, a capacity.

    Args:
        bit_s: The capacity, of payload.
        queue_ms: How long the full queue takes to drain.
        rtt_ms: The round trip time of the empty link.
        loss: The share of the datagrams that is lost by chance.
        loses_behind: Whether that happens behind the queue.
        datagram_bytes: The payload of each datagram.
        sender_bit_s: The most that the sender can send.
        seed: Of the losses.
    """

    def __init__(
        self,
        bit_s: float,
        queue_ms: float = 10,
        rtt_ms: float = 1,
        loss: float = 0.0,
        *,
        loses_behind: bool = False,
        datagram_bytes: int = 1_400,
        sender_bit_s: float = 1e15,
        seed: int = 0,
    ) -> None:
        self.datagram_bytes = datagram_bytes
        self.capacity = self._in_tick(bit_s)
        self.rtt_ms = rtt_ms
        self._queue_ms, self._loss, self._loses_behind = queue_ms, loss, loses_behind
        self._sender = self._in_tick(sender_bit_s)
        self._rng = random.Random(seed)  # noqa: S311
        self._way = deque([0] * int(rtt_ms / 2))
        self._queue = self._received = self._lost = self._ticks = 0
        self._due = self._room = 0.0
        self._gaps: deque[tuple[float, int]] = deque()  # the receiver learns of a loss by the next datagram

    def _in_tick(self, bit_s: float) -> float:
        return bit_s / self.datagram_bytes / 8 / 1_000

    @property
    def delay_ms(self) -> float:
        """How long the last datagram waits in the queue."""
        return self._queue / self.capacity

    def tick(self, bit_s: float) -> None:
        """Carry a millisecond of datagrams."""
        self._due += min(self._sender, self._in_tick(bit_s))
        self._way.append(int(self._due))
        self._due -= int(self._due)
        arrived = self._way.popleft()
        if not self._loses_behind:
            arrived -= self._lose(arrived)
        limit = max(2, self.capacity * self._queue_ms)
        kept = min(arrived, max(0, int(limit + self.capacity - self._queue)))
        self._note_gap(arrived - kept)
        self._queue += kept
        self._room = min(self._room, 1.0) + self.capacity
        carried = min(self._queue, int(self._room))
        self._room -= carried
        self._queue -= carried
        if self._loses_behind:
            carried -= self._lose(carried)
        self._received += carried
        while self._gaps and self._gaps[0][0] <= self._ticks:
            self._lost += self._gaps.popleft()[1]
        self._ticks += 1

    def take_trial(self) -> Trial:
        """Return the receiver's report of the time since the last call."""
        received, lost = self._received, self._lost
        self._received = self._lost = 0
        delay_ms = self.delay_ms
        return Trial(received, lost, int(delay_ms * 1e6), int((self.rtt_ms + delay_ms) * 1e6))

    def _lose(self, count: int) -> int:
        if not self._loss or not count:
            return 0
        mean = count * self._loss
        if count < 60:
            lost = sum(self._rng.random() < self._loss for _ in range(count))
        else:
            lost = max(0, min(count, round(self._rng.gauss(mean, (mean * (1 - self._loss)) ** 0.5))))
        self._note_gap(lost)
        return lost

    def _note_gap(self, count: int) -> None:
        if count:
            self._gaps.append((self._ticks + self._queue / self.capacity, count))


def feed(link: Link, search: RateSearch | LossFreeSearch, seconds: float = 10) -> int:
    """Search on a link; return the milliseconds until the search was done, or all of them."""
    reports: deque[tuple[float, Trial]] = deque()
    for now in range(round(seconds * 1_000)):
        link.tick(search.rate_bit_s)
        if now % TICKS_IN_TRIAL == TICKS_IN_TRIAL - 1:
            reports.append((now + link.rtt_ms / 2, link.take_trial()))
        while reports and reports[0][0] <= now:
            search.step(reports.popleft()[1])
        if isinstance(search, LossFreeSearch) and search.is_done:
            return now
    return round(seconds * 1_000)


def found_on(link: Link, start_bit_s: float) -> float:
    """Return the best second of a search of ten."""
    search = RateSearch(int(start_bit_s), link.datagram_bytes)
    feed(link, search)
    assert search.best is not None
    return search.best.bit_s


CAPACITIES = [MBIT, 10 * MBIT, 100 * MBIT, 500 * MBIT, 10 * GBIT]
LOSSES = [(0.0, False), (0.01, False), (0.01, True)]


@pytest.mark.parametrize("bit_s", CAPACITIES)
@pytest.mark.parametrize(("loss", "loses_behind"), LOSSES)
def test_the_capacity_of_a_link_shows_in_ten_seconds(bit_s: int, loss: float, *, loses_behind: bool) -> None:
    """Within 2 %, on short and long queues and ways, from a fifth of it and from starts that fit none."""
    for queue_ms, rtt_ms, start in [(1, 0.1, bit_s / 5), (200, 100, MBIT), (50, 10, bit_s * 5)]:
        link = Link(bit_s, queue_ms, rtt_ms, loss, loses_behind=loses_behind)
        assert found_on(link, start) == pytest.approx(bit_s, rel=0.02), (queue_ms, rtt_ms, start)


@pytest.mark.every
@pytest.mark.parametrize("bit_s", CAPACITIES)
@pytest.mark.parametrize(("loss", "loses_behind"), LOSSES)
def test_the_capacity_shows_on_every_queue_and_way(bit_s: int, loss: float, *, loses_behind: bool) -> None:
    """The whole grid."""
    for queue_ms, rtt_ms, start in product((1, 10, 200), (0.1, 100), (bit_s / 5, MBIT, bit_s * 5)):
        link = Link(bit_s, queue_ms, rtt_ms, loss, loses_behind=loses_behind, seed=1)
        assert found_on(link, start) == pytest.approx(bit_s, rel=0.02), (queue_ms, rtt_ms, start)


@pytest.mark.every
@pytest.mark.parametrize(
    ("bit_s", "datagram_bytes"),
    [(2.3e6, 200), (2.3e6, 1_472), (5e6, 8_900), (37e6, 1_472), (250e6, 200), (940e6, 8_900), (2.5e9, 1_472)],
)
def test_the_capacity_shows_on_links_that_the_search_was_not_made_with(bit_s: float, datagram_bytes: int) -> None:
    """Other capacities, sizes, queues, ways, losses and starts than those it was made with."""
    starts = cycle((bit_s / 5, MBIT, bit_s * 0.9))
    for queue_ms, rtt_ms, loss in product((2, 100), (1, 60), (0, 0.005)):
        link = Link(bit_s, queue_ms, rtt_ms, loss, datagram_bytes=datagram_bytes, seed=7)
        assert found_on(link, next(starts)) == pytest.approx(bit_s, rel=0.02), (queue_ms, rtt_ms, loss)


@pytest.mark.parametrize(("bit_s", "queue_ms", "rtt_ms"), [(5e6, 20, 20), (100e6, 20, 20), (500e6, 5, 1)])
def test_a_link_that_always_loses_is_searched_to_its_capacity(bit_s: float, queue_ms: int, rtt_ms: int) -> None:
    """Five losses in a hundred at any rate are not congestion."""
    assert found_on(Link(bit_s, queue_ms, rtt_ms, 0.05), bit_s / 5) == pytest.approx(bit_s, rel=0.02)


@pytest.mark.parametrize("rtt_ms", [0.1, 100])
def test_a_sender_that_is_the_limit_is_not_asked_for_much_more(rtt_ms: float) -> None:
    """A rate that is not sent shows nothing."""
    search = RateSearch(MBIT, 1_400)
    feed(Link(10 * GBIT, 20, rtt_ms, sender_bit_s=3 * GBIT), search)
    assert search.best is not None
    assert search.best.bit_s == pytest.approx(3 * GBIT, rel=0.02)
    assert search.rate_bit_s <= 1.3 * 3 * GBIT


def test_the_rate_stays_between_its_bounds_and_a_dead_link_gets_no_flood() -> None:
    """Without a datagram that arrives, no rate is better than another."""
    search = RateSearch(10 * MBIT, 1_400)
    for _ in range(200):
        assert search.step(Trial(0, 0, 0, 0)) == 10 * MBIT
    assert search.step(Trial(0, 50, 0, 0)) == 10 * MBIT
    assert RateSearch(1, 1_400).rate_bit_s == MIN_BIT_S
    search = RateSearch(10 * GBIT, 1_400, max_bit_s=200 * MBIT)
    feed(Link(GBIT), search)
    assert search.best is not None
    assert search.best.bit_s == pytest.approx(200 * MBIT, rel=0.02)
    assert search.rate_bit_s <= 200 * MBIT


def test_the_best_second_has_its_loss_and_delay_beside_it() -> None:
    """A rate with loss can be the highest."""
    search = RateSearch(20 * MBIT, 1_250)
    for lost in (0, 0, 1, 0):
        for _ in range(20):
            search.step(Trial(99, lost, 2_000_000, 5_000_000))
    assert search.best is not None
    assert (search.best.bit_s, search.best.delay_variation_ns, search.best.rtt_ns) == (
        19_800_000,
        2_000_000,
        5_000_000,
    )
    assert search.best.lost_percent == 0
    for _ in range(20):
        search.step(Trial(101, 1, 0, 0))
    assert search.best.lost_percent == pytest.approx(100 / 102)


@given(
    st.lists(st.tuples(st.integers(0, 10**7), st.integers(-(10**4), 10**7), st.integers(0, 10**12)), max_size=60)
)
def test_any_reports_keep_the_rate_in_its_bounds(reports: list[tuple[int, int, int]]) -> None:
    """They come from another host."""
    search, after = RateSearch(MBIT, 1_400, max_bit_s=GBIT), LossFreeSearch(MBIT, 1_400, 0.001)
    for received, lost, time_ns in reports:
        trial = Trial(received, max(-received, lost), time_ns, time_ns, 1 + time_ns)
        assert MIN_BIT_S <= search.step(trial) <= GBIT
        assert 0 < after.step(trial) <= MBIT


@pytest.mark.parametrize("trial", [(-1, 0, 0, 0), (1, -2, 0, 0), (1, 0, 0, 0, 0)])
def test_impossible_reports_are_refused(trial: tuple[int, ...]) -> None:
    """A span of 0 would be an endless rate."""
    with pytest.raises(ValueError, match="impossible trial"):
        Trial(*trial)


@pytest.mark.parametrize("bit_s", CAPACITIES)
@pytest.mark.parametrize(("goal", "queue_ms", "rtt_ms"), [(0.0, 20, 10), (0.001, 1, 0.1), (0.001, 200, 100)])
def test_the_highest_rate_without_loss_is_next_below_the_capacity(
    bit_s: int, goal: float, queue_ms: float, rtt_ms: float
) -> None:
    """From a rate that is 3 % too high: after the first step, five seconds of 95 % of it.

    A queue of 200 ms holds the excess of more than five seconds: the link does not carry that rate.
    """
    search = LossFreeSearch(int(bit_s * 1.03), 1_400, goal)
    took_ms = feed(Link(bit_s, queue_ms, rtt_ms), search, 30)
    assert search.is_done
    assert search.rate_bit_s == int(bit_s * 1.03) * 95 // 100
    assert search.result_bit_s is not None
    assert search.rate_bit_s * 0.98 <= search.result_bit_s <= search.rate_bit_s
    assert 5_000 <= took_ms <= 15_000


def test_a_link_that_always_loses_has_no_rate_without_loss() -> None:
    """And one whose losses are within the goal has the first."""
    search = LossFreeSearch(100 * MBIT, 1_400, 0.001)
    feed(Link(100 * MBIT, loss=0.01), search, 60)
    assert (search.is_done, search.result_bit_s) == (True, None)
    search = LossFreeSearch(99 * MBIT, 1_400, 0.02)
    feed(Link(100 * MBIT, loss=0.01), search, 10)
    assert (search.is_done, search.rate_bit_s) == (True, 99 * MBIT)
    assert search.result_bit_s == pytest.approx(0.99 * 99 * MBIT, rel=0.01)


SIZE = 1_000
SPAN_NS = 50_000_000
SETTINGS = Settings(rate_bit_s=1_000_000, datagram_bytes=SIZE, searches_rate=True)


class LinkWithoutQueue:
    """A link without a queue: datagrams beyond its rate are lost, and a share of the rest."""

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


def run_search(search: CapacitySearch, link: LinkWithoutQueue, seconds: float) -> int:
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
    count = run_search(search, LinkWithoutQueue(bit_s), 70)
    assert search.phase is SearchPhase.DONE
    assert search.best is not None
    assert abs(search.best.bit_s / bit_s - 1) < 0.02
    assert search.loss_free_bit_s is not None
    assert 0.88 * bit_s <= search.loss_free_bit_s <= 1.001 * bit_s
    assert count >= 15 * 20


def test_a_link_that_loses_at_every_rate_has_a_capacity_and_no_rate_without_loss() -> None:
    """Two percent of all datagrams are lost, and the goal is 0.1 %."""
    search = CapacitySearch(SETTINGS, SIZE, 0.001)
    run_search(search, LinkWithoutQueue(20_000_000, loss=0.02), 120)
    assert search.phase is SearchPhase.DONE
    assert search.best is not None
    assert search.best.bit_s == pytest.approx(19_600_000, rel=0.02)
    assert search.loss_free_bit_s is None


def test_the_rate_stays_below_the_limit_of_an_endpoint() -> None:
    """Both searches, whatever the link carries."""
    settings = Settings(rate_bit_s=1_000_000, searches_rate=True, search_max_bit_s=5_000_000)
    search, link = CapacitySearch(settings, SIZE, 0.001), LinkWithoutQueue(10**9)
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
    run_search(search, LinkWithoutQueue(0), 20)
    assert search.phase is SearchPhase.DONE
    assert search.loss_free_bit_s is None


def test_counts_of_the_other_host_that_fall_end_no_session() -> None:
    """Whatever it reports, the search goes on within its bounds."""
    search = CapacitySearch(SETTINGS, SIZE, 0.001)
    for serial, (advanced, received) in enumerate([(50, 50), (10, 60), (0, 0), (9, 2**61), (2**61, 5)] * 10, 1):
        search.take(Feedback(serial, 1, 0, serial * SPAN_NS, advanced, received, 0, 0, 0), 0)
    assert 100_000 <= search.rate_bit_s <= MAX_RATE_BIT_S
