"""A round: every flow in every sweep, and no catching up after a pause."""

import asyncio
from contextlib import ExitStack

from linkgauge.engine.flows.round_sender import RoundSender
from linkgauge.engine.protocol.flow_datagrams import RoundOrder, numbers_in

from .flow_pair import flow_pair


async def test_every_flow_of_an_order_sends_each_of_its_datagrams() -> None:
    """A flow that is not open is left out."""
    with ExitStack() as stack:
        pairs = {flow: stack.enter_context(flow_pair([], flow)) for flow in (1, 2, 3)}
        order = RoundOrder(1, 16, 64, 50_000, (1, 2, 9))
        sender = RoundSender(order, {flow: near for flow, (near, _far) in pairs.items()})
        await sender.send()
        async with asyncio.timeout(20):
            while any(len(pairs[flow][1].receiver.entries) < numbers_in(16) for flow in (1, 2)):  # noqa: ASYNC110 - a receiver tells nobody
                await asyncio.sleep(0.001)
        assert all(all(pairs[flow][1].receiver.entries) for flow in (1, 2))
        assert not pairs[3][1].receiver.entries
        assert sender.unsent == 0
