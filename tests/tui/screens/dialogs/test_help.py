"""The page of keys."""

from typing import Any

import pytest
from linkgauge.tui.actions import ACTIONS, ScreenKind
from linkgauge.tui.screens.dialogs.help import HelpScreen
from linkgauge.tui.screens.run.cockpit_screen import CockpitScreen

both_sizes = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])


@both_sizes
async def test_the_help_keys_explain_every_key(world: Any, size: tuple[int, int]) -> None:
    """Every action of the registry is on the page; escape closes it."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("f1", "f1", "question_mark")
        assert isinstance(cockpit.app.screen, HelpScreen)
        said = "\n".join(line.plain for line in cockpit.app.screen._lines(400))  # no text is broken in two
        of_the_app = [action for action in ACTIONS if action.screens != (ScreenKind.ENDPOINT,)]
        assert all(action.help in said for action in of_the_app)
        await cockpit.press("escape")
        assert isinstance(cockpit.app.screen, CockpitScreen)
