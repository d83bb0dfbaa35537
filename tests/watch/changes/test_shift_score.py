"""How far beyond chance the newest values are."""

import random

import pytest
from linkgauge.watch.changes.shift_score import MOST_SHIFT, Scatter, measure_scatter, score_shift

EVEN = Scatter(1.0, 1.0, 0.0)
BEFORE = [each / 10 for each in range(-20, 21)]


def test_scatter_is_measured_below_and_above_the_median() -> None:
    """A plateau with falls has more below."""
    draw = random.Random(1)  # noqa: S311 - chance, not secrets
    scatter = measure_scatter([min(0.2, draw.gauss(0, 1)) for _ in range(400)], 0.0)
    assert scatter.below > 3 * scatter.above


def test_rare_falls_leave_the_scatter_as_it_is() -> None:
    """Their number counts, not their size."""
    draw = random.Random(2)  # noqa: S311 - chance, not secrets
    values = [draw.gauss(100, 1) for _ in range(100)]
    fallen = [50.0 if number % 20 == 3 else value for number, value in enumerate(values)]
    assert measure_scatter(fallen, 0.0).below < 1.5 * measure_scatter(values, 0.0).below


def test_values_that_follow_each_other_are_correlated() -> None:
    """A drift is fully correlated, independent values hardly."""
    draw = random.Random(3)  # noqa: S311 - chance, not secrets
    assert measure_scatter([float(each) for each in range(100)], 0.0).correlation == pytest.approx(0.9)
    assert measure_scatter([draw.gauss(0, 1) for _ in range(200)], 0.0).correlation < 0.2


def test_equal_values_have_the_minimum_scatter() -> None:
    """With zero any shift would be infinitely many scatters."""
    assert measure_scatter([5.0] * 10, 0.25) == Scatter(0.25, 0.25, 0.0)


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_shift_scores_the_same_to_both_sides(sign: int) -> None:
    """If the scatter is the same."""
    newest = sorted(sign * each for each in (4.0, 4.5, 5.0, 5.5))
    shift, score = score_shift(BEFORE, newest, EVEN)
    assert shift == pytest.approx(4.0)
    assert score == pytest.approx(score_shift(BEFORE, [4.0, 4.5, 5.0, 5.5], EVEN)[1])
    assert score > 14


def test_one_of_five_values_may_be_without_the_shift_and_none_of_four() -> None:
    """One or two flaps are not a shift."""
    assert score_shift(BEFORE, [0.0, 9.0, 9.0, 9.0], EVEN)[0] == 0
    assert score_shift(BEFORE, [0.0, 9.0, 9.0, 9.0, 9.0], EVEN)[0] == pytest.approx(9.0)
    assert score_shift(BEFORE, [0.0, 0.0, 9.0, 9.0, 9.0], EVEN)[0] == 0


def test_values_that_came_before_now_and_then_score_less() -> None:
    """Four in a row are less rare then."""
    newest = [-9.0, -9.0, -9.0, -9.0]
    seldom = score_shift(sorted([-9.0, *BEFORE]), newest, EVEN)[1]
    often = score_shift(sorted([-9.0] * 10 + BEFORE), newest, EVEN)[1]
    assert score_shift(BEFORE, newest, EVEN)[1] > seldom > often


def test_correlated_values_score_less_and_shifts_have_a_limit() -> None:
    """Nobody knows how rare larger shifts are."""
    newest = [-3.0, -3.0, -3.0, -3.0]
    assert score_shift(BEFORE, newest, Scatter(1.0, 1.0, 0.8))[1] < score_shift(BEFORE, newest, EVEN)[1] / 4
    assert score_shift(BEFORE, [-1e9] * 4, EVEN)[0] == MOST_SHIFT
