"""Flows over a group of parallel links, simulated: some lose packets, or are slow."""

import random
from collections.abc import Sequence

from linkgauge.engine.results.flows.flow_counts import FlowCounts, FlowRound


def simulate(
    losses: Sequence[float],
    *,
    seed: int,
    sweeps: int = 200,
    slower_ns: Sequence[int] | None = None,
    rounds: int = 1,
) -> list[FlowCounts]:
    """Return a flow for each loss probability, with a delay of its own if that is given."""
    draw = random.Random(seed)  # noqa: S311 - chance, not secrets
    flows: list[FlowCounts] = []
    for place, loss in enumerate(losses):
        base_ns = 0 if slower_ns is None else slower_ns[place]
        flow = FlowCounts(40_000 + place)
        for number in range(1, rounds + 1):
            delays = [
                None if draw.random() < loss else round(base_ns + draw.expovariate(1 / 20_000))
                for _ in range(sweeps)
            ]
            flow.rounds.append(FlowRound(number, delays, pairs=sweeps // 8))
        flows.append(flow)
    return flows
