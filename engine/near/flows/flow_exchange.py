"""Rounds of datagrams on many flows, in both directions at once, over sessions that a flow_responder answers.

UDP loses datagrams, and the flows on a bad link lose more. So every question goes over another flow each time,
until its answer comes.
"""

import asyncio
import contextlib
import itertools
import logging
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from ...flows.flow_receiver import ArrivalClock
from ...flows.flow_socket import FlowSocket
from ...flows.round_sender import RoundSender
from ...model.directions import Direction
from ...model.errors import PeerError
from ...model.plan import FLOW_SESSION, SocketOptions
from ...protocol.flow_datagrams import (
    ENTRIES_IN_DATAGRAM,
    ENTRY_NS,
    ENTRY_ZERO,
    ArrivalQuery,
    FlowArrivals,
    FlowDatagram,
    FlowTrace,
    RoundOrder,
    RoundStatus,
    decode_flow_datagram,
    numbers_in,
    numbers_of_sweep,
)
from ...protocol.tokens import RunSecret
from ...results.flows.flow_counts import FlowRound
from ...workloads.datagram_handshake import connect_datagrams
from ...workloads.session_handshake import ConnectTarget, SessionSpec

T = TypeVar("T", bound=FlowDatagram)
RoundOfFlows = dict[int, FlowRound]

_OPEN_S: Final = 1.5  # for each of the two steps: fifteen tries
_OPEN_AT_ONCE: Final = 64
_ANSWER_S: Final = 8.0
_PART_S: Final = 0.1  # for each list, on the slowest path
_REPEAT_S: Final = 0.15
_SETTLE_S: Final = 0.7
_AT_ONCE: Final = 24  # lists that are asked for together: 26 KB come back
_MARGIN_S: Final = 15.0
_log = logging.getLogger(__name__)


class FlowExchange:
    """The near end of the flows of a test. `close` closes their sockets.

    Attributes:
        flows: The open flows by their number.
        ports: The source port of each flow, of those that did not open as well.
    """

    def __init__(self, peer: str, secret: RunSecret, address: tuple[object, ...], binding: SocketOptions) -> None:
        self._peer, self._secret, self._binding = peer, secret, binding
        self._target = ConnectTarget.from_address(secret.run_tag.hex(), address)
        self._clock = ArrivalClock()
        self._answers: list[FlowDatagram] = []
        self._news = asyncio.Event()
        self._round = 0
        self._turn = itertools.count()
        self._failure: OSError | None = None
        self.flows: dict[int, FlowSocket] = {}
        self.ports: dict[int, int] = {}

    async def open(self, count: int, first_port: int | None = None) -> None:
        """Open so many flows, from a port on or from ports of the kernel's choice.

        Raises PeerError if none opens: the far end does not answer.
        """
        doors = asyncio.Semaphore(_OPEN_AT_ONCE)

        async def open_one(flow: int) -> None:
            async with doors:
                await self._open_flow(flow, None if first_port is None else first_port + flow - 1)

        async with asyncio.TaskGroup() as group:
            for flow in range(1, count + 1):
                group.create_task(open_one(flow))
        if not self.flows:
            raise PeerError(f"{self._peer}: no flow could be opened: {self._failure}")

    async def _open_flow(self, flow: int, port: int | None) -> None:
        settings = (Direction.OUT, FLOW_SESSION, flow, None)
        secret = self._secret.session_secret(*settings)
        sock = socket.socket(self._target.family, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            target = replace(self._target, local_port=port)
            spec = SessionSpec(*settings, secret.hex())
            await connect_datagrams(sock, spec, target, self._binding, _OPEN_S, _OPEN_S)
            self.flows[flow] = FlowSocket(flow, sock, secret, self._clock, self._handle)
        except OSError as error:
            self._failure = error
            _log.debug("flow %d: %r", flow, error)
        finally:
            with contextlib.suppress(OSError):
                self.ports[flow] = int(sock.getsockname()[1])
            if flow not in self.flows:
                sock.close()

    async def send_round(
        self, directions: Iterable[Direction], flows: Sequence[int], sweeps: int, datagram_bytes: int, gap_ns: int
    ) -> dict[Direction, RoundOfFlows]:
        """Send a round in the directions at once, and return what arrived of each flow.

        Raises PeerError if the far end does not answer, OSError if this host cannot send.
        """
        self._round += 1
        order = RoundOrder(self._round, sweeps, datagram_bytes, gap_ns, tuple(flows))
        wanted = tuple(directions)
        for flow in self.flows.values():
            flow.receiver.begin(order.round)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    direction: group.create_task(
                        self._send_out(order) if direction is Direction.OUT else self._send_in(order)
                    )
                    for direction in wanted
                }
        except ExceptionGroup as both:
            raise both.exceptions[0] from None
        return {direction: task.result() for direction, task in tasks.items()}

    async def _send_out(self, order: RoundOrder) -> RoundOfFlows:
        sender = RoundSender(order, self.flows)
        await sender.send()
        if sender.unsent > len(order.flows) * order.sweeps // 2:
            raise PeerError(f"{self._peer}: this host could not send the datagrams; give a smaller --datagram")
        await asyncio.sleep(_SETTLE_S)
        parts = await self._fetch(order, [(flow, 0) for flow in order.flows])
        most = numbers_in(order.sweeps)
        more = [
            (flow, offset)
            for (flow, _), part in parts.items()
            for offset in range(ENTRIES_IN_DATAGRAM, min(most, part.total), ENTRIES_IN_DATAGRAM)
        ]
        parts |= await self._fetch(order, more)
        entries: dict[int, list[int]] = {flow: [] for flow in order.flows}
        for flow, offset in sorted(parts):
            entries[flow] += parts[flow, offset].entries
        return {
            flow: _flow_round(
                order, entries[flow], (parts[flow, 0].reordered, parts[flow, 0].duplicates, parts[flow, 0].unread)
            )
            for flow in order.flows
        }

    async def _fetch(self, order: RoundOrder, places: list[tuple[int, int]]) -> dict[tuple[int, int], FlowArrivals]:
        """Return parts of the lists of arrivals by flow and offset; ask for those that were lost again."""
        loop, parts = asyncio.get_running_loop(), dict[tuple[int, int], FlowArrivals]()
        missing, until_s = places, loop.time() + _ANSWER_S
        latest_s, wanted = until_s + _PART_S * len(places), set(places)
        while missing:
            if loop.time() > min(until_s, latest_s):
                raise PeerError(f"{self._peer}: reports of arrivals are lost; check the path for heavy loss")
            asked = missing[:_AT_ONCE]
            for flow, offset in asked:
                self._send(ArrivalQuery(order.round, flow, offset))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REPEAT_S):
                    while any(place not in parts for place in asked):
                        for answer in await self._take_answers():
                            if isinstance(answer, FlowArrivals) and answer.round == order.round:
                                place = answer.flow, answer.offset
                                if place in wanted:
                                    parts[place] = answer
            before, missing = len(missing), [place for place in missing if place not in parts]
            if len(missing) < before:
                until_s = loop.time() + _ANSWER_S
        return {place: parts[place] for place in places}

    async def _send_in(self, order: RoundOrder) -> RoundOfFlows:
        expected_s = order.sweeps * len(order.flows) * order.gap_ns * 1.2e-9
        deadline_s = expected_s * 3 + _MARGIN_S  # the far end's limits may slow it down

        def is_over(status: RoundStatus) -> bool:
            return status.round == order.round and status.is_over

        await self._ask(order, RoundStatus, lambda status: status.round == order.round, _ANSWER_S)
        await asyncio.sleep(expected_s * 0.9)
        status = await self._ask(order, RoundStatus, is_over, deadline_s)
        await asyncio.sleep(_SETTLE_S)
        if status.unsent > len(order.flows) * order.sweeps // 2:
            raise PeerError(f"{self._peer} could not send datagrams of the flows; its log may say why")
        rounds: RoundOfFlows = {}
        for flow in order.flows:
            receiver = self.flows[flow].receiver
            counts = (receiver.reordered, receiver.duplicates, max(0, receiver.unread))
            rounds[flow] = _flow_round(order, receiver.entries, counts)
        return rounds

    async def trace(self, flow: int, *, is_on: bool) -> None:
        """Have the far end begin or end a trace of a flow's path. It is asked often, and does not answer."""
        for _ in range(4):
            self._send(FlowTrace(flow, is_on))
            await asyncio.sleep(0.02)

    async def _ask(self, question: RoundOrder, kind: type[T], fits: Callable[[T], bool], wait_s: float) -> T:
        """Ask until an answer fits; raise PeerError if none comes."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_s
        while loop.time() < until_s:
            self._send(question)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REPEAT_S):
                    while True:
                        for answer in await self._take_answers(kind):
                            if isinstance(answer, kind) and fits(answer):
                                return answer
        raise PeerError(f"{self._peer} does not answer on the flows any more; check the path for heavy loss")

    def _send(self, question: RoundOrder | ArrivalQuery | FlowTrace) -> None:
        """Send a question over the flow whose turn it is."""
        flows = list(self.flows.values())
        flow = flows[next(self._turn) % len(flows)]
        flow.answer(question.pack(flow.secret))

    async def _take_answers(self, kind: type[FlowDatagram] = FlowArrivals) -> list[FlowDatagram]:
        """Return the answers of a kind that have come since the last call, at least one."""
        while not (found := [answer for answer in self._answers if isinstance(answer, kind)]):
            self._news.clear()
            await self._news.wait()
        self._answers = [answer for answer in self._answers if not isinstance(answer, kind)]
        return found

    def _handle(self, flow: FlowSocket, data: bytes) -> None:
        datagram = decode_flow_datagram(data, flow.secret)
        if datagram is not None and len(self._answers) < 4 * _AT_ONCE:
            self._answers.append(datagram)
            self._news.set()

    def close(self) -> None:
        """Close the sockets."""
        for flow in self.flows.values():
            flow.close()


def _flow_round(order: RoundOrder, entries: Sequence[int], counts: tuple[int, int, int]) -> FlowRound:
    """Return a flow's round, of the entries that its receiver has noted."""
    known = len(entries)
    delays: list[int | None] = []
    pairs = 0
    for sweep in range(order.sweeps):
        numbers = numbers_of_sweep(sweep)
        entry = entries[numbers[0]] if numbers[0] < known else 0
        delays.append((entry - ENTRY_ZERO) * ENTRY_NS if entry else None)
        if len(numbers) == 2 and entry and numbers[1] < known and entries[numbers[1]]:
            pairs += 1
    reordered, duplicates, unread = counts
    return FlowRound(order.round, delays, pairs, min(reordered, pairs), duplicates, unread)
