"""When a run has settled: MSER on its rates, and samples stamped by it."""

import random

import pytest
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.events import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Direction, End, Plan, Settings
from linkgauge.engine.model.samples import Sample, SessionSample
from linkgauge.engine.near.timeline import Timeline
from linkgauge.engine.near.warmup import MIN_SETTLED_INTERVALS, WarmupDetector, warmup_length

TICK = SECOND_NS // 4


def noisy(rates: list[float], seed: int = 1) -> list[float]:
    """Return the rates with a little noise, the same each time."""
    rng = random.Random(seed)  # noqa: S311
    return [rate + rng.gauss() for rate in rates]


def settles_after(rates: list[float]) -> int | None:
    """Return how many rates a watch saw until it said that they had settled."""
    watch = WarmupDetector()
    return next((number for number, rate in enumerate(rates, 1) if watch.feed(rate)), None)


def test_the_cut_is_where_the_ramp_ends() -> None:
    """What came before is left out, and not much more."""
    rates = noisy([10.0 * step for step in range(10)] + [100.0] * 40)
    assert 9 <= warmup_length(rates) <= 12


def test_a_ramp_settles_when_it_is_over_and_a_steady_rate_at_once() -> None:
    """As soon as enough calm was seen after it."""
    ramp = settles_after(noisy([10.0 * step for step in range(10)] + [100.0] * 40))
    assert ramp is not None
    assert 10 + MIN_SETTLED_INTERVALS - 2 <= ramp <= 10 + 2 * MIN_SETTLED_INTERVALS
    assert settles_after([100.0] * 20) == MIN_SETTLED_INTERVALS


def test_silence_and_what_still_rises_have_not_settled() -> None:
    """Nothing at all is no steady rate."""
    assert settles_after([0.0] * 100) is None
    assert settles_after([float(step) for step in range(100)]) is None


def sample(end: End, index: int, bytes_: int, flow: Direction = Direction.OUT) -> Sample:
    """Return a sample of the interval of that index."""
    return Sample(end, index, (index + 1) * TICK, TICK, (SessionSample(flow, 1, bytes_),))


def test_samples_are_warm_up_until_the_receivers_rate_has_settled() -> None:
    """The sender's samples follow the receiver's."""
    line = Timeline(Plan(warmup_auto=True, duration_ns=20 * SECOND_NS), lambda _settings: Expectation())
    stamped: list[bool] = []
    for index in range(30):
        rate = min(index, 8) * 1_000_000
        line.stamp(sample(End.NEAR, index, 5_000_000))
        stamped.append(line.stamp(sample(End.FAR, index, rate)).warmup)
    measured = stamped.index(False)
    assert 8 + MIN_SETTLED_INTERVALS - 2 <= measured <= 8 + 2 * MIN_SETTLED_INTERVALS
    assert not any(stamped[measured:])
    assert line.take_warnings() == []


def test_a_change_settles_anew_and_both_directions_must() -> None:
    """Each stretch finds its own warm-up."""
    line = Timeline(Plan(warmup_auto=True, duration_ns=40 * SECOND_NS), lambda _settings: Expectation())
    for index in range(20):
        line.stamp(sample(End.FAR, index, 1_000_000))
    line.change(20 * TICK, Settings(Direction.DUPLEX))
    stamped: list[bool] = []
    for index in range(20, 60):
        line.stamp(sample(End.FAR, index, 1_000_000, Direction.OUT))
        came = line.stamp(sample(End.NEAR, index, min(index - 20, 10) * 1_000_000, Direction.IN))
        stamped.append(came.warmup)
    assert 10 + MIN_SETTLED_INTERVALS - 2 <= stamped.index(False) <= 10 + 2 * MIN_SETTLED_INTERVALS


def test_a_rate_that_never_settles_is_measured_after_half_of_the_run_with_a_warning() -> None:
    """Once, however long the run."""
    line = Timeline(Plan(warmup_auto=True, duration_ns=10 * SECOND_NS), lambda _settings: Expectation())
    stamped = [line.stamp(sample(End.FAR, index, 1_000 * index)).warmup for index in range(40)]
    assert stamped == [True] * 20 + [False] * 20
    (warning,) = line.take_warnings()
    assert "5 s" in warning
    assert line.take_warnings() == []


def test_a_warm_up_is_either_fixed_or_automatic() -> None:
    """An endless run waits half a minute at most."""
    with pytest.raises(PlanError, match="warm-up"):
        Plan(warmup_auto=True, warmup_ns=SECOND_NS)
    assert Plan(warmup_auto=True, duration_ns=None).effective_warmup_ns == 30 * SECOND_NS
