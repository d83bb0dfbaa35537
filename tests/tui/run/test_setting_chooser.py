"""The settings line under the mouse: each setting opens its list, or does what its key does."""

from typing import Any

import pytest
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.workload import Workload, all_workloads
from linkgauge.tui.gauges.run_header import SettingsBar
from linkgauge.tui.run.preset_picker import PresetPicker
from linkgauge.tui.run.setting_chooser import SettingChooser


async def click(cockpit: Any, words: str, line: int = 2) -> None:
    """Click on a text of the settings line."""
    x = cockpit.line(line).index(words)
    await cockpit.pilot.click(SettingsBar, offset=(x, line - 1))
    await cockpit.settle()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_a_click_on_a_setting_opens_its_values_and_enter_takes_one(world: Any, size: tuple[int, int]) -> None:
    """The cursor is on the value in force; escape changes nothing."""
    async with world.cockpit(size) as cockpit:
        await click(cockpit, "sessions [1]")
        assert isinstance(cockpit.app.screen, SettingChooser)
        assert "128" in cockpit.text()
        await cockpit.press("down", "down", "enter")
        assert cockpit.app.cockpit.plan.settings.sessions == 3
        for words, keys in (("[out]", ("down", "enter")), ("[auto]", ("down", "enter")), ("[30 s]", ("escape",))):
            await click(cockpit, words)
            await cockpit.press(*keys)
        settings = cockpit.app.cockpit.plan.settings
        assert (str(settings.direction), settings.window_bytes) == ("in", 16_384)
        await click(cockpit, "10 Gb", line=1)
        assert isinstance(cockpit.app.screen, PresetPicker)


@pytest.mark.every
async def test_a_click_changes_the_running_test_and_says_why_it_cannot(world: Any) -> None:
    """The rate of datagrams has a list, too; an iperf3 server takes no changes."""
    async with world.cockpit((160, 40)) as cockpit:
        await click(cockpit, "[stream]")
        at = [str(each) for each in all_workloads()].index("udp")
        await cockpit.press(*["down"] * at, "enter")
        assert cockpit.app.cockpit.plan.workload is Workload.UDP
        await cockpit.press("space")
        world.script.run_for(8, 9e9)
        await cockpit.settle()
        await click(cockpit, "rate [")
        await cockpit.press("end", "enter")
        assert world.script.changes[-1].rate_bit_s is None
    async with world.cockpit((120, 40), peer=Peer.parse("iperf3://db-02")) as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 9e9)
        await cockpit.settle()
        await cockpit.pilot.click(SettingsBar, offset=(60, 1))
        await cockpit.settle()
        assert not isinstance(cockpit.app.screen, SettingChooser)
