"""Settings of a UDP run that change while it runs: every datagram stays accounted for."""

import asyncio
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import Ended
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import open_run
from linkgauge.engine.results.meter import Meter

DEADLINE_S = 60.0
PAUSE_S = 0.4
CHANGES: tuple[dict[str, Any], ...] = (
    {"rate_bit_s": 20 * 10**6},
    {"sessions": 3},
    {"datagram_bytes": 700},
    {"sessions": 1},
    {"sessions": 2},
    {"direction": Direction.IN},
    {"direction": Direction.DUPLEX},
)


@pytest.mark.every
@pytest.mark.loop("uvloop")
async def test_what_a_change_of_settings_cuts_off_is_not_lost(far_end: str) -> None:
    """Loopback loses nothing at this rate: neither in a session that closes, nor in one that is opened again."""
    settings = Settings(Direction.DUPLEX, 1, rate_bit_s=5 * 10**6, datagram_bytes=1_400)
    plan = Plan(settings, Workload.UDP, 4 * SECOND_NS, warmup_ns=0, interval_ns=SECOND_NS // 10)
    meter, end = Meter(), None
    async with asyncio.timeout(DEADLINE_S), open_run(plan, Peer.parse(far_end)) as run:

        async def change() -> None:
            for changes in CHANGES:
                await asyncio.sleep(PAUSE_S)
                run.change_settings(run.settings.with_changes(**changes))

        changing = asyncio.create_task(change())
        async for event in run:
            meter.feed(event)
            end = event.end.reason if isinstance(event, Ended) else end
        await changing
    summary = meter.summary()
    assert end is Reason.COMPLETED
    assert summary.warnings == ()
    assert len(summary.periods) == len(CHANGES) + 1
    for flow in Direction.DUPLEX.flows:
        measured = summary.measured[flow]
        assert measured is not None
        assert measured.datagrams is not None
        assert (measured.datagrams.lost, measured.datagrams.duplicates) == (0, 0)
        assert measured.datagrams.received
