"""The first lines of a run: hosts and state, keys, chosen values, and what is chosen for the next run."""

from typing import Any

import pytest
from linkgauge.engine.model.events import Started
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.presets.auto_select import NO_PRESET

FAR = Peer("db-02")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
async def test_the_footer_and_the_settings_bar_name_their_keys(world: Any, size: tuple[int, int]) -> None:
    """The footer has the keys of actions, the settings bar has those of settings."""
    async with world.cockpit(size) as cockpit:
        footer = cockpit.text().splitlines()[-1]
        for word in ("space", "freeze", "network", "connect", "help", "quit"):
            assert word in footer
        toggles = cockpit.line(2)
        assert all(key in toggles for key in ("d ", "+- ", "[] ", "t "))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
async def test_what_is_chosen_for_the_next_run_is_marked_beside_the_settings_of_this_one(
    world: Any, size: tuple[int, int]
) -> None:
    """A probe starts before the payload, and a run in progress has its duration and its workload."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("t", "l")
        assert "next:" not in cockpit.text()
        await cockpit.press("space")
        world.script.run_for(8, 9e9)
        await cockpit.settle()
        assert "next:" not in cockpit.text()
        before = cockpit.line(2)
        await cockpit.press("l")
        assert "next: no latency" in cockpit.line(2)
        assert "[latency]" in cockpit.line(2)
        await cockpit.press("l")
        assert cockpit.line(2) == before
        await cockpit.press("t", "w")
        assert "[60 s]" in cockpit.line(2)
        assert "next: rr, 5 min" in cockpit.line(2)
        assert "[rr]" not in cockpit.line(2)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_after_the_end_the_header_is_still_that_of_the_run_that_is_shown(
    world: Any, size: tuple[int, int]
) -> None:
    """Its gauge, preset and expected rate stay. The next run takes the choice, and the mark disappears."""
    async with world.cockpit(size, preset="gbe-fd-1500") as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 900e6)
        world.script.end()
        await cockpit.end()
        before = cockpit.line(1)
        cockpit.app.cockpit.state.set_preset(world.catalog.find("10mb-fd"))
        await cockpit.press("d", "plus")
        assert "next: 10mb-fd" in cockpit.line(1)
        assert "948 Mb/s" in cockpit.line(1)
        assert "[out]" in cockpit.line(2)
        assert "next: in, 2 sessions" in cockpit.line(2)
        assert before.split("  expected")[0][:12] == cockpit.line(1)[:12]
        await cockpit.press("space")
        await cockpit.settle()
        assert "next:" not in cockpit.text()
        assert "9.48 Mb/s" in cockpit.line(1)
        assert "[in]" in cockpit.line(2)


async def test_a_change_that_the_run_takes_is_not_one_for_the_next(world: Any) -> None:
    """Neither before nor after the run has reported it."""
    async with world.cockpit((120, 40)) as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 9e9)
        await cockpit.settle()
        screen = cockpit.app.cockpit
        screen.state.change_settings(sessions=5)
        assert (screen.state.snapshot().settings.sessions, screen.readings.settings.sessions) == (5, 1)
        await cockpit.press("plus")
        world.script.run_for(8, 9e9)
        await cockpit.settle()
        assert "next:" not in cockpit.text()
        assert "[8]" in cockpit.line(2)


async def test_another_remote_host_takes_the_last_run_off_the_screen(world: Any) -> None:
    """Its figures do not belong to the host in the title. The history has them."""
    async with world.cockpit((120, 40), peer=FAR) as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 9e9)
        world.script.end()
        await cockpit.end()
        state = cockpit.app.cockpit.state
        state.set_peer(FAR)
        assert state.summary is not None
        state.set_peer(Peer("db-03"))
        cockpit.app.cockpit.paint()
        await cockpit.settle()
        assert "READY" in cockpit.line(0)
        assert "db-03" in cockpit.line(0)
        assert "Is this link as fast as it should be?" in cockpit.text()


async def test_a_hostname_of_a_peer_cannot_break_the_title(world: Any) -> None:
    """Neither its markup nor its length can."""
    async with world.cockpit((80, 24), peer=FAR) as cockpit:
        await cockpit.press("space")
        facts = HostInfo("[bold]x[/]" * 25, "Linux", 4, "linkgauge", "uvloop")
        plan = cockpit.app.cockpit.plan
        expected = world.script.meter.summary().expectation
        world.script.emit(Started("2026-11-21T01:46:29Z", "db-02:5820", facts, facts, plan, expected))
        await cockpit.settle()
        assert "[bold]x[/]" in cockpit.line(0)
        assert "RUNNING" in cockpit.line(0)
        assert len(cockpit.line(0)) == 80


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_before_the_first_connection_the_header_says_that_the_preset_is_not_known_yet(
    world: Any, size: tuple[int, int]
) -> None:
    """The interfaces of both ends will choose the preset: "none" and "no expected rate" would be wrong."""
    async with world.cockpit(size, peer=FAR) as cockpit:
        state = cockpit.app.cockpit.state
        state.set_peer(FAR)
        state.set_preset(NO_PRESET, is_auto=True)
        cockpit.app.cockpit.paint()
        await cockpit.settle()
        line = cockpit.line(1)
        assert "auto: not known before the first connection" in line
        assert "none" not in line
        assert "no expected rate" not in line
