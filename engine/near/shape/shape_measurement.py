"""The measurement of a policer or shaper, each direction by itself: a test of UDP whose payload are bursts."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from ...control.connection import ControlConnection
from ...model.directions import Direction
from ...model.errors import PeerError, PlanError
from ...model.plan import SECOND_NS, Plan
from ...protocol.burst_datagrams import MAX_BURST_DATAGRAM_BYTES, MIN_BURST_DATAGRAM_BYTES
from ...results.shape.burst_reading import read_burst
from ...results.shape.shape_result import DirectionShape, ShapeResult, judge_direction
from ..connect import FarEnd
from ..flows.started_test import ExchangeRequest, connected, started_test
from ..path_mtu import READY_DEADLINE_S, open_probe_socket
from .burst_exchange import FRAME_HEADER_BYTES, BurstExchange
from .burst_search import BURSTS, BurstSearch

DIRECTION_S: Final = 120.0
"""The longest time of a direction: of a slow limit with a large bucket there are fewer bursts then."""
_MARGIN_S: Final = 60.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShapeRequest(ExchangeRequest):
    """What is measured: the number of bursts in each direction, and their datagrams; None fills the MTU."""

    bursts: int = BURSTS
    datagram_bytes: int | None = None

    def __post_init__(self) -> None:
        """Raise PlanError for a value out of range."""
        if not 3 <= self.bursts <= 50:
            raise PlanError("bursts", self.bursts, "give 3 to 50")
        size = self.datagram_bytes
        if size is not None and not MIN_BURST_DATAGRAM_BYTES <= size <= MAX_BURST_DATAGRAM_BYTES:
            text = f"give {MIN_BURST_DATAGRAM_BYTES} to {MAX_BURST_DATAGRAM_BYTES} bytes"
            raise PlanError("datagram", size, text)

    @property
    def plan(self) -> Plan:
        """The test that the endpoint prepares: one of UDP without sessions of payload."""
        return self.udp_plan(DIRECTION_S * len(self.direction.flows) + _MARGIN_S, self.datagram_bytes)


async def measure_shape(
    peer: FarEnd,
    request: ShapeRequest,
    on_burst: Callable[[Direction, int], None] = lambda _direction, _count: None,
) -> ShapeResult:
    """Return the limits of the requested directions; call `on_burst` with the number of bursts so far.

    Raises PeerError if the far end cannot be reached, declines, or knows no bursts.
    """
    async with (
        connected(peer, request.binding) as (control, _),
        _open_exchange(control, peer, request) as exchange,
    ):
        await exchange.measure_round_trip()
        shapes = [
            await _Measurement(exchange, flow, request, on_burst).measure() for flow in request.direction.flows
        ]
        round_trip_s = exchange.round_trip_s
        rtt_ns = None if round_trip_s is None else round(round_trip_s * SECOND_NS)
        return ShapeResult(str(peer), control.ip_version, rtt_ns, tuple(shapes))


@asynccontextmanager
async def _open_exchange(
    control: ControlConnection, peer: FarEnd, request: ShapeRequest
) -> AsyncGenerator[BurstExchange]:
    """Start the test at the endpoint, and yield its session of bursts; raise PeerRefused if it ends the test."""
    async with started_test(control, peer, request.plan, lambda _sample: None) as secret:
        try:
            async with asyncio.timeout(READY_DEADLINE_S):
                sock, session_secret = await open_probe_socket(control, secret, request.binding)
        except TimeoutError as error:
            raise PeerError(f"{peer} did not begin in {READY_DEADLINE_S:g} s; try again") from error
        exchange = BurstExchange(str(peer), sock, session_secret)
        try:
            yield exchange
        finally:
            exchange.close()


class _Measurement:
    """The bursts of one direction."""

    def __init__(
        self,
        exchange: BurstExchange,
        direction: Direction,
        request: ShapeRequest,
        on_burst: Callable[[Direction, int], None],
    ) -> None:
        self._exchange, self._direction, self._on_burst = exchange, direction, on_burst
        size = request.datagram_bytes or min(MAX_BURST_DATAGRAM_BYTES, exchange.socket.largest_datagram)
        self._datagram_bytes = size
        self._frame_bytes = size + exchange.socket.header_bytes + FRAME_HEADER_BYTES
        self._search = BurstSearch(size, self._frame_bytes, request.bursts)

    async def measure(self) -> DirectionShape:
        """Send bursts until there are enough, or until the time is up."""
        search, loop = self._search, asyncio.get_running_loop()
        until_s = loop.time() + DIRECTION_S
        while (step := search.next_step()) is not None and loop.time() + step.pause_s < until_s:
            await asyncio.sleep(step.pause_s)
            burst = await self._exchange.send(
                self._direction, step.head, step.tail, self._datagram_bytes, step.tail_bit_s
            )
            reading = read_burst(burst)
            _log.debug("%s %s: %d of %d, %s", self._direction, step, len(burst.places), burst.count, reading)
            search.note(burst, reading)
            self._on_burst(self._direction, len(search.readings))
        return judge_direction(
            self._direction,
            search.readings,
            datagram_bytes=self._datagram_bytes,
            frame_bytes=self._frame_bytes,
            pause_ns=round(search.pause_s * SECOND_NS),
            is_settled=search.is_settled,
        )
