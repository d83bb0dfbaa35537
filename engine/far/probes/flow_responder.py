"""The far end's part in a test of many flows: it notes arrivals, sends rounds on request, and traces a flow's path.

It serves a session for each flow, in the endpoint's own process. It sends to the addresses and ports that have
echoed their cookies alone: rounds of bounded length, one at a time and each once, at no more than the endpoint's
limits of UDP. What arrives counts against the same limits.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ...flows.flow_receiver import ArrivalClock
from ...flows.flow_socket import FlowSocket
from ...flows.round_sender import RoundSender
from ...model.counters.path_trace import PathTrace
from ...model.directions import Direction, End
from ...model.errors import LimitReached, RemoteProtocolError
from ...model.limits import Limits, TokenBucket
from ...model.plan import FLOW_SESSION, SECOND_NS
from ...model.shared_key import constant_time_equal
from ...path.hop_prober import MAX_PACKETS_S, HopProber, path_secrets
from ...protocol.flow_datagrams import (
    ENTRIES_IN_DATAGRAM,
    MAX_FLOWS,
    ArrivalQuery,
    FlowArrivals,
    FlowTrace,
    RoundOrder,
    RoundStatus,
    decode_flow_datagram,
)
from ...protocol.preamble import DataHello
from ...protocol.tokens import RunSecret
from ...workloads.datagram_handshake import accept_datagrams, answer_control_datagram
from ...workloads.session_handshake import SessionSpec
from ..datagram_limits import DatagramTraffic

_ANSWERS_S: Final = 2_000  # a round of 512 flows and 4,000 sweeps takes 9,200
_MOST_PACKETS_S: Final = 20_000
_MAX_TRACES: Final = 8
_log = logging.getLogger(__name__)


class FlowResponder:
    """Serves the flows of one run until `close`.

    Args:
        secret: The run's secret.
        limits: The endpoint's limits.
        on_excess: Called once more arrives than the limits allow.
        on_trace: Called with each trace of a flow's path.
    """

    def __init__(
        self,
        secret: RunSecret,
        limits: Limits,
        on_excess: Callable[[LimitReached], None],
        on_trace: Callable[[PathTrace], object],
    ) -> None:
        self._run_secret, self._limits = secret, limits
        self._on_excess, self._on_trace = on_excess, on_trace
        now_ns = time.monotonic_ns()
        self._bucket = TokenBucket(_ANSWERS_S, now_ns)
        self._traffic = DatagramTraffic(limits, now_ns)
        self._checked = 0
        self._clock = ArrivalClock()
        self._specs: dict[int, SessionSpec] = {}
        self._flows: dict[int, FlowSocket] = {}
        self._status = RoundStatus(0, 0, is_over=True)
        self._sending: asyncio.Task[None] | None = None
        self._tracing: tuple[FlowSocket, HopProber] | None = None
        self._traces = 0

    def attach(self, sock: socket.socket, hello: DataHello) -> None:
        """Serve the socket of a flow; raise RemoteProtocolError for an invalid or used token, OSError."""
        settings = (hello.direction, hello.session, hello.generation, hello.window_bytes)
        secret = self._run_secret.session_secret(*settings)
        spec = SessionSpec(*settings, secret.hex())
        flow = hello.generation
        if not constant_time_equal(spec.make_tickets().token(0), hello.token):
            raise RemoteProtocolError("a flow with an invalid token")
        if not 1 <= flow <= MAX_FLOWS or flow in self._specs:
            raise RemoteProtocolError("a flow too many")
        self._specs[flow] = spec
        self._flows[flow] = FlowSocket(flow, sock.dup(), secret, self._clock, self._handle)
        accept_datagrams(sock, spec)

    def close(self) -> None:
        """Close all flows."""
        if self._sending is not None:
            self._sending.cancel()
        if self._tracing is not None:
            self._tracing[1].close()
        for flow in self._flows.values():
            flow.close()
        self._flows.clear()

    def _handle(self, flow: FlowSocket, data: bytes) -> None:
        if answer_control_datagram(flow.raw, data, self._specs[flow.flow]):
            return
        datagram = decode_flow_datagram(data, flow.secret)
        if datagram is None or not self._bucket.take(time.monotonic_ns()) or not self._is_within_limits():
            return
        if isinstance(datagram, RoundOrder):
            self._begin(flow, datagram)
        elif isinstance(datagram, ArrivalQuery):
            self._report(flow, datagram)
        elif isinstance(datagram, FlowTrace):
            self._trace(datagram)

    def _is_within_limits(self) -> bool:
        """Return whether what has arrived is within the limits; end the run otherwise."""
        try:
            self._traffic.check(time.monotonic_ns(), self._clock.payload_bytes, self._clock.datagrams)
        except LimitReached as error:
            self._on_excess(error)
            return False
        return True

    def _begin(self, flow: FlowSocket, order: RoundOrder) -> None:
        """Send a round unless it was sent before, and tell whether it is over."""
        is_free = self._sending is None or self._sending.done()
        if order.round > self._status.round and order.is_allowed and is_free:
            self._status = RoundStatus(order.round, 0, is_over=False)
            gap_ns = max(order.gap_ns, self._least_gap_ns(order.datagram_bytes))
            sender = RoundSender(replace(order, gap_ns=gap_ns), self._flows)
            self._sending = asyncio.get_running_loop().create_task(self._send(sender))
        if order.round == self._status.round:
            flow.answer(self._status.pack(flow.secret))

    def _least_gap_ns(self, datagram_bytes: int) -> int:
        limits = self._limits
        packets_s = min(_MOST_PACKETS_S, limits.udp_packets_s, limits.udp_rate_bit_s / (datagram_bytes * 8))
        return round(SECOND_NS / packets_s)

    async def _send(self, sender: RoundSender) -> None:
        try:
            await sender.send()
        except OSError as error:
            _log.debug("round %s: %r", self._status.round, error)
        self._status = replace(self._status, unsent=sender.unsent, is_over=True)

    def _report(self, flow: FlowSocket, query: ArrivalQuery) -> None:
        """Report a part of a flow's arrivals; a flow of which nothing has come has none."""
        asked = self._flows.get(query.flow)
        if asked is None:
            return
        receiver, start = asked.receiver, query.offset
        answer = FlowArrivals(query.round, query.flow, 0, 0, 0, 0, 0)
        if query.round == receiver.round and start < len(receiver.entries):
            part = tuple(receiver.entries[start : start + ENTRIES_IN_DATAGRAM])
            counts = (receiver.reordered, receiver.duplicates, max(0, receiver.unread))
            answer = FlowArrivals(query.round, query.flow, len(receiver.entries), *counts, start, part)
        flow.answer(answer.pack(flow.secret))

    def _trace(self, request: FlowTrace) -> None:
        """Begin to trace the path of a flow, or end that and pass the trace on."""
        if not request.is_on:
            self._end_trace(request.flow)
            return
        flow = self._flows.get(request.flow)
        if flow is None or self._tracing is not None or self._traces >= _MAX_TRACES:
            return
        self._traces += 1
        flow.pause()
        secrets = path_secrets(self._run_secret, End.FAR)
        packets_s = min(MAX_PACKETS_S, self._limits.udp_packets_s)
        try:
            prober = HopProber(flow.raw.dup(), End.FAR, secrets, packets_s, lambda data: self._handle(flow, data))
        except OSError as error:
            _log.debug("flow %d: %r", request.flow, error)
            flow.resume()
            return
        prober.begin_load()
        self._tracing = (flow, prober)

    def _end_trace(self, number: int) -> None:
        if self._tracing is None or self._tracing[0].flow != number:
            return
        flow, prober = self._tracing
        self._tracing = None
        prober.stop()
        self._on_trace(prober.take_trace())
        prober.close()
        flow.resume()


def flow_settings(flow: int) -> tuple[Direction, int, int, None]:
    """Return the settings of a flow's session, as its hello names them."""
    return Direction.OUT, FLOW_SESSION, flow, None
