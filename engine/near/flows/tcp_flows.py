"""Many connections of TCP at a low rate, and which of them send segments again: UDP may be hashed otherwise.

It is a test of streams, one direction after the other. Each of its sessions is a flow. Its first half finds the bad
flows, and its second half confirms them.
"""

import asyncio
import logging
import random
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...model.counters.samples import Sample, SessionSample
from ...model.directions import Direction, sender_of
from ...model.errors import PeerError, PlanError
from ...model.events import Event, Sampled, Started
from ...model.peer import Peer
from ...model.plan import MAX_SESSIONS, SECOND_NS, Plan, Settings
from ...model.workload import Workload
from ...results.flows.flow_counts import FlowCounts, FlowRound
from ...results.flows.flow_result import FlowsResult, Transport, judge_flows
from ..connect import FarEnd
from ..run import open_run
from .flow_measurement import MIN_FLOWS, check_ports
from .started_test import ExchangeRequest, require_linkgauge

TCP_FLOWS: Final = 64
TCP_RATE_BIT_S: Final = 40_000_000
TCP_SECONDS: Final = 10.0
_INTERVAL_NS: Final = SECOND_NS // 2
_MARGIN_S: Final = 60.0
_PORTS: Final = (10_000, 32_000)  # below those that Linux chooses for other connections
_TRIES: Final = 4
_USUAL_MSS: Final = 1_448
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TcpFlowsRequest(ExchangeRequest):
    """The connections of each direction, their rate together, and how long they send.

    `first_port` is the first of their source ports in a row; None chooses one.
    """

    flows: int = TCP_FLOWS
    rate_bit_s: int = TCP_RATE_BIT_S
    seconds: float = TCP_SECONDS
    first_port: int | None = None

    def __post_init__(self) -> None:
        """Raise PlanError for a value out of range."""
        if not MIN_FLOWS <= self.flows <= MAX_SESSIONS:
            raise PlanError("flows", self.flows, f"give {MIN_FLOWS} to {MAX_SESSIONS} connections of TCP")
        check_ports(self.first_port, self.flows)

    def plan(self, direction: Direction, first_port: int) -> Plan:
        """Return the test of a direction."""
        plan = Plan(
            Settings(direction=direction, sessions=self.flows),
            Workload.STREAM,
            duration_ns=round(self.seconds * SECOND_NS),
            interval_ns=_INTERVAL_NS,
            rate_bit_s=self.rate_bit_s,
            client_port=first_port,
            socket=self.binding,
        )
        return self.with_turn(plan)


async def measure_tcp_flows(
    peer: FarEnd, request: TcpFlowsRequest, on_direction: Callable[[Direction], None] = lambda _direction: None
) -> FlowsResult:
    """Return the flows of the requested directions, judged; raise PeerError or WorkerError if a test fails."""
    require_linkgauge(peer)
    began_s = time.monotonic()
    judged, started = list[tuple[Direction, list[FlowCounts]]](), None
    for direction in request.direction.flows:
        on_direction(direction)
        counts = await _measure(peer, request, direction)
        started = counts.started or started
        judged.append((direction, counts.flows()))
    return FlowsResult(
        str(peer),
        4 if started is None or started.ip_version is None else started.ip_version,
        peer.port if isinstance(peer, Peer) else 0,
        0,
        float(request.rate_bit_s),
        time.monotonic() - began_s,
        tuple(judge_flows(direction, flows) for direction, flows in judged),
        transport=Transport.TCP,
    )


async def _measure(peer: FarEnd, request: TcpFlowsRequest, direction: Direction) -> "SegmentCounts":
    """Return the counts of a direction; choose other ports if one is in use."""
    for tries_left in reversed(range(_TRIES)):
        port = request.first_port
        if port is None:
            port = random.randrange(_PORTS[0], _PORTS[1] - request.flows)  # noqa: S311 - chance, not secrets
        counts = SegmentCounts(direction, port, request.flows, round(request.seconds * SECOND_NS / 2))
        wait_s = request.turn.wait_ns / SECOND_NS
        try:
            async with (
                asyncio.timeout(request.seconds + wait_s + _MARGIN_S),
                open_run(request.plan(direction, port), peer) as run,
            ):
                async for event in run:
                    counts.feed(event)
        except PeerError as error:
            if request.first_port is not None or not tries_left or "in use" not in str(error):
                raise
            _log.debug("ports from %d on: %s", port, error)
            continue
        return counts
    raise PeerError(f"{peer}: no row of {request.flows} free ports was found; give one with --cport")


@dataclass(slots=True)
class _Half:
    """The counts of a flow in one half of the test."""

    bytes: int = 0
    span_ns: int = 0
    segments: int = 0
    again: int = 0


class SegmentCounts:
    """The segments of each session, by its sender's samples: `feed` it with the events of a run.

    Args:
        direction: The direction whose sender counts.
        first_port: The source port of the first session.
        count: The number of sessions.
        half_ns: The time at which the second half begins.
    """

    def __init__(self, direction: Direction, first_port: int, count: int, half_ns: int) -> None:
        self._direction, self._first_port, self._count, self._half_ns = direction, first_port, count, half_ns
        self._halves: dict[tuple[int, int], _Half] = defaultdict(_Half)
        self._rtts: dict[int, dict[int, int]] = defaultdict(dict)
        self.started: Started | None = None

    def feed(self, event: Event) -> None:
        """Take in an event."""
        if isinstance(event, Started):
            self.started = event
        elif isinstance(event, Sampled):
            sample = event.sample
            if sample.end is sender_of(self._direction, Workload.STREAM):
                for part in sample.sessions:
                    if part.direction is self._direction:
                        self._add(sample, part)

    def _add(self, sample: Sample, part: SessionSample) -> None:
        half = self._halves[part.session, int(sample.elapsed_ns > self._half_ns)]
        again = part.retransmits or 0
        half.bytes += part.bytes
        half.span_ns += sample.interval_ns
        half.again += again
        half.segments += round(part.bytes / (part.mss_bytes or _USUAL_MSS)) + again
        if part.min_rtt_us is not None:  # others have the flow's own queue and recovery in them
            self._rtts[part.session][sample.index] = part.min_rtt_us * 1_000

    def flows(self) -> list[FlowCounts]:
        """Return the flows, with a round for each half."""
        times = sorted({index for rtts in self._rtts.values() for index in rtts})
        return [self._flow(session, times) for session in range(1, self._count + 1)]

    def _flow(self, session: int, times: list[int]) -> FlowCounts:
        rtts = [self._rtts[session].get(index) for index in times]
        rounds: list[FlowRound] = []
        for number in (0, 1):
            half = self._halves[session, number]
            counts = (max(half.segments, half.again), half.again)
            part = rtts if number == 0 else []
            rounds.append(FlowRound(number + 1, part, segments=counts, payload=(half.bytes, half.span_ns)))
        return FlowCounts(self._first_port + session - 1, rounds)
