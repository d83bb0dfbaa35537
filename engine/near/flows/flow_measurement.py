"""A test of many flows: rounds of datagrams until it is clear which flows differ."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ...control.connection import ControlConnection
from ...model.counters.path_trace import PathTrace
from ...model.directions import Direction
from ...model.errors import PeerError, PlanError
from ...model.plan import SECOND_NS, Plan
from ...protocol.flow_datagrams import (
    MAX_FLOW_DATAGRAM_BYTES,
    MAX_FLOWS,
    MAX_GAP_NS,
    MAX_SWEEPS,
    MIN_FLOW_DATAGRAM_BYTES,
    MIN_GAP_NS,
    TWIN_EVERY,
)
from ...protocol.messages import Message, Traced
from ...results.flows.flow_counts import FlowCounts
from ...results.flows.flow_result import DirectionFlows, FlowsResult, judge_flows
from ...results.flows.next_round import NextRound, plan_next_round
from ..connect import FarEnd
from .flow_exchange import FlowExchange
from .flow_traces import FlowTracing
from .started_test import ExchangeRequest, connected, started_test

FLOWS: Final = 256
SWEEPS: Final = 200
DATAGRAM_BYTES: Final = 256
RATE_BIT_S: Final = 8_000_000
MIN_FLOWS: Final = 8
MAX_RATE_BIT_S: Final = 100_000_000
ROUND_S: Final = 60.0
"""The longest time of a further round."""
_MARGIN_S: Final = 120.0
_MAX_TRACES: Final = 8
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FlowsRequest(ExchangeRequest):
    """What is sent: flows, datagrams of each in the first round, their UDP payload, and the rate of all flows.

    `rate_bit_s` is of payload in each direction. `first_port` is the first of as many source ports in a row; None
    leaves them to the kernel.
    """

    flows: int = FLOWS
    sweeps: int = SWEEPS
    datagram_bytes: int = DATAGRAM_BYTES
    rate_bit_s: int = RATE_BIT_S
    first_port: int | None = None

    def __post_init__(self) -> None:
        """Raise PlanError for a value out of range."""
        if not MIN_FLOWS <= self.flows <= MAX_FLOWS:
            raise PlanError("flows", self.flows, f"give {MIN_FLOWS} to {MAX_FLOWS}")
        if not 20 <= self.sweeps <= MAX_SWEEPS:
            raise PlanError("datagrams", self.sweeps, f"give 20 to {MAX_SWEEPS}")
        if not MIN_FLOW_DATAGRAM_BYTES <= self.datagram_bytes <= MAX_FLOW_DATAGRAM_BYTES:
            text = f"give {MIN_FLOW_DATAGRAM_BYTES} to {MAX_FLOW_DATAGRAM_BYTES} bytes"
            raise PlanError("datagram", self.datagram_bytes, text)
        if not MIN_GAP_NS <= self.gap_ns <= MAX_GAP_NS or self.rate_bit_s > MAX_RATE_BIT_S:
            raise PlanError("rate", self.rate_bit_s, "give a rate of 1 to 20,000 datagrams a second, up to 100M")
        check_ports(self.first_port, self.flows)

    @property
    def gap_ns(self) -> int:
        """The time from one datagram to the next, of any flow."""
        return round(self.datagram_bytes * 8 * SECOND_NS / max(1, self.rate_bit_s))

    @property
    def round_s(self) -> float:
        """The time of the first round."""
        return self.flows * self.sweeps * (1 + 1 / TWIN_EVERY) * self.gap_ns / SECOND_NS

    @property
    def plan(self) -> Plan:
        """The test that the endpoint prepares: one of UDP without sessions of payload."""
        seconds = self.round_s * 3 + 4 * ROUND_S + _MARGIN_S
        return self.udp_plan(seconds, self.datagram_bytes, self.rate_bit_s)


def check_ports(first_port: int | None, flows: int) -> None:
    """Raise PlanError if a row of source ports ends beyond the last one."""
    if first_port is not None and first_port + flows > 1 << 16:
        raise PlanError("cport", first_port, "give a port with room for all flows behind it, up to 65535")


OnRound = Callable[[int, int, int], None]
"""Called before each round with its number, its flows and its sweeps."""


async def measure_flows(
    peer: FarEnd, request: FlowsRequest, on_round: OnRound = lambda _round, _flows, _sweeps: None
) -> FlowsResult:
    """Return the flows of the requested directions, judged.

    Raises PeerError if the far end cannot be reached, declines, or knows no flows.
    """
    async with connected(peer, request.binding) as (control, ends):
        if not ends.far.reads_flows:
            text = "is too old for a test of many flows: install this version of linkgauge there as well"
            raise PeerError(f"{peer}: its {ends.far.program} {text}")
        return await _Measurement(control, peer, request, on_round).measure()


class _Measurement:
    """One test."""

    def __init__(self, control: ControlConnection, peer: FarEnd, request: FlowsRequest, on_round: OnRound) -> None:
        self._control, self._peer, self._request, self._on_round = control, peer, request, on_round
        self._traces: asyncio.Queue[PathTrace] = asyncio.Queue(_MAX_TRACES)

    def _take_message(self, message: Message) -> None:
        if isinstance(message, Traced) and not self._traces.full():
            self._traces.put_nowait(message.trace)

    async def measure(self) -> FlowsResult:
        """Send rounds until the flows are clear, or `ROUND_S` is not enough."""
        request, control = self._request, self._control
        began_s = time.monotonic()
        async with started_test(control, self._peer, request.plan, self._take_message) as secret:
            exchange = FlowExchange(str(self._peer), secret, control.data_address, request.binding)
            try:
                await exchange.open(request.flows, request.first_port)
                judged = await self._send_rounds(exchange)
                partings = await FlowTracing(exchange, secret, self._traces).find_partings(judged)
                silent = [port for flow, port in sorted(exchange.ports.items()) if flow not in exchange.flows]
                return FlowsResult(
                    str(self._peer),
                    control.ip_version,
                    int(control.data_address[1]),
                    request.datagram_bytes,
                    request.datagram_bytes * 8 * SECOND_NS / request.gap_ns,
                    time.monotonic() - began_s,
                    tuple(judged),
                    tuple(silent),
                    tuple(partings),
                )
            finally:
                exchange.close()

    async def _send_rounds(self, exchange: FlowExchange) -> list[DirectionFlows]:
        request = self._request
        numbers = sorted(exchange.flows)
        flows = {
            direction: {number: FlowCounts(exchange.ports[number]) for number in numbers}
            for direction in request.direction.flows
        }
        most_datagrams = round(ROUND_S * SECOND_NS / request.gap_ns / (1 + 1 / TWIN_EVERY))
        following: NextRound | None = NextRound(tuple(range(len(numbers))), request.sweeps)
        judged: list[DirectionFlows] = []
        rounds = 0
        while following is not None:
            rounds += 1
            self._on_round(rounds, len(following.places), following.sweeps)
            chosen = [numbers[place] for place in following.places]
            await self._send_round(exchange, flows, chosen, following.sweeps)
            judged = [judge_flows(direction, list(each.values())) for direction, each in flows.items()]
            following = plan_next_round([each.losses for each in judged], rounds, request.sweeps, most_datagrams)
            _log.debug("round %d: %s, next %s", rounds, [each.losses for each in judged], following)
        return judged

    async def _send_round(
        self,
        exchange: FlowExchange,
        flows: dict[Direction, dict[int, FlowCounts]],
        chosen: Sequence[int],
        sweeps: int,
    ) -> None:
        request = self._request
        result = await exchange.send_round(flows, chosen, sweeps, request.datagram_bytes, request.gap_ns)
        for direction, rounds in result.items():
            for number, counts in rounds.items():
                flows[direction][number].rounds.append(counts)
