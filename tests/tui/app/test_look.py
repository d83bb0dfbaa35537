"""Keys and colours of the user's settings: mistakes are named before an app opens."""

from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.errors import UsageError
from linkgauge.tui.app.look import read_look
from linkgauge.tui.session.preferences import Preferences, read_preferences, save_preferences
from linkgauge.tui.session.settings_file import FILE_NAME


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ('\n[keys]\ntoggle_run = "r"', ", line 3", "toggle_run = 'r' is also the key of reconnect"),
        ('[theme]\nprimary = "ansi_red"', ", line 2", "primary 'ansi_red' is invalid; give a colour such as"),
        ('[theme]\nbase = "own"', ", line 2", "base 'own' is invalid; give one of textual-dark"),
        ('[theme]\nprimari = "red"', ", line 2", "primari is invalid; it is not a colour of a theme"),
        ('[theme]\ndark = "no"', ", line 2", "dark 'no' is invalid; give true or false"),
        ('theme = "own"', ", line 1", "theme 'own' needs colours; give them in [theme]"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, where: str, says: str
) -> None:
    """As every other mistake in the file."""
    monkeypatch.setenv("LINKGAUGE_CONFIG_DIR", str(tmp_path))
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(UsageError) as caught:
        read_look()
    assert str(caught.value).startswith(f"{tmp_path / FILE_NAME}{where}: {says}")


async def test_own_colours_are_a_theme_that_the_settings_can_leave_and_take_again(
    world: Any, tmp_path: Path
) -> None:
    """The app notes the name of the theme in force beside the colours, which stay."""
    path = tmp_path / FILE_NAME
    path.write_text('[theme]\nbase = "nord"\nprimary = "#ff8800"\n\n[keys]\ntoggle_run = "f5"\n')
    world.settings_dir, world.preferences = tmp_path, read_preferences(tmp_path)
    async with world.cockpit() as cockpit:
        assert cockpit.app.theme == "own"
        theme = cockpit.app.current_theme
        assert (theme.primary, theme.background, theme.dark) == ("#ff8800", "#2E3440", True)
        await cockpit.press("s")
        assert "your own" in cockpit.text()
        await cockpit.press("escape")
    save_preferences(tmp_path, Preferences("dracula"))
    assert read_preferences(tmp_path).theme == "dracula"
    assert path.read_text().startswith('[theme]\nbase = "nord"\nprimary = "#ff8800"\n\nname = "dracula"\n\n[keys]')
    save_preferences(tmp_path, Preferences("own"))
    assert read_preferences(tmp_path).theme == "own"


@pytest.mark.every
@pytest.mark.parametrize("has_colours", [True, False])
async def test_the_terminals_colours_are_the_only_ones_and_without_colours_there_are_none(
    world: Any, monkeypatch: pytest.MonkeyPatch, has_colours: bool
) -> None:
    """The ground is the terminal's own, and the row of the cursor is reversed."""
    if not has_colours:
        monkeypatch.setenv("NO_COLOR", "1")
    world.preferences = Preferences("terminal" if has_colours else "nord")
    async with world.cockpit() as cockpit:
        await cockpit.press("n", "tab", "down")
        screen = cockpit.app.screen
        styles = [
            segment.style for strip in screen._compositor.render_strips() for segment in strip if segment.style
        ]
    colours = {colour for style in styles for colour in (style.color, style.bgcolor) if colour is not None}
    named = {colour for colour in colours if not colour.is_default}
    assert bool(named) is has_colours
    assert all(colour.is_system_defined for colour in named)
    assert any(style.reverse for style in styles)
