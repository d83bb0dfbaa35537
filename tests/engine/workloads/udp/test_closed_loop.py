"""The closed loop of a sender without a rate, over simulated links."""

from statistics import median

import pytest
from linkgauge.engine.protocol.payload_datagrams import MAX_NUMBER, Feedback
from linkgauge.engine.workloads.udp.capacity_search import MIN_BIT_S
from linkgauge.engine.workloads.udp.closed_loop import ClosedLoop

from .simulated_link import SimulatedLink

BUFFER_BYTES = 16 << 20


@pytest.mark.parametrize(
    "link",
    [
        pytest.param(SimulatedLink(100e6), id="100 Mb/s"),
        pytest.param(SimulatedLink(100e6, queue_ms=1), id="a queue of a millisecond"),
        pytest.param(SimulatedLink(1e9, queue_ms=200), id="a long queue"),
        pytest.param(SimulatedLink(200e6, rtt_ms=20), id="20 ms"),
        pytest.param(SimulatedLink(100e6, rtt_ms=40, queue_ms=10), id="40 ms and a short queue"),
        pytest.param(SimulatedLink(100e6, feedback_ms=50, buffer_bytes=0), id="an earlier version"),
        pytest.param(SimulatedLink(5e6, queue_ms=100), id="slower than its first rate"),
    ],
)
def test_a_slow_link_carries_what_it_can_without_loss_or_a_standing_queue(link: SimulatedLink) -> None:
    """After its first second: at least nine tenths of the link, and at most 1 % lost."""
    link.run(1)
    rate_bit_s, loss = link.run(6)
    assert rate_bit_s > 0.88 * link.bit_s
    assert loss <= 0.01
    assert median(link.queues_ms) < 4


@pytest.mark.parametrize(
    ("link", "least"),
    [
        (SimulatedLink(100e6, stalls=0.3), 0.7),
        (SimulatedLink(100e6, loss=0.02), 0.7),
        (SimulatedLink(100e6, loss=0.15), 0.05),
        (SimulatedLink(100e6, noise_ms=8), 0.5),
        (SimulatedLink(100e6, noise_ms=30, rtt_ms=30), 0.05),
    ],
)
def test_losses_and_delays_at_any_rate_do_not_stop_the_sender(link: SimulatedLink, least: float) -> None:
    """A radio link and a busy host have them: less would not help."""
    link.run(1)
    assert link.run(8)[0] > least * link.bit_s
    assert link.lowest_bit_s > 2 * MIN_BIT_S


def test_the_rate_follows_a_link_that_changes() -> None:
    """Down at once, and up within seconds."""
    link = SimulatedLink(100e6)
    link.run(3)
    link.bit_s = 20e6
    link.run(1)
    rate_bit_s, loss = link.run(3)
    assert rate_bit_s > 0.85 * link.bit_s
    assert loss <= 0.01
    link.bit_s = 100e6
    link.run(4)
    assert link.run(2)[0] > 0.85 * link.bit_s


def test_a_sender_that_is_the_limit_is_not_paced() -> None:
    """A link that carries all of it shows neither a queue nor losses."""
    link = SimulatedLink(100e9, buffer_bytes=256 << 20)
    link.run(0.5)
    assert link.loop.rate_bit_s is None


def test_no_more_is_in_flight_than_the_receiver_has_room_for() -> None:
    """It tells its buffer. Datagrams one by one have the kernel's overhead, and a drop halves the window."""
    for size, group, window in ((1_400, 40, BUFFER_BYTES // 1_400), (64, 1, BUFFER_BYTES // (64 + 1_024))):
        loop = ClosedLoop(size, group, None, 0)
        assert loop.window > 1 << 60
        loop.take(Feedback(1, 0, 0, 1, 0, 0, 0, 0, 0, BUFFER_BYTES), 0, 10**6, 1)
        assert loop.window == window
        loop.take(Feedback(2, 0, 0, 2, 100, 100, 0, 7, 0, BUFFER_BYTES), 0, 10**6, 2)
        assert loop.window == window // 2
        loop.take(Feedback(3, 0, 0, 3, 200, 200, 0, 9, 0, BUFFER_BYTES), 0, 10**6, 3)
        assert loop.window == window // 2  # of the same datagrams
        loop.take(Feedback(4, 0, 0, 4, 200, 200, 0, 9, 0, 1_024), 0, 10**6, 4)
        assert loop.window == max(16, 2 * group)


def test_datagrams_that_never_come_do_not_fill_the_window_for_ever() -> None:
    """All that were in flight may be lost, and then the number of none of them arrives."""
    loop = ClosedLoop(1_400, 40, None, 0)
    for serial in range(1, 40):
        loop.take(Feedback(serial, 0, 0, serial, 50, 50, 0, 0, 0, BUFFER_BYTES), 0, 5_000, serial * 10_000_000)
    assert loop.acknowledged == 5_000


def test_datagrams_that_wait_in_the_receivers_socket_are_still_in_flight() -> None:
    """Its process may have no core for long; more would find no room."""
    loop = ClosedLoop(1_400, 40, None, 0)
    for serial in range(1, 100):
        unread = Feedback(serial, 0, 0, serial, 50, 50, 0, 0, 0, BUFFER_BYTES, has_unread=True)
        loop.take(unread, 0, 5_000, serial * 10_000_000)
    assert loop.acknowledged == 50


def test_impossible_reports_neither_stop_the_sender_nor_exceed_its_limit() -> None:
    """They are of another host. The highest rate holds, whatever it says."""
    loop = ClosedLoop(1_400, 40, 50_000_000, 0)
    odd = [0, 1, 10**9, MAX_NUMBER]
    for serial, (first, second) in enumerate(((a, b) for a in odd for b in odd), 1):
        values = first, second, first, second, first, second, first, second
        loop.take(Feedback(serial, *values, buffer_bytes=first % (1 << 32)), 0, 1_000, serial * 60_000_000)
        assert loop.acknowledged <= 1_000
        assert loop.window >= 16
        assert MIN_BIT_S <= (loop.rate_bit_s or 0) <= 50_000_000
