"""What a burst shows, on computed arrivals behind buckets of every size: the numbers that made them."""

import random
from dataclasses import replace

import pytest
from linkgauge.engine.results.shape.burst_reading import Burst, BurstReading, read_burst

from .token_bucket import FRAME_BYTES, pass_bucket, sending_times

LINE = 1e9


def times_for(
    cir_bit_s: float, cbs_bytes: float, line_bit_s: float = LINE, frame: int = FRAME_BYTES
) -> list[float]:
    """Return when a burst is sent that empties such a bucket and overloads it for a while."""
    head = round(1.4 * cbs_bytes / frame / (1 - cir_bit_s / line_bit_s)) + 32
    return sending_times(head, max(240, round(0.2 * 2 * cir_bit_s / 8 / frame)), line_bit_s, 2 * cir_bit_s, frame)


def read(burst: Burst) -> BurstReading:
    """Return the reading of a burst that has one."""
    reading = read_burst(burst)
    assert reading is not None
    return reading


def assert_close(reading: BurstReading, cir_bit_s: float, cbs_bytes: float, frame: int = FRAME_BYTES) -> None:
    """Check CIR to 1 %, and CBS to 5 % or a frame."""
    assert reading.cir_bit_s == pytest.approx(cir_bit_s, rel=0.01)
    assert abs(reading.cbs_bytes - cbs_bytes) <= max(0.05 * cbs_bytes, frame)


@pytest.mark.parametrize("cir_mbit_s", [5, 50, 400])
@pytest.mark.parametrize("cbs_kb", [10, 100, 2_000])
@pytest.mark.parametrize("queue_kb", [0, 60, 500])
def test_a_bucket_s_rate_size_and_queue_are_found(cir_mbit_s: int, cbs_kb: int, queue_kb: int) -> None:
    """Policers drop without delay; shapers delay until their queue is full."""
    cir, cbs, queue = cir_mbit_s * 1e6, cbs_kb * 1e3, queue_kb * 1e3
    reading = read(pass_bucket(times_for(cir, cbs), cir, cbs, queue, jitter_ns=20_000))
    assert_close(reading, cir, cbs)
    assert reading.waits is (queue > 0)
    assert reading.has_loss or queue > 0
    if reading.has_loss:
        assert abs(reading.queue_bytes - queue) <= max(0.05 * queue, 2 * FRAME_BYTES)


@pytest.mark.parametrize("queue_kb", [0, 60])
def test_small_datagrams_show_the_same_bucket(queue_kb: int) -> None:
    """Of 200 bytes: a frame is the unit of what is found."""
    burst = pass_bucket(times_for(8e6, 30e3, 2e8, 242), 8e6, 30e3, queue_kb * 1e3, frame=242)
    assert_close(read(burst), 8e6, 30e3, 242)
    assert read(burst).waits is (queue_kb > 0)


@pytest.mark.parametrize("queue_kb", [0, 80])
def test_losses_by_chance_and_late_arrivals_change_little(queue_kb: int) -> None:
    """A datagram that a line loses before the bucket is empty is not the beginning of its losses."""
    cir, cbs = 20e6, 300e3
    burst = pass_bucket(times_for(cir, cbs), cir, cbs, queue_kb * 1e3, jitter_ns=80_000, loss=0.004, seed=5)
    reading = read(burst)
    assert_close(reading, cir, cbs)
    assert reading.waits is (queue_kb > 0)


def test_a_policer_behind_a_line_with_a_queue_is_a_policer() -> None:
    """The line's own queue delays the head of the burst, which says nothing of the bucket."""
    times = sending_times(800, 400, 4e9, 40e6)
    reading = read(pass_bucket(times, 20e6, 200e3, line_bit_s=1e9, jitter_ns=5_000))
    assert_close(reading, 20e6, 200e3)
    assert reading.has_loss
    assert not reading.waits
    assert reading.queue_bytes == 0


@pytest.mark.parametrize(
    ("cir_mbit_s", "cbs_kb", "queue_kb", "line_mbit_s"),
    [(50, 2_000, 0, 900), (50, 2_000, 0, 100), (500, 2_000, 0, 700), (200, 500, 0, 300), (50, 2_000, 312, 100)],
)
def test_the_tighter_of_two_limits_is_found_if_most_datagrams_waited_for_the_other(
    cir_mbit_s: int, cbs_kb: int, queue_kb: int, line_mbit_s: int
) -> None:
    """The burst is as long as the search sends it for the line, before it knows of a bucket behind it."""
    cir, cbs, line = cir_mbit_s * 1e6, cbs_kb * 1e3, line_mbit_s * 1e6
    times = sending_times(200, min(8_000, round(0.4 * 2 * line / 8 / FRAME_BYTES)), 3e9, 2 * line)
    reading = read(pass_bucket(times, cir, cbs, queue_kb * 1e3, line_bit_s=line, jitter_ns=20_000))
    assert_close(reading, cir, cbs)
    assert reading.waits is (queue_kb > 0)


@pytest.mark.parametrize("queue_kb", [0, 60])
def test_a_sender_that_is_held_up_changes_little(queue_kb: int) -> None:
    """Also if the bucket is full again meanwhile, and a second time."""
    cir, cbs = 10e6, 20e3
    times = sending_times(60, 500, LINE, 2 * cir)
    held = [at + 90e6 * (n > 150) + 70e6 * (n > 330) for n, at in enumerate(times)]
    reading = read(pass_bucket(held, cir, cbs, queue_kb * 1e3))
    assert_close(reading, cir, cbs)
    assert reading.waits is (queue_kb > 0)


def test_a_long_queue_before_a_slow_line_has_no_bucket_and_is_not_a_policer() -> None:
    """Everything waits from the first packet on; nothing is lost, or only once the queue is full."""
    times = times_for(10e6, 60e3)
    for queue in (1e9, 100e3):
        reading = read(pass_bucket(times, 10e6, FRAME_BYTES, queue))
        assert reading.cir_bit_s == pytest.approx(10e6, rel=0.01)
        assert reading.cbs_bytes <= 2 * FRAME_BYTES
        assert reading.waits
        assert reading.has_loss is (queue < 1e9)


@pytest.mark.parametrize("queue_kb", [100, 1_000])
def test_a_line_that_also_loses_by_chance_is_not_a_policer(queue_kb: int) -> None:
    """Its datagrams come at one rate before the first loss and after it."""
    times = sending_times(700, 3_000, 4e9, 80e6)
    reading = read(pass_bucket(times, 40e6, FRAME_BYTES, queue_kb * 1e3, jitter_ns=20_000, loss=0.1, seed=3))
    assert reading.waits
    assert reading.cir_bit_s == pytest.approx(36e6, rel=0.02)  # what comes of it
    assert reading.cbs_bytes <= 3 * FRAME_BYTES


def test_a_burst_that_comes_as_it_was_sent_has_no_limit() -> None:
    """Nor has one of which a line loses a few by chance."""
    times = sending_times(2_000, 0, LINE, LINE)
    for loss in (0.0, 0.003):
        reading = read(pass_bucket(times, 10e9, 1e9, jitter_ns=10_000, loss=loss))
        assert reading.cir_bit_s is None
        assert reading.offered_bit_s == pytest.approx(LINE, rel=0.02)


def test_a_shaper_that_holds_up_the_sender_itself_is_seen_by_its_steady_rate() -> None:
    """Nothing waits and nothing is lost: the burst comes faster than the rest, which keeps to a line."""
    draw = random.Random(3)  # noqa: S311
    at_ns, arrived = 0.0, list[int]()
    for number in range(3_000):
        early = (number + 1) * FRAME_BYTES - 500e6 / 8e9 * at_ns < 80e3
        arrived.append(round(at_ns + draw.random() * 15_000))
        at_ns += FRAME_BYTES * 8e9 / (1.2e9 if early else 500e6)
    burst = Burst(3_000, range(3_000), arrived, [at - 40_000 for at in arrived], FRAME_BYTES)
    assert_close(read(burst), 500e6, 80e3)
    assert read(burst).waits
    # A pace of its own explains such a line, and a sender by itself wanders.
    assert read(replace(burst, pace_bit_s=500e6)).cir_bit_s is None
    at_ns, wandering = 0.0, list[int]()
    for _ in range(3_000):
        wandering.append(round(at_ns))
        at_ns += draw.choice((12_000, 12_000, 14_000, 60_000, 300_000) if draw.random() < 0.1 else (20_000, 24_000))
    assert read(replace(burst, arrived_ns=wandering, sent_ns=wandering)).cir_bit_s is None


@pytest.mark.parametrize("stall_us", [40, 70, 140])
@pytest.mark.parametrize("queue_kb", [0, 60])
def test_a_stall_behind_the_first_datagram_takes_nothing_from_a_short_bucket(stall_us: int, queue_kb: int) -> None:
    """The bucket of 10 KB at 500 Mb/s is full in 0.16 ms: what fills it meanwhile and overflows does not count."""
    cir, cbs = 500e6, 10e3
    times = [at + 1e3 * stall_us * (n > 0) for n, at in enumerate(sending_times(4_000, 0, 1.2e9, 0))]
    reading = read(pass_bucket(times, cir, cbs, queue_kb * 1e3, jitter_ns=2_000))
    assert reading.cir_bit_s == pytest.approx(cir, rel=0.005)
    assert abs(reading.cbs_bytes - cbs) <= 0.5 * FRAME_BYTES


def test_a_shaper_is_found_behind_a_sender_that_its_own_host_holds_up() -> None:
    """The sender waits for the shaper and not its datagrams; after each stall it catches up to the same line."""
    draw = random.Random(4)  # noqa: S311
    cir, cbs = 500e6, 500e3
    at_ns, arrived = 0.0, list[int]()
    for number in range(8_000):
        tokens_ns = ((number + 1) * FRAME_BYTES - cbs) * 8e9 / cir
        at_ns = max(at_ns + FRAME_BYTES * 8e9 / 3e9, tokens_ns)
        at_ns += 5e6 * (number % 500 == 499)
        arrived.append(round(at_ns + draw.random() * 8_000))
    late = [120_000 * (draw.random() < 0.1) for _ in arrived]  # the sender was not let run behind its stamp
    sent = [at - 20_000 - wait for at, wait in zip(arrived, late, strict=True)]
    reading = read(Burst(8_000, range(8_000), arrived, sent, FRAME_BYTES))
    assert_close(reading, cir, cbs)
    assert reading.waits
    # Without a shaper a sender does not catch up: each stall is lost.
    alone = [round(n * FRAME_BYTES * 8e9 / 3e9 + 5e6 * (n // 500) + draw.random() * 8_000) for n in range(8_000)]
    sent = [at - 20_000 - wait for at, wait in zip(alone, late, strict=True)]
    assert read(Burst(8_000, range(8_000), alone, sent, FRAME_BYTES)).cir_bit_s is None


def test_a_burst_of_which_too_little_came_has_no_reading() -> None:
    """Nor one of which the receiving host had no room for some, whose losses are no limit of the path."""
    whole = pass_bucket(times_for(5e6, 50e3), 5e6, 50e3)
    spoilt = Burst(whole.count, whole.places, whole.arrived_ns, whole.sent_ns, FRAME_BYTES, unread=3)
    assert read_burst(spoilt) is None
    assert read_burst(Burst(100, range(5), range(5), range(5), FRAME_BYTES)) is None
    assert read_burst(Burst(100, [], [], [], FRAME_BYTES)) is None


def test_arrivals_at_one_time_or_in_any_order_raise_nothing() -> None:
    """The other end reports them: they may be anything."""
    at_once = Burst(40, range(40), [0] * 40, [0] * 40, FRAME_BYTES)
    assert read(at_once).cir_bit_s is None
    backwards = Burst(40, range(39, -1, -1), range(40), range(40), FRAME_BYTES)
    assert read_burst(backwards) is not None
    twice = Burst(40, [7] * 40, range(0, 4_000_000, 100_000), [0] * 40, FRAME_BYTES)
    assert read_burst(twice) is None


def test_second_copies_of_datagrams_do_not_count() -> None:
    """A network that sends some of them twice has not passed more."""
    burst = pass_bucket(times_for(10e6, 50e3), 10e6, 50e3)
    again = range(0, len(burst.places), 3)
    copied = Burst(
        burst.count,
        [*burst.places, *(burst.places[n] for n in again)],
        [*burst.arrived_ns, *(burst.arrived_ns[n] + 500 for n in again)],
        [*burst.sent_ns, *(burst.sent_ns[n] for n in again)],
        FRAME_BYTES,
    )
    assert read(copied) == read(burst)
