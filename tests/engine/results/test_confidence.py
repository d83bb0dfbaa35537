"""The error of a mean: its interval contains the truth as often as it says, even with correlation."""

import json
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.results.confidence import (
    MIN_INTERVALS,
    Estimate,
    PrecisionTarget,
    RateSeries,
    estimate_mean,
    student_t,
)

SPAN = 250_000_000


def series_of(rates: list[float]) -> RateSeries:
    """Return a series of intervals of the same span with these rates."""
    series = RateSeries()
    for rate in rates:
        series.add_interval(rate * SPAN, SPAN)
    return series


def correlated(rng: random.Random, correlation: float, count: int) -> list[float]:
    """Return an AR(1) series around 100, of its stationary distribution."""
    value = rng.gauss() / (1 - correlation**2) ** 0.5
    found: list[float] = []
    for _ in range(count):
        found.append(100 + value)
        value = correlation * value + rng.gauss()
    return found


def half_width(rates: list[float]) -> float:
    """Return half the width of a series' interval."""
    steady = series_of(rates).estimate()
    assert steady is not None
    return steady.half_width()


def covered(series: Callable[[], list[float]]) -> float:
    """Return how often the interval of such series holds their mean, which is 100."""
    found = [series_of(series()).estimate() for _ in range(200)]
    return sum(interval is not None and interval.low <= 100 <= interval.high for interval in found) / len(found)


@pytest.mark.parametrize(
    ("degrees", "confidence", "t"),
    [(1, 0.95, 12.7062), (2, 0.95, 4.3027), (9, 0.95, 2.2622), (15, 0.99, 2.9467), (30, 0.95, 2.0423)],
)
def test_students_t_is_that_of_the_tables(degrees: float, confidence: float, t: float) -> None:
    """Two-sided, as any book prints them."""
    assert student_t(degrees, confidence) == pytest.approx(t, abs=1e-4)


def test_students_t_of_many_degrees_is_the_normal_quantile() -> None:
    """On both sides of the number of degrees where the normal quantile replaces it."""
    normal = NormalDist().inv_cdf(0.975)
    assert student_t(9_999) == pytest.approx(normal, rel=2e-4)
    assert student_t(1e9) == pytest.approx(normal)


@given(st.floats(1, 300), st.floats(0.5, 0.999))
def test_students_t_falls_with_its_degrees(degrees: float, confidence: float) -> None:
    """More values never widen the interval."""
    assert student_t(degrees, confidence) >= student_t(degrees + 1, confidence) > 0


def test_what_has_no_degree_of_freedom_is_refused() -> None:
    """A single value has no spread."""
    with pytest.raises(ValueError, match=r"0\.5 degrees"):
        student_t(0.5)


@pytest.mark.parametrize("count", [36, 120])
@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.5, 0.9])
def test_the_interval_covers_the_mean_of_a_correlated_series(correlation: float, count: int) -> None:
    """In 200 series with a fixed seed, of a run of 10 s and of half a minute: about as often as 95 % says.

    Of 36 intervals with a correlation of 0.9 few are independent, so that it is somewhat less often.
    """
    rng = random.Random(5820)  # noqa: S311
    least = 0.86 if correlation == 0.9 and count == 36 else 0.90
    assert least <= covered(lambda: correlated(rng, correlation, count)) <= 0.99


def test_behind_a_shaper_the_interval_is_far_narrower_than_the_spread() -> None:
    """Each interval makes up for the shortfall of the one before: only the ends of the whole remain."""
    rng = random.Random(5820)  # noqa: S311

    def shaped(count: int) -> list[float]:
        late = [rng.gauss() for _ in range(count + 1)]
        return [100 + this - before for before, this in pairwise(late)]

    assert covered(lambda: shaped(120)) >= 0.95
    widths = sorted(half_width(shaped(120)) for _ in range(101))
    independent = student_t(19) * 2**0.5 / 120**0.5
    assert widths[50] < 0.35 * independent


def test_the_interval_of_runs_over_an_emulated_link_is_as_wide_as_it_need_be() -> None:
    """A receiver counted their bytes and times over 100 Mb/s: a run of 20 s, and 15 runs of 3 s.

    The machine had other work: two of the short runs lost some of the link to it.
    """
    runs = json.loads((Path(__file__).parent / "lab_runs.json").read_text(encoding="utf-8"))
    long, *short = [[(amount * 8e3, span) for amount, span in each] for each in runs]
    truth = sum(amount for amount, _ in long) / sum(span for _, span in long)
    held, widths = 0, []
    for each in short:
        series = RateSeries()
        for amount, span in each:
            series.add_interval(amount, span)
        steady = series.estimate()
        assert steady is not None
        held += steady.low <= truth <= steady.high
        widths.append(steady.half_width_percent or 0.0)
    assert 13 <= held <= 15
    assert sorted(widths)[7] < 0.2


def test_correlated_intervals_give_a_wider_interval_than_independent_ones() -> None:
    """The same values, in their order and shuffled."""
    rng = random.Random(1)  # noqa: S311
    rates = correlated(rng, 0.9, 400)
    as_they_came = series_of(rates).estimate()
    rng.shuffle(rates)
    shuffled = series_of(rates).estimate()
    assert as_they_came is not None
    assert shuffled is not None
    assert as_they_came.half_width() > 1.5 * shuffled.half_width()


def test_a_steady_rate_has_an_interval_without_width() -> None:
    """0 is measured."""
    steady = series_of([94.0] * 20).estimate()
    assert steady is not None
    assert (steady.low, steady.high, steady.half_width_percent) == (94.0, 94.0, 0.0)


def test_too_few_intervals_tell_nothing() -> None:
    """Without an estimate there is no interval."""
    assert series_of([94.0] * (MIN_INTERVALS - 1)).estimate() is None
    assert estimate_mean([94.0, 95.0]) is None


def test_a_rate_is_never_below_0_and_0_has_no_percentage() -> None:
    """A lower end under 0 is 0."""
    assert Estimate(1.0, 5.0, 9.0, 10).low == 0.0
    assert Estimate(0.0, 0.0, 9.0, 10).half_width_percent is None


def test_another_unit_is_the_same_interval() -> None:
    """Megabits, or transactions of a known size."""
    steady = Estimate(100.0, 2.0, 9.0, 10)
    assert steady.scaled(1e-3).half_width_percent == pytest.approx(steady.half_width_percent)
    assert steady.scaled(1e-3).low == pytest.approx(steady.low * 1e-3)


@given(st.integers(MIN_INTERVALS, 3_000))
def test_a_long_series_takes_bounded_memory_and_keeps_its_mean(count: int) -> None:
    """Neighbours are merged. The caller's exact mean includes intervals that do not fill a batch yet."""
    series = series_of([float(number % 7) for number in range(count)])
    steady = series.estimate(mean=3.0)
    assert steady is not None
    assert steady.mean == 3.0
    assert steady.interval_count == count
    assert len(series._bins) < 128


def test_silence_at_the_end_can_be_left_out() -> None:
    """The wait for a lost peer says nothing about the link."""
    series = series_of([94.0] * 10 + [0.0] * 5)
    series.trim_silence()
    steady = series.estimate()
    assert steady is not None
    assert steady.high == 94.0


def test_a_precision_is_reached_when_the_interval_is_narrow_enough_and_not_before_twenty_intervals() -> None:
    """Two checks in a row must agree, so that it does not stop by chance."""
    precision = PrecisionTarget(1.0)
    narrow, wide = Estimate(100.0, 0.1, 15.0, 19), Estimate(100.0, 5.0, 15.0, 20)
    assert not precision.is_reached(None)
    assert not precision.is_reached(narrow)
    assert not precision.is_reached(wide)
    assert not precision.is_reached(Estimate(100.0, 0.1, 15.0, 21))
    assert not precision.is_reached(Estimate(100.0, 0.1, 15.0, 22))
    assert not precision.is_reached(Estimate(100.0, 0.1, 15.0, 23))
    assert precision.is_reached(Estimate(100.0, 0.1, 15.0, 24))
