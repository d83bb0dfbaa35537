"""Patterns of loss, found in losses that were made by them."""

import random
from collections.abc import Callable

import pytest
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.results.udp.loss_pattern import LossPattern, LossSeries, find_loss_pattern

RATE_S = 2_000
Lose = Callable[[int, random.Random], bool]


def in_bursts(start: float, length: int) -> Lose:
    """Return a way to lose datagrams in bursts of a length that begin by chance."""
    left = 0

    def lose(_number: int, chance: random.Random) -> bool:
        nonlocal left
        left = left - 1 if left else length * (chance.random() < start)
        return left > 0

    return lose


def is_at(number: int, period: int, count: int) -> bool:
    """Return whether a number is among the first of its period."""
    return number % period < count


def observe(
    lose: Lose, seconds: float, interval_s: float, seed: int = 1, unevenness: float = 0.0
) -> LossPattern | None:
    """Return the pattern of the losses in a run of numbered datagrams, 2,000 a second unless they are uneven."""
    chance = random.Random(seed)  # noqa: S311 - chance, not secrets
    series, lost, gaps, was_lost, sent = LossSeries(), 0, 0, False, 0
    for interval in range(round(seconds / interval_s)):
        before, sent_before = lost, sent
        # The ends of intervals are late by a little, as those of a sampler are.
        end_s = (interval + 1) * interval_s + chance.random() * 0.002
        shortfall = round(chance.random() * unevenness * interval_s * RATE_S)
        for number in range(sent, round(end_s * RATE_S) - shortfall):
            is_lost = lose(number, chance)
            gaps += is_lost and not was_lost
            lost += is_lost
            was_lost = is_lost
            sent += 1
        series.add_interval(
            lost - before, sent - sent_before, round(end_s * SECOND_NS), round(interval_s * SECOND_NS)
        )
    return find_loss_pattern(lost, gaps, lost / sent, series)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.every) for seed in range(1, 5))])
@pytest.mark.parametrize(
    ("lose", "pattern"),
    [
        (lambda _, chance: chance.random() < 0.01, "random"),
        (lambda _, chance: chance.random() < 0.05, "random"),
        (lambda _, chance: chance.random() < 0.3, "random"),
        (lambda number, _: number % 50 == 0, "periodic"),
        (lambda number, _: number % 20 == 0, "periodic"),
        (lambda number, _: is_at(number, RATE_S, 40), "periodic"),  # each second
        (lambda number, _: is_at(number, 3 * RATE_S // 2, 1), "periodic"),
        (in_bursts(0.003, 8), "bursts"),
        (in_bursts(0.02, 3), "bursts"),
        (lambda number, _: number == 3_000, None),
        (lambda _number, _: False, None),
    ],
)
def test_the_pattern_of_losses_is_the_one_that_made_them(
    lose: Lose, pattern: LossPattern | None, seed: int
) -> None:
    """Within ten seconds, for any seed."""
    assert observe(lose, 10, 0.25, seed) == pattern


def test_a_sender_that_is_held_up_at_times_changes_no_pattern() -> None:
    """Intervals with fewer datagrams have fewer losses."""
    patterns = {observe(lambda number, _: number % 40 == 0, 10, 0.25, seed, 0.6) for seed in range(10)}
    assert patterns == {"periodic"}
    patterns = {observe(lambda _, chance: chance.random() < 0.03, 10, 0.25, seed, 0.6) for seed in range(10)}
    assert patterns == {"random"}


@pytest.mark.parametrize(("share", "seconds"), [(0.02, 3), (0.02, 10), (0.0005, 30)])
def test_random_losses_are_rarely_taken_for_others(share: float, seconds: int) -> None:
    """This holds in short runs, and if losses are rare."""
    patterns = [observe(lambda _, chance: chance.random() < share, seconds, 0.25, seed) for seed in range(20)]
    assert patterns.count("random") >= 19


def test_series_of_two_times_add_up() -> None:
    """As those of a run's periods do."""
    whole, first, second = LossSeries(), LossSeries(), LossSeries()
    for number in range(20):
        for series in (whole, first if number < 10 else second):
            series.add_interval(number % 4 == 1, 100, (number + 1) * 10**9, 10**9)
    first.extend(second)
    assert first == whole
    assert whole.period_ns == 4 * 10**9
