"""Samples of one end: differences of counters, taken when they are due and never as slivers."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.metering import sampler as sampler_module
from linkgauge.engine.metering.idle_time import RESPONSIVENESS_IDLE_NS
from linkgauge.engine.metering.sampler import ProbeReader, Sampler
from linkgauge.engine.metering.shared_counters import (
    UNKNOWN,
    WORDS_PER_SLOT,
    CounterField,
    ProbeCount,
    ProbeHistogram,
    SharedCounters,
    histogram_offset,
    probe_count_word,
    probe_histogram_offset,
    slot_index,
    tcp_counter_word,
)
from linkgauge.engine.model.counters.latency_histogram import BUCKET_COUNT
from linkgauge.engine.model.counters.samples import CpuWaits, LatencyCounts, Sample, SessionSample
from linkgauge.engine.model.counters.session_counters import BUFFER_COUNTER_NAMES
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.plan import MAX_WORKERS, MIN_INTERVAL_NS, Plan, ResponsivenessTest
from linkgauge.engine.model.workload import Workload

INTERVAL_NS = MIN_INTERVAL_NS


class Clock:
    """A clock that is set by hand, in place of `time` in the sampler."""

    def __init__(self) -> None:
        self.now_ns = 1_000
        self.cpu_ns = 0

    def monotonic_ns(self) -> int:
        """Return the time it was set to."""
        return self.now_ns

    def process_time_ns(self) -> int:
        """Return the CPU time it was set to."""
        return self.cpu_ns


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Give the sampler's clock."""
    clock = Clock()
    monkeypatch.setattr(sampler_module, "time", clock)
    return clock


@pytest.fixture
def counters() -> Iterator[SharedCounters]:
    """Give a new block of counters."""
    block = SharedCounters.create()
    yield block
    block.close()


def put(counters: SharedCounters, direction: Direction, session: int, **words: int) -> None:
    """Store words of a slot by their names."""
    base = slot_index(direction, session) * WORDS_PER_SLOT
    for name, value in words.items():
        word = CounterField[name] if name in CounterField.__members__ else tcp_counter_word(name.lower())
        counters.words[base + word] = value


def started(counters: SharedCounters) -> Sampler:
    """Return a sampler that has begun."""
    sampler = Sampler(End.FAR, Plan(interval_ns=INTERVAL_NS), counters)
    sampler.start()
    return sampler


def take(sampler: Sampler) -> Sample:
    """Take a sample that must be there."""
    sample = sampler.take_sample()
    assert sample is not None
    return sample


def test_a_sample_has_the_longest_wait_of_a_worker_since_the_previous_sample(
    clock: Clock, counters: SharedCounters
) -> None:
    """A worker without a known wait, one that has not begun, and the probe's worker do not count as zero."""
    sampler = started(counters)
    clock.now_ns += INTERVAL_NS
    counters.set_worker_wait(0, None)
    counters.set_worker_wait(MAX_WORKERS, 10**9)
    assert take(sampler).waits is None
    counters.set_worker_wait(1, 300)
    counters.set_worker_wait(2, 500)
    clock.now_ns += INTERVAL_NS
    assert take(sampler).waits == CpuWaits(500)
    counters.set_worker_wait(1, 1_300)
    clock.now_ns += INTERVAL_NS
    assert take(sampler).waits == CpuWaits(1_000)


def test_a_sample_has_the_time_for_which_a_quota_stopped_the_end(
    clock: Clock, counters: SharedCounters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time before the start is not part of it."""
    stat = tmp_path / "cpu.stat"
    stat.write_text("usage_usec 9\nnr_throttled 3\nthrottled_usec 700\n", encoding="ascii")
    monkeypatch.setattr(sampler_module, "find_cpu_quotas", lambda: (stat,))
    sampler = started(counters)
    stat.write_text("usage_usec 9\nnr_throttled 4\nthrottled_usec 750\n", encoding="ascii")
    clock.now_ns += INTERVAL_NS
    assert take(sampler).waits == CpuWaits(None, 50_000)


def test_a_sample_has_the_counts_since_the_previous_sample(clock: Clock, counters: SharedCounters) -> None:
    """Counts from before the start are left out; round trips and windows are the current ones."""
    put(counters, Direction.OUT, 2, OPEN_GENERATION=1, BYTES=100, RETRANSMITS=4, BUSY_US=10, RTT_US=50)
    sampler = started(counters)
    put(counters, Direction.OUT, 2, BYTES=350, RETRANSMITS=5, BUSY_US=30, RTT_US=70)
    counters.set_worker_cpu(0, 2_000)
    clock.now_ns += INTERVAL_NS
    clock.cpu_ns += 500
    sample = take(sampler)
    assert (sample.end, sample.index) == (End.FAR, 0)
    assert (sample.elapsed_ns, sample.interval_ns, sample.process_cpu_ns) == (INTERVAL_NS, INTERVAL_NS, 2_500)
    assert sample.busiest_worker_ns == 2_000
    unset = dict.fromkeys(
        ("bytes_retrans", "min_rtt_us", "pacing_bit_s", "delivery_bit_s", "peer_window_bytes", "out_of_order"), 0
    )
    unset |= dict.fromkeys(BUFFER_COUNTER_NAMES, 0)
    expected = SessionSample(Direction.OUT, 2, 250, 1, 70, 0, 0, 20, 0, 0, **unset, rcv_space_bytes=0)
    assert sample.sessions == (expected,)


def test_counters_are_of_the_interval_and_windows_are_current(clock: Clock, counters: SharedCounters) -> None:
    """Of a counter the sample has the rise, of everything else the value."""
    put(counters, Direction.OUT, 1, OPEN_GENERATION=1, BYTES_RETRANS=1_448, OUT_OF_ORDER=3, MIN_RTT_US=90)
    sampler = started(counters)
    put(counters, Direction.OUT, 1, BYTES_RETRANS=4_344, OUT_OF_ORDER=5, MIN_RTT_US=80, PEER_WINDOW_BYTES=65_535)
    clock.now_ns += INTERVAL_NS
    (session,) = take(sampler).sessions
    assert (session.bytes_retrans, session.out_of_order) == (2_896, 2)
    assert (session.min_rtt_us, session.peer_window_bytes) == (80, 65_535)


def test_unknown_values_stay_unknown(clock: Clock, counters: SharedCounters) -> None:
    """A value that was unknown before counts from zero."""
    put(counters, Direction.IN, 1, OPEN_GENERATION=1, RETRANSMITS=UNKNOWN, RTT_US=UNKNOWN, BUSY_US=UNKNOWN)
    sampler = started(counters)
    put(counters, Direction.IN, 1, BUSY_US=7)
    clock.now_ns += INTERVAL_NS
    (session,) = take(sampler).sessions
    assert (session.bytes, session.retransmits, session.rtt_us, session.busy_us) == (0, None, None, 7)


def test_an_ended_session_is_reported_once_more_with_its_last_bytes(clock: Clock, counters: SharedCounters) -> None:
    """After that the samples leave it out; an open session that is idle stays, with zero."""
    put(counters, Direction.OUT, 1, OPEN_GENERATION=1, BYTES=5)
    put(counters, Direction.OUT, 2, OPEN_GENERATION=1, BYTES=5)
    sampler = started(counters)
    put(counters, Direction.OUT, 1, OPEN_GENERATION=0, BYTES=9)
    counts: list[list[tuple[int, int]]] = []
    for _ in range(2):
        clock.now_ns += INTERVAL_NS
        counts.append([(session.session, session.bytes) for session in take(sampler).sessions])
    assert counts == [[(1, 4), (2, 0)], [(2, 0)]]


def test_a_very_short_time_has_no_sample(clock: Clock, counters: SharedCounters) -> None:
    """Its rate would be noise; its bytes are in the next one."""
    sampler = started(counters)
    clock.now_ns += INTERVAL_NS
    take(sampler)
    put(counters, Direction.OUT, 1, OPEN_GENERATION=1, BYTES=80)
    clock.now_ns += INTERVAL_NS // 20 - 1
    assert sampler.take_sample() is None
    clock.now_ns += INTERVAL_NS
    assert take(sampler).sessions[0].bytes == 80


def test_the_index_skips_intervals_in_which_the_process_was_stopped(clock: Clock, counters: SharedCounters) -> None:
    """Both ends' samples stay aligned in time, and an index is never given twice."""
    sampler = started(counters)
    indexes: list[int] = []
    for late in (1.0, 1.02, 0.98, 3.0, 1.0, 0.3, 0.7):
        clock.now_ns += int(INTERVAL_NS * late)
        indexes.append(take(sampler).index)
    assert indexes == [0, 1, 2, 5, 6, 7, 8]


async def test_samples_are_taken_when_they_are_due_and_none_is_a_sliver(counters: SharedCounters) -> None:
    """A timer that fires a moment early does not cut an interval in two."""
    sampler = started(counters)
    samples: list[Sample] = []
    async with asyncio.timeout(20):
        await sampler.run(samples.append, 10 * INTERVAL_NS)
    for sample in samples:
        due_ns = sample.elapsed_ns // INTERVAL_NS * INTERVAL_NS
        assert due_ns >= INTERVAL_NS
        assert sample.elapsed_ns - sample.interval_ns < due_ns <= sample.elapsed_ns
    assert samples[-1].elapsed_ns >= 9 * INTERVAL_NS
    assert sum(sample.interval_ns for sample in samples) == samples[-1].elapsed_ns
    indexes = [sample.index for sample in samples]
    assert indexes == sorted(set(indexes))


async def test_a_run_that_ends_between_two_ticks_has_a_short_last_sample(counters: SharedCounters) -> None:
    """The duration is the duration."""
    sampler = started(counters)
    samples: list[Sample] = []
    async with asyncio.timeout(20):
        await sampler.run(samples.append, INTERVAL_NS * 5 // 2)
    assert samples[-1].elapsed_ns >= INTERVAL_NS * 5 // 2


async def test_sampling_lets_others_run_even_if_it_is_late(clock: Clock, counters: SharedCounters) -> None:
    """A process that was held up for long is not held up by its own sampling as well."""
    sampler = started(counters)
    samples: list[Sample] = []
    enough = asyncio.Event()

    def fall_behind(sample: Sample) -> None:
        samples.append(sample)
        clock.now_ns += 3 * INTERVAL_NS
        if len(samples) == 5:
            enough.set()

    clock.now_ns += 3 * INTERVAL_NS
    task = asyncio.create_task(sampler.run(fall_behind, None))
    async with asyncio.timeout(20):
        await enough.wait()
    task.cancel()
    await asyncio.wait([task])


_COUNTED = st.lists(st.tuples(st.integers(1, 3), st.integers(0, BUCKET_COUNT - 1), st.integers(1, 5)), max_size=12)


@given(st.lists(_COUNTED, min_size=1, max_size=4))
def test_counts_and_histograms_cannot_disagree(intervals: list[list[tuple[int, int, int]]]) -> None:
    """At any time of a count, each sample's sessions agree with its histogram, and all samples with the counts."""
    clock, counters = Clock(), SharedCounters.create()
    try:
        with patch.object(sampler_module, "time", clock):
            plan = Plan(workload=Workload.RR, interval_ns=INTERVAL_NS)
            sampler = Sampler(End.NEAR, plan, counters)
            for number in (1, 2, 3):
                counters.words[
                    slot_index(Direction.OUT, number) * WORDS_PER_SLOT + CounterField.OPEN_GENERATION
                ] = 1
            sampler.start()
            counts = 0
            for counted in intervals:
                for number, bucket, times in counted:
                    counters.words[histogram_offset(slot_index(Direction.OUT, number)) + bucket] += times
                clock.now_ns += INTERVAL_NS
                sample = sampler.take_sample()
                assert sample is not None
                (whole,) = sample.latency
                assert whole.transactions == sum(part.transactions or 0 for part in sample.sessions)
                assert whole.transactions * plan.transaction_sizes[1] == sum(part.bytes for part in sample.sessions)
                counts += whole.transactions
        assert counts == sum(times for counted in intervals for *_, times in counted)
    finally:
        counters.close()


def test_only_a_udp_run_reads_what_the_kernel_drops(counters: SharedCounters) -> None:
    """It costs a tenth of a millisecond for each sample, and other runs do not need it."""
    assert started(counters)._drops is None
    sampler = Sampler(End.FAR, Plan(workload=Workload.UDP, interval_ns=INTERVAL_NS), counters)
    sampler.start()
    time.sleep(INTERVAL_NS / 1e9)
    drops = take(sampler).drops
    assert drops is not None
    assert drops.backlog is not None


PROBED = Plan(probe=True, responsiveness=ResponsivenessTest.PHASES)


def count_probes(counters: SharedCounters, counts: dict[ProbeHistogram, int], bucket: int = 5) -> None:
    """Count so many times in a bucket of each histogram."""
    for histogram, count in counts.items():
        counters.words[probe_histogram_offset(histogram) + bucket] += count


def test_further_probes_are_the_counts_since_the_previous_sample(counters: SharedCounters) -> None:
    """Each histogram has its own, answers are as many as round trips, and none is payload."""
    reader = ProbeReader(counters, PROBED)
    reader.take_sample()
    for _ in range(2):
        count_probes(counters, dict(zip(ProbeHistogram, (1, 2, 3, 4, 5), strict=True)))
        counters.words[probe_count_word(ProbeCount.DATAGRAMS_SENT)] += 9
        counters.words[probe_count_word(ProbeCount.HANDSHAKES_FAILED)] += 7
        sample = reader.take_sample()
        handshakes, datagrams = sample.handshakes, sample.datagrams
        assert handshakes is not None
        assert datagrams is not None
        assert (handshakes.connect.counts, handshakes.answer.counts, handshakes.failed) == ((1,), (2,), 7)
        assert (datagrams.sent, datagrams.answered) == (9, 3)
        assert datagrams.latency == LatencyCounts(Direction.OUT, (5,), (3,))
        assert datagrams.rise_out == LatencyCounts(Direction.OUT, (5,), (4,))
        assert datagrams.rise_in == LatencyCounts(Direction.IN, (5,), (5,))
    assert counters.total_bytes() == 0
    assert not counters.used_sessions(Direction.OUT)


def test_a_path_without_datagrams_is_unknown_and_one_that_lost_all_is_not(counters: SharedCounters) -> None:
    """Without a sent probe the path is unknown; probes without an answer are zero answers."""
    reader = ProbeReader(counters, PROBED)
    assert reader.take_sample().datagrams is None
    counters.words[probe_count_word(ProbeCount.DATAGRAMS_SENT)] = 3
    datagrams = reader.take_sample().datagrams
    assert datagrams is not None
    assert (datagrams.sent, datagrams.answered) == (3, 0)
    still = reader.take_sample().datagrams
    assert still is not None
    assert (still.sent, still.answered) == (0, 0)


def test_without_a_responsiveness_test_further_probes_are_not_read(counters: SharedCounters) -> None:
    """Even if the block has counts of them."""
    count_probes(counters, dict.fromkeys(ProbeHistogram, 1))
    sample = ProbeReader(counters, Plan(probe=True)).take_sample()
    assert (sample.handshakes, sample.datagrams) == (None, None)


async def test_a_responsiveness_test_measures_the_idle_link_for_longer(
    counters: SharedCounters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its results are rises above that."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    await ProbeReader(counters, PROBED).measure_idle()
    await ProbeReader(counters, Plan(probe=True)).measure_idle()
    assert slept == [RESPONSIVENESS_IDLE_NS / 1e9, 1.0]
