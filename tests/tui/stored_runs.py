"""Helpers of tests on stored runs: an entry of the log, the ids in `history_log`, and the list in the app."""

import asyncio
from collections.abc import Callable
from typing import Any

from linkgauge.engine.results.run_log import RunEntry
from linkgauge.engine.results.run_log.run_brief import RunBrief
from linkgauge.tui.history.run_table import RunTable

RUN_IDS = (
    "20261118-091200-a2b3",
    "20261119-221030-c4d5",
    "20261120-070000-e6f7",
    "20261121-014629-g8h9",
)
FIRST, SHORT, CHANGED, LOST = RUN_IDS


async def until(cockpit: Any, condition: Callable[[], bool]) -> None:
    """Wait until a condition is met."""
    async with asyncio.timeout(30):
        while not condition():
            await cockpit.app.workers.wait_for_complete()
            await cockpit.settle()


async def open_history(cockpit: Any, *keys: str) -> None:
    """Open the list, wait for it, and press keys."""
    await cockpit.press("h")
    await until(cockpit, lambda: bool(run_ids(cockpit)))
    for key in keys:
        await cockpit.press(key)


def run_ids(cockpit: Any) -> list[str]:
    """Return the ids in the table, top down, as far as they were read."""
    return [line.run_id for line in cockpit.app.screen.query_one(RunTable)._list.lines if line is not None]


def run_at_cursor(cockpit: Any) -> str:
    """Return the id of the run at the cursor."""
    table = cockpit.app.screen.query_one(RunTable)
    return table._list.lines[table.highlighted].run_id


def notifications(cockpit: Any) -> list[str]:
    """Return the message above the keys, in a list that is empty without one."""
    shown = cockpit.app.shown_message
    return [] if shown is None else [shown.message]


def entry_of(peer: str, verdict: str | None = "pass", day: str = "2026-11-21") -> RunEntry:
    """Return what the run log lists of a run against this peer."""
    return RunEntry(
        number=1,
        run_id="id",
        preset="gbe-fd-1500",
        peer=peer,
        label=None,
        started_utc=f"{day}T10:00:00Z",
        reason=None,
        verdict=verdict,
        is_running=False,
        note=None,
        group=None,
        figures=RunBrief(),
    )
