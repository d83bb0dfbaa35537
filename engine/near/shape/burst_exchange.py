"""One burst at a time, in either direction, over a session that a burst_responder of the far end answers.

UDP loses datagrams, and a burst empties the bucket that lets them through. So every question is asked again until
its answer comes.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from typing import Final, TypeVar

from ...bursts.burst_sender import MAX_BURST_S, SentBurst
from ...bursts.burst_socket import BurstSocket
from ...model.directions import Direction
from ...model.errors import PeerError
from ...protocol.burst_datagrams import (
    ARRIVALS_IN_DATAGRAM,
    BurstArrivals,
    BurstDatagram,
    BurstQuery,
    BurstRequest,
    BurstSent,
    decode_burst_datagram,
)
from ...results.shape.burst_reading import Burst

T = TypeVar("T", bound=BurstDatagram)

FRAME_HEADER_BYTES: Final = 14
"""Ethernet's header, without preamble and checksum: what Linux counts of a frame, and most policers."""
_ANSWER_S: Final = 8.0
_REPEAT_S: Final = 0.1
_PART_S: Final = 0.1  # for each part of a list, on the slowest path
_SETTLE_S: Final = 0.06
_MOST_SETTLE_S: Final = 12.0  # a queue that drains
_AT_ONCE: Final = 24  # parts of a list that are asked for together: 30 KB come back
_NO_ANSWER: Final = (
    "does not answer bursts of UDP; its linkgauge may be older than this test: "
    "install the same version on both hosts"
)


class BurstExchange:
    """The near end of a session of bursts. `close` closes its socket."""

    def __init__(self, peer: str, sock: socket.socket, secret: bytes) -> None:
        """Take over a connected UDP socket, with the secret of its session."""
        self._peer = peer
        self._secret = secret
        self._burst = 0
        self._answers: list[BurstDatagram] = []
        self._news = asyncio.Event()
        self.socket = BurstSocket(sock, secret, self._handle)
        self.round_trip_s: float | None = None

    async def measure_round_trip(self, tries: int = 5) -> None:
        """Measure the round trip without load: the shortest of a few."""
        for _ in range(tries):
            began_s = time.perf_counter()  # uvloop's own clock has whole milliseconds
            await self._ask(BurstQuery(0, 0), BurstArrivals, lambda _: True)
            took_s = time.perf_counter() - began_s
            self.round_trip_s = took_s if self.round_trip_s is None else min(self.round_trip_s, took_s)

    async def send(self, direction: Direction, head: int, tail: int, datagram_bytes: int, tail_bit_s: int) -> Burst:
        """Send a burst in a direction, and return it as it arrived, once nothing more of it comes.

        Raises PeerError if the far end does not answer; OSError if a host cannot send.
        """
        self._burst += 1
        request = BurstRequest(self._burst, head, tail, datagram_bytes, tail_bit_s)
        if direction is Direction.OUT:
            return await self._send_out(request)
        return await self._send_in(request)

    def _frame_bytes(self, request: BurstRequest) -> int:
        return request.datagram_bytes + self.socket.header_bytes + FRAME_HEADER_BYTES

    def _pace_bit_s(self, request: BurstRequest) -> float:
        return request.tail_bit_s * self._frame_bytes(request) / request.datagram_bytes if request.tail else 0.0

    async def _send_out(self, request: BurstRequest) -> Burst:
        sending: asyncio.Future[SentBurst] = asyncio.get_running_loop().create_future()

        def note(burst: SentBurst | None, error: OSError | None) -> None:
            if sending.done():
                return
            if burst is not None:
                sending.set_result(burst)
            else:
                sending.set_exception(error or OSError("nothing was sent"))

        self.socket.send(request, note)
        sent = await sending
        total, unread = await self._settle(request.burst)
        arrivals = await self._fetch(request.burst, total)
        known = [(place, at_ns) for place, at_ns in arrivals if place < sent.sent]
        places = [place for place, _ in known]
        return Burst(
            sent.sent,
            places,
            [at_ns for _, at_ns in known],
            [sent.stamps_ns[place] for place in places],
            self._frame_bytes(request),
            unread,
            self._pace_bit_s(request),
        )

    async def _settle(self, burst: int) -> tuple[int, int]:
        """Wait until no more of a burst arrives at the far end; return how much did, and what its socket lost."""
        loop = asyncio.get_running_loop()
        until_s, before, steady = loop.time() + _MOST_SETTLE_S, -1, 0
        while True:
            answer = await self._ask(BurstQuery(burst, 0), BurstArrivals, lambda found: found.burst == burst)
            steady = steady + 1 if answer.total == before else 0
            before = answer.total
            if steady >= 2 or loop.time() > until_s:
                return answer.total, answer.unread
            await asyncio.sleep(max(_SETTLE_S, (self.round_trip_s or 0.0) / 2))

    async def _fetch(self, burst: int, total: int) -> list[tuple[int, int]]:
        """Return a burst's arrivals; ask for parts that were lost on their way again."""
        missing = list(range(0, total, ARRIVALS_IN_DATAGRAM))
        wanted, parts = set(missing), dict[int, BurstArrivals]()
        loop = asyncio.get_running_loop()
        until_s = loop.time() + _ANSWER_S
        latest_s = until_s + _PART_S * len(missing)
        while missing:
            if loop.time() > min(until_s, latest_s):
                raise PeerError(f"{self._peer}: reports of arrivals are lost; check the path for heavy loss")
            asked = missing[:_AT_ONCE]
            for offset in asked:
                self.socket.answer(BurstQuery(burst, offset).pack(self._secret))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(_REPEAT_S, 2 * (self.round_trip_s or 0.0))):
                    while any(offset not in parts for offset in asked):
                        for answer in await self._take_answers():
                            if (
                                isinstance(answer, BurstArrivals)
                                and answer.burst == burst
                                and answer.arrivals
                                and answer.offset in wanted
                            ):
                                parts[answer.offset] = answer
            found = [offset for offset in missing if offset in parts]
            if found:
                until_s = loop.time() + _ANSWER_S
            missing = [offset for offset in missing if offset not in parts]
        arrivals = [each for offset in sorted(parts) for each in parts[offset].arrivals]
        return arrivals[:total]

    async def _send_in(self, request: BurstRequest) -> Burst:
        receiver = self.socket.receiver
        _ = receiver.unread
        receiver.begin(request.burst)
        wait_s = MAX_BURST_S + _ANSWER_S

        def is_over(found: BurstSent) -> bool:
            return found.burst == request.burst and found.is_over

        answer = await self._ask(request, BurstSent, is_over, wait_s)
        loop = asyncio.get_running_loop()
        until_s, before = loop.time() + _MOST_SETTLE_S, -1
        while len(receiver.places) != before and loop.time() < until_s:
            before = len(receiver.places)
            await asyncio.sleep(max(2 * _SETTLE_S, self.round_trip_s or 0.0))
        if not answer.sent:
            raise PeerError(f"{self._peer} could not send a burst of UDP; its log may say why")
        if answer.sent > request.count:
            raise PeerError(f"{self._peer} says that it has sent more datagrams than a burst has")
        known = [n for n, place in enumerate(receiver.places) if place < answer.sent]
        return Burst(
            answer.sent,
            [receiver.places[n] for n in known],
            [receiver.arrived_ns[n] for n in known],
            [receiver.stamps_ns[n] for n in known],
            self._frame_bytes(request),
            receiver.unread,
            self._pace_bit_s(request),
        )

    async def _ask(
        self,
        question: BurstQuery | BurstRequest,
        kind: type[T],
        fits: Callable[[T], bool],
        wait_s: float = _ANSWER_S,
    ) -> T:
        """Ask until an answer fits; raise PeerError if none comes."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_s
        data = question.pack(self._secret)
        self._answers.clear()
        while loop.time() < until_s:
            self.socket.answer(data)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(_REPEAT_S, 2 * (self.round_trip_s or 0.0))):
                    while True:
                        for answer in await self._take_answers():
                            if isinstance(answer, kind) and fits(answer):
                                return answer
        raise PeerError(f"{self._peer} {_NO_ANSWER}")

    async def _take_answers(self) -> list[BurstDatagram]:
        """Return the answers that have come since the last call, at least one."""
        while not self._answers:
            self._news.clear()
            await self._news.wait()
        answers, self._answers = self._answers, []
        return answers

    def _handle(self, data: bytes) -> None:
        datagram = decode_burst_datagram(data, self._secret)
        if datagram is not None and len(self._answers) < 2 * _AT_ONCE:
            self._answers.append(datagram)
            self._news.set()

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()
