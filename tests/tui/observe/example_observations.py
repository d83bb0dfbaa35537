"""Observations with fixed values, and a screen's source of them that a test feeds."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from linkgauge.engine.host.sockets.socket_message import SocketAddress
from linkgauge.engine.model.counters.samples import SessionSample
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.expected_rate import ExpectedRate
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.observe.observation import (
    ConnectionKey,
    FlowFigures,
    Observation,
    ObservedConnection,
    Owner,
    Status,
    Totals,
)
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.diagnosis.window_bounds import FlowWindows

NIC = NicInfo("eth0", "device", None, 10_000_000_000, "full", 1500, True, True, True, False, "fq_codel")
EXPECTED = ExpectedRate(9_415_000_000, "documented", "AIX table 1")
SLOW_READER = Finding(
    "receive-window",
    0.9,
    0.7,
    "The receiver at the remote end is reading too slowly: its window stops the sender.",
    "for 90 % of the time, with a window of 26 064 bytes and 25 578 bytes in flight",
    "at the remote end: see whether its program reads in time",
    weight=0.9,
    direction=Direction.OUT,
)
LOSS = Finding(
    "loss",
    0.6,
    0.7,
    "Packets are lost on the path.",
    "12 of 10 000 segments were sent again",
    "check cable, optics and switch ports",
    weight=0.5,
)


def connection(number: int, bit_s: float, status: Status = Status.HEALTHY, **changes: object) -> ObservedConnection:
    """Return a connection that this host sends on: number 1 is from port 40001 to 10.0.0.1:443."""
    sample = SessionSample(
        Direction.OUT,
        1,
        int(bit_s / 8),
        retransmits=0,
        rtt_us=20_000 + 100 * number,
        min_rtt_us=19_000,
        cwnd_bytes=1_310_720 + 1_448 * number,
        unacked_bytes=26_064,
        peer_window_bytes=26_064,
    )
    key = ConnectionKey(
        "tcp",
        SocketAddress("192.0.2.7", 40_000 + number),
        SocketAddress(f"10.0.{number // 250}.{number % 250}", 443),
        number,
    )
    out = FlowFigures(
        Direction.OUT,
        bit_s,
        int(bit_s),
        (bit_s,),
        sample,
        busy=1.0,
        rwnd_limited=0.9,
        retransmits=3,
        retransmitted=0.0012,
    )
    row = ObservedConnection(
        key=key,
        state="established",
        user="anna",
        out=out,
        in_=FlowFigures(Direction.IN, bit_s / 1_000, int(bit_s / 1_000), (bit_s / 1_000,)),
        status=status,
        reason="At the expected rate.",
        owner=Owner(1_000 + number, "nginx", "anna"),
        congestion="cubic",
        nic=NIC,
        expected=EXPECTED,
        windows=(FlowWindows(Direction.OUT, 25_578.0, 26_064.0, 1_310_720.0, 22_360_000.0),),
        observed_ns=number * SECOND_NS,
    )
    return replace(row, **changes)  # pyright: ignore[reportArgumentType]


def received(number: int, bit_s: float, **changes: object) -> ObservedConnection:
    """Return a connection that this host receives on: the sender's figures are not visible."""
    row = connection(number, bit_s)
    in_ = FlowFigures(Direction.IN, bit_s, int(bit_s), (bit_s,), unread=0.02)
    changed = {
        "out": FlowFigures(Direction.OUT),
        "in_": in_,
        "windows": (),
        "status": Status.UNKNOWN,
        "reason": "This end takes all that arrives.",
        "owner": Owner(2_000 + number, "rsync", "root", others=1),
    }
    return replace(row, **{**changed, **changes})  # pyright: ignore[reportArgumentType]


def examples() -> tuple[ObservedConnection, ...]:
    """Return one connection of each kind, the fastest first."""
    slow = {"findings": (SLOW_READER, LOSS), "reason": SLOW_READER.text, "status": Status.LIMITED}
    return (
        connection(1, 9_389e6),
        connection(2, 412e6, **slow),
        received(3, 94.1e6),
        connection(4, 3.2e6, Status.APP_LIMITED, reason="The sending program sets the rate."),
        connection(5, 64_100.0, Status.NEW, reason="Measured for too short a time to tell.", owner=None),
        connection(6, 0.0, Status.IDLE, reason="No payload moves."),
    )


def observation(
    rows: Sequence[ObservedConnection], second: int = 1, notes: tuple[str, ...] = (), **totals: int
) -> Observation:
    """Return the observation of a second."""
    return Observation(
        started_utc="2026-11-27T14:05:00.000+00:00",
        elapsed_ns=second * SECOND_NS,
        interval_ns=SECOND_NS,
        connections=tuple(rows),
        totals=Totals(
            **{
                "sockets": len(rows),
                "moving": sum(row.bit_s > 0 for row in rows),
                "out_bit_s": sum(row.out.bit_s for row in rows),
                "in_bit_s": sum(row.in_.bit_s for row in rows),
                **totals,
            }
        ),
        notes=notes,
    )


def ended(row: ObservedConnection) -> ObservedConnection:
    """Return a connection in the interval in which it ended."""
    return replace(row, status=Status.ENDED, reason="It ended in this interval.", findings=(), windows=())


class Source:
    """Yields the observations that a test puts into it. An exception ends it."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Observation | Exception] = asyncio.Queue()

    def put(self, *items: Observation | Exception) -> None:
        """Put the next observations."""
        for item in items:
            self.queue.put_nowait(item)

    async def __aiter__(self) -> AsyncIterator[Observation]:
        """Yield observations for ever."""
        while True:
            item = await self.queue.get()
            if isinstance(item, Exception):
                raise item
            yield item
