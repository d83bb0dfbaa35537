"""Every screen in a small terminal: nothing is written over, and no number loses digits."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.tui.run.preset_picker import PresetList, align_point

from ..scripted_run import five_sessions_half_way
from ..stored_runs import open_history

SIZES = pytest.mark.parametrize(
    "size",
    [(40, 10), pytest.param((60, 20), marks=pytest.mark.every), (80, 24)],
    ids=["40x10", "60x20", "80x24"],
)
FAR = Peer("db-02")
CUT_NUMBER = re.compile(r"\d…(?!\w)")  # names may lose their middle
PLANS = {
    "stream": Plan(duration_ns=30 * SECOND_NS),
    "duplex": Plan(Settings(Direction.DUPLEX, 2), duration_ns=30 * SECOND_NS),
    "transactions": Plan(workload=Workload.RR, duration_ns=30 * SECOND_NS),
    "latency": Plan(duration_ns=30 * SECOND_NS, probe=True),
    "datagrams": Plan(workload=Workload.UDP, duration_ns=30 * SECOND_NS),
    "datagrams both ways": Plan(Settings(Direction.DUPLEX, 2), Workload.UDP, duration_ns=30 * SECOND_NS),
}


async def cut_lines(cockpit: Any, *presses: Sequence[str]) -> list[str]:
    """Return the lines with a cut number on the screen now and after each of some presses."""
    lines = cockpit.text().splitlines()
    for keys in presses:
        await cockpit.press(*keys)
        lines += cockpit.text().splitlines()
    return [line for line in lines if CUT_NUMBER.search(line)]


@pytest.mark.every
@SIZES
@pytest.mark.parametrize("kind", PLANS)
async def test_no_number_of_a_run_is_cut(world: Any, size: tuple[int, int], kind: str) -> None:
    """On the instruments, in each plot, on each panel alone, and at the end."""
    preset = "zvm-qdio-1500" if kind == "transactions" else "10gbe-fd-1500"
    async with world.cockpit(size, peer=FAR, preset=preset, plan=PLANS[kind]) as cockpit:
        await cockpit.press("space")
        world.script.took_ns = (641_000, 1_062_000, 19_000_000)
        world.script.lost_share = 0.012
        if kind == "transactions":
            world.script.run_for(40, 9.6e6)
        else:
            five_sessions_half_way(world.script)
        await cockpit.settle()
        assert await cut_lines(cockpit, *["v"] * 4, *["m"] * 7, "o", ["o", "space"]) == []


@SIZES
async def test_the_rates_of_presets_are_whole(world: Any, size: tuple[int, int]) -> None:
    """Each row of the list fits its width and ends with its rate."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("n")
        presets = cockpit.app.screen.query_one(PresetList)
        width = presets.scrollable_content_region.width
        rows = [(row.rate, presets.draw(number, width)) for number, row in enumerate(presets.rows) if row.id]
        assert len(rows) > 50
        assert [
            rate
            for rate, line in rows
            if not line.plain.endswith(f" {align_point(rate)} ") or line.cell_length > width
        ] == []


@SIZES
async def test_the_footer_does_not_write_over_itself(world: Any, size: tuple[int, int]) -> None:
    """Each key has its whole label, or is left out; under 12 rows there is no footer."""
    async with world.cockpit(size) as cockpit:
        last = cockpit.text().splitlines()[-1].rstrip()
        entries = [entry.split(" ", 1)[1] for entry in last.split("  ") if " " in entry]
        assert size[1] < 12 or {"help", "quit", "start/stop"} <= set(entries)
        assert size[1] < 12 or set(entries) <= WHOLE


@pytest.mark.every
@SIZES
async def test_no_number_of_a_stored_run_is_cut(world: Any, history_log: Any, size: tuple[int, int]) -> None:
    """In the list and on the screen of a run."""
    async with world.cockpit(size) as cockpit:
        await open_history(cockpit)
        assert await cut_lines(cockpit, ["down"], ["enter"]) == []


WHOLE = {
    *("start/stop", "freeze", "network", "sessions", "window", "direction", "workload", "latency", "time", "plot"),
    *("maximize", "all panels", "panels", "events", "connect", "reconnect", "export", "history", "sweep"),
    *("settings", "help", "quit", "palette"),
}


async def test_the_smallest_start_screen_shows_the_first_keys(world: Any) -> None:
    """It has no footer for them. A larger size brings the longer text back."""
    async with world.cockpit((40, 10)) as cockpit:
        for entry in ("space start", "n network", "c connect", "? help", "q quit"):
            assert entry in cockpit.text()
        await cockpit.pilot.resize_terminal(80, 24)
        await cockpit.settle()
        assert "start a test" in cockpit.text()
        await cockpit.pilot.resize_terminal(40, 10)
        await cockpit.settle()
        assert "space start " in cockpit.text()


@pytest.mark.every
async def test_the_smallest_plots_have_their_names(world: Any) -> None:
    """On the time axis, since there is no title; the latency has the whole width, without a frame."""
    async with world.cockpit((40, 10), peer=FAR, plan=PLANS["stream"]) as cockpit:
        await cockpit.press("space")
        five_sessions_half_way(world.script)
        await cockpit.settle()
        for name in ("throughput", "RTT, ms", "retransmits/s", "cwnd, KiB"):
            assert f"└─ {name}" in cockpit.line(9)
            await cockpit.press("v")
    async with world.cockpit((40, 10), peer=FAR, plan=PLANS["latency"]) as cockpit:
        await cockpit.press("space")
        world.script.took_ns = (641_000, 1_062_000, 19_000_000)
        world.script.lost_share = 0.012
        five_sessions_half_way(world.script)
        await cockpit.settle()
        assert "╭" not in cockpit.text()
        assert cockpit.line(6).startswith(" p50")
        await cockpit.press("o")
        assert "╭" not in cockpit.text()
        assert "─events" in cockpit.text()


@pytest.mark.every
async def test_the_head_of_the_history_keeps_whole_words(world: Any, history_log: Any) -> None:
    """A word without room is left out, and comes back with room."""
    async with world.cockpit((40, 10)) as cockpit:
        await open_history(cockpit, "space")
        assert cockpit.line(0).strip() == "history  4 saved runs  ◆ 1 marked"
        await cockpit.press("l")
        (title,) = [line for line in cockpit.text().splitlines() if "label of " in line]
        assert "…" not in title
        await cockpit.press("escape")
        await cockpit.pilot.resize_terminal(80, 24)
        await cockpit.settle()
        assert cockpit.line(0).startswith(" linkgauge  history  4 saved runs, under 1 MB")
