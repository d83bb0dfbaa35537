"""The kinds of a direction's flows, and the result of both directions."""

from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.flows.flow_counts import FlowCounts, FlowRound
from linkgauge.engine.results.flows.flow_result import FlowClass, FlowsResult, judge_flows

from .simulated_flows import simulate


def result_of(*losses: float, silent: int = 0) -> FlowsResult:
    """Return a result with a direction."""
    judged = judge_flows(Direction.OUT, simulate(list(losses), seed=1, rounds=2))
    return FlowsResult("db-02", 4, 5820, 256, 8e6, 14.0, (judged,), tuple(range(50_000, 50_000 + silent)))


def test_every_flow_is_in_one_class() -> None:
    """Those of the bad link in another one than the rest."""
    classes = result_of(*[0.1] * 32, *[0.0] * 96).directions[0].classes()
    assert sorted(place for places in classes.values() for place in places) == list(range(128))
    assert classes[FlowClass.LOSSY] == list(range(32))


def test_a_bad_member_is_one_that_loses_or_carries_nothing() -> None:
    """A loss on all flows is none."""
    assert result_of(*[0.1] * 32, *[0.0] * 96).has_bad_member
    assert not result_of(*[0.1] * 64).has_bad_member
    silent = result_of(*[0.0] * 48, silent=16)
    assert silent.has_bad_member
    assert silent.silent_share is not None
    assert silent.silent_share.share == 0.25


def test_packets_that_overtake_each_other_in_most_flows_are_balanced_one_by_one() -> None:
    """In a few flows it is something else."""
    flows = [FlowCounts(port, [FlowRound(1, [0] * 80, pairs=10, reordered=2)]) for port in range(64)]
    assert judge_flows(Direction.IN, flows).is_sprayed
    few = [FlowCounts(port, [FlowRound(1, [0] * 80, pairs=10, reordered=2 * (port < 8))]) for port in range(64)]
    assert not judge_flows(Direction.IN, few).is_sprayed
