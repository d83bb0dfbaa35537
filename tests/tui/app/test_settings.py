"""The dialog of the settings: changes apply at once and are saved when it closes."""

from pathlib import Path
from typing import Any

import pytest
from linkgauge.tui.session.preferences import Preferences, read_preferences
from linkgauge.tui.session.setting_table import THEMES
from linkgauge.tui.session.settings_file import FILE_NAME
from linkgauge.tui.words.numbers import RateUnit


@pytest.mark.every
async def test_settings_apply_at_once_and_are_saved_when_the_screen_closes(world: Any, tmp_path: Path) -> None:
    """By keys alone, while a run goes on. A wrong value has its error beside the field, and changes nothing."""
    world.settings_dir = tmp_path
    async with world.cockpit() as cockpit:
        assert set(THEMES) <= set(cockpit.app.available_themes)
        await cockpit.press("space")
        world.script.run_for(8, 6.6e9)
        await cockpit.settle()
        assert "SHORT" in cockpit.text()
        await cockpit.press("s", "enter", "down", "down", "enter")
        assert cockpit.app.theme == "monochrome"
        await cockpit.press("tab", "enter", "down", "enter", "tab", "1", "0", "tab", "1", "2", "0")
        assert "✗ 120 % is invalid" in cockpit.text()
        assert cockpit.app.cockpit.state.pass_percent == 12
        await cockpit.press("backspace", "backspace", "backspace", "9", "0")
        assert "is invalid" not in cockpit.text()
        assert cockpit.app.cockpit.pacer.refresh_hz == 10
        await cockpit.press("tab", "3", "0")
        assert "✗ '30' is invalid; give never" in cockpit.text()
        await cockpit.press("d")
        assert "is invalid" not in cockpit.text()
        await cockpit.press("escape")
        assert "throughput, MiB/s" in cockpit.text()
        assert "PASS" in cockpit.text()
        await cockpit.press("space")
        await cockpit.end()
        assert world.script.diagnosis.pass_percent == 90
    assert read_preferences(tmp_path) == Preferences("monochrome", RateUnit.MIB, 10, 90, "30d")


async def test_a_file_that_was_broken_meanwhile_is_not_written_over(world: Any, tmp_path: Path) -> None:
    """The app says what is wrong with it; the change is in force all the same."""
    world.settings_dir = tmp_path
    async with world.cockpit((120, 40)) as cockpit:
        (tmp_path / FILE_NAME).write_text('units = "furlongs"')
        await cockpit.press("s", "tab", "tab", "5", "escape")
        await cockpit.end()
        assert "units 'furlongs' is invalid" in cockpit.app.shown_message.message
        assert cockpit.app.cockpit.pacer.refresh_hz == 5
    assert (tmp_path / FILE_NAME).read_text() == 'units = "furlongs"'
