"""Sweeps: their points, the order of these, and what is refused."""

import random

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.serialization import decode, encode
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.sweep import MAX_POINTS, Sweep, SweepPoint, find_best, find_saturation_points

from .sweep_cells import WINDOWS, K, cell, line


def sweep(**more: object) -> Sweep:
    """Return a sweep over windows and sessions."""
    axes = {"directions": (Direction.OUT,), "sessions": (1, 2), "windows": WINDOWS, "messages": (K,)}
    return Sweep("sweep-a", "db-02", Plan(duration_ns=SECOND_NS), **(axes | more))


def test_a_sweep_has_every_combination_once_in_an_order_that_its_name_gives() -> None:
    """Shuffled, and the same again after a break."""
    points = sweep().points
    assert len(points) == len(set(points)) == 10
    assert points == sweep().points
    assert [point.window_bytes for point in points] != sorted(point.window_bytes or 0 for point in points)
    assert sweep().varied_axes == ("sessions", "window_bytes")


def test_a_point_is_a_plan_and_a_plan_a_point() -> None:
    """So stored runs are found again."""
    point = SweepPoint(Direction.IN, 5, None, 512)
    plan = point.to_plan(Plan(duration_ns=SECOND_NS))
    assert plan.block_bytes == 512
    assert SweepPoint.from_plan(plan) == point


def test_a_definition_is_saved_and_read_again() -> None:
    """As JSON values, even a window that the kernel chooses."""
    whole = sweep(windows=(None, 16 * K), figure="hp-figure-1", preset="hp-atm155-clip-9180")
    assert decode(Sweep, encode(whole)) == whole


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"windows": ()}, "sweep"),
        ({"messages": tuple(range(64, 65 + MAX_POINTS))}, "sweep"),
        ({"base": Plan(duration_ns=None)}, "duration"),
        ({"sessions": (1, 1_000)}, "sessions"),
        ({"messages": (1,)}, "block size"),
    ],
)
def test_what_cannot_be_swept_is_refused_before_the_first_run(more: dict[str, object], field: str) -> None:
    """Each point's plan is made at the beginning."""
    axes: dict[str, object] = {
        "base": Plan(duration_ns=SECOND_NS),
        "directions": (Direction.OUT,),
        "sessions": (1,),
        "windows": (None,),
        "messages": (K,),
    }
    with pytest.raises(PlanError, match=field):
        Sweep("sweep-a", "db-02", **(axes | more))


def test_a_sweep_of_transactions_is_the_bases_affair() -> None:
    """The axes are settings; the workload is the base plan's."""
    base = Plan(workload=Workload.RR, duration_ns=SECOND_NS)
    assert SweepPoint(Direction.OUT, 2, None, 64).to_plan(base).workload is Workload.RR


def test_beyond_the_knee_larger_values_do_not_help() -> None:
    """The rate follows the window up to 64K, and is the line's beyond it."""
    (knee,) = find_saturation_points(line(lambda window: min(100.0, window / K * 100 / 64)))
    assert (knee.axis, knee.value, knee.is_first) == ("window_bytes", 64 * K, False)
    assert knee.max_gain_percent is not None
    assert 0 < knee.max_gain_percent < 5


def test_a_rate_that_still_grows_has_its_knee_at_the_end_and_a_flat_one_at_the_beginning() -> None:
    """Both differ from a knee between them."""
    (growing,) = find_saturation_points(line(lambda window: window / K))
    assert (growing.max_gain_percent, growing.is_first) == (None, False)
    (flat,) = find_saturation_points(line(lambda _window: 100.0))
    assert flat.is_first
    assert flat.value == 16 * K


def test_half_a_percent_more_is_not_a_gain_even_if_it_is_certain() -> None:
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


def test_too_few_values_or_unknown_rates_have_no_knee() -> None:
    """There is no conclusion. A window that the kernel chooses has no place on the axis."""
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


@pytest.mark.parametrize("error", [2_500.0, 20_000.0])
def test_no_settings_are_the_fastest_if_the_highest_rate_is_too_noisy(error: float) -> None:
    """A noisy 75 720 Mb/s leaves neither a best point nor a saturation point among lower rates."""
    steady = line(lambda window: 20_000.0 + window / K * 10)
    leader = cell(SweepPoint(Direction.OUT, 1, 512 * K, K), 75_720.0, error=0.5)
    noisy = cell(leader.point, 75_720.0, error=max(error, 0.06 * 75_720))
    assert find_best([*steady, noisy]) is None
    assert find_saturation_points([*steady, noisy]) == []
    best = find_best([*steady, leader])
    assert best is not None
    assert best.fastest is leader
    below = cell(leader.point, 1_000.0, error=900.0)
    best = find_best([*steady, below])
    assert best is not None
    assert best.fastest is steady[-1]
