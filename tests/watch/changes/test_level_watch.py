"""Changes of level over whole series: found soon, found once, and not invented."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.watch.changes.level_watch import EFFECTS, MAX_VALUES, LevelWatch
from linkgauge.watch.events import ChangeFound, Metric

RATE = 1e9
GOODPUT = Metric.GOODPUT_BIT_S


def feed(values: Sequence[float], metric: Metric = GOODPUT) -> list[ChangeFound]:
    """Return the changes of a series; its n-th value is at n seconds."""
    watch = LevelWatch("office", metric)
    found = [watch.take_value(float(number), value) for number, value in enumerate(values)]
    return [each for each in found if each is not None]


def goodput(count: int, scatter: float, seed: int) -> list[float]:
    """Return the rates of a link: at its plateau or below."""
    draw = random.Random(seed)  # noqa: S311 - chance, not secrets
    return [RATE * (1 - abs(draw.gauss(0, scatter))) for _ in range(count)]


@given(
    scatter=st.sampled_from([0.001, 0.01, 0.03]),
    factor=st.sampled_from([0.6, 0.8, 1.25]),
    begins=st.sampled_from([20, 100]),
    seed=st.sampled_from(range(5)),
)
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
    """Even if the return comes soon: the young level has the scatter of the level before it."""
    values = goodput(150, 0.02, seed)
    fallen = [0.6 * each if 60 <= number < 72 else each for number, each in enumerate(values)]
    assert [change.is_worse for change in feed(fallen)] == [True, False]


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("begins", [3, 9, 40])
def test_a_flap_is_not_a_change(length: int, begins: int) -> None:
    """Nor two of them."""
    values = goodput(120, 0.01, begins)
    for start in (begins, begins + length + 3):
        values[start : start + length] = [0.3 * RATE] * length
    assert feed(values) == []


def test_a_failed_cycle_is_a_gap() -> None:
    """Times may be far apart. Values that are negative or not finite are left out."""
    watch = LevelWatch("office", GOODPUT)
    values = goodput(40, 0.01, 1)
    for number, value in enumerate(values):
        assert watch.take_value(number * 86_400.0, value) is None
        assert watch.take_value(number * 86_400.0 + 1, float("nan")) is None
        assert watch.take_value(number * 86_400.0 + 2, -1.0) is None
    assert watch.level is not None
    assert watch.level.count == 40
    assert watch.since_s == 0


def test_a_watch_without_values_has_no_level() -> None:
    """Unknown is None."""
    watch = LevelWatch("office", GOODPUT)
    assert (watch.level, watch.since_s) == (None, None)


def test_a_change_names_why_before_and_after() -> None:
    """By the most frequent finding of each level."""
    watch = LevelWatch("office", GOODPUT)
    found = [watch.take_value(float(number), RATE, None) for number in range(20)]
    found += [watch.take_value(20.0 + number, RATE / 2, "slow_link") for number in range(5)]
    (change,) = [each for each in found if each is not None]
    assert (change.before.why, change.after.why) == (None, "slow_link")
    assert (change.peer, change.metric, change.since_s) == ("office", GOODPUT, 20.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("metric", list(Metric))
def test_five_hundred_steady_cycles_are_quiet(metric: Metric, seed: int) -> None:
    """Rates fall now and then, round trips rise now and then, and counts are mostly zero."""
    draw = random.Random(f"{metric} {seed}")  # noqa: S311 - chance, not secrets
    values: list[float] = []
    for rate in goodput(500, 0.02, seed):
        is_rare = draw.random() < 0.05
        match metric:
            case Metric.GOODPUT_BIT_S:
                values.append(rate * (draw.uniform(0.4, 0.9) if is_rare else 1))
            case Metric.LATENCY_S:
                values.append(0.002 * (1 + draw.expovariate(10)) * (draw.uniform(1.5, 10) if is_rare else 1))
            case Metric.LOSS:
                values.append(draw.expovariate(200) if is_rare else 0.0)
            case Metric.RETRANSMITS:
                values.append(float(draw.choice((0, 0, 20, 150, 700)) * is_rare))
    assert feed(values, metric) == []


@pytest.mark.parametrize(
    ("metric", "before", "after"),
    [
        (Metric.LATENCY_S, 0.002, 0.004),
        (Metric.LATENCY_S, 0.030, 0.010),
        (Metric.LOSS, 0.0, 0.01),
        (Metric.RETRANSMITS, 0.0, 1_000.0),
        (Metric.RETRANSMITS, 2_000.0, 200.0),
    ],
)
def test_latency_loss_and_retransmits_are_worse_when_they_rise(metric: Metric, before: float, after: float) -> None:
    """A fall is better. Each change is found once."""
    draw = random.Random(1)  # noqa: S311 - chance, not secrets
    values = [level * (1 + draw.expovariate(10)) for level in (before, after) for _ in range(60)]
    (change,) = feed(values, metric)
    assert change.at_s <= 67
    assert change.is_worse is (after > before)


def test_a_slow_drift_is_few_changes() -> None:
    """A third of the rate over 300 cycles."""
    values = [each * (1 - number / 900) for number, each in enumerate(goodput(300, 0.02, 1))]
    assert len(feed(values)) <= 3


@given(
    st.lists(st.one_of(st.floats(0, 1e11), st.sampled_from([0.0, 0.6e9, 1e9])), max_size=150),
    st.sampled_from(list(Metric)),
)
def test_the_same_values_give_the_same_changes_in_order(values: list[float], metric: Metric) -> None:
    """Each change begins after the one before, matters, and has both levels' values."""
    changes = feed(values, metric)
    assert changes == feed(values, metric)
    since = [change.since_s for change in changes]
    assert since == sorted(set(since))
    for change in changes:
        assert change.since_s <= change.at_s - 3
        assert change.before.median != change.after.median
        assert change.before.count >= 5
        assert change.after.count >= 4


def test_the_memory_of_a_level_is_bounded() -> None:
    """The newest values are kept."""
    watch = LevelWatch("office", GOODPUT)
    for number in range(MAX_VALUES + 50):
        watch.take_value(float(number), RATE + number % 7)
    assert watch.level is not None
    assert watch.level.count == MAX_VALUES
    assert watch.since_s == 50


@given(seed=st.sampled_from(range(3)), cut=st.sampled_from(range(0, 220, 20)))
def test_a_restart_goes_on_with_the_same_level(seed: int, cut: int) -> None:
    """Given the earlier values and changes, it finds the same changes as without a restart."""
    values = goodput(240, 0.02, seed)
    values = [0.6 * each if 60 <= number < 120 else each for number, each in enumerate(values)]
    unbroken, restarted = LevelWatch("office", GOODPUT), LevelWatch("office", GOODPUT)
    for number, value in enumerate(values):
        change = unbroken.take_value(float(number), value)
        if number < cut:
            restarted.recall(float(number), value)
            if change is not None:
                restarted.follow(change)
        else:
            assert restarted.take_value(float(number), value) == change
    assert restarted.level == unbroken.level


def test_a_change_whose_old_level_is_forgotten_begins_a_level() -> None:
    """The journal keeps changes for ever, and probes for a month."""
    change = feed([RATE] * 20 + [RATE / 2] * 6)[0]
    watch = LevelWatch("office", GOODPUT)
    watch.recall(change.since_s, RATE / 2)
    watch.follow(change)
    assert watch.since_s == change.since_s


@pytest.mark.parametrize(
    ("metric", "before", "after", "is_reached"),
    [
        (Metric.GOODPUT_BIT_S, 1e9, 0.96e9, False),
        (Metric.GOODPUT_BIT_S, 1e9, 0.94e9, True),
        (Metric.GOODPUT_BIT_S, 0.94e9, 1e9, True),
        (Metric.LATENCY_S, 0.000_05, 0.000_2, False),
        (Metric.LATENCY_S, 0.000_3, 0.000_6, True),
        (Metric.LATENCY_S, 0.030, 0.033, False),
        (Metric.LOSS, 0.0, 0.000_5, False),
        (Metric.LOSS, 0.0, 0.002, True),
        (Metric.LOSS, 0.01, 0.012, False),
        (Metric.RETRANSMITS, 0.0, 50.0, False),
        (Metric.RETRANSMITS, 0.0, 500.0, True),
    ],
)
def test_a_change_must_reach_both_a_share_and_an_amount(
    metric: Metric, before: float, after: float, is_reached: bool
) -> None:
    """0.1 ms is not a change, however large a share it is."""
    assert EFFECTS[metric].is_reached(before, after) is is_reached
