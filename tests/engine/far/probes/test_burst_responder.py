"""The far end's part in bursts: it serves the holder of the session's secret, once each, within its limits."""

import asyncio
from collections.abc import Callable

from linkgauge.engine.bursts.burst_sender import send_burst
from linkgauge.engine.far.probes.burst_responder import BurstResponder
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import LimitReached
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.plan import PROBE_SESSION
from linkgauge.engine.protocol.burst_datagrams import (
    BurstArrivals,
    BurstDatagram,
    BurstQuery,
    BurstRequest,
    BurstSent,
    decode_burst_datagram,
    read_burst_header,
)
from linkgauge.engine.protocol.datagram_handshake import DatagramAccepted, decode_handshake
from linkgauge.engine.protocol.payload_datagrams import DatagramKeys
from linkgauge.engine.workloads.session_handshake import SessionSpec

from ...bursts.socket_pair import connected_sockets

SPEC = SessionSpec(Direction.OUT, PROBE_SESSION, 0, None, "cd" * 32)
SECRET = bytes.fromhex(SPEC.secret_hex)
COOKIE = DatagramKeys(SECRET).cookie


class NearEnd:
    """A client of the responder, and the limits that it has reached."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.sock, far = connected_sockets()
        self.excess: list[LimitReached] = []
        self.responder = BurstResponder(far, SPEC, limits or Limits(), self.excess.append)
        self.payload: list[tuple[int, int, int]] = []

    def close(self) -> None:
        """Close both ends."""
        self.responder.close()
        self.sock.close()

    async def ask(self, data: bytes, fits: Callable[[BurstDatagram], bool]) -> BurstDatagram:
        """Ask until an answer fits; note payload meanwhile."""
        async with asyncio.timeout(20):
            while True:
                self.sock.send(data)
                await asyncio.sleep(0.02)
                for answer in self.read():
                    if fits(answer):
                        return answer

    def read(self) -> list[BurstDatagram]:
        """Return the answers that are there."""
        answers: list[BurstDatagram] = []
        while True:
            try:
                data = self.sock.recv(9_216)
            except BlockingIOError:
                return answers
            answer, header = decode_burst_datagram(data, SECRET), read_burst_header(data, COOKIE)
            if answer is not None:
                answers.append(answer)
            elif header is not None:
                self.payload.append(header)


async def test_it_accepts_sends_each_burst_once_and_reports_arrivals() -> None:
    """A repeated request is answered by what was sent; an older one is not carried out again."""
    near = NearEnd()
    try:
        await asyncio.sleep(0)
        assert isinstance(decode_handshake(near.sock.recv(2_048)), DatagramAccepted)
        request = BurstRequest(2, 50, 0, 200)

        def is_over(answer: BurstDatagram) -> bool:
            return isinstance(answer, BurstSent) and answer.is_over

        assert await near.ask(request.pack(SECRET), is_over) == BurstSent(2, 50, 0, is_over=True)
        near.sock.send(BurstRequest(1, 50, 0, 200).pack(SECRET))
        await near.ask(request.pack(SECRET), is_over)
        assert [(burst, place) for burst, place, _ in near.payload] == [(2, place) for place in range(50)]
        send_burst(near.sock, COOKIE, BurstRequest(3, 200, 0, 100))

        def is_whole(answer: BurstDatagram) -> bool:
            return isinstance(answer, BurstArrivals) and answer.total == 200 and answer.offset == 140

        answer = await near.ask(BurstQuery(3, 140).pack(SECRET), is_whole)
        assert isinstance(answer, BurstArrivals)
        assert [place for place, _ in answer.arrivals] == list(range(140, 200))
        empty = await near.ask(BurstQuery(8, 0).pack(SECRET), lambda found: isinstance(found, BurstArrivals))
        assert empty == BurstArrivals(8, 0, 0, 0)
        near.sock.send(BurstQuery(3, 10_000).pack(SECRET))
        assert not near.excess
    finally:
        near.close()


async def test_a_request_without_the_secret_or_out_of_bounds_gets_nothing() -> None:
    """A forger of the client's address cannot have it flooded."""
    near = NearEnd()
    try:
        for data in (
            BurstRequest(1, 50, 0, 200).pack(b"other"),
            BurstRequest(1, 1 << 20, 0, 9_000).pack(SECRET),
            BurstRequest(0, 5, 0, 200).pack(SECRET),
            b"\xff" * 500,
            b"",
        ):
            near.sock.send(data)
        await asyncio.sleep(0.1)
        assert near.read() == []
        assert near.payload == []
    finally:
        near.close()


async def test_bursts_stay_within_the_endpoint_s_limits() -> None:
    """Its own are paced, and too many that arrive end the test."""
    near = NearEnd(Limits(udp_rate_bit_s=1_000_000))
    try:
        request = BurstRequest(1, 25, 0, 500)
        await near.ask(request.pack(SECRET), lambda answer: isinstance(answer, BurstSent) and answer.is_over)
        near.read()
        stamps = [stamp_ns for _, _, stamp_ns in near.payload]
        assert stamps[-1] - stamps[0] >= 90_000_000  # 4 ms each
        send_burst(near.sock, COOKIE, BurstRequest(2, 500, 0, 1_000))
        async with asyncio.timeout(20):
            while not near.excess:
                near.sock.send(BurstQuery(2, 0).pack(SECRET))
                await asyncio.sleep(0.02)
        assert near.excess[0].limit == "udp_rate_bit_s"
    finally:
        near.close()
