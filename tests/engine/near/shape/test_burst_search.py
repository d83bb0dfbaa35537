"""The order of bursts, against buckets without a network: each ends with the bucket's own numbers."""

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.near.shape.burst_search import BURSTS, BurstSearch, Step
from linkgauge.engine.protocol.burst_datagrams import MAX_BURST_BYTES, MAX_BURST_DATAGRAMS
from linkgauge.engine.results.shape.burst_reading import Burst, read_burst
from linkgauge.engine.results.shape.shape_result import DirectionShape, LimitKind, judge_direction

from ...results.shape.token_bucket import FRAME_BYTES, pass_bucket, sending_times

DATAGRAM_BYTES = 1_472
LINE = 2e9


class Bucket:
    """A path with a token bucket, full at first. It is empty after a burst that was larger than what was in it."""

    def __init__(
        self, cir_bit_s: float, cbs_bytes: float, queue_bytes: float = 0.0, line_bit_s: float | None = None
    ) -> None:
        self.cir_bit_s, self.cbs_bytes, self.queue_bytes = cir_bit_s, cbs_bytes, queue_bytes
        self._line_bit_s = line_bit_s
        self._level_bytes = cbs_bytes
        self.steps: list[Step] = []

    def send(self, step: Step) -> Burst:
        """Return the burst of a step as it arrives."""
        level = min(self.cbs_bytes, self._level_bytes + step.pause_s * self.cir_bit_s / 8)
        self._level_bytes = max(0.0, level - (step.head + step.tail) * FRAME_BYTES)
        self.steps.append(step)
        tail_bit_s = step.tail_bit_s * FRAME_BYTES / DATAGRAM_BYTES or LINE
        times = sending_times(step.head, step.tail, LINE, tail_bit_s)
        bucket = (self.cir_bit_s, self.cbs_bytes, self.queue_bytes)
        return pass_bucket(times, *bucket, level_bytes=level, line_bit_s=self._line_bit_s)


def search(bucket: Bucket) -> tuple[BurstSearch, DirectionShape]:
    """Carry a search out, and return its result."""
    found = BurstSearch(DATAGRAM_BYTES, FRAME_BYTES)
    while (step := found.next_step()) is not None:
        assert 0 < step.head + step.tail <= MAX_BURST_DATAGRAMS
        assert (step.head + step.tail) * DATAGRAM_BYTES <= MAX_BURST_BYTES
        burst = bucket.send(step)
        found.note(burst, read_burst(burst))
    shape = judge_direction(Direction.OUT, found.readings, datagram_bytes=DATAGRAM_BYTES, frame_bytes=FRAME_BYTES)
    return found, shape


@pytest.mark.parametrize(
    ("cir_mbit_s", "cbs_kb", "queue_kb"),
    [(5, 10, 0), (5, 2_000, 0), (20, 100, 150), pytest.param(200, 500, 0, marks=pytest.mark.every)],
)
def test_a_search_ends_with_the_bucket_s_own_numbers(cir_mbit_s: int, cbs_kb: int, queue_kb: int) -> None:
    """From buckets that a pause of a third of a second fills to those that need several seconds."""
    bucket = Bucket(cir_mbit_s * 1e6, cbs_kb * 1e3, queue_kb * 1e3)
    found, shape = search(bucket)
    assert found.is_settled
    assert len(found.readings) == BURSTS
    assert shape.kind is (LimitKind.SHAPER if queue_kb else LimitKind.POLICER)
    assert shape.cir is not None
    assert shape.cbs is not None
    assert shape.cir.median == pytest.approx(bucket.cir_bit_s, rel=0.01)
    assert abs(shape.cbs.median - bucket.cbs_bytes) <= max(0.05 * bucket.cbs_bytes, FRAME_BYTES)


@pytest.mark.parametrize("line_mbit_s", [30, 60, pytest.param(900, marks=pytest.mark.every)])
def test_a_bucket_behind_a_slow_line_is_found_and_filled(line_mbit_s: int) -> None:
    """The first bursts show the line, which needs no pause; the bucket of 2 MB at 20 Mb/s needs 0.8 s."""
    bucket = Bucket(20e6, 2e6, line_bit_s=line_mbit_s * 1e6)
    found, shape = search(bucket)
    assert found.is_settled
    assert found.pause_s >= 0.8
    assert shape.kind is LimitKind.POLICER
    assert shape.cir is not None
    assert shape.cbs is not None
    assert shape.cir.median == pytest.approx(20e6, rel=0.01)
    assert shape.cbs.median == pytest.approx(2e6, rel=0.05)


def test_the_pause_is_as_long_as_the_bucket_needs() -> None:
    """It grows until the bucket does not: 2 MB at 5 Mb/s take 3.2 s."""
    bucket = Bucket(5e6, 2e6)
    found, _ = search(bucket)
    pauses = [step.pause_s for step in bucket.steps]
    assert pauses[0] < 1
    assert 3.2 <= found.pause_s <= 8
    assert pauses[-1] == found.pause_s


def test_a_path_without_a_limit_gets_longer_bursts_and_no_overload() -> None:
    """Up to 16 MiB; ten readings say that nothing limits it."""
    bucket = Bucket(1e12, 1e12)
    found, shape = search(bucket)
    assert shape.kind is LimitKind.NONE
    assert found.is_settled
    assert not any(step.tail for step in bucket.steps)


@pytest.mark.parametrize(
    "held_up", [{3}, *(pytest.param(each, marks=pytest.mark.every) for each in ({4}, {6}, {5, 9}, {4, 5, 12}))]
)
def test_bursts_that_a_busy_host_held_up_are_no_limit(held_up: set[int]) -> None:
    """The next ones arrive whole, however long they are: ten of them tell, not the one before them."""
    free, slow = Bucket(1e12, 1e12), Bucket(1.5e9, 64e3, 64e6)
    found = BurstSearch(DATAGRAM_BYTES, FRAME_BYTES)
    count = 0
    while (step := found.next_step()) is not None:
        burst = (slow if count in held_up else free).send(step)
        found.note(burst, read_burst(burst))
        count += 1
    shape = judge_direction(Direction.OUT, found.readings, datagram_bytes=DATAGRAM_BYTES, frame_bytes=FRAME_BYTES)
    assert shape.kind is LimitKind.NONE
    assert len(found.readings) == BURSTS
    assert count < 30


def test_a_receiver_that_has_no_room_gets_bursts_at_half_the_rate() -> None:
    """Its own losses are no limit of the path."""
    found = BurstSearch(DATAGRAM_BYTES, FRAME_BYTES)
    step = found.next_step()
    assert step is not None
    times = sending_times(step.head, 0, LINE, LINE)
    whole = pass_bucket(times, 1e12, 1e12)
    found.note(Burst(whole.count, whole.places, whole.arrived_ns, whole.sent_ns, FRAME_BYTES, unread=9), None)
    slower = found.next_step()
    assert slower is not None
    assert slower.head == 0
    assert slower.tail == step.head
    assert 0.4 * LINE < slower.tail_bit_s < 0.6 * LINE


def test_a_search_ends_if_nothing_can_be_read() -> None:
    """However often it is tried."""
    found = BurstSearch(DATAGRAM_BYTES, FRAME_BYTES)
    steps = 0
    while (step := found.next_step()) is not None:
        steps += 1
        found.note(Burst(step.head + step.tail, [], [], [], FRAME_BYTES), None)
    assert steps < 100
    assert not found.readings
