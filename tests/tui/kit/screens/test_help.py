"""The page of keys."""

from typing import Any

import pytest
from linkgauge.tui.kit.actions import ACTIONS, ScreenKind
from linkgauge.tui.kit.screens.help import HelpScreen
from linkgauge.tui.kit.widgets.scroll_views import TextPage
from linkgauge.tui.run.cockpit_screen import CockpitScreen


async def test_the_help_keys_explain_every_key(world: Any) -> None:
    """Every action of the registry is on the page; escape closes it."""
    async with world.cockpit() as cockpit:
        await cockpit.press("f1", "f1", "question_mark")
        assert isinstance(cockpit.app.screen, HelpScreen)
        page_text = "\n".join(line.plain for line in cockpit.app.screen._lines(400))  # no text is broken in two
        of_others = {ScreenKind.ENDPOINT, ScreenKind.WATCH, ScreenKind.OBSERVE, ScreenKind.CONNECTION}
        of_the_app = [action for action in ACTIONS if {*action.screens} - of_others]
        assert all(action.help in page_text for action in of_the_app)
        assert all(f"{word}  " in page_text for word in ("RTT", "retx", "cwnd", "p99"))
        await cockpit.press("escape")
        assert isinstance(cockpit.app.screen, CockpitScreen)


@pytest.mark.every
@pytest.mark.parametrize(
    "size", [pytest.param((80, 24), marks=pytest.mark.every), (40, 10)], ids=["80x24", "40x10"]
)
async def test_keys_scroll_the_help_to_its_last_line_and_back(world: Any, size: tuple[int, int]) -> None:
    """Arrows go by a line, page up and page down by a page, home and end to the ends."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("f1")
        page = cockpit.app.screen.query_one(TextPage)
        lines = [line.plain.split() for line in cockpit.app.screen._lines(page.scrollable_content_region.width)]

        def is_in_view(words: list[str]) -> bool:
            return any(line.split()[1 : len(words) + 1] == words for line in cockpit.text().splitlines())

        assert is_in_view(lines[0])
        assert not is_in_view(lines[-1])
        await cockpit.press("end")
        assert is_in_view(lines[-1])
        await cockpit.press("home")
        assert is_in_view(lines[0])
        await cockpit.press("down")
        assert page.scroll_y == 1
        await cockpit.press("up")
        assert page.scroll_y == 0
        height = page.scrollable_content_region.height
        await cockpit.press("pagedown", "pagedown")
        assert page.scroll_y == min(2 * height, page.max_scroll_y)
        await cockpit.press("pageup")
        assert page.scroll_y == max(0, min(2 * height, page.max_scroll_y) - height)
