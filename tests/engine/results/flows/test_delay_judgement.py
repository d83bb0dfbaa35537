"""Which flows are slower than the others."""

import random

import pytest
from linkgauge.engine.results.flows.delay_judgement import judge_delays
from linkgauge.engine.results.flows.flow_counts import FlowCounts, FlowRound

from .simulated_flows import simulate


@pytest.mark.parametrize("slower_ns", [200_000, 3_100_000])
@pytest.mark.parametrize("slow", [16, 64, 128])
def test_the_flows_on_a_slow_link_are_named_with_the_difference(slower_ns: int, slow: int) -> None:
    """Whether one in two or one in sixteen."""
    delays = [slower_ns] * slow + [0] * (256 - slow)
    judged = judge_delays(simulate([0.01] * 256, seed=slow, slower_ns=delays))
    assert judged.slow == tuple(range(slow))
    assert judged.slower_ns == pytest.approx(slower_ns, rel=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_flows_that_are_alike_are_not_split(seed: int) -> None:
    """Their delays vary, and rise and fall for all of them."""
    draw = random.Random(seed)  # noqa: S311 - chance, not secrets
    spread = [round(draw.gauss(0, 300_000)) for _ in range(256)]
    assert judge_delays(simulate([0.0] * 256, seed=seed, slower_ns=spread)).slow == ()


def test_the_drift_of_clocks_and_a_common_queue_do_not_hide_a_slow_link() -> None:
    """Each sweep is compared with itself."""
    flows = simulate([0.0] * 64, seed=1, slower_ns=[500_000] * 16 + [0] * 48)
    drifted = [
        FlowCounts(
            each.port,
            [FlowRound(1, [(delay or 0) + at * 50_000 for at, delay in enumerate(each.rounds[0].delays)])],
        )
        for each in flows
    ]
    assert judge_delays(drifted).slow == tuple(range(16))


def test_nothing_is_said_of_few_flows_or_of_none_that_arrived() -> None:
    """Nothing is divided by nothing."""
    assert judge_delays([]).slow == ()
    assert judge_delays(simulate([1.0] * 20, seed=1)).slow == ()
