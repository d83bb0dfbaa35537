"""The plan of a mesh: its cells, and wrong values."""

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PlanError, UsageError
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.results.responsiveness.plan import with_responsiveness
from linkgauge.mesh.plan import (
    MAX_NAME_LENGTH,
    Cell,
    Host,
    MeshMode,
    MeshPlan,
    Pairing,
    cell_interval_ns,
    estimate_ns,
    mean_overhead_ns,
)

BASE = Plan(duration_ns=3 * SECOND_NS)


def hosts(*names: str) -> tuple[Host, ...]:
    """Return hosts without a group."""
    return tuple(Host(name) for name in names)


def test_a_cell_is_each_ordered_pair_of_different_hosts() -> None:
    """A host has no cell with itself."""
    plan = MeshPlan("mesh-1", hosts("a", "b", "c"), BASE)
    assert plan.cells == (
        Cell("a", "b"),
        Cell("a", "c"),
        Cell("b", "a"),
        Cell("b", "c"),
        Cell("c", "a"),
        Cell("c", "b"),
    )


def test_a_pairing_measures_both_cells_from_its_near_end() -> None:
    """It sends first, then receives."""
    assert Pairing("a", "b").cells == ((Cell("a", "b"), Direction.OUT), (Cell("b", "a"), Direction.IN))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a"], "a mesh needs at least 2 hosts; you gave 1"),
        ([f"h-{number}" for number in range(4_097)], "a mesh has at most 4096 hosts; you gave 4097"),
        (["a", "b", "a"], "hosts 'a' is invalid; give each host once"),
    ],
)
def test_too_few_or_too_many_hosts_and_a_repeated_host_are_refused(names: list[str], words: str) -> None:
    """With their number, or the host's name."""
    with pytest.raises((PlanError, UsageError)) as error:
        MeshPlan("mesh-1", hosts(*names), BASE)
    assert str(error.value) == words


def test_a_run_without_an_end_is_refused() -> None:
    """The mesh would never end."""
    with pytest.raises(PlanError, match="seconds"):
        MeshPlan("mesh-1", hosts("a", "b"), Plan(duration_ns=None))


@pytest.mark.parametrize("name", ["", " a", "a\nb", "\x1b[31mred", "x" * (MAX_NAME_LENGTH + 1)])
def test_a_name_that_cannot_be_printed_unchanged_is_refused(name: str) -> None:
    """It appears in tables and file names."""
    with pytest.raises(PlanError, match="host"):
        Host(name)
    with pytest.raises(PlanError, match="group"):
        Host("a", group=name)


@pytest.mark.parametrize(("seconds", "samples"), [(0.5, 5), (1, 10), (2.9, 29), (3, 6), (60, 120)])
def test_a_test_has_enough_samples_for_a_confidence_interval(seconds: float, samples: int) -> None:
    """A long test has no more than that: the samples of thousands of tests are stored."""
    duration_ns = round(seconds * SECOND_NS)
    assert duration_ns // cell_interval_ns(duration_ns) == samples


@pytest.mark.parametrize(("count", "mode", "seconds"), [(8, "rounds", 72), (7, "all", 72), (8, "isolated", 226)])
def test_the_time_of_a_mesh_grows_with_its_hosts_and_of_an_isolated_one_with_its_pairs(
    count: int, mode: str, seconds: int
) -> None:
    """Two tests in a round, each a second longer than its duration; a quarter for second tests; then the end."""
    plan = MeshPlan("mesh-1", hosts(*map(str, range(count))), BASE, MeshMode(mode))
    assert estimate_ns(plan, len(plan.cells), SECOND_NS) == seconds * SECOND_NS


@pytest.mark.parametrize("rechecks", [0, 9, 15])
def test_the_announced_time_is_right_within_a_third_whatever_is_measured_again(rechecks: int) -> None:
    """Ten hosts have 18 turns. How many cells are slow is known only later; then it counts as it is."""
    plan = MeshPlan("mesh-1", hosts(*"abcdefghij"), BASE)
    took_ns = estimate_ns(plan, len(plan.cells), SECOND_NS, rechecks)
    assert took_ns == (18 * 4 + rechecks * 4 + 2) * SECOND_NS
    assert abs(estimate_ns(plan, len(plan.cells), SECOND_NS) - took_ns) <= took_ns / 3


def test_the_announced_time_has_the_latency_that_each_test_measures_before_its_load() -> None:
    """With a limit for its rise a test first measures the idle link for two seconds; that is not its overhead."""
    plan = MeshPlan("mesh-1", hosts(*"abcdefghij"), with_responsiveness(BASE))
    assert estimate_ns(plan, len(plan.cells), SECOND_NS, 0) == (18 * 6 + 2) * SECOND_NS
    assert mean_overhead_ns(plan, len(plan.cells), 18 * 7 * SECOND_NS) == 2 * SECOND_NS


def test_the_overhead_of_a_test_follows_from_the_turns_so_far() -> None:
    """Six hosts have three tests at once: the fourth begins the second turn."""
    plan = MeshPlan("mesh-1", hosts(*"abcdef"), BASE)
    overheads = [mean_overhead_ns(plan, ended, 10 * SECOND_NS) for ended in (1, 3, 4)]
    assert overheads == [7 * SECOND_NS, 7 * SECOND_NS, 2 * SECOND_NS]
