"""Sweeps: their points, the order of these, and what is refused."""

import pytest
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.plan import SECOND_NS, Direction, Plan
from linkgauge.engine.model.serialization import decode, encode
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.sweep import MAX_POINTS, Sweep, SweepPoint

from .sweep_cells import WINDOWS, K


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
    """So that kept runs are found again."""
    point = SweepPoint(Direction.IN, 5, None, 512)
    plan = point.to_plan(Plan(duration_ns=SECOND_NS))
    assert plan.block_bytes == 512
    assert SweepPoint.from_plan(plan) == point


def test_a_definition_is_saved_and_read_again() -> None:
    """As JSON values; a window left to the kernel is one, too."""
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
    """The axes are settings; what is carried is the base plan's."""
    base = Plan(workload=Workload.RR, duration_ns=SECOND_NS)
    assert SweepPoint(Direction.OUT, 2, None, 64).to_plan(base).workload is Workload.RR
