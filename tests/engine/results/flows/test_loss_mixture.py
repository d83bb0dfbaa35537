"""One loss probability, or two; tails of binomials; the false discovery rate."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.results.flows.loss_mixture import discoveries, fit_mixture, upper_tail


def draws(probabilities: list[float], sent: int, seed: int) -> list[tuple[int, int]]:
    """Return the losses of flows with these probabilities."""
    draw = random.Random(seed)  # noqa: S311 - chance, not secrets
    return [(sum(draw.random() < each for _ in range(sent)), sent) for each in probabilities]


@pytest.mark.parametrize("loss", [0.0, 0.001, 0.02, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_flows_that_are_alike_are_no_mixture(loss: float, seed: int) -> None:
    """Whatever they lose."""
    assert not fit_mixture(draws([loss] * 128, 200, seed)).has_two


@pytest.mark.parametrize(("loss", "background"), [(0.01, 0.0), (0.05, 0.005), (0.2, 0.01)])
def test_two_probabilities_are_found_with_their_share(loss: float, background: float) -> None:
    """A quarter of the flows is on the bad link."""
    mixture = fit_mixture(draws([loss] * 64 + [background] * 192, 400, 1))
    assert mixture.has_two
    assert mixture.high == pytest.approx(loss, rel=0.25)
    assert mixture.low == pytest.approx(background, abs=0.002)
    assert mixture.share == pytest.approx(0.25, abs=0.06)


def test_no_flow_and_no_loss_are_no_mixture() -> None:
    """Nothing is divided by nothing."""
    assert fit_mixture([]).ratio == fit_mixture([(0, 0)]).ratio == fit_mixture([(0, 9), (0, 9)]).ratio == 0


@given(st.integers(0, 60), st.floats(0.0, 1.0))
def test_the_tail_is_a_probability_that_falls_with_the_losses(lost: int, probability: float) -> None:
    """From 1 for no loss on."""
    tail = upper_tail((lost, 60), probability)
    assert 0 <= tail <= 1
    assert upper_tail((lost + 1, 61), probability) <= upper_tail((lost, 61), probability) + 1e-9
    assert upper_tail((0, 60), probability) == 1


def test_the_tail_is_exact() -> None:
    """Two or more of three, at one half."""
    assert upper_tail((2, 3), 0.5) == pytest.approx(0.5)
    assert upper_tail((3, 3), 0.1) == pytest.approx(0.001)


def test_discoveries_are_those_of_benjamini_and_hochberg() -> None:
    """The largest rank whose chance is below its part of the rate takes all before it along."""
    assert discoveries([0.001, 0.9, 0.012, 0.014], 0.02) == {0, 2, 3}
    assert discoveries([0.5, 0.9], 0.02) == set()
