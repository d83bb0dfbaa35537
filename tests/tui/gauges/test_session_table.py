"""The table of sessions."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.tui.gauges.session_table import SessionsView, SessionTable
from linkgauge.tui.readings.live_readings import SessionRow


@pytest.mark.every
async def test_a_hundred_and_twenty_eight_sessions_scroll(world: Any) -> None:
    """All have a row, and the keyboard scrolls to the last one."""
    plan = Plan(Settings(sessions=128))
    async with world.cockpit((120, 40), plan=plan) as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 9e9)
        await cockpit.settle()
        assert "sessions 128" in cockpit.text()
        table = cockpit.app.cockpit.query_one(SessionTable)
        table.focus()
        await cockpit.press("end")
        await cockpit.settle()
        assert "→128" in cockpit.text()


async def test_a_round_trip_of_microseconds_is_not_zero(world: Any) -> None:
    """On loopback, TCP measures a few of them. The unit follows the value, as in the latency panel."""
    async with world.cockpit((120, 40)) as cockpit:
        table = cockpit.app.cockpit.query_one(SessionTable)
        rtts_us = enumerate((3, 22_100, None))
        rows = tuple(SessionRow(Direction.OUT, number, 1e9, rtt_us, 0, 1) for number, rtt_us in rtts_us)
        table.show(SessionsView(rows, 0))
        await cockpit.settle()
        text = cockpit.text()
        assert "3.00 µs" in text
        assert "22.1 ms" in text
        assert "0.00 ms" not in text
        assert "0 retransmits" in text


async def test_sessions_of_datagrams_have_loss_jitter_and_packets(world: Any) -> None:
    """They replace the columns of TCP. Unknown values are dashes."""
    async with world.cockpit((120, 40)) as cockpit:
        table = cockpit.app.cockpit.query_one(SessionTable)
        known = SessionRow(Direction.OUT, 1, 1e9, 212, None, None, 0.25, 31_000.0, 84_918.0)
        unknown = SessionRow(Direction.OUT, 2, None, None, None, None)
        table.show(SessionsView((known, unknown), is_datagram=True))
        await cockpit.settle()
        lines = [" ".join(line.split()) for line in cockpit.text().splitlines()]
        assert any("# Mb/s loss jitter packets/s" in line for line in lines)
        assert not any("retransmit" in line for line in lines)
        assert any("1 1 000 0.25 % 31.0 µs 84 918" in line for line in lines)
        assert any("2 – – % – –" in line for line in lines)
