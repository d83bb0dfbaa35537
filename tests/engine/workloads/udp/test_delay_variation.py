"""Jitter by the formula, and delay variation that is the truth over clocks that drift and are set."""

import random
from collections.abc import Callable
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.workloads.udp.delay_variation import DelayVariation, Jitter

MS = 1_000_000
SECOND = 1_000_000_000
OFFSET = 1_763_000_000 * SECOND  # between the clocks of two hosts: one counts from its start, the other from 1970
DELAYS: dict[str, Callable[[random.Random], float]] = {  # in nanoseconds, above the shortest
    "wire": lambda rng: rng.expovariate(1) * 0.05 * MS,
    "switches": lambda rng: rng.expovariate(1) * 0.2 * MS,
    "queue": lambda rng: rng.expovariate(1) * 2 * MS,
    "spikes": lambda rng: rng.expovariate(1) * 0.1 * MS + (rng.random() < 0.01) * 30 * MS,
    "radio": lambda rng: rng.lognormvariate(0, 1) * MS,
    "two ways": lambda rng: rng.choice((0, 0.1, 2)) * MS,
}


def seeded(*parts: object) -> random.Random:
    """Return a source of chance of these parts alone."""
    return random.Random(" ".join(map(str, parts)))  # noqa: S311


def percentile(values: list[int], share: float) -> int:
    """Return the value below which a share of them lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def measure(delays: list[int], period_ns: int, drift_ppm: int = 0) -> tuple[DelayVariation, list[int]]:
    """Return the result for datagrams of a constant rate, whose receiver's clock runs faster by `drift_ppm`."""
    variation = DelayVariation()
    values: list[int] = []
    for number, delay in enumerate(delays):
        sent = number * period_ns
        values.append(variation.variation_of(sent, OFFSET + sent + delay + (sent + delay) * drift_ppm // 1_000_000))
    return variation, values


@pytest.mark.parametrize("drift_ppm", [-200, -20, 0, 20, 200])
@pytest.mark.parametrize(
    ("kind", "rate"),
    [
        ("switches", 200),
        *(
            pytest.param(kind, rate, marks=pytest.mark.every)
            for kind in DELAYS
            for rate in (100, 1000)
            if (kind, rate) != ("switches", 200)
        ),
    ],
)
def test_the_percentiles_are_the_truth_over_a_minute_of_drift(kind: str, rate: int, drift_ppm: int) -> None:
    """The clocks of two hosts are up to some hundred ppm apart: 12 ms after a minute."""
    rng = seeded(kind, rate)
    delays = [int(DELAYS[kind](rng)) for _ in range(60 * rate)]
    shortest = min(delays)
    truth = [delay - shortest for delay in delays]
    variation, values = measure(delays, SECOND // rate, drift_ppm)
    for share in (0.5, 0.9, 0.99, 0.999):
        expected = percentile(truth, share)
        assert abs(percentile(values, share) - expected) <= max(0.03 * expected, 0.1 * MS), share
    assert abs(variation.drift_ppm - drift_ppm) < 10


@given(kind=st.sampled_from(list(DELAYS)), seconds=st.sampled_from([1, 5, 20]))
def test_without_drift_each_value_is_exact(kind: str, seconds: int) -> None:
    """Above the shortest delay so far, to the nanosecond."""
    rng = seeded(kind, seconds)
    delays = [int(DELAYS[kind](rng)) for _ in range(100 * seconds)]
    shortest = list(accumulate(delays, min))
    variation, values = measure(delays, 10 * MS)
    assert variation.drift_ppm == 0
    assert values == [delay - low for delay, low in zip(delays, shortest, strict=True)]


QUEUES: dict[str, Callable[[float], float]] = {  # in milliseconds, at a time in seconds
    "fills in a second and stays full": lambda at: min(200.0, at * 200),
    "fills late": lambda at: min(50.0, max(0.0, at - 7) * 500),
    "is small and full from the start": lambda at: min(2.0, at * 8),
    "fills and drains": lambda at: 100 * abs(at % 4 / 2 - 1),
    "fills at once": lambda at: 0.0 if at < 3 else min(150.0, (at - 3) * 10_000),
    "stands still for a while": lambda at: max(0.0, 150 - (at - 5) * 300) if at > 5 else 0.0,
}


@pytest.mark.parametrize("queue", QUEUES)
def test_a_queue_is_no_drift_and_no_step_of_a_clock(queue: str) -> None:
    """A queue's delay is delay variation, however long it lasts."""
    rng = seeded(queue)
    delays = [int(QUEUES[queue](number / 500) * MS + rng.random() * 0.05 * MS) for number in range(5_000)]
    shortest = list(accumulate(delays, min))
    _, values = measure(delays, 2 * MS)
    for value, delay, low in zip(values, delays, shortest, strict=True):
        assert abs(value - (delay - low)) <= 0.1 * MS


@pytest.mark.parametrize("step_ms", [-5_000, -150, 150, 5_000])
@pytest.mark.parametrize("drift_ppm", [-100, 0, 100])
def test_a_clock_that_is_set_makes_a_new_base(step_ms: int, drift_ppm: int) -> None:
    """At once if it was set back; after a second if it was set forward, which a full queue could be too."""
    rng = seeded(step_ms, drift_ppm)
    variation = DelayVariation()
    wrong: list[int] = []
    for number in range(10_000):
        sent = number * MS
        delay = int(DELAYS["switches"](rng))
        received = OFFSET + sent + delay + sent * drift_ppm // 1_000_000 + (number >= 4_000) * step_ms * MS
        if abs(variation.variation_of(sent, received) - delay) > 0.1 * MS:
            wrong.append(number)
    wrong = [number for number in wrong if number > 10]  # the shortest delay was still to come
    assert all(4_000 <= number <= 5_200 for number in wrong)
    assert len(wrong) <= (1_200 if step_ms > 0 else 50)


def test_single_datagrams_that_are_late_keep_their_delay() -> None:
    """One that others overtake is not evidence of a clock."""
    variation = DelayVariation()
    rng = seeded("late")
    arrivals = sorted((n * MS + (rng.random() < 0.02) * 300 * MS, n * MS) for n in range(5_000))
    values = [(variation.variation_of(sent, OFFSET + arrived), arrived - sent) for arrived, sent in arrivals]
    assert all(value == delay for value, delay in values)


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), max_size=200))
def test_any_stamps_give_bounded_values(stamps: list[tuple[int, int]]) -> None:
    """The sender's come from another host."""
    variation, jitter = DelayVariation(), Jitter()
    for sent, received in stamps:
        assert 0 <= variation.variation_of(sent, received) < 1 << 66
        jitter.count_datagram(sent, received)
    assert jitter.count == max(0, len(stamps) - 1)
    assert 0 <= jitter.sum_ns <= jitter.count << 32
    assert jitter.max_ns <= 1 << 32


def test_a_long_run_keeps_few_points() -> None:
    """Five hours of a datagram each quarter of a second."""
    variation, values = measure([0] * 72_000, SECOND // 4, drift_ppm=50)
    assert len(variation._points) <= 64
    assert max(values) < 0.1 * MS


def test_jitter_is_that_of_the_formula() -> None:
    """RFC 3550, appendix A.8, in floating point."""
    rng = seeded("jitter")
    jitter = Jitter()
    expected: list[float] = []
    value, last = 0.0, None
    for number in range(2_000):
        delay = int(rng.expovariate(1) * MS)
        jitter.count_datagram(number * MS, OFFSET + number * MS + delay)
        if last is not None:
            value += (abs(delay - last) - value) / 16
            expected.append(value)
        last = delay
    assert jitter.count == len(expected)
    assert jitter.sum_ns / jitter.count == pytest.approx(sum(expected) / len(expected), abs=2)
    assert jitter.max_ns == pytest.approx(max(expected), abs=2)
    assert jitter.max_ns > 0


@pytest.mark.parametrize("drift_ppm", [-100, 0, 100])
@pytest.mark.parametrize("pause_s", [2, 60])
def test_a_pause_of_the_sender_is_no_delay(pause_s: int, drift_ppm: int) -> None:
    """The clocks drift on meanwhile: 6 ms in a minute. What they were apart by is still the base."""
    variation = DelayVariation()
    rng = seeded(pause_s, drift_ppm)
    values: list[tuple[int, int]] = []
    for number in range(8_000):
        sent = number * MS + (number >= 4_000) * pause_s * SECOND
        delay = int(DELAYS["wire"](rng)) + (number % 10 == 9) * MS
        value = variation.variation_of(sent, OFFSET + sent + delay + sent * drift_ppm // 1_000_000)
        values.append((value, delay))
    after = values[4_000:]
    assert max(abs(value - delay) for value, delay in after) < max(
        0.1 * MS, 0.05 * abs(drift_ppm) * pause_s * 1_000
    )


@pytest.mark.parametrize(("gap_ms", "is_step"), [(220, True), (240, False)])
def test_a_delay_that_rises_in_a_pause_stays_a_delay(gap_ms: int, is_step: bool) -> None:
    """A queue had time to fill. Only a rise of over four times the gap to the datagram before is a clock's step."""
    variation = DelayVariation()
    rise = 900 * MS
    for number in range(400):
        variation.variation_of(number * 10 * MS, OFFSET + number * 10 * MS)
    values: list[int] = []
    for number in range(40):
        sent = 3_990 * MS + (1 + number) * gap_ms * MS
        values.append(variation.variation_of(sent, OFFSET + sent + rise))
    assert values[:4] == [rise] * 4
    assert values[10:] == [0 if is_step else rise] * 30
