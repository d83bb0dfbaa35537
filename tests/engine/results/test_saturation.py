"""Saturation points and best settings of a sweep: by intervals, not by noise."""

import random

import pytest
from linkgauge.engine.model.plan import Direction
from linkgauge.engine.results.saturation import find_best, find_saturation_points
from linkgauge.engine.results.sweep import SweepPoint

from .sweep_cells import WINDOWS, K, cell, line


def test_the_knee_is_where_more_brings_nothing() -> None:
    """A rate that follows the window up to 64K, and is the line's beyond it."""
    (knee,) = find_saturation_points(line(lambda window: min(100.0, window / K * 100 / 64)))
    assert (knee.axis, knee.value, knee.is_first) == ("window_bytes", 64 * K, False)
    assert knee.max_gain_percent is not None
    assert knee.max_gain_percent is not None
    assert 0 < knee.max_gain_percent < 5


def test_a_rate_that_still_grows_has_its_knee_at_the_end_and_a_flat_one_at_the_beginning() -> None:
    """Both are told apart from a knee between."""
    (growing,) = find_saturation_points(line(lambda window: window / K))
    assert (growing.max_gain_percent, growing.is_first) == (None, False)
    assert growing.max_gain_percent is None
    (flat,) = find_saturation_points(line(lambda _window: 100.0))
    assert flat.is_first
    assert flat.value == 16 * K


def test_a_hair_more_is_no_gain_however_sure_it_is() -> None:
    """Half a percent, known exactly."""
    (knee,) = find_saturation_points(line(lambda window: 100.0 + window / (512 * K), error=0.0))
    assert knee.is_first


def test_noise_does_not_move_the_knee() -> None:
    """In 100 sweeps with a fixed seed, a flat line looks flat nearly always."""
    rng = random.Random(5820)  # noqa: S311
    moved = 0
    for _ in range(100):
        (knee,) = find_saturation_points(line(lambda _window: rng.gauss(100.0, 2.0), error=2.0))
        moved += not knee.is_first
    assert moved <= 5


def test_too_few_values_or_rates_that_nobody_knows_have_no_knee() -> None:
    """Nothing is claimed of them; neither is a window that is left to the kernel a place on the axis."""
    assert find_saturation_points(line(float)[:2]) == []
    assert find_saturation_points(line(lambda _window: 100.0, error=60.0)) == []
    auto = [cell(SweepPoint(Direction.OUT, 1, None, K), 100.0), *line(lambda _window: 100.0)[:2]]
    assert find_saturation_points(auto) == []


def test_the_best_point_is_shown_with_those_as_fast_and_the_cheapest_of_them() -> None:
    """Fewer sessions before a smaller window."""
    cells = line(lambda window: min(100.0, window / K))
    cells += [cell(SweepPoint(Direction.OUT, 5, window, K), 100.2) for window in WINDOWS]
    found = find_best(cells)
    assert found is not None
    assert found.fastest.bit_s == pytest.approx(100.2e6)
    assert len(found.equivalent) == 7
    assert found.least_demanding.point == SweepPoint(Direction.OUT, 1, 128 * K, K)
    assert find_best([]) is None
