"""Traces along a bad and a good flow, by both ends at once: each over the flow's own socket and ports."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from ...flows.flow_socket import FlowSocket
from ...model.counters.path_trace import PathTrace
from ...model.directions import Direction, End
from ...path.hop_prober import HopProber, path_secrets
from ...protocol.tokens import RunSecret
from ...results.flows.flow_result import DirectionFlows
from ...results.flows.parting import Parting, part
from .flow_exchange import FlowExchange

_TRACE_S: Final = 3.0
_FAR_TRACE_S: Final = 3.0
_log = logging.getLogger(__name__)

Traces = dict[Direction, PathTrace]


class FlowTracing:
    """Traces flows one after the other.

    Args:
        exchange: The open flows.
        secret: The secret of the test.
        far_traces: The far end's traces, as they come in on the control connection.
    """

    def __init__(self, exchange: FlowExchange, secret: RunSecret, far_traces: "asyncio.Queue[PathTrace]") -> None:
        self._exchange, self._far_traces = exchange, far_traces
        self._secrets = path_secrets(secret, End.NEAR)
        self._known: dict[int, Traces] = {}

    async def find_partings(self, directions: Sequence[DirectionFlows]) -> list[Parting]:
        """Return where a bad flow of each direction parts from a good one; nothing of a direction without."""
        partings: list[Parting] = []
        numbers = sorted(self._exchange.flows)
        for each in directions:
            bad, good = choose_flows(each, directions)
            if bad is None or good is None:
                continue
            traces = [await self._trace(numbers[place]) for place in (bad, good)]
            found = [known.get(each.direction) for known in traces]
            if found[0] is not None and found[1] is not None:
                ports = each.flows[bad].port, each.flows[good].port
                partings.append(part(each.direction, ports, found[0], found[1]))
        return partings

    async def _trace(self, number: int) -> Traces:
        """Trace a flow from both ends, once."""
        if number not in self._known:
            self._known[number] = await self._trace_both(self._exchange.flows[number])
        return self._known[number]

    async def _trace_both(self, flow: FlowSocket) -> Traces:
        while not self._far_traces.empty():
            self._far_traces.get_nowait()
        traces: Traces = {}
        await self._exchange.trace(flow.flow, is_on=True)
        flow.pause()
        prober: HopProber | None = None
        try:
            prober = HopProber(flow.raw.dup(), End.NEAR, self._secrets)
            prober.begin_load()
            await asyncio.sleep(_TRACE_S)
            prober.stop()
            traces[Direction.OUT] = prober.take_trace()
        except OSError as error:
            _log.debug("flow %d: %r", flow.flow, error)
        finally:
            if prober is not None:
                prober.close()
            flow.resume()
        await self._exchange.trace(flow.flow, is_on=False)
        try:
            async with asyncio.timeout(_FAR_TRACE_S):
                traces[Direction.IN] = await self._far_traces.get()
        except TimeoutError:
            _log.debug("flow %d: no trace of the far end", flow.flow)
        return traces


def choose_flows(flows: DirectionFlows, directions: Sequence[DirectionFlows]) -> tuple[int | None, int | None]:
    """Return the worst flow of a direction and a good one, as places; the good one is good both ways if one is."""
    bad = sorted(
        {*flows.losses.bad, *flows.delays.slow},
        key=lambda place: (-flows.flows[place].lost / max(1, flows.flows[place].sent), place),
    )
    every = range(len(flows.flows))
    doubtful = [{*each.losses.bad, *each.delays.slow, *each.losses.unclear} for each in directions]
    own = {*bad, *flows.losses.unclear}
    good = [place for place in every if not any(place in places for places in doubtful)]
    good = good or [place for place in every if place not in own]
    return (bad[0] if bad else None), (good[0] if good else None)
