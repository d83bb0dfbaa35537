"""When the rates of a direction have settled."""

import random

from linkgauge.engine.near.warmup_detection import MIN_SETTLED_INTERVALS, WarmupDetector, warmup_length


def noisy(rates: list[float], seed: int = 1) -> list[float]:
    """Return the rates with a little noise, the same each time."""
    rng = random.Random(seed)  # noqa: S311
    return [rate + rng.gauss() for rate in rates]


def settles_after(rates: list[float]) -> int | None:
    """Return how many rates a watch saw until it said that they had settled."""
    watch = WarmupDetector()
    return next((number for number, rate in enumerate(rates, 1) if watch.note_rate(rate)), None)


def test_the_cut_is_where_the_ramp_ends() -> None:
    """The rates before it are left out, and not many more."""
    rates = noisy([10.0 * step for step in range(10)] + [100.0] * 40)
    assert 9 <= warmup_length(rates) <= 12


def test_a_ramp_settles_when_it_is_over_and_a_steady_rate_at_once() -> None:
    """It settles after enough steady rates."""
    ramp = settles_after(noisy([10.0 * step for step in range(10)] + [100.0] * 40))
    assert ramp is not None
    assert 10 + MIN_SETTLED_INTERVALS - 2 <= ramp <= 10 + 2 * MIN_SETTLED_INTERVALS
    assert settles_after([100.0] * 20) == MIN_SETTLED_INTERVALS


def test_silence_and_a_rising_rate_have_not_settled() -> None:
    """Zero is not a steady rate."""
    assert settles_after([0.0] * 100) is None
    assert settles_after([float(step) for step in range(100)]) is None
