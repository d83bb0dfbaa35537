"""Changes of level over whole series: found soon, found once, and not found where there are none."""

import random
from collections.abc import Sequence

import pytest
from linkgauge.watch.changes.level_watch import LevelWatch
from linkgauge.watch.events import ChangeFound, Metric

RATE = 1e9
GOODPUT = Metric.GOODPUT_BIT_S


def feed(values: Sequence[float], metric: Metric = GOODPUT) -> list[ChangeFound]:
    """Return the changes of a series; its n-th value is at n seconds."""
    watch = LevelWatch("office", metric)
    found = [watch.add(float(number), value) for number, value in enumerate(values)]
    return [each for each in found if each is not None]


def goodput(count: int, scatter: float, seed: int) -> list[float]:
    """Return the rates of a link: at its plateau or below."""
    draw = random.Random(seed)  # noqa: S311 - chance, not secrets
    return [RATE * (1 - abs(draw.gauss(0, scatter))) for _ in range(count)]


@pytest.mark.parametrize("scatter", [0.001, 0.01, 0.03])
@pytest.mark.parametrize("factor", [0.6, 0.8, 1.25])
@pytest.mark.parametrize("begins", [20, 100])
@pytest.mark.parametrize("seed", range(5))
def test_a_large_change_is_found_within_five_cycles(scatter: float, factor: float, begins: int, seed: int) -> None:
    """And once."""
    values = goodput(begins + 60, scatter, seed)
    changes = feed(values[:begins] + [factor * each for each in values[begins:]])
    assert len(changes) == 1
    change = changes[0]
    assert change.at_s <= begins + 4
    assert abs(change.since_s - begins) <= 1
    assert change.is_worse is (factor < 1)
    assert change.before.median == pytest.approx(RATE, rel=3 * scatter)
    assert change.after.median == pytest.approx(RATE * factor, rel=3 * scatter)


@pytest.mark.parametrize("seed", range(5))
def test_a_drop_and_a_return_are_two_changes(seed: int) -> None:
    """However soon the return is: the young level knows the scatter of the one before."""
    values = goodput(150, 0.02, seed)
    fallen = [0.6 * each if 60 <= number < 72 else each for number, each in enumerate(values)]
    assert [change.is_worse for change in feed(fallen)] == [True, False]


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("begins", [3, 9, 40])
def test_a_flap_is_no_change(length: int, begins: int) -> None:
    """Nor two of them."""
    values = goodput(120, 0.01, begins)
    for start in (begins, begins + length + 3):
        values[start : start + length] = [0.3 * RATE] * length
    assert feed(values) == []
