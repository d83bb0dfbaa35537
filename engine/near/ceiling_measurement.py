"""Measurement of this machine's ceiling: short runs over loopback in each mode, with one and with many sessions."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from ..far.loopback import embedded_endpoint
from ..host.machine_measurements import identify_machine
from ..model.peer import Peer
from ..model.plan import SECOND_NS, Mode, Plan, Settings, SocketOptions
from ..results.meter import Meter
from ..workloads.sockets import unpaced_congestion
from .ceiling import Ceiling, CeilingRate
from .run import open_run

_INTERVAL_NS: Final = SECOND_NS // 10
_MARGIN_S: Final = 60.0


async def measure_ceiling(
    seconds: float = 2.0, on_rate: Callable[[CeilingRate], None] = lambda _rate: None
) -> Ceiling:
    """Return the ceiling of this machine, after a call of `on_rate` for each rate.

    Raises PeerError or WorkerError if a run fails.
    """
    machine = identify_machine()
    congestion = unpaced_congestion()
    rates: list[CeilingRate] = []
    async with embedded_endpoint() as peer:
        for sessions in (1, max(2, machine.cores)):
            for mode in (mode for mode in Mode if not mode.is_for_datagrams):
                rate = await _measure(peer, mode, sessions, seconds, congestion)
                if rate is not None:
                    rates.append(rate)
                    on_rate(rate)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Ceiling(machine, now, congestion, tuple(rates))


async def _measure(
    peer: Peer, mode: Mode, sessions: int, seconds: float, congestion: str | None
) -> CeilingRate | None:
    plan = Plan(
        settings=Settings(sessions=sessions),
        duration_ns=round(seconds * SECOND_NS),
        interval_ns=_INTERVAL_NS,
        mode=mode,
        socket=SocketOptions(congestion=congestion),
    )
    meter = Meter()
    async with asyncio.timeout(seconds + _MARGIN_S), open_run(plan, peer) as run:
        async for event in run:
            meter.feed(event)
    meter.flush()
    total = meter.summary().measured.total
    if total is None:
        return None
    estimate = total.estimate
    interval = (None, None) if estimate is None else (round(estimate.low), round(estimate.high))
    return CeilingRate(mode, sessions, round(total.bit_s), *interval)
