"""The fewest causes that explain slow cells."""

from math import log

import pytest
from linkgauge.mesh.figures import MeshFindingCode
from linkgauge.mesh.reading.explanation import Explanation, explain
from linkgauge.mesh.reading.relative_rates import relative_rates

from .mesh_examples import Fault, MeshExample

CODE = MeshFindingCode
SPREAD = 0.03


def explained(example: MeshExample, usual: float = 0.0) -> Explanation:
    """Return the explanation of a mesh."""
    return explain(relative_rates(example.make()), usual, SPREAD)


def test_a_cause_has_the_slowness_of_its_own_cells() -> None:
    """The host is in the slow group: its cells are slower than the group's."""
    faults = (Fault(CODE.GROUP, "rack-1", "rack-1", 0.7), Fault(CODE.HOST, "db-07", None, 0.4))
    found = explained(MeshExample(15, faults, groups=3, noise=SPREAD))
    slowness = {cause.suspect.code: cause.slowness for cause in found.causes}
    assert slowness == {CODE.GROUP: pytest.approx(log(0.7), abs=0.05), CODE.HOST: pytest.approx(log(0.4), abs=0.05)}
    assert max(map(abs, found.residuals)) < 5 * SPREAD


def test_the_delays_of_transactions_add_up() -> None:
    """Between two slow hosts they are slower than with either, without a third cause."""
    faults = (Fault(CODE.HOST, "db-01"), Fault(CODE.HOST, "db-05"))
    found = explained(MeshExample(10, faults, noise=0.01, transactions=True), log(2e4))
    assert {cause.suspect.sender for cause in found.causes} == {"db-01", "db-05"}
    assert max(map(abs, found.residuals)) < 5 * SPREAD


def test_a_host_that_sends_and_receives_less_is_one_cause_even_if_its_directions_differ() -> None:
    """Its cells are joined."""
    faults = (Fault(CODE.HOST_SENDS, "db-01", None, 0.7), Fault(CODE.HOST_RECEIVES, "db-01", None, 0.3))
    (cause,) = explained(MeshExample(10, faults, noise=0.01)).causes
    assert (cause.suspect.code, len(cause.suspect.cells)) == (CODE.HOST, 18)


def test_the_uplink_of_a_group_is_one_cause_even_if_its_paths_differ() -> None:
    """The slowness to each group differs."""
    faults = (Fault(CODE.GROUPS, "rack-0", "rack-1", 0.7), Fault(CODE.GROUPS, "rack-0", "rack-2", 0.3))
    (cause,) = explained(MeshExample(15, faults, groups=3, noise=0.01)).causes
    assert (cause.suspect.code, cause.suspect.sender, cause.suspect.receiver) == (CODE.GROUPS, "rack-0", None)


def test_hosts_that_send_less_within_their_group_as_well_are_named_themselves() -> None:
    """The way out of the group is not the cause."""
    faults = tuple(Fault(CODE.HOST_SENDS, f"db-0{number}") for number in range(4))
    found = explained(MeshExample(12, faults, groups=3, noise=0.01))
    assert {(cause.suspect.code, cause.suspect.sender) for cause in found.causes} == {
        (CODE.HOST_SENDS, fault.sender) for fault in faults
    }


def test_a_wrong_usual_rate_costs_more() -> None:
    """So the cost chooses the usual rate."""
    example = MeshExample(10, (Fault(CODE.HOST, "db-01"),), noise=0.02)
    assert explained(example).cost < explained(example, -0.3).cost
    assert explained(example).cost < explained(example, log(0.5)).cost
