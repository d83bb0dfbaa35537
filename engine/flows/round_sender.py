"""Sends a round: in each sweep a datagram of every flow, in a new random order, at an even pace.

A moment in which everything is lost takes the datagrams of all flows alike, because neighbours in time are of
different flows.
"""

import asyncio
import random
import time
from collections.abc import Mapping
from typing import Final

from ..model.plan import SECOND_NS
from ..protocol.flow_datagrams import RoundOrder, numbers_of_sweep
from .flow_socket import FlowSocket

_TICK_S: Final = 0.002
_AT_ONCE: Final = 32  # after a pause of this process the pace continues, and nothing is made up for


class RoundSender:
    """One round of an order, on the flows that are open.

    Attributes:
        sent: The datagrams that went out.
        unsent: The datagrams that this host dropped.
    """

    def __init__(self, order: RoundOrder, flows: Mapping[int, FlowSocket]) -> None:
        self._order = order
        self._flows = [flows[flow] for flow in order.flows if flow in flows]
        self.sent = self.unsent = 0

    async def send(self) -> None:
        """Send it; raise OSError if the kernel refuses such datagrams."""
        order = self._order
        next_ns = time.monotonic_ns()
        for sweep in range(order.sweeps):
            numbers = numbers_of_sweep(sweep)
            for flow in random.sample(self._flows, len(self._flows)):
                now_ns = time.monotonic_ns()
                while now_ns < next_ns:
                    await asyncio.sleep(max(_TICK_S, (next_ns - now_ns) / SECOND_NS))
                    now_ns = time.monotonic_ns()
                next_ns = max(next_ns, now_ns - _AT_ONCE * order.gap_ns) + order.gap_ns * len(numbers)
                for number in numbers:
                    await self._send(flow, number)

    async def _send(self, flow: FlowSocket, number: int) -> None:
        order = self._order
        for _ in range(_AT_ONCE):
            sent = flow.send(order.round, number, order.datagram_bytes)
            if sent is not None:
                self.sent += sent
                self.unsent += not sent
                return
            await asyncio.sleep(_TICK_S)
        self.unsent += 1
