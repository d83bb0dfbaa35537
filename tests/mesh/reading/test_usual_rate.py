"""The usual rate of cells, their scatter, and slowness beyond chance."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.mesh.reading.usual_rate import find_spread, slowness_beyond_chance, usual_rates


def cells(count: int, rate: float, spread: float, seed: int = 1) -> list[float]:
    """Return scattered cells."""
    draw = random.Random(seed)  # noqa: S311 - no secret
    return [draw.gauss(rate, spread) for _ in range(count)]


def test_rates_of_many_cells_are_found_the_highest_first() -> None:
    """A quarter of the cells is fast: half of the hosts."""
    logs = cells(250, 0.0, 0.03) + cells(750, -0.7, 0.03)
    assert usual_rates(logs, is_absolute=False) == [pytest.approx(0, abs=0.02), pytest.approx(-0.7, abs=0.02)]


def test_scattered_cells_have_one_rate() -> None:
    """At 8 %, the fastest cells do not have a rate of their own."""
    assert usual_rates(cells(1000, 0.0, 0.08), is_absolute=True)[-1] == pytest.approx(0, abs=0.02)


@given(logs=st.lists(st.floats(-7, 25), max_size=20))
def test_any_cells_have_a_usual_rate_among_them(logs: list[float]) -> None:
    """None without cells."""
    rates = usual_rates(logs, is_absolute=True)
    assert bool(rates) == bool(logs)
    assert all(min(logs) - 1e-9 <= rate <= max(logs) + 1e-9 for rate in rates)


@pytest.mark.parametrize("spread", [0.02, 0.08])
def test_the_scatter_is_measured_on_healthy_cells(spread: float) -> None:
    """Slow cells do not count."""
    logs = cells(600, 0.0, spread) + cells(400, -0.6, spread)
    assert find_spread(logs, 0.0) == pytest.approx(spread, rel=0.15)


def test_few_cells_are_assumed_to_scatter_as_rates_usually_do() -> None:
    """Two cells say nothing."""
    assert 0.02 < find_spread([0.0, 0.0], 0.0) < 0.06


def test_longer_tails_make_more_chance() -> None:
    """The fast cells show them. Two hosts of one machine are not a tail."""
    normal = slowness_beyond_chance(cells(1000, 0.0, 0.03), 0.03)
    assert 0.1 <= normal < 0.25
    draw = random.Random(1)  # noqa: S311 - no secret
    wild = [value * draw.choice((1, 1, 1, 5)) for value in cells(1000, 0.0, 0.03)]
    assert slowness_beyond_chance(wild, 0.03) > 1.5 * normal
    assert slowness_beyond_chance([*cells(1000, 0.0, 0.03), 2.3, 2.3], 0.03) == pytest.approx(normal, rel=0.1)


def test_slow_paths_do_not_hide_each_other() -> None:
    """One in seven is slow: that is not scatter."""
    many = cells(900, 0.0, 0.03) + cells(150, -0.7, 0.03)
    assert slowness_beyond_chance(many, 0.03) < 0.3
    assert slowness_beyond_chance([], 0.03) == 0
