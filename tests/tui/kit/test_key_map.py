"""The user's keys: they are checked, bound by Textual, and named wherever the app names a key."""

from typing import Any

import pytest
from linkgauge.tui.kit.actions import ScreenKind
from linkgauge.tui.kit.key_map import KEY_PRESETS, KeyMap, KeyMistake
from linkgauge.tui.session.preferences import Preferences

from ..stored_runs import open_history


@pytest.mark.parametrize(
    ("chosen", "blamed", "says"),
    [
        (
            {"toggle_run": "r"},
            "toggle_run",
            "toggle_run = 'r' is also the key of reconnect on the screen",
        ),
        ({"find": "S"}, "find", "find = 'S' is also the key of reverse on the screen 'history'"),
        ({"preset": "vim", "history": "k"}, "history", "history = 'k' is also the key of move_up"),
        ({"history": "ctrl+p"}, "history", "history = '^p' is the key of the palette"),
        ({"toggle_rum": "r"}, "toggle_rum", "there is no action 'toggle_rum'; did you mean toggle_run?"),
        ({"history": "hyper+x"}, "history", "history 'hyper+x' is invalid; give a character, or a name"),
        ({"history": []}, "history", "history '[]' is invalid; give a character, or a name"),
        ({"preset": "emacs"}, "preset", "preset 'emacs' is invalid; give vim"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_with_the_action(
    chosen: dict[str, object], blamed: str, says: str
) -> None:
    """A conflict names both actions."""
    with pytest.raises(KeyMistake) as caught:
        KeyMap(chosen)
    assert caught.value.action == blamed
    assert str(caught.value).startswith(says)


def test_two_actions_may_change_keys_and_an_action_may_have_several() -> None:
    """Keys are named as the user knows them."""
    keys = KeyMap({"toggle_run": "r", "reconnect": ["space", "f5"], "slower": "{"})
    assert keys.textual == {"toggle_run": "r", "reconnect": "space,f5", "slower": "left_curly_bracket"}
    names = {action.id: action.key_names for action in keys.actions_of(ScreenKind.COCKPIT)}
    assert (names["toggle_run"], names["reconnect"], names["slower"], names["faster"]) == (
        "r",
        "space F5",
        "{",
        "k",
    )


@pytest.mark.parametrize("name", list(KEY_PRESETS))
def test_a_preset_has_no_conflict(name: str) -> None:
    """On no screen."""
    assert KeyMap({"preset": name}).names


@pytest.mark.every
async def test_the_user_s_keys_work_and_are_shown(world: Any, history_log: Any) -> None:
    """In the footer, the settings line, the help page and the palette; the old ones do nothing."""
    keys = {"preset": "vim", "toggle_run": ["r", "f5"], "reconnect": "R", "direction": "D"}
    world.preferences, world.history = Preferences(keys=keys), history_log
    async with world.cockpit((120, 40)) as cockpit:
        assert cockpit.line(39).startswith("r start/stop")
        assert "D direction" in cockpit.text()
        await cockpit.press("space", "d")
        assert not world.scripts
        titles = {command.title for command in cockpit.app.get_system_commands(cockpit.app.screen)}
        assert "Start or stop a test  (r F5)" in titles
        await cockpit.press("?")
        assert "r F5  Start or stop a test" in cockpit.text()
        await cockpit.press("G", "k", "escape")
        await open_history(cockpit)
        table = cockpit.app.screen.query_one("CursorList")
        before = table.highlighted
        await cockpit.press("j", "j", "k")
        assert table.highlighted == before + 1
        await cockpit.press("G")
        assert table.highlighted == table.row_count - 1
        await cockpit.press("escape", "r")
        assert world.scripts
        await cockpit.press("f5")
        await cockpit.end()
