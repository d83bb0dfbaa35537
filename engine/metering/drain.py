"""The drain of a UDP run: the wait for datagrams that are still on their way when its senders have stopped."""

import asyncio
import time
from typing import Final

from ..model.directions import Direction
from ..model.plan import SECOND_NS
from .shared_counters import SharedCounters

QUIET_S: Final = 0.5
MAX_DRAIN_S: Final = 3.0
_LOOK_S: Final = 0.05


async def await_drain(counters: SharedCounters) -> None:
    """Return once no payload has moved for half a second, or after 3 s.

    By RFC 7680 a packet is lost only after a time that is long for the path. A queue that empties keeps datagrams
    coming, so this waits for a silence and not for a fixed time.
    """
    began_ns = moved_ns = time.monotonic_ns()
    carried = _payload_bytes(counters)
    while True:
        await asyncio.sleep(_LOOK_S)
        now_ns, before, carried = time.monotonic_ns(), carried, _payload_bytes(counters)
        if carried != before:
            moved_ns = now_ns
        if now_ns - moved_ns >= QUIET_S * SECOND_NS or now_ns - began_ns >= MAX_DRAIN_S * SECOND_NS:
            return


def _payload_bytes(counters: SharedCounters) -> int:
    """Return the payload of both directions. The probe's is not counted: it goes on."""
    return sum(map(counters.flow_bytes, Direction.DUPLEX.flows))
