"""The rises of one-way delays: whatever the clocks, and however long a queue stays full."""

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.workloads.probes.one_way_delay import OneWayDelays

MILLISECOND_NS = 1_000_000
PACE_NS = 10 * MILLISECOND_NS
OUT_NS, IN_NS, HELD_NS = 200_000, 300_000, 20_000
IDLE_S, LAST_S = 2, 25

Queues = Callable[[float, random.Random], tuple[float, float]]


class Far:
    """A far end whose clock has begun at another time, and drifts."""

    def __init__(self, offset_ns: int, drift_ppm: float) -> None:
        self._offset_ns, self._rate = offset_ns, 1 + drift_ppm * 1e-6

    def time(self, near_ns: float) -> int:
        """Return its clock's time at a time of the near one."""
        return int(near_ns * self._rate) + self._offset_ns


def errors(
    queues: Queues, *, drift_ppm: float = 0.0, jitter_ns: float = 10_000.0, offset_ns: int = 10**17
) -> Iterator[tuple[float, float, float]]:
    """Yield the second, and by how much the mean rise of each direction in it was off."""
    chance = random.Random(5)  # noqa: S311 - no secret
    far, delays = Far(offset_ns, drift_ppm), OneWayDelays()
    off: dict[int, list[tuple[float, float]]] = {}
    for number in range(LAST_S * 100):
        second = number / 100
        queue_out, queue_in = queues(second, chance)
        sent_ns = 10**15 + number * PACE_NS
        at_far_ns = sent_ns + OUT_NS + chance.expovariate(1 / jitter_ns) + queue_out
        back_ns = at_far_ns + HELD_NS + IN_NS + chance.expovariate(1 / jitter_ns) + queue_in
        times = (sent_ns, far.time(at_far_ns), far.time(at_far_ns + HELD_NS), int(back_ns))
        rise_out, rise_in = delays.rises_of(*times)
        assert rise_out >= 0
        assert rise_in >= 0
        off.setdefault(int(second), []).append((rise_out - queue_out, rise_in - queue_in))
    for second, pairs in off.items():
        yield second, sum(out for out, _ in pairs) / len(pairs), sum(in_ for _, in_ in pairs) / len(pairs)


def idle(_second: float, _chance: random.Random) -> tuple[float, float]:
    """Have nothing wait."""
    return 0.0, 0.0


def full_out(second: float, chance: random.Random) -> tuple[float, float]:
    """Have a queue on the way out that is full from the load's beginning on, and saws at its end."""
    return (47 - 4 * chance.random()) * MILLISECOND_NS * (second >= IDLE_S), 0.0


def full_in(second: float, chance: random.Random) -> tuple[float, float]:
    """Have the same on the way in."""
    return full_out(second, chance)[::-1]


def full_both(second: float, chance: random.Random) -> tuple[float, float]:
    """Have both at once: nothing shows the clocks' drift any more."""
    return full_out(second, chance)[0], 0.4 * full_out(second, chance)[0]


def phases(second: float, chance: random.Random) -> tuple[float, float]:
    """Out, in and both, each queue filling at 46 ms a second up to 200."""

    def filled(since: float) -> float:
        return max(0.0, min(46 * since, 200 - 50 * chance.random())) * MILLISECOND_NS

    if second < 10:
        return filled(second - IDLE_S), 0.0
    return (0.0, filled(second - 10)) if second < 18 else (filled(second - 18), filled(second - 18))


@given(
    drift_ppm=st.sampled_from([-50.0, -15.0, 0.0, 15.0, 50.0]),
    queues=st.sampled_from([idle, full_out, full_in, full_both, phases]),
)
def test_the_rise_is_the_queue_whatever_the_clocks_do(queues: Queues, drift_ppm: float) -> None:
    """Uncorrected, 50 ppm would be 1.25 ms after 25 s. A queue that is full for 23 s does not become the base."""
    for second, out, in_ in errors(queues, drift_ppm=drift_ppm):
        limit_ns = 350_000 if second >= IDLE_S else 60_000
        assert abs(out) < limit_ns, (second, out)
        assert abs(in_) < limit_ns, (second, in_)


@pytest.mark.parametrize("queues", [full_out, phases])
def test_variation_of_milliseconds_is_not_taken_for_drift(queues: Queues) -> None:
    """As of a radio link: the mean rise is then the variation's own."""
    for _second, out, in_ in errors(queues, jitter_ns=2 * MILLISECOND_NS):
        assert 0 < out < 4 * MILLISECOND_NS
        assert 0 < in_ < 4 * MILLISECOND_NS


def test_with_no_load_the_clocks_differ_by_what_they_do() -> None:
    """Known after two seconds, and exactly after twenty."""
    chance = random.Random(2)  # noqa: S311 - no secret
    far, delays = Far(-(10**12), 50.0), OneWayDelays()
    for number in range(2_000):
        sent_ns = 10**15 + number * PACE_NS
        at_far_ns = sent_ns + OUT_NS + chance.expovariate(1e-4)
        back_ns = int(at_far_ns + HELD_NS + IN_NS + chance.expovariate(1e-4))
        delays.rises_of(sent_ns, far.time(at_far_ns), far.time(at_far_ns + HELD_NS), back_ns)
    assert delays.drift_ppm == pytest.approx(50, abs=2)


def test_a_shorter_path_is_the_new_base_at_once() -> None:
    """The first datagrams may have met other traffic."""
    delays = OneWayDelays()
    assert delays.rises_of(0, 5_000_000, 5_000_000, 10_000_000) == (0, 0)
    assert delays.rises_of(10_000_000, 11_000_000, 11_000_000, 13_000_000) == (0, 0)
    assert delays.rises_of(20_000_000, 25_000_000, 25_000_000, 30_000_000) == (4_000_000, 3_000_000)


def test_hours_with_gaps_keep_the_base_and_little_else() -> None:
    """A link that was away for a minute, and a run of three hours."""
    delays, far = OneWayDelays(), Far(10**9, 0.0)
    rises = [(0, 0)]
    for second in range(3 * 3_600):
        if 100 < second < 160:
            continue
        queue_ns = 30 * MILLISECOND_NS if second > 10 else 0
        sent_ns = second * 1_000_000_000
        at_far_ns = sent_ns + OUT_NS + queue_ns
        rises.append(delays.rises_of(sent_ns, far.time(at_far_ns), far.time(at_far_ns), at_far_ns + IN_NS))
    assert rises[-1] == (30 * MILLISECOND_NS, 0)
    assert len(delays._out.points) <= 64
