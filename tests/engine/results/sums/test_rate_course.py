"""A change of the rate is found if one explains the course, and is not seen in growth, saw teeth or noise."""

import random
from collections.abc import Sequence

import pytest
from linkgauge.engine.results.sums.rate_course import RateCourse, RateStep

QUARTER_NS = 250_000_000


def course_of(mbit_s: Sequence[float], span_ns: int = QUARTER_NS) -> RateCourse:
    """Return the course of these rates, an interval each."""
    course = RateCourse()
    for each in mbit_s:
        course.add_interval(round(each * 1e6 / 8 * span_ns / 1e9), span_ns)
    return course


def noisy(count: int, mbit_s: float, share: float = 0.03, seed: int = 1) -> list[float]:
    """Return rates that vary by a share of their mean, by chance."""
    chance = random.Random(seed)  # noqa: S311 - not a secret
    return [mbit_s * max(0.0, chance.gauss(1, share)) for _ in range(count)]


@pytest.mark.parametrize("count", [24, 128, 129, 700, 5_000])
@pytest.mark.parametrize(("before", "then"), [(95, 40), (30, 95), (1_000, 0), (94, 70)])
@pytest.mark.parametrize("part", [0.2, 0.5, 0.85])
def test_the_one_change_of_a_rate_is_found(count: int, before: float, then: float, part: float) -> None:
    """Its time is that of the change, up to a part of the bounded memory."""
    split = round(part * count)
    step = course_of([*noisy(split, before), *noisy(count - split, then, seed=2)]).step
    assert step is not None
    assert step.after_s == pytest.approx(split / 4, abs=max(0.25, count / 4 / 64))
    assert step.before_bit_s == pytest.approx(before * 1e6, rel=0.06)
    assert step.then_bit_s == pytest.approx(then * 1e6, rel=0.06, abs=0.05 * before * 1e6)
    assert step.is_slower is (then < before)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3])
def test_noise_has_no_change(share: float, seed: int) -> None:
    """However much it varies."""
    assert course_of(noisy(40, 95, share, seed)).step is None


@pytest.mark.parametrize("teeth", [0.5, 1, 2, 5])
def test_growth_and_the_teeth_of_a_congestion_window_have_no_change(teeth: float) -> None:
    """A line is growth for the whole time."""
    assert course_of([50 + 50 * ((n * teeth / 60) % 1) for n in range(60)]).step is None
    assert course_of([10 + n for n in range(60)]).step is None


def test_a_change_that_matters_little_or_lasts_briefly_is_none() -> None:
    """An interval at the beginning or the end is not a rate."""
    assert course_of([95.0] * 20 + [85.0] * 20).step is None
    assert course_of([95.0] * 38 + [10.0] * 2).step is None
    assert course_of([10.0] * 2 + [95.0] * 38).step is None


@pytest.mark.parametrize("mbit_s", [[], [95.0], [95.0] * 3 + [10.0] * 2, [0.0] * 40])
def test_too_little_has_no_change(mbit_s: list[float]) -> None:
    """Nor has no payload at all."""
    assert course_of(mbit_s).step is None


def test_times_that_follow_each_other_are_one_course() -> None:
    """As the periods of a run whose settings came back."""
    whole = course_of([95.0] * 100)
    whole.extend(course_of([40.0] * 100))
    assert whole.step == RateStep(25.0, 95_000_000, 40_000_000)
    assert len(whole.parts) <= 128
