"""The flows that are traced: the worst one, and a good one."""

from linkgauge.engine.model.directions import Direction
from linkgauge.engine.near.flows.flow_traces import choose_flows
from linkgauge.engine.results.flows.flow_counts import FlowCounts, FlowRound
from linkgauge.engine.results.flows.flow_result import DirectionFlows, judge_flows


def judged(direction: Direction, lossy: range) -> DirectionFlows:
    """Return a direction in which some of 64 flows lose a tenth, the first of them most."""
    flows = [
        FlowCounts(
            1_000 + place,
            [
                FlowRound(number, [None if place in lossy and at % 10 == 0 else 0 for at in range(200)])
                for number in (1, 2)
            ],
        )
        for place in range(64)
    ]
    if lossy:
        flows[lossy[0]].rounds.append(FlowRound(3, [None] * 200))
    return judge_flows(direction, flows)


def test_the_worst_flow_and_one_that_is_good_both_ways_are_chosen() -> None:
    """The way back is bad for others."""
    ways = [judged(Direction.OUT, range(5, 20)), judged(Direction.IN, range(8))]
    assert choose_flows(ways[0], ways) == (5, 20)
    assert choose_flows(ways[1], ways) == (0, 20)


def test_nothing_is_traced_without_a_bad_flow() -> None:
    """There is nothing to compare."""
    healthy = judged(Direction.OUT, range(0))
    assert choose_flows(healthy, [healthy])[0] is None
